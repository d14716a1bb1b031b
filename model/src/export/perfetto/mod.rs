//! A trace for Perfetto's timeline (<https://ui.perfetto.dev>).
//!
//! Processes and threads are tracks; what happened in them are instants; each program that a process ran is a slice.
//! Builds are slices of their own tracks, nested as tools started each other, and findings are instants on one track at
//! the time of their first evidence. Events are written as they come, sorted within a window; the rest follows from the
//! report.

mod lanes;
mod proto;

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap, HashSet},
    io::{self, Write},
};

use prost::Message as _;

use crate::{
    event::{Body, Event, EventId},
    report::{Build, Finding, Report, phrase},
};
use proto::{
    DebugAnnotation, INCREMENTAL_STATE_CLEARED, INSTANT, InternedData, InternedName,
    NEEDS_INCREMENTAL_STATE, ProcessDescriptor, SLICE_BEGIN, SLICE_END, ThreadDescriptor,
    TracePacket, TrackDescriptor, TrackEvent,
};

/// Events that wait to be sorted. Sources arrive out of order by milliseconds, never by so many events.
const WINDOW: usize = 4096;
/// Events whose time is remembered, to place findings.
const MOST_TIMES: usize = 1 << 24;

/// Track ids: kinds are kept apart by their high bits.
const BUILDS: u64 = 1 << 60;
const FINDINGS: u64 = 2 << 60;
const PROCESS: u64 = 3 << 60;
const THREAD: u64 = 4 << 60;

/// Writes a Perfetto trace.
pub struct Exporter<W> {
    output: W,
    waiting: BinaryHeap<Reverse<(u64, EventId, Waiting)>>,
    processes: HashSet<u32>,
    threads: HashSet<(u32, u32)>,
    names: HashMap<u32, String>,
    times: Vec<u64>,
    sequences: HashMap<u32, Sequence>,
}

/// An event that waits for its turn.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Waiting {
    track: u64,
    category: &'static str,
    name: String,
    notes: Notes,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Value {
    Text(String),
    Number(i64),
}

/// Annotations of a slice or instant.
type Notes = Vec<(&'static str, Value)>;

/// A sequence of packets and what it interned.
#[derive(Default)]
struct Sequence {
    categories: HashMap<&'static str, u64>,
    notes: HashMap<&'static str, u64>,
    begun: bool,
}

/// The sequences; each is in order of time.
const EVENTS: u32 = 1;
const IMAGES: u32 = 2;
const BUILD_SLICES: u32 = 3;
const FINDING_INSTANTS: u32 = 4;

impl<W: Write> Exporter<W> {
    /// Begins a trace.
    pub fn new(output: W) -> Self {
        Exporter {
            output,
            waiting: BinaryHeap::new(),
            processes: HashSet::new(),
            threads: HashSet::new(),
            names: HashMap::new(),
            times: Vec::new(),
            sequences: HashMap::new(),
        }
    }

    /// Takes one event in.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn event(&mut self, event: &Event) -> io::Result<()> {
        self.remember_time(event);
        if let Body::ProcessStart(start) = &event.body {
            let name = start.argv.first().unwrap_or(&start.exe);
            let name = name.rsplit('/').next().unwrap_or(name).to_owned();
            self.names.insert(event.pid, name);
        }
        let Some((category, name, notes)) = described(&event.body) else {
            return Ok(());
        };
        let track = self.track(event.pid, event.tid)?;
        self.waiting.push(Reverse((
            event.t,
            event.id,
            Waiting {
                track,
                category,
                name,
                notes,
            },
        )));
        while self.waiting.len() > WINDOW {
            self.release()?;
        }
        Ok(())
    }

    /// Writes what follows from the whole: programs, builds, findings.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn finish(mut self, report: &Report) -> io::Result<W> {
        while !self.waiting.is_empty() {
            self.release()?;
        }
        self.images(report)?;
        self.builds(report)?;
        self.findings(report)?;
        self.output.flush()?;
        Ok(self.output)
    }

    fn remember_time(&mut self, event: &Event) {
        let Ok(at) = usize::try_from(event.id) else {
            return;
        };
        if at < MOST_TIMES {
            if self.times.len() <= at {
                self.times.resize(at + 1, 0);
            }
            if let Some(time) = self.times.get_mut(at) {
                *time = event.t;
            }
        }
    }

    fn release(&mut self) -> io::Result<()> {
        let Some(Reverse((t, id, waiting))) = self.waiting.pop() else {
            return Ok(());
        };
        let mut notes = waiting.notes;
        notes.push((
            "event",
            Value::Number(i64::try_from(id).unwrap_or(i64::MAX)),
        ));
        self.moment(
            EVENTS,
            t,
            waiting.track,
            waiting.category,
            Some(waiting.name),
            notes,
            INSTANT,
        )
    }

    /// The track of a thread, described on its first use.
    fn track(&mut self, pid: u32, tid: u32) -> io::Result<u64> {
        self.process_track(pid)?;
        let uuid = THREAD | (u64::from(pid) << 30) ^ u64::from(tid);
        if self.threads.insert((pid, tid)) {
            let name = self.names.get(&pid).filter(|_| pid == tid).cloned();
            self.describe(TrackDescriptor {
                uuid: Some(uuid),
                parent_uuid: Some(PROCESS | u64::from(pid)),
                thread: Some(ThreadDescriptor {
                    pid: Some(signed(pid)),
                    tid: Some(signed(tid)),
                    thread_name: name,
                }),
                ..TrackDescriptor::default()
            })?;
        }
        Ok(uuid)
    }

    fn process_track(&mut self, pid: u32) -> io::Result<u64> {
        let uuid = PROCESS | u64::from(pid);
        if self.processes.insert(pid) {
            let name = match pid {
                0 => Some("jittrace".to_owned()),
                _ => self.names.get(&pid).cloned(),
            };
            self.describe(TrackDescriptor {
                uuid: Some(uuid),
                process: Some(ProcessDescriptor {
                    pid: Some(signed(pid)),
                    process_name: name,
                    cmdline: Vec::new(),
                }),
                ..TrackDescriptor::default()
            })?;
        }
        Ok(uuid)
    }

    /// Each program that a process ran.
    fn images(&mut self, report: &Report) -> io::Result<()> {
        let mut slices = Vec::new();
        let mut open_until: HashMap<u32, u64> = HashMap::new();
        let mut images: Vec<_> = report.processes.iter().collect();
        images.sort_by_key(|process| process.start);
        for process in images {
            let track = self.process_track(process.pid)?;
            let start = process
                .start
                .max(open_until.get(&process.pid).copied().unwrap_or(0));
            let end = process.end.unwrap_or(report.duration_ns).max(start + 1);
            open_until.insert(process.pid, end);
            let command = phrase::command(&process.argv);
            let notes = vec![
                ("argv", Value::Text(command.clone())),
                ("exe", Value::Text(process.exe.clone())),
                ("exit", Value::Text(phrase::exit(process.exit))),
            ];
            slices.push(Slice {
                track,
                start,
                end,
                category: "process",
                name: phrase::clipped(&phrase::one_line(&command), 200),
                notes,
            });
        }
        self.slices(IMAGES, slices)
    }

    fn builds(&mut self, report: &Report) -> io::Result<()> {
        if report.builds.is_empty() {
            return Ok(());
        }
        self.describe(named(BUILDS, None, "Builds"))?;
        let mut described = HashSet::new();
        let mut slices = Vec::new();
        for placed in lanes::place(&report.builds, report.duration_ns) {
            let track = BUILDS | (placed.lane as u64 + 1);
            if described.insert(track) {
                let name = format!("lane {}", placed.lane + 1);
                self.describe(named(track, Some(BUILDS), &name))?;
            }
            slices.push(Slice {
                track,
                start: placed.start,
                end: placed.end,
                category: "build",
                name: build_name(placed.build),
                notes: build_notes(placed.build),
            });
        }
        self.slices(BUILD_SLICES, slices)
    }

    fn findings(&mut self, report: &Report) -> io::Result<()> {
        if report.findings.is_empty() {
            return Ok(());
        }
        self.describe(named(FINDINGS, None, "Findings"))?;
        let mut moments: Vec<(u64, &Finding)> = report
            .findings
            .iter()
            .map(|finding| (self.time_of(finding), finding))
            .collect();
        moments.sort_by_key(|(t, _)| *t);
        for (t, finding) in moments {
            let notes = vec![
                ("title", Value::Text(finding.title.clone())),
                (
                    "severity",
                    Value::Text(phrase::severity(finding.severity).to_owned()),
                ),
                (
                    "component",
                    Value::Text(finding.component.clone().unwrap_or_default()),
                ),
                ("cause", Value::Text(finding.cause.clone())),
                ("remedy", Value::Text(finding.remedy.join("\n"))),
            ];
            let name = format!("{}: {}", phrase::severity(finding.severity), finding.id);
            self.moment(
                FINDING_INSTANTS,
                t,
                FINDINGS,
                "finding",
                Some(name),
                notes,
                INSTANT,
            )?;
        }
        Ok(())
    }

    fn time_of(&self, finding: &Finding) -> u64 {
        finding
            .evidence
            .iter()
            .filter_map(|evidence| {
                self.times
                    .get(usize::try_from(evidence.event).ok()?)
                    .copied()
            })
            .filter(|t| *t > 0)
            .min()
            .unwrap_or(0)
    }

    /// Writes slices in order of time; the ends at a moment before the beginnings, the inner ends first.
    fn slices(&mut self, sequence: u32, slices: Vec<Slice>) -> io::Result<()> {
        let mut edges: Vec<(u64, u8, u64, usize)> = Vec::with_capacity(slices.len() * 2);
        for (number, slice) in slices.iter().enumerate() {
            edges.push((slice.end, 0, u64::MAX - slice.start, number));
            edges.push((slice.start, 1, u64::MAX - slice.end, number));
        }
        edges.sort_unstable();
        let mut slices: Vec<Option<Slice>> = slices.into_iter().map(Some).collect();
        for (t, begins, _, number) in edges {
            let Some(place) = slices.get_mut(number) else {
                continue;
            };
            if begins == 1 {
                if let Some(slice) = place {
                    let (name, notes) = (
                        std::mem::take(&mut slice.name),
                        std::mem::take(&mut slice.notes),
                    );
                    let (track, category) = (slice.track, slice.category);
                    self.moment(sequence, t, track, category, Some(name), notes, SLICE_BEGIN)?;
                }
            } else if let Some(slice) = place.take() {
                self.moment(
                    sequence,
                    t,
                    slice.track,
                    slice.category,
                    None,
                    Vec::new(),
                    SLICE_END,
                )?;
            }
        }
        Ok(())
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of one packet")]
    fn moment(
        &mut self,
        sequence: u32,
        t: u64,
        track: u64,
        category: &'static str,
        name: Option<String>,
        notes: Notes,
        kind: i32,
    ) -> io::Result<()> {
        let state = self.sequences.entry(sequence).or_default();
        let mut interned = InternedData::default();
        let intern = |known: &mut HashMap<&'static str, u64>,
                      word: &'static str,
                      into: &mut Vec<InternedName>| {
            let next = known.len() as u64 + 1;
            *known.entry(word).or_insert_with(|| {
                into.push(InternedName {
                    iid: Some(next),
                    name: Some(word.to_owned()),
                });
                next
            })
        };
        let category = intern(
            &mut state.categories,
            category,
            &mut interned.event_categories,
        );
        let debug_annotations = notes
            .into_iter()
            .map(|(word, value)| {
                let mut note = DebugAnnotation {
                    name_iid: Some(intern(
                        &mut state.notes,
                        word,
                        &mut interned.debug_annotation_names,
                    )),
                    ..DebugAnnotation::default()
                };
                match value {
                    Value::Text(text) => note.string_value = Some(text),
                    Value::Number(number) => note.int_value = Some(number),
                }
                note
            })
            .collect();
        let flags = match std::mem::replace(&mut state.begun, true) {
            false => INCREMENTAL_STATE_CLEARED | NEEDS_INCREMENTAL_STATE,
            true => NEEDS_INCREMENTAL_STATE,
        };
        let something =
            !interned.event_categories.is_empty() || !interned.debug_annotation_names.is_empty();
        self.put(&TracePacket {
            timestamp: Some(t),
            trusted_packet_sequence_id: Some(sequence),
            sequence_flags: Some(flags),
            interned_data: something.then_some(interned),
            track_event: Some(TrackEvent {
                category_iids: vec![category],
                debug_annotations,
                r#type: Some(kind),
                track_uuid: Some(track),
                name,
            }),
            track_descriptor: None,
        })
    }

    fn describe(&mut self, descriptor: TrackDescriptor) -> io::Result<()> {
        self.put(&TracePacket {
            trusted_packet_sequence_id: Some(EVENTS),
            track_descriptor: Some(descriptor),
            ..TracePacket::default()
        })
    }

    /// A trace is packets under field 1: key, length, packet.
    fn put(&mut self, packet: &TracePacket) -> io::Result<()> {
        const FIELD_1_BYTES: u8 = 0x0a;
        let mut bytes = vec![FIELD_1_BYTES];
        packet
            .encode_length_delimited(&mut bytes)
            .map_err(io::Error::other)?;
        self.output.write_all(&bytes)
    }
}

/// A slice to be written.
struct Slice {
    track: u64,
    start: u64,
    end: u64,
    category: &'static str,
    name: String,
    notes: Notes,
}

fn named(uuid: u64, parent: Option<u64>, name: &str) -> TrackDescriptor {
    TrackDescriptor {
        uuid: Some(uuid),
        name: Some(name.to_owned()),
        parent_uuid: parent,
        ..TrackDescriptor::default()
    }
}

fn signed(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

fn build_name(build: &Build) -> String {
    let output = build
        .output
        .as_deref()
        .and_then(|path| path.rsplit('/').next())
        .unwrap_or_default();
    format!("{} {output}", build.tool).trim_end().to_owned()
}

fn build_notes(build: &Build) -> Notes {
    let mut notes = vec![
        ("argv", Value::Text(phrase::command(&build.argv))),
        ("cwd", Value::Text(build.cwd.clone())),
        ("archs", Value::Text(build.archs.join(" "))),
        ("exit", Value::Text(phrase::exit(build.exit))),
        ("pid", Value::Number(i64::from(build.pid))),
    ];
    for (name, value) in [
        ("version", &build.version),
        ("output", &build.output),
        ("started by", &build.started_by),
        ("message", &build.message),
    ] {
        if let Some(value) = value {
            notes.push((name, Value::Text(value.clone())));
        }
    }
    notes
}

/// An instant's category, name and annotations; `None` for what is told by slices or by the model.
fn described(body: &Body) -> Option<(&'static str, String, Notes)> {
    let text = |text: &str| Value::Text(text.to_owned());
    let base = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    let frame = |python: &[crate::event::Frame]| {
        python.first().map(|frame| {
            (
                "python",
                Value::Text(format!(
                    "{} in {}:{}",
                    frame.function, frame.file, frame.line
                )),
            )
        })
    };
    Some(match body {
        Body::Exec(exec) => {
            let mut notes = vec![
                ("path", text(&exec.path)),
                ("argv", Value::Text(phrase::command(&exec.argv))),
            ];
            notes.extend(frame(&exec.python));
            ("exec", format!("exec {}", base(&exec.path)), notes)
        }
        Body::ExecFailed(exec) => {
            let notes = vec![
                ("path", text(&exec.path)),
                ("errno", Value::Number(exec.errno.into())),
            ];
            ("exec", format!("exec failed {}", base(&exec.path)), notes)
        }
        Body::LibraryLoaded(loaded) => {
            let mut notes = vec![
                ("path", text(&loaded.path)),
                ("rule", text(loaded.rule.word())),
                ("rule detail", text(&loaded.rule_detail)),
            ];
            notes.extend(
                loaded
                    .requested_by
                    .as_deref()
                    .map(|by| ("requested by", text(by))),
            );
            ("library", format!("load {}", base(&loaded.path)), notes)
        }
        Body::LibraryFailed(failed) => {
            let notes = vec![("error", text(&failed.error))];
            (
                "library",
                format!("load failed {}", base(&failed.requested)),
                notes,
            )
        }
        Body::Call(call) => {
            let mut notes = Vec::new();
            notes.extend(call.value.as_deref().map(|value| ("value", text(value))));
            notes.extend(call.result.map(|result| ("result", Value::Number(result))));
            notes.extend(
                call.object
                    .as_deref()
                    .map(|object| ("object", text(object))),
            );
            notes.extend(frame(&call.python));
            ("call", call.function.clone(), notes)
        }
        Body::Message(message) => {
            let notes = vec![
                ("text", text(&message.text)),
                ("stream", text(&message.stream)),
            ];
            (
                "message",
                phrase::clipped(&phrase::one_line(&message.text), 120),
                notes,
            )
        }
        Body::File(access) => {
            let op = serde_json::to_value(access.op).ok();
            let op = op.as_ref().and_then(|op| op.as_str()).unwrap_or("file");
            let notes = vec![
                ("path", text(&access.path)),
                ("errno", Value::Number(access.errno.into())),
            ];
            ("file", format!("{op} {}", base(&access.path)), notes)
        }
        Body::Lost(lost) => {
            let notes = vec![("reason", text(&lost.reason))];
            ("trace", format!("lost {} {}", lost.count, lost.what), notes)
        }
        Body::Note(note) => (
            "trace",
            phrase::clipped(&phrase::one_line(&note.text), 120),
            Vec::new(),
        ),
        Body::ProcessStart(_)
        | Body::ProcessExit(_)
        | Body::LibraryRequest(_)
        | Body::LibraryUnloaded(_)
        | Body::PythonStack(_)
        | Body::Fact(_)
        | Body::Other(_) => return None,
    })
}

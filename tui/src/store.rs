//! Every event, kept so that a million of them cost little and any of them is there at once.
//!
//! Lines are packed in chunks and compressed; beside them stands a short mark for each event with what lists are made
//! of (number, time, process, kind, whether it failed). Looking at an event unpacks its chunk; the last few unpacked
//! chunks are kept.

use std::{cell::RefCell, collections::HashMap, rc::Rc};

use jittrace_model::{
    Body, Event, EventId,
    event::{FileOp, Source},
};

/// Events in a full chunk.
pub const CHUNK: usize = 256;

/// Unpacked chunks that are kept: more than the rows of a screen and a chain of evidence lie in.
const UNPACKED: usize = 48;

/// Kinds of events, in the order of their codes.
pub use jittrace_model::event::KINDS;

/// The code of kinds that this version does not know.
pub const OTHER_KIND: u8 = 15;

/// What lists need to know of an event without unpacking it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// The event's number.
    pub id: EventId,
    /// Nanoseconds since the trace began.
    pub t: u64,
    /// Process.
    pub pid: u32,
    /// Position in [`KINDS`], or [`OTHER_KIND`].
    pub kind: u8,
    /// Who saw it.
    pub source: u8,
    /// It tells of something that did not work.
    pub failed: bool,
    /// It is a look at a place where nothing was: one step of a search.
    pub probe: bool,
}

impl Mark {
    /// The mark of an event.
    pub fn of(event: &Event) -> Mark {
        let (failed, probe) = match &event.body {
            Body::ExecFailed(failed) => (true, matches!(failed.errno, 2 | 20)),
            Body::LibraryFailed(_) => (true, false),
            Body::ProcessExit(exit) => (
                exit.signal.is_some() || exit.code.is_some_and(|c| c != 0),
                false,
            ),
            Body::Call(call) => (call.result.is_some_and(|r| r != 0), false),
            Body::Message(_) => (true, false),
            Body::Lost(_) => (true, false),
            Body::File(access) => (
                access.errno != 0,
                matches!(access.errno, 2 | 20)
                    && matches!(access.op, FileOp::Open | FileOp::Stat | FileOp::List),
            ),
            _ => (false, false),
        };
        let kind = event.body.kind();
        Mark {
            id: event.id,
            t: event.t,
            pid: event.pid,
            kind: KINDS
                .iter()
                .position(|k| *k == kind)
                .and_then(|at| u8::try_from(at).ok())
                .unwrap_or(OTHER_KIND),
            source: source_code(event.source),
            failed,
            probe,
        }
    }

    /// The kind's name; empty for a kind that only its line can tell.
    pub fn kind_name(&self) -> &'static str {
        KINDS.get(usize::from(self.kind)).copied().unwrap_or("")
    }

    /// The source's word.
    pub fn source_name(&self) -> &'static str {
        SOURCES
            .get(usize::from(self.source))
            .map_or("other", |s| s.word())
    }
}

/// Sources in the order of their codes.
pub const SOURCES: [Source; 5] = [
    Source::Preload,
    Source::Ebpf,
    Source::Procfs,
    Source::Collector,
    Source::Other,
];

fn source_code(source: Source) -> u8 {
    SOURCES
        .iter()
        .position(|s| *s == source)
        .and_then(|at| u8::try_from(at).ok())
        .unwrap_or(4)
}

/// Some consecutive events, packed.
#[derive(Debug, Clone, Default)]
pub struct Chunk {
    marks: Vec<Mark>,
    packed: Packed,
}

#[derive(Debug, Clone)]
enum Packed {
    /// Lines as they are, each with its newline.
    Plain(String),
    /// The same, compressed.
    Lz4(Box<[u8]>),
}

impl Packed {
    fn unpack(&self) -> String {
        match self {
            Packed::Plain(text) => text.clone(),
            Packed::Lz4(bytes) => lz4_flex::decompress_size_prepended(bytes)
                .ok()
                .and_then(|bytes| String::from_utf8(bytes).ok())
                .unwrap_or_default(),
        }
    }
}

impl Default for Packed {
    fn default() -> Self {
        Packed::Plain(String::new())
    }
}

/// Bytes of lines from which it is worth while to compress them.
const LONG: usize = 16 << 10;

impl Chunk {
    /// Packs events.
    pub fn of(events: &[Event]) -> Chunk {
        let mut chunk = Chunk::default();
        for event in events {
            // A line that cannot be written keeps its place, so that marks and lines stay in step.
            chunk.add(event, &event.to_line().unwrap_or_default());
        }
        chunk.pack();
        chunk
    }

    /// How many events it has.
    pub fn len(&self) -> usize {
        self.marks.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.marks.is_empty()
    }

    /// Takes the next event, as long as nothing is compressed.
    pub(crate) fn add(&mut self, event: &Event, line: &str) {
        if let Packed::Plain(text) = &mut self.packed {
            text.push_str(line);
            text.push('\n');
            self.marks.push(Mark::of(event));
        }
    }

    /// Compresses it; a small one stays open for more.
    pub(crate) fn pack(&mut self) {
        if let Packed::Plain(text) = &self.packed
            && (self.marks.len() >= CHUNK || text.len() >= LONG)
        {
            self.packed = Packed::Lz4(lz4_flex::compress_prepend_size(text.as_bytes()).into());
        }
    }
}

/// Every event of the trace, in order of arrival.
#[derive(Debug, Default)]
pub struct Store {
    marks: Vec<Mark>,
    chunks: Vec<(usize, Packed)>,
    /// Ids rise with the position, so that they can be found by halving.
    unordered: bool,
    /// The largest process id, and the latest moment in nanoseconds.
    largest: (u32, u64),
    /// Positions of the starts of each process id.
    starts: HashMap<u32, Vec<u32>>,
    unpacked: RefCell<Vec<(usize, Rc<Lines>)>>,
}

/// One unpacked chunk.
#[derive(Debug)]
struct Lines {
    text: String,
    ends: Vec<usize>,
}

impl Lines {
    fn of(text: String) -> Lines {
        let ends = text.match_indices('\n').map(|(at, _)| at).collect();
        Lines { text, ends }
    }

    fn get(&self, at: usize) -> Option<&str> {
        let end = *self.ends.get(at)?;
        let start = match at.checked_sub(1) {
            Some(before) => self.ends.get(before)? + 1,
            None => 0,
        };
        self.text.get(start..end)
    }
}

impl Store {
    /// Columns that every process id fits in, and every moment.
    pub fn widths(&self) -> (usize, usize) {
        let (pid, t) = self.largest;
        let moment = crate::text::moment(t).len();
        (pid.to_string().len().max(4), moment.max(6))
    }

    /// Takes the next events.
    pub fn push(&mut self, chunk: Chunk) {
        for mark in &chunk.marks {
            if self.marks.last().is_some_and(|last| last.id >= mark.id) {
                self.unordered = true;
            }
            let (pid, t) = &mut self.largest;
            (*pid, *t) = ((*pid).max(mark.pid), (*t).max(mark.t));
            if mark.kind_name() == "process-start"
                && let Ok(at) = u32::try_from(self.marks.len())
            {
                self.starts.entry(mark.pid).or_default().push(at);
            }
            self.marks.push(*mark);
        }
        let first = self.marks.len() - chunk.marks.len();
        let plain = match chunk.packed {
            Packed::Plain(text) => text,
            packed => {
                self.chunks.push((first, packed));
                return;
            }
        };
        // A live trace comes in small pieces: they gather in the last chunk until it is full.
        let at = self.chunks.len().wrapping_sub(1);
        match self.chunks.last_mut() {
            Some((start, Packed::Plain(tail))) => {
                tail.push_str(&plain);
                if self.marks.len() - *start >= CHUNK || tail.len() >= LONG {
                    let packed =
                        Packed::Lz4(lz4_flex::compress_prepend_size(tail.as_bytes()).into());
                    if let Some(last) = self.chunks.last_mut() {
                        last.1 = packed;
                    }
                }
                self.unpacked.borrow_mut().retain(|(chunk, _)| *chunk != at);
            }
            _ => self.chunks.push((first, Packed::Plain(plain))),
        }
    }

    /// How many events there are.
    pub fn len(&self) -> usize {
        self.marks.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.marks.is_empty()
    }

    /// The mark of the event at a position.
    pub fn mark(&self, at: usize) -> Option<&Mark> {
        self.marks.get(at)
    }

    /// The start of the program that a pid ran at a moment.
    pub fn start_of(&self, pid: u32, t: u64) -> Option<Event> {
        let starts = self.starts.get(&pid)?;
        let began = |at: &&u32| self.mark(**at as usize).is_some_and(|m| m.t <= t);
        let latest = starts.iter().rev().find(began);
        self.event(*latest.or_else(|| starts.first())? as usize)
    }

    /// The position of an event.
    pub fn position(&self, id: EventId) -> Option<usize> {
        if self.unordered {
            return self.marks.iter().position(|m| m.id == id);
        }
        self.marks.binary_search_by_key(&id, |m| m.id).ok()
    }

    /// The line of the event at a position.
    pub fn line(&self, at: usize) -> Option<String> {
        let (lines, within) = self.lines_of(at)?;
        lines.get(within).map(str::to_owned)
    }

    /// Calls `look` with the line of each event in a range of positions.
    pub fn for_each(
        &self,
        range: std::ops::Range<usize>,
        mut look: impl FnMut(usize, &Mark, &str),
    ) {
        let mut at = range.start;
        while at < range.end.min(self.len()) {
            let Some((lines, mut within)) = self.lines_of(at) else {
                return;
            };
            while at < range.end
                && let (Some(mark), Some(line)) = (self.marks.get(at), lines.get(within))
            {
                look(at, mark, line);
                at += 1;
                within += 1;
            }
            if lines.ends.is_empty() {
                return;
            }
        }
    }

    /// The event at a position.
    pub fn event(&self, at: usize) -> Option<Event> {
        let (lines, within) = self.lines_of(at)?;
        Event::from_line(lines.get(within)?).ok()
    }

    /// The event of a number.
    pub fn find(&self, id: EventId) -> Option<Event> {
        self.event(self.position(id)?)
    }

    fn lines_of(&self, at: usize) -> Option<(Rc<Lines>, usize)> {
        if at >= self.marks.len() {
            return None;
        }
        let chunk = self
            .chunks
            .partition_point(|(first, _)| *first <= at)
            .checked_sub(1)?;
        let (first, packed) = self.chunks.get(chunk)?;
        let within = at - first;
        let mut unpacked = self.unpacked.borrow_mut();
        if let Some(known) = unpacked.iter().position(|(c, _)| *c == chunk) {
            let entry = unpacked.remove(known);
            let lines = Rc::clone(&entry.1);
            unpacked.push(entry);
            return Some((lines, within));
        }
        let lines = Rc::new(Lines::of(packed.unpack()));
        if unpacked.len() >= UNPACKED {
            unpacked.remove(0);
        }
        unpacked.push((chunk, Rc::clone(&lines)));
        Some((lines, within))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jittrace_model::event::Note;

    fn events(ids: std::ops::Range<u64>) -> Vec<Event> {
        ids.map(|id| Event {
            id,
            t: id * 10,
            pid: 7,
            tid: 7,
            source: Source::Collector,
            same_as: None,
            body: Body::Note(Note {
                about: "test".into(),
                text: format!("number {id}"),
            }),
        })
        .collect()
    }

    #[test]
    fn what_goes_in_comes_out_whatever_the_pieces() {
        for piece in [1, 3, 100, CHUNK, CHUNK + 1] {
            let all = events(1..1000);
            let mut store = Store::default();
            for events in all.chunks(piece) {
                store.push(Chunk::of(events));
                // Looking in between must not leave a stale chunk behind.
                assert_eq!(store.event(store.len() - 1).as_ref(), events.last());
            }
            assert_eq!(store.len(), 999);
            for (at, event) in all.iter().enumerate() {
                assert_eq!(store.event(at).as_ref(), Some(event), "piece {piece}");
                assert_eq!(store.position(event.id), Some(at));
            }
            let mut seen = 0;
            store.for_each(10..2000, |at, mark, line| {
                assert_eq!(mark.id, at as u64 + 1);
                assert!(line.contains(&format!("number {}\"", mark.id)));
                seen += 1;
            });
            assert_eq!(seen, 989);
        }
    }

    #[test]
    fn numbers_out_of_order_are_found_too() {
        let mut store = Store::default();
        let mut all = events(1..10);
        all.swap(2, 7);
        store.push(Chunk::of(&all));
        assert_eq!(store.find(8).map(|e| e.id), Some(8));
        assert_eq!(store.find(77), None);
    }

    #[test]
    fn a_full_chunk_is_small() {
        let mut store = Store::default();
        store.push(Chunk::of(&events(0..CHUNK as u64)));
        let packed: usize = store
            .chunks
            .iter()
            .map(|(_, p)| match p {
                Packed::Plain(t) => t.len(),
                Packed::Lz4(b) => b.len(),
            })
            .sum();
        assert!(packed < 8 * 1024, "{packed}");
    }
}

//! Who asked: sentences, Python frames, processes and their parents.

use jittrace_model::{
    Event, EventId,
    event::{Body, Frame},
    fold::ProcessIndex,
    resolve::asker::frame_sentence,
};

use crate::{snapshot::ProcessRow, subject::Subject, summary, text, theme::Tone};

use super::*;

/// Who asked: the sentence, the frames of the first event that has any, and the process with its parents.
pub(super) fn asked(
    evidence: &Evidence<'_>,
    by: Option<&str>,
    events: &[EventId],
    links: &mut Vec<Link>,
) {
    let found: Vec<Event> = events
        .iter()
        .take(4)
        .filter_map(|id| evidence.store.find(*id))
        .collect();
    if let Some(by) = by {
        let mut link = Link::new("asked by", by).copies(by);
        if let Some(first) = found.first() {
            link = link.event(first.id);
        }
        links.push(link);
    }
    for event in &found {
        // A load leads to the request, which may know more.
        let request = match &event.body {
            Body::LibraryLoaded(loaded) => loaded.request,
            Body::LibraryFailed(failed) => failed.request,
            _ => None,
        }
        .and_then(|id| evidence.store.find(id));
        let own = python_of(event);
        let (holder, python) = match &request {
            Some(request) if own.is_empty() => (request, python_of(request)),
            _ => (event, own),
        };
        if !python.is_empty() {
            let rest = unsaid(by, python);
            frames(rest, holder.id, evidence.expanded, links);
            break;
        }
    }
    if let Some(event) = found.first() {
        in_process(evidence, event, links);
    }
}

/// The process in which something happened, and those that led to it. One that a long trace only counts still has the
/// event of its start.
pub(super) fn in_process(evidence: &Evidence<'_>, event: &Event, links: &mut Vec<Link>) {
    if let Some(process) = evidence.snapshot.process_at(event.pid, event.t) {
        ancestry(evidence, process, links);
    } else if let Some(start) = evidence.store.start_of(event.pid, event.t)
        && start.id != event.id
    {
        let line = summary::line(&start, RECOGNISED, "…");
        links.push(Link::new("in process", format!("{} {line}", start.pid)).event(start.id));
    }
}

/// The frames that a sentence about who asked has not named already.
pub(super) fn unsaid<'a>(by: Option<&str>, python: &'a [Frame]) -> &'a [Frame] {
    match python.split_first() {
        Some((nearest, above)) if by == Some(frame_sentence(nearest).as_str()) => above,
        _ => python,
    }
}

pub(super) fn python_of(event: &Event) -> &[Frame] {
    match &event.body {
        Body::Exec(b) => &b.python,
        Body::ExecFailed(b) => &b.python,
        Body::LibraryRequest(b) => &b.python,
        Body::LibraryLoaded(b) => &b.python,
        Body::LibraryFailed(b) => &b.python,
        Body::Call(b) => &b.python,
        Body::File(b) => &b.python,
        Body::PythonStack(b) => &b.python,
        _ => &[],
    }
}

/// Python frames, innermost first.
pub(super) fn frames(python: &[Frame], event: EventId, expanded: bool, links: &mut Vec<Link>) {
    const FRAMES: usize = 8;
    let own = |frame: &&Frame| expanded || !of_python(&frame.file);
    let shown = if expanded { python.len() } else { FRAMES };
    let mut told = 0;
    for frame in python.iter().filter(own).take(shown) {
        told += 1;
        let sentence = frame_sentence(frame);
        let tone = if frame.distribution.is_some() {
            Tone::Plain
        } else {
            Tone::Dim
        };
        links.push(
            Link::new("", sentence)
                .deep(1)
                .tone(tone)
                .event(event)
                .copies(format!("{}:{}", frame.file, frame.line)),
        );
    }
    if python.len() > told {
        let rest = python.len() - told;
        let what = if rest == 1 {
            "1 more frame".to_owned()
        } else {
            format!("{rest} more frames")
        };
        links.push(Link {
            target: Target::Expand,
            ..Link::new("", what).deep(1).tone(Tone::Accent)
        });
    }
}

/// Whether a file is Python's own: its frames lie between those that tell something.
pub(super) fn of_python(file: &str) -> bool {
    file.starts_with("<frozen")
        || (file.contains("/lib/python3")
            && !file.contains("/site-packages/")
            && !file.contains("/dist-packages/"))
}

/// A process and those that led to it.
pub(super) fn ancestry(evidence: &Evidence<'_>, process: ProcessIndex, links: &mut Vec<Link>) {
    let mut below = process;
    for (depth, at) in evidence.snapshot.ancestry(process).into_iter().enumerate() {
        let Some(row) = evidence.snapshot.processes.get(at) else {
            continue;
        };
        let label = match depth {
            0 => "in process",
            _ => descent(row, below),
        };
        below = at;
        links.push(
            Link::new(label, format!("{} {}", row.pid, command_line(row)))
                .deep(depth.min(4))
                .to(Subject::Process(row.event)),
        );
    }
}

/// How a process image came from the one before: as its child, or in its place.
pub(super) fn descent(before: &ProcessRow, image: ProcessIndex) -> &'static str {
    if before.replaced_by == Some(image) {
        "was before"
    } else {
        "started by"
    }
}

/// Columns after which a command line in a chain is cut: it only has to be recognised there, and leads to its process.
const RECOGNISED: usize = 100;

/// A process in one line.
pub(super) fn command_line(row: &ProcessRow) -> String {
    let line = format!(
        "{} {}",
        text::base(&row.program),
        text::arguments(&row.argv)
    );
    text::fit(line.trim_end(), RECOGNISED, "…").into_owned()
}

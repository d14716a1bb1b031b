//! From a trace file to the view: read, parsed and handed over in batches, at the end of the file or as it grows.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use crossbeam_channel::{Receiver, Sender};
use jittrace_model::log::{Header, Lines, Skips};
use jittrace_tui::{Batch, Input, worker};

use crate::input::{Trace, open_trace};

/// Batches that are read before the view has taken them.
pub(crate) const AHEAD: usize = 8;

/// Most threads that parse: what comes after them is not faster than so many.
const PARSERS: usize = 6;

/// How long a growing trace is left alone between two looks.
const POLL: Duration = Duration::from_millis(50);

/// Begins to read a trace, and returns its header.
///
/// # Errors
/// The file cannot be read, or is no trace.
pub(super) fn start(file: &Path, follow: bool, input: Sender<Input>) -> Result<Header> {
    let (send, first) = crossbeam_channel::bounded(1);
    let file = file.to_owned();
    thread::Builder::new()
        .name("jittrace-read".to_owned())
        .spawn(move || match open_trace(&file) {
            Ok(trace) => {
                let _ = send.send(Ok(trace.reader.header().clone()));
                // A pipe ends when its writer does; a file that is followed goes on until nobody looks any more.
                let grows = follow && file != Path::new("-");
                let length = plain_length(&file).filter(|_| !follow);
                read(trace, &AtomicBool::new(!grows), length, &input);
            }
            Err(error) => {
                let _ = send.send(Err(error));
            }
        })
        .context("cannot start a thread")?;
    Ok(first.recv().context("the trace could not be opened")??)
}

/// Begins to follow a trace that another process has just begun to write, until `complete` is set and its end is read.
///
/// # Errors
/// The file cannot be read, or has no header after some seconds.
pub(crate) fn follow(
    file: &Path,
    complete: Arc<AtomicBool>,
    input: Sender<Input>,
) -> Result<Header> {
    let until = Instant::now() + Duration::from_secs(10);
    let (send, first) = crossbeam_channel::bounded(1);
    let file = file.to_owned();
    thread::Builder::new()
        .name("jittrace-read".to_owned())
        .spawn(move || {
            let opened = loop {
                match open_trace(&file) {
                    Err(_) if Instant::now() < until => thread::sleep(Duration::from_millis(5)),
                    opened => break opened,
                }
            };
            match opened {
                Ok(trace) => {
                    let _ = send.send(Ok(trace.reader.header().clone()));
                    read(trace, &complete, None, &input);
                }
                Err(error) => {
                    let _ = send.send(Err(error));
                }
            }
        })
        .context("cannot start a thread")?;
    Ok(first.recv().context("the trace could not be opened")??)
}

/// Bytes of a trace that is not compressed, for a progress that means something.
fn plain_length(path: &Path) -> Option<u64> {
    let mut file = File::open(path).ok()?;
    let mut first = [0];
    file.read_exact(&mut first).ok()?;
    let length = file.metadata().ok()?.len();
    (first == *b"{").then_some(length)
}

/// Reads a trace to its end, or as it grows until `complete` is set. `length`: its bytes, where it does not grow.
///
/// Parsing takes longer than all else, so that several threads do it: each in its turn gets the lines that were read at
/// one time, and in the same turn its events are taken. What is there is handed over before more is waited for.
fn read(mut trace: Trace, complete: &AtomicBool, length: Option<u64>, input: &Sender<Input>) {
    let (turns, parsed): (Vec<_>, Vec<_>) = (0..parsers())
        .map(|_| {
            let (give, lines) = crossbeam_channel::bounded::<(Lines, u64)>(1);
            let (done, parsed) = crossbeam_channel::bounded(1);
            thread::spawn(move || {
                worker::give_way();
                while let Ok((lines, position)) = lines.recv() {
                    let mut batch = Batch::default();
                    let skips = lines.each(|event, line| batch.add(event, line));
                    batch.pack();
                    if done.send((batch, skips, position)).is_err() {
                        return;
                    }
                }
            });
            (give, parsed)
        })
        .unzip();
    let handed_over = {
        let input = input.clone();
        thread::spawn(move || hand_over(&parsed, length, &input))
    };
    let mut next = turns.iter().cycle();
    let rest = loop {
        // Asked before reading, so that what was written before the end is read after it.
        let last = complete.load(Ordering::SeqCst);
        match trace.reader.next_lines() {
            Ok(Some(lines)) => {
                let position = trace.reader.position();
                let turn = next.next().map(|give| give.send((lines, position)));
                if !matches!(turn, Some(Ok(()))) {
                    break Ok(());
                }
            }
            Ok(None) if !last => thread::sleep(POLL),
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    drop(turns);
    match handed_over.join() {
        Ok(Some(skips)) => {
            trace.reader.note(skips);
            end(&trace, rest, input);
        }
        // Nobody looks any more.
        Ok(None) => {}
        Err(_) => {
            let broken = "reading stopped after an error of jittrace's own; `jittrace report` reads the trace";
            let _ = input.send(Input::Notice(broken.to_owned()));
            let _ = input.send(Input::Complete);
        }
    }
}

/// How many threads parse.
fn parsers() -> usize {
    thread::available_parallelism().map_or(1, |cores| cores.get().clamp(1, PARSERS))
}

/// Events that were parsed, the lines among them that were none, and how far the trace was read.
type Parsed = (Batch, Skips, u64);

/// Hands over what is parsed, in turn. Gives what was skipped; nothing when nobody looks any more.
fn hand_over(
    parsed: &[Receiver<Parsed>],
    length: Option<u64>,
    input: &Sender<Input>,
) -> Option<Skips> {
    let mut skips = Skips::default();
    for parsed in parsed.iter().cycle() {
        // The first that has nothing more has had the last lines.
        let Ok((batch, skipped, bytes)) = parsed.recv() else {
            break;
        };
        skips.join(skipped);
        let size = Input::Size { bytes, of: length };
        input.send(Input::Events(batch)).ok()?;
        input.send(size).ok()?;
    }
    Some(skips)
}

/// Says what could not be read, and that nothing more comes.
fn end(trace: &Trace, rest: io::Result<()>, input: &Sender<Input>) {
    let stopped = rest
        .err()
        .map(|error| format!("{}: reading stopped: {error}", trace.name));
    for note in stopped.into_iter().chain(trace.notes()) {
        let _ = input.send(Input::Notice(note));
    }
    let _ = input.send(Input::Complete);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    const HEADER: &str = "{\"jittrace\":1,\"command\":[\"true\"]}\n";

    fn event(id: u64) -> String {
        format!(
            "{{\"id\":{id},\"t\":{id},\"pid\":9,\"tid\":9,\"source\":\"preload\",\"kind\":\"note\",\"text\":\"x\"}}\n"
        )
    }

    fn events(inputs: &crossbeam_channel::Receiver<Input>, wanted: usize) -> usize {
        let mut seen = 0;
        while seen < wanted {
            match inputs.recv_timeout(Duration::from_secs(10)) {
                Ok(Input::Events(batch)) => seen += batch.len(),
                Ok(Input::Complete) | Err(_) => break,
                Ok(_) => {}
            }
        }
        seen
    }

    #[test]
    fn a_whole_trace_comes_whole_and_ends() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(HEADER.as_bytes()).unwrap();
        for id in 1..=2000 {
            file.write_all(event(id).as_bytes()).unwrap();
        }
        let (send, inputs) = crossbeam_channel::unbounded();
        let header = start(file.path(), false, send).unwrap();
        assert_eq!(header.command, ["true"]);
        assert_eq!(events(&inputs, usize::MAX), 2000);
    }

    #[test]
    fn a_long_trace_comes_in_order_and_what_is_wrong_in_it_is_said() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(HEADER.as_bytes()).unwrap();
        // Every parser has several turns.
        let long = ((4 * PARSERS) << 18) / event(1000).len();
        for id in 1..=long as u64 {
            file.write_all(event(id).as_bytes()).unwrap();
            if id == 1000 {
                file.write_all(b"{broken\n").unwrap();
            }
        }
        file.write_all(b"{\"id\":").unwrap();
        let (send, inputs) = crossbeam_channel::unbounded();
        start(file.path(), false, send).unwrap();
        let (mut last, mut position, mut notices) = (0, 0, Vec::new());
        for input in inputs {
            match input {
                Input::Events(batch) => {
                    for event in batch.events() {
                        assert_eq!(event.id, last + 1);
                        last = event.id;
                    }
                }
                Input::Size { bytes, .. } => {
                    assert!(bytes > position);
                    position = bytes;
                }
                Input::Notice(text) => notices.push(text),
                _ => {}
            }
        }
        assert_eq!(last, long as u64);
        assert_eq!(notices.len(), 2, "{notices:?}");
        assert!(
            notices[0].contains("1 line could not be read"),
            "{notices:?}"
        );
        assert!(notices[0].contains("line 1002"), "{notices:?}");
        assert!(notices[1].contains("cut off"), "{notices:?}");
    }

    #[test]
    fn a_growing_trace_is_seen_as_it_grows() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(HEADER.as_bytes()).unwrap();
        let (send, inputs) = crossbeam_channel::unbounded();
        start(file.path(), true, send).unwrap();
        for id in 1..4 {
            file.write_all(event(id).as_bytes()).unwrap();
            assert_eq!(events(&inputs, 1), 1, "event {id}");
        }
    }

    #[test]
    fn what_is_no_trace_is_refused_with_its_name() {
        let (send, _inputs) = crossbeam_channel::unbounded();
        let error = start(Path::new("/nowhere.jtrace"), false, send).unwrap_err();
        assert!(error.to_string().contains("/nowhere.jtrace"), "{error}");
    }
}

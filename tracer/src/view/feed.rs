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
use crossbeam_channel::Sender;
use jittrace_model::{Event, log::Header};
use jittrace_tui::Input;

use crate::input::{Trace, open_trace};

/// Batches that are read before the view has taken them.
pub(crate) const AHEAD: usize = 8;

/// Most events of a batch.
const BATCH: usize = 1024;

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
                if follow || file == Path::new("-") {
                    // A pipe ends when its writer does; a file goes on until nobody looks any more.
                    let complete = AtomicBool::new(file == Path::new("-"));
                    as_it_comes(trace, &complete, &input);
                } else {
                    whole(trace, plain_length(&file), &input);
                }
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
                    as_it_comes(trace, &complete, &input);
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

/// Reads a trace that is all there, in large batches.
fn whole(mut trace: Trace, length: Option<u64>, input: &Sender<Input>) {
    loop {
        let mut batch = Vec::with_capacity(BATCH);
        let mut rest = Ok(());
        while batch.len() < BATCH {
            match trace.reader.next_event() {
                Ok(Some(event)) => batch.push(event),
                Ok(None) => break,
                Err(error) => {
                    rest = Err(error);
                    break;
                }
            }
        }
        let last = batch.len() < BATCH;
        let size = Input::Size {
            bytes: trace.reader.position(),
            of: length,
        };
        if input.send(Input::Events(batch)).is_err() || input.send(size).is_err() {
            return;
        }
        if last {
            return end(&trace, rest, input);
        }
    }
}

/// Reads a trace that grows, or comes through a pipe: what is there is handed over before more is waited for.
fn as_it_comes(mut trace: Trace, complete: &AtomicBool, input: &Sender<Input>) {
    let (send, events) = crossbeam_channel::bounded::<(Event, u64)>(8 * BATCH);
    let gather = {
        let input = input.clone();
        thread::spawn(move || {
            while let Ok((event, mut bytes)) = events.recv() {
                let mut batch = vec![event];
                while batch.len() < BATCH
                    && let Ok((event, position)) = events.try_recv()
                {
                    batch.push(event);
                    bytes = position;
                }
                let size = Input::Size { bytes, of: None };
                if input.send(Input::Events(batch)).is_err() || input.send(size).is_err() {
                    return;
                }
            }
        })
    };
    let rest = loop {
        // Asked before reading, so that what was written before the end is read after it.
        let last = complete.load(Ordering::SeqCst);
        match trace.reader.next_event() {
            Ok(Some(event)) => {
                if send.send((event, trace.reader.position())).is_err() {
                    return;
                }
            }
            Ok(None) if !last => thread::sleep(POLL),
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    drop(send);
    let _ = gather.join();
    end(&trace, rest, input);
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
        for id in 1..=2 * BATCH as u64 {
            file.write_all(event(id).as_bytes()).unwrap();
        }
        let (send, inputs) = crossbeam_channel::unbounded();
        let header = start(file.path(), false, send).unwrap();
        assert_eq!(header.command, ["true"]);
        assert_eq!(events(&inputs, usize::MAX), 2 * BATCH);
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

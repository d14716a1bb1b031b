//! The fold, off the input path: a thread that owns the model and publishes snapshots.
//!
//! A snapshot costs as much as the model is large, so it is made at most five times a second and at most a quarter
//! of the time, less while a recorded trace is read. Keys never wait for it.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    thread::JoinHandle,
    time::{Duration, Instant},
};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use jittrace_model::{Event, Model, log::Header, report::Exit};

use crate::{batch::Batch, snapshot::Snapshot, store::Chunk};

/// What a view is fed with.
#[derive(Debug)]
pub enum Input {
    /// The next events, in order of arrival.
    Events(Batch),
    /// How far the trace is: bytes so far, and bytes in all where that is known.
    Size {
        /// Bytes so far.
        bytes: u64,
        /// Bytes of the whole file, when it is read and not growing.
        of: Option<u64>,
    },
    /// What the launched program wrote to its terminal.
    Output(Vec<u8>),
    /// The launched program ended.
    Ended(Exit),
    /// Anything a person should know: lines that were skipped, a source that went away.
    Notice(String),
    /// There will be no more events.
    Complete,
    /// The view is to end, as if it had been left so: a signal came.
    End(crate::app::Outcome),
}

/// What the worker tells the screen.
#[derive(Debug)]
pub enum Published {
    /// More events for the list.
    Chunk(Chunk),
    /// The model at this moment.
    Snapshot(Arc<Snapshot>),
    /// Input that is no event.
    Other(Input),
    /// The fold broke; what was shown stays.
    Broken(String),
}

/// Shortest time between two snapshots.
const INTERVAL: Duration = Duration::from_millis(200);

/// How many times as long as a snapshot took the next one is away, while events come as they happen, and while a file is
/// read of which only the whole is wanted.
const APART: (u32, u32) = (3, 12);

/// Time that a first glance may wait.
const FIRST: Duration = Duration::from_millis(60);

/// Begins to fold what comes in; `publish` is called from the worker's thread.
pub fn start(
    header: Header,
    input: Receiver<Input>,
    publish: impl Fn(Published) -> bool + Send + 'static,
) -> std::io::Result<JoinHandle<()>> {
    std::thread::Builder::new()
        .name("jittrace-fold".to_owned())
        .spawn(move || {
            give_way();
            let folded = catch_unwind(AssertUnwindSafe(|| fold(header, &input, &publish)));
            if folded.is_err() {
                publish(Published::Broken(
                    "the view stopped folding after an error of its own; the list of events and the recording go on, `jittrace view` opens it"
                        .to_owned(),
                ));
                // The source must never wait for a view that no longer listens.
                while let Ok(input) = input.recv() {
                    if list(input, &publish).is_none() {
                        break;
                    }
                }
            }
        })
}

/// The calling thread lets others go first: the keys, and the program that is traced. Linux has a priority for each thread.
pub fn give_way() {
    const LOWER: i32 = 5;
    // Where that is refused it is only slower to answer.
    let _ = rustix::process::nice(LOWER);
}

/// Hands everything to the screen but what is to be folded, and that back; nothing when nobody looks any more.
fn list(input: Input, publish: &impl Fn(Published) -> bool) -> Option<Vec<Event>> {
    match input {
        Input::Events(Batch { chunks, events }) => {
            for chunk in chunks {
                publish(Published::Chunk(chunk)).then_some(())?;
            }
            Some(events)
        }
        other => publish(Published::Other(other)).then(Vec::new),
    }
}

/// Folds what comes in, until nothing more can or nobody looks.
fn fold(header: Header, input: &Receiver<Input>, publish: &impl Fn(Published) -> bool) {
    let mut model = Model::new(header);
    // Snapshots that the view may still look at. What the last of them is no longer looked at goes from here, since
    // giving back the memory of a long trace takes longer than a key may wait.
    let mut shown: Vec<Arc<Snapshot>> = Vec::new();
    // When the next snapshot is due, and the earliest moment at which one may be.
    let mut due = Some(Instant::now() + FIRST);
    let mut earliest = Instant::now();
    let mut apart = APART.0;
    loop {
        shown.retain(|snapshot| Arc::strong_count(snapshot) > 1);
        let received = match due {
            Some(at) => input.recv_deadline(at),
            None if shown.len() > 1 => input.recv_timeout(INTERVAL),
            None => input.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        let ended = matches!(received, Err(RecvTimeoutError::Disconnected));
        if let Ok(input) = received {
            match &input {
                Input::Size { bytes, of } => {
                    let reading = of.is_some_and(|of| *bytes < of);
                    apart = if reading { APART.1 } else { APART.0 };
                }
                Input::Complete | Input::Ended(_) => due = Some(Instant::now()),
                _ => {}
            }
            let Some(events) = list(input, publish) else {
                return;
            };
            if !events.is_empty() {
                due.get_or_insert_with(|| earliest.max(Instant::now() + FIRST));
            }
            for event in events {
                model.apply(event);
            }
        }
        if ended || due.is_some_and(|at| at <= Instant::now()) {
            let began = Instant::now();
            let snapshot = Arc::new(Snapshot::of(&model));
            shown.push(Arc::clone(&snapshot));
            if !publish(Published::Snapshot(snapshot)) || ended {
                return;
            }
            earliest = Instant::now() + INTERVAL.max(began.elapsed() * apart);
            due = None;
        }
    }
}

/// A sender that reports whether anyone still listens.
pub fn into<T: Send + 'static>(
    sender: Sender<T>,
    wrap: impl Fn(Published) -> T + Send + 'static,
) -> impl Fn(Published) -> bool + Send + 'static {
    move |published| sender.send(wrap(published)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use jittrace_model::{
        Body,
        event::{ProcessStart, Source},
    };

    fn start_of(id: u64) -> Event {
        Event {
            id,
            t: id,
            pid: id as u32,
            tid: id as u32,
            source: Source::Preload,
            same_as: None,
            body: Body::ProcessStart(Box::new(ProcessStart {
                exe: "/bin/true".into(),
                ..ProcessStart::default()
            })),
        }
    }

    #[test]
    fn every_event_is_in_the_last_snapshot_and_in_the_list() {
        let (send, input) = crossbeam_channel::unbounded();
        let (out, published) = crossbeam_channel::unbounded();
        let worker = start(Header::default(), input, into(out, |p| p)).unwrap();
        for id in 1..=2000 {
            send.send(Input::Events(vec![start_of(id)].into())).unwrap();
        }
        send.send(Input::Complete).unwrap();
        drop(send);
        worker.join().unwrap();
        let mut store = crate::store::Store::default();
        let (mut last, mut snapshots) = (0, 0);
        for published in published {
            match published {
                Published::Chunk(chunk) => store.push(chunk),
                Published::Snapshot(snapshot) => {
                    last = snapshot.processes.len();
                    snapshots += 1;
                }
                _ => {}
            }
        }
        assert_eq!((store.len(), last), (2000, 2000));
        // One for each would be two thousand.
        assert!(snapshots < 1000, "{snapshots} snapshots for one burst");
    }
}

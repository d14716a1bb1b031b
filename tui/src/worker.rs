//! The fold, off the input path: one thread packs events for the list, the next owns the model and publishes snapshots.
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

use crate::{
    snapshot::Snapshot,
    store::{CHUNK, Chunk},
};

/// What a view is fed with.
#[derive(Debug)]
pub enum Input {
    /// The next events, in order of arrival.
    Events(Vec<Event>),
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

/// Batches that are packed and not yet folded.
const BETWEEN: usize = 4;

/// Most threads that pack.
const PACKERS: usize = 3;

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
    publish: impl Fn(Published) -> bool + Clone + Send + 'static,
) -> std::io::Result<JoinHandle<()>> {
    let (send, packed) = crossbeam_channel::bounded(BETWEEN);
    let show = publish.clone();
    std::thread::Builder::new()
        .name("jittrace-pack".to_owned())
        .spawn(move || {
            let packed = catch_unwind(AssertUnwindSafe(|| pack(&input, &send, &show)));
            if packed.is_err() {
                show(Published::Broken(
                    "the list of events stopped after an error of its own; the other views and the recording go on"
                        .to_owned(),
                ));
                while let Ok(input) = input.recv() {
                    if send.send(input).is_err() {
                        break;
                    }
                }
            }
        })?;
    let input = packed;
    std::thread::Builder::new()
        .name("jittrace-fold".to_owned())
        .spawn(move || {
            let folded = catch_unwind(AssertUnwindSafe(|| fold(header, &input, &publish)));
            if folded.is_err() {
                publish(Published::Broken(
                    "the view stopped folding after an error of its own; the recording goes on, `jittrace view` opens it"
                        .to_owned(),
                ));
                // The source must never wait for a view that no longer listens.
                while let Ok(input) = input.recv() {
                    if !matches!(input, Input::Events(_)) && !publish(Published::Other(input)) {
                        break;
                    }
                }
            }
        })
}

/// Packs events for the list before they are folded: several threads in turn, so that a long trace waits for none.
fn pack(input: &Receiver<Input>, folded: &Sender<Input>, publish: &impl Fn(Published) -> bool) {
    std::thread::scope(|scope| {
        let packers = std::thread::available_parallelism().map_or(1, |n| n.get().clamp(1, PACKERS));
        let (give, packed): (Vec<_>, Vec<_>) = (0..packers)
            .map(|_| {
                let (give, inputs) = crossbeam_channel::bounded::<Input>(1);
                let (done, packed) = crossbeam_channel::bounded::<(Vec<Chunk>, Input)>(1);
                scope.spawn(move || {
                    while let Ok(input) = inputs.recv() {
                        let chunks = match &input {
                            Input::Events(events) => events.chunks(CHUNK).map(Chunk::of).collect(),
                            _ => Vec::new(),
                        };
                        if done.send((chunks, input)).is_err() {
                            return;
                        }
                    }
                });
                (give, packed)
            })
            .unzip();
        scope.spawn(move || {
            for give in give.iter().cycle() {
                let Ok(input) = input.recv() else { return };
                if give.send(input).is_err() {
                    return;
                }
            }
        });
        for packed in packed.iter().cycle() {
            let Ok((chunks, input)) = packed.recv() else {
                return;
            };
            for chunk in chunks {
                if !publish(Published::Chunk(chunk)) {
                    return;
                }
            }
            if folded.send(input).is_err() {
                return;
            }
        }
    });
}

fn fold(header: Header, input: &Receiver<Input>, publish: &impl Fn(Published) -> bool) {
    // A row is found again by its place in the model, so nothing may move.
    let mut model = Model::new(header).keeping(usize::MAX);
    // When the next snapshot is due, and the earliest moment at which one may be.
    let mut due = Some(Instant::now() + FIRST);
    let mut earliest = Instant::now();
    let mut apart = APART.0;
    loop {
        let received = match due {
            Some(at) => input.recv_deadline(at),
            None => input.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        let ended = matches!(received, Err(RecvTimeoutError::Disconnected));
        match received {
            Ok(Input::Events(events)) => {
                for event in events {
                    model.apply(event);
                }
                due.get_or_insert_with(|| earliest.max(Instant::now() + FIRST));
            }
            Ok(other) => {
                if let Input::Size { bytes, of } = &other {
                    let reading = of.is_some_and(|of| *bytes < of);
                    apart = if reading { APART.1 } else { APART.0 };
                }
                if matches!(other, Input::Complete | Input::Ended(_)) {
                    due = Some(Instant::now());
                }
                if !publish(Published::Other(other)) {
                    return;
                }
            }
            Err(_) => {}
        }
        if ended || due.is_some_and(|at| at <= Instant::now()) {
            let began = Instant::now();
            if !publish(Published::Snapshot(Arc::new(Snapshot::of(&model)))) || ended {
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
    wrap: impl Fn(Published) -> T + Clone + Send + 'static,
) -> impl Fn(Published) -> bool + Clone + Send + 'static {
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
        for first in (1..2000).step_by(100) {
            send.send(Input::Events((first..first + 100).map(start_of).collect()))
                .unwrap();
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
        assert!(snapshots < 20, "{snapshots} snapshots for one burst");
    }
}

//! The thread that empties the ring buffer, and the one that places probes in what it saw appear.

use std::{
    collections::BTreeMap,
    os::fd::OwnedFd,
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use aya::maps::{MapData, PerCpuArray, RingBuf};
use crossbeam_channel::{Receiver, SendTimeoutError, Sender, TrySendError};
use jittrace_ebpf::lost;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{
    decode::Decoder,
    event::{FileOperation, KernelEvent, Observation, TaskViews},
    objects::{MappedFile, ObjectFile, mapped_files, open_in, open_mapped},
    probes::{Objects, Probes, monotonic_now, object_of},
};

/// An object that a followed process is about to use.
pub(crate) enum Appeared {
    /// It was opened under this name.
    Opened {
        /// By this process, tracer's view.
        pid: u32,
        /// Absolute, in the process's mount namespace.
        path: PathBuf,
    },
    /// It is being run.
    Run {
        /// By this process, tracer's view.
        pid: u32,
    },
}

/// How often losses are told.
const LOSSES_EVERY: Duration = Duration::from_millis(500);

/// Reads until `stop` becomes readable, then what is left, and ends.
pub(crate) struct Reader {
    pub(crate) ring: RingBuf<MapData>,
    pub(crate) file_ring: RingBuf<MapData>,
    pub(crate) stop: OwnedFd,
    pub(crate) sink: Sink,
}

/// What becomes of a record.
pub(crate) struct Sink {
    pub(crate) decoder: Decoder,
    pub(crate) losses: Losses,
    pub(crate) objects: Objects,
    pub(crate) to: Outlet,
    pub(crate) appeared: Sender<Appeared>,
}

/// Paths that are taken before processes and calls have their turn again.
const PATHS_AT_A_TIME: usize = 64;

/// Takes up to `most` records and says how many there were. `None`: nobody listens any more.
fn take(ring: &mut RingBuf<MapData>, most: usize, sink: &mut Sink) -> Option<usize> {
    let mut taken = 0;
    while taken < most
        && let Some(item) = ring.next()
    {
        taken += 1;
        if !sink.take(&item) {
            return None;
        }
    }
    Some(taken)
}

impl Sink {
    /// Decodes a record and passes it on. `false`: nobody listens any more.
    fn take(&mut self, record: &[u8]) -> bool {
        let objects = &self.objects;
        let decoded = match self
            .decoder
            .decode(record, &|number| object_of(objects, number))
        {
            Ok(Some(decoded)) => decoded,
            Ok(None) => return true,
            Err(_foreign) => {
                self.losses.foreign += 1;
                return true;
            }
        };
        if let Some(object) = object_in(&decoded.observation)
            && let Err(TrySendError::Full(_)) = self.appeared.try_send(object)
        {
            self.losses.not_probed += 1;
        }
        !decoded.matters || self.to.send(decoded.observation)
    }

    fn tell_losses(&mut self) -> bool {
        self.losses.since_last().into_iter().all(|(reason, count)| {
            let event = KernelEvent::Lost { reason, count };
            self.to.send(Observation {
                time_ns: monotonic_now(),
                task: TaskViews::default(),
                event,
            })
        })
    }
}

impl Reader {
    /// Runs in a thread of its own.
    pub(crate) fn run(mut self) {
        let pause = Timespec {
            tv_sec: 0,
            tv_nsec: 200_000_000,
        };
        let mut told = Instant::now();
        loop {
            let (ready, stopping) = {
                let mut sources = [
                    PollFd::new(&self.ring, PollFlags::IN),
                    PollFd::new(&self.file_ring, PollFlags::IN),
                    PollFd::new(&self.stop, PollFlags::IN),
                ];
                let ready = poll(&mut sources, Some(&pause));
                let [.., stop] = &sources;
                (ready, stop.revents().contains(PollFlags::IN))
            };
            if !matches!(ready, Ok(_) | Err(rustix::io::Errno::INTR)) || !self.empty() {
                return;
            }
            if stopping || told.elapsed() >= LOSSES_EVERY {
                told = Instant::now();
                if !self.sink.tell_losses() || stopping {
                    return;
                }
            }
        }
    }

    /// Takes every record that is there: processes and calls first, and again between paths, of which there may be many.
    /// `false`: nobody listens any more.
    fn empty(&mut self) -> bool {
        loop {
            let Some(_) = take(&mut self.ring, usize::MAX, &mut self.sink) else {
                return false;
            };
            match take(&mut self.file_ring, PATHS_AT_A_TIME, &mut self.sink) {
                None => return false,
                Some(taken) if taken < PATHS_AT_A_TIME => return true,
                Some(_) => {}
            }
        }
    }
}

/// The object that an observation shows to be about to be used.
fn object_in(observation: &Observation) -> Option<Appeared> {
    let pid = observation.task.own.tgid;
    if pid == 0 {
        return None;
    }
    match &observation.event {
        KernelEvent::Exec(_) => Some(Appeared::Run { pid }),
        KernelEvent::File(file)
            if matches!(file.operation, FileOperation::Open { .. }) && file.outcome.is_ok() =>
        {
            let path = file.path.as_ref().ok()?;
            let name = path.file_name()?.to_str()?;
            let is_library = name.ends_with(".so") || name.contains(".so.");
            (is_library && path.is_absolute()).then(|| Appeared::Opened {
                pid,
                path: path.clone(),
            })
        }
        _ => None,
    }
}

/// Where observations go. A slow receiver is waited for, so that the ring fills and counts what it cannot take; but not
/// once the source is being stopped.
#[derive(Clone)]
pub(crate) struct Outlet {
    pub(crate) to: Sender<Observation>,
    pub(crate) stopping: Arc<AtomicBool>,
}

impl Outlet {
    /// `false`: nobody listens any more.
    fn send(&self, observation: Observation) -> bool {
        let mut waiting = observation;
        loop {
            match self.to.send_timeout(waiting, Duration::from_millis(100)) {
                Ok(()) => return true,
                Err(SendTimeoutError::Timeout(back)) if !self.stopping.load(Ordering::Relaxed) => {
                    waiting = back
                }
                Err(_) => return false,
            }
        }
    }
}

/// Counters of what was lost, here and in the kernel.
pub(crate) struct Losses {
    counters: PerCpuArray<MapData, u64>,
    told: BTreeMap<&'static str, u64>,
    /// Records that could not be decoded.
    foreign: u64,
    /// Objects that could not be looked at, because too many appeared at one time.
    not_probed: u64,
}

impl Losses {
    pub(crate) fn new(counters: PerCpuArray<MapData, u64>) -> Self {
        Self {
            counters,
            told: BTreeMap::new(),
            foreign: 0,
            not_probed: 0,
        }
    }

    /// What was lost since this was last asked.
    fn since_last(&mut self) -> Vec<(&'static str, u64)> {
        let mut totals = vec![
            ("undecodable-record", self.foreign),
            ("object-not-probed", self.not_probed),
        ];
        for (index, name) in (0..lost::COUNT).zip(lost::NAMES) {
            let sum = self
                .counters
                .get(&index, 0)
                .map(|values| values.iter().sum())
                .unwrap_or(0);
            totals.push((name, sum));
        }
        totals.retain_mut(|(name, total)| {
            let told = self.told.entry(name).or_default();
            let fresh = *total - *told;
            *told = *total;
            *total = fresh;
            fresh > 0
        });
        totals
    }
}

/// Places probes in objects as they appear, until nobody reports any more.
pub(crate) fn place_probes(probes: &Mutex<Probes>, appeared: &Receiver<Appeared>, to: &Outlet) {
    for appeared in appeared {
        let object = match appeared {
            Appeared::Opened { pid, path } => open_in(pid, &path),
            Appeared::Run { pid } => executable_of(pid),
        };
        // Gone, or never a file of ours to see: then nothing can be probed either.
        let Ok(object) = object else { continue };
        if !watch(probes, &object, to) {
            return;
        }
    }
}

/// Looks at one object and tells what came of it. `false`: nobody listens any more.
pub(crate) fn watch(probes: &Mutex<Probes>, object: &ObjectFile, to: &Outlet) -> bool {
    let watched = match probes.lock() {
        Ok(mut probes) => probes.watch(object),
        Err(_) => return false,
    };
    let Some(watched) = watched else { return true };
    let event = KernelEvent::Watching(Arc::clone(&watched));
    to.send(Observation {
        time_ns: watched.since_ns,
        task: TaskViews::default(),
        event,
    })
}

/// The program that a process runs.
fn executable_of(pid: u32) -> std::io::Result<ObjectFile> {
    let link = PathBuf::from(format!("/proc/{pid}/exe"));
    let mut object = ObjectFile::open(&link)?;
    object.path = std::fs::read_link(&link)?;
    Ok(object)
}

/// The objects that a process has mapped, opened; with the reason where one could not be.
pub(crate) fn mapped_objects(
    pid: u32,
) -> std::io::Result<Vec<(MappedFile, std::io::Result<ObjectFile>)>> {
    Ok(mapped_files(pid)?
        .into_iter()
        .map(|mapped| {
            let object = open_mapped(pid, &mapped);
            (mapped, object)
        })
        .collect())
}

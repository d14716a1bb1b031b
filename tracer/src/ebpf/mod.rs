//! The eBPF source: what the kernel sees of a process and all it starts, for root.
//!
//! It sees what no shim can: static programs, cleared environments, RTLD_DEEPBIND, statically linked cudart, processes
//! that run already, other users' processes. The kernel programs (`ebpf/`) copy; this module loads them, says whom to
//! follow, places probes on the inodes of libraries as they appear, and turns records into [`KernelEvent`]s:
//!
//! ```text
//! KernelSource::start()            programs loaded and attached; nothing is told yet
//!   .follow(pid) / .follow_tree()  from here on events of these processes and of all they start
//!   .watch_file() / .watch_process()   probes on libraries that are known beforehand
//!   Receiver<Observation>          events, nearly in the order of their `time_ns`
//!   .stop()                        the last events are delivered, then everything is detached and unloaded
//! ```
//!
//! Nothing is changed in the traced processes but the probed instructions, which the kernel restores at the end.
//! Requirements: x86-64, kernel 5.10, BTF, CAP_BPF and CAP_PERFMON (CAP_SYS_ADMIN to mount tracefs privately where it is
//! not mounted). See `ebpf/README.md` for what differs before 5.15.

mod btf;
mod decode;
mod detach;
mod error;
mod event;
mod follow;
mod load;
mod objects;
mod perf;
mod probes;
mod reader;
mod returns;
mod shapes;
mod symbols;
mod tracefs;
pub(crate) mod trial;
mod watched;

use std::{
    io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, atomic::Ordering},
    thread::JoinHandle,
};

use aya::maps::{PerCpuArray, RingBuf};
use crossbeam_channel::{Receiver, bounded};
use jittrace_ebpf::{FILE_RING_MAP, LOST_MAP, RING_MAP};
use rustix::event::{EventfdFlags, eventfd};

pub use detach::Detaching;
pub use error::SourceError;
pub use event::{
    Call, Captured, Exec, ExecFailed, Exit, Field, FileCall, FileOperation, KernelEvent, Missing,
    Observation, ReturnProbes, TaskId, TaskViews, WatchedFunction, WatchedObject,
};
pub use objects::{FileId, MappedFile, ObjectFile, mapped_files, open_in, open_mapped};
pub use watched::Function;

use load::Followed;
use probes::Probes;
use reader::{Losses, Outlet, Reader, Sink};

/// Observations that may wait for their reader. When they do, the ring fills, and what no longer fits is counted.
const WAITING: usize = 8192;
/// Objects that may wait for their probes.
const APPEARING: usize = 4096;

/// The running source. Dropping it stops it.
pub struct KernelSource {
    probes: Option<Arc<Mutex<Probes>>>,
    followed: Mutex<Followed>,
    to: Option<Outlet>,
    stop: OwnedFd,
    threads: Vec<JoinHandle<()>>,
    /// What is in place.
    pub setup: Setup,
}

/// How the source is set up on this machine, for `doctor` and the trace's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setup {
    /// Bytes of either ring buffer.
    pub ring_bytes: u32,
    /// Probes carry cookies (5.15); otherwise each function has programs of its own and [`Call::object`] is unknown.
    pub attach_cookies: bool,
    /// tracefs was not mounted: a private mount was made and is gone again.
    pub private_tracefs: bool,
}

/// What may be asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    /// Do without attach cookies, as on kernels before 5.15.
    pub without_cookies: bool,
}

impl KernelSource {
    /// Loads and attaches the programs. No process is followed yet.
    ///
    /// The first attach waits for an RCU grace period, up to about a second (mechanisms 1): start the command to be
    /// traced only when this has returned.
    ///
    /// # Errors
    ///
    /// What was refused; `doctor::refusal` explains it.
    pub fn start(options: Options) -> Result<(Self, Receiver<Observation>), SourceError> {
        let mut loaded = load::load(options.without_cookies)?;
        let setup = Setup {
            ring_bytes: loaded.ring_bytes,
            attach_cookies: loaded.cookies,
            private_tracefs: loaded.private_tracefs,
        };
        let opening = |error| SourceError::refused("opening the ring buffer", &error);
        let ring =
            RingBuf::try_from(load::take_map(&mut loaded.ebpf, RING_MAP)?).map_err(opening)?;
        let file_ring =
            RingBuf::try_from(load::take_map(&mut loaded.ebpf, FILE_RING_MAP)?).map_err(opening)?;
        let counters =
            PerCpuArray::try_from(load::take_map(&mut loaded.ebpf, LOST_MAP)?).map_err(opening)?;
        let followed = load::followed(&mut loaded.ebpf)?;
        let io_error = |error: rustix::io::Errno| {
            SourceError::refused("making an eventfd", &io::Error::from(error))
        };
        let stop = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(io_error)?;
        let probes = Probes::new(loaded);
        let (sender, from) = bounded(WAITING);
        let to = Outlet {
            to: sender,
            stopping: Arc::default(),
        };
        let (appeared, appearing) = bounded(APPEARING);
        let reader = Reader {
            ring,
            file_ring,
            stop: stop
                .try_clone()
                .map_err(|error| SourceError::refused("cloning an eventfd", &error))?,
            sink: Sink {
                decoder: decode::Decoder::default(),
                losses: Losses::new(counters),
                objects: probes.objects(),
                to: to.clone(),
                appeared,
            },
        };
        let probes = Arc::new(Mutex::new(probes));
        let threads = vec![
            thread("jittrace-ring", move || reader.run())?,
            thread("jittrace-probes", {
                let (probes, to) = (Arc::clone(&probes), to.clone());
                move || reader::place_probes(&probes, &appearing, &to)
            })?,
        ];
        Ok((
            Self {
                probes: Some(probes),
                followed: Mutex::new(followed),
                to: Some(to),
                stop,
                threads,
                setup,
            },
            from,
        ))
    }

    /// Follows process `pid` (as this process's pid namespace numbers it) and whatever it starts from now on.
    ///
    /// # Errors
    ///
    /// The set of followed processes is full.
    pub fn follow(&self, pid: u32) -> Result<(), SourceError> {
        let mut followed = self
            .followed
            .lock()
            .map_err(|_| SourceError::Object("its reader panicked".to_owned()))?;
        followed
            .insert(pid, 1, 0)
            .map_err(|error| SourceError::refused(format!("following process {pid}"), &error))
    }

    /// Follows `pid` and its descendants that exist already, and says which these are.
    ///
    /// # Errors
    ///
    /// As [`KernelSource::follow`].
    pub fn follow_tree(&self, pid: u32) -> Result<Vec<u32>, SourceError> {
        follow::each_descendant(pid, |pid| self.follow(pid))
    }

    /// Probes the watched functions of a file that no process need have mapped yet. The answer comes as
    /// [`KernelEvent::Watching`] as well; a file without watched functions, or one that was looked at before, is passed
    /// over.
    ///
    /// # Errors
    ///
    /// The file cannot be opened.
    pub fn watch_file(&self, path: &Path) -> io::Result<()> {
        self.watch(&ObjectFile::open(path)?);
        Ok(())
    }

    /// Probes files from a thread of its own, as [`KernelSource::watch_file`] does: a cold disk takes a minute for a few
    /// toolkits, and what they are needed for may never happen.
    ///
    /// # Errors
    ///
    /// No thread can be started.
    pub fn watch_meanwhile(
        &self,
        files: impl FnOnce() -> Vec<PathBuf> + Send + 'static,
    ) -> Result<(), SourceError> {
        let (Some(probes), Some(to)) = (&self.probes, &self.to) else {
            return Ok(());
        };
        let (probes, to) = (Arc::downgrade(probes), to.clone());
        thread("jittrace-expect", move || {
            for file in files() {
                let Some(probes) = probes.upgrade() else {
                    return;
                };
                if to.stopping.load(Ordering::Relaxed) {
                    return;
                }
                // A library that cannot be opened will not be loaded either.
                if let Ok(object) = ObjectFile::open(&file) {
                    reader::watch(&probes, &object, &to);
                }
            }
            load::trim();
        })?;
        Ok(())
    }

    /// Probes what process `pid` has mapped, and says which files could not be opened, and why.
    ///
    /// # Errors
    ///
    /// The process is gone or may not be looked at.
    pub fn watch_process(&self, pid: u32) -> io::Result<Vec<(MappedFile, io::Error)>> {
        let mut refused = Vec::new();
        for (mapped, object) in reader::mapped_objects(pid)? {
            match object {
                Ok(object) => self.watch(&object),
                Err(error) => refused.push((mapped, error)),
            }
        }
        Ok(refused)
    }

    /// Probes an opened object.
    pub fn watch(&self, object: &ObjectFile) {
        if let (Some(probes), Some(to)) = (&self.probes, &self.to) {
            reader::watch(probes, object, to);
        }
    }

    /// Follows nobody any more, delivers what is in the rings, closes the channel, and begins to detach. Receive meanwhile
    /// from another thread: of what nobody takes, as much is kept as the channel holds.
    pub fn stop(mut self) -> Detaching {
        self.end()
    }

    fn end(&mut self) -> Detaching {
        if let Ok(mut followed) = self.followed.lock() {
            let pids: Vec<u32> = followed.keys().flatten().collect();
            for pid in pids {
                // Gone in the meantime: so much the better.
                let _ = followed.remove(&pid);
            }
        }
        if let Some(to) = self.to.take() {
            to.stopping.store(true, Ordering::Relaxed);
        }
        // A full counter still is readable: the error is of no interest.
        let _ = rustix::io::write(&self.stop, &1u64.to_ne_bytes());
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        Detaching::of(self.probes.take())
    }
}

impl Drop for KernelSource {
    fn drop(&mut self) {
        self.end().wait();
    }
}

fn thread(name: &str, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, SourceError> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(run)
        .map_err(|error| SourceError::refused(format!("starting thread {name}"), &error))
}

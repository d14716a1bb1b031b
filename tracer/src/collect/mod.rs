//! The collector: takes what the sources say, orders it, looks up what the model needs to know of the host, masks
//! credentials, writes the trace and folds it.
//!
//! It runs in a thread of its own beside the launcher, and touches nothing of the traced program but files.

mod attached;
mod cache_facts;
mod desk;
mod draft;
mod facts;
mod follow;
mod host;
mod host_files;
mod kernel;
mod launch;
mod loader_host;
mod merge;
mod probe;
mod procfs;
mod replay;
mod roots;
mod shim;
mod stacks;
mod stillborn;
mod tail;
mod vicinity;
mod watch;
mod witness;

use std::{
    io::{self, Write},
    path::PathBuf,
};

use crossbeam_channel::{Receiver, Sender};
use jittrace_model::{
    Model,
    event::{Event, ProcessStart},
    log::Header,
    redact::Redactor,
};

use self::desk::Desk;
use crate::{ebpf::Detaching, launch::Ended};

pub use host::host;
pub(crate) use host_files::{HostFiles, map as map_file};
pub use kernel::{Kernel, Unprobed};
pub(crate) use loader_host::{LoaderHost, system as loader_system};
pub use stacks::Shared as SharedStacks;

/// Nanoseconds on CLOCK_MONOTONIC, the clock of the shim's records and of BPF.
pub fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    (now.tv_sec as u64) * 1_000_000_000 + now.tv_nsec as u64
}

/// What the launcher tells the collector.
#[derive(Debug)]
pub enum Word {
    /// The command ended.
    Ended(Ended),
    /// Stop now and write what there is.
    Stop,
}

/// What a collection is to do.
pub struct Plan {
    /// The trace's first line.
    pub header: Header,
    /// Where the trace goes.
    pub trace: Box<dyn Write + Send>,
    /// Masks credentials.
    pub redactor: Redactor,
    /// CLOCK_MONOTONIC of the trace's zero.
    pub began: u64,
    /// The command's process, or the one that was attached to.
    pub root: u32,
    /// What tells of the processes.
    pub inputs: Inputs,
    /// Who wants the events as they come.
    pub listener: Option<Sender<Vec<Event>>>,
}

/// What tells a collection of the processes.
pub enum Inputs {
    /// A launch: the shim's session file.
    Launch {
        /// The session file.
        session: std::fs::File,
        /// The command's place on disk, when it is one that the shim cannot reach, and why.
        unreached: Option<(PathBuf, String)>,
        /// How the command begins, should it not live to say so.
        start: Box<ProcessStart>,
        /// Wait for every descendant.
        wait_all: bool,
        /// What the kernel sees, where it follows the command.
        kernel: Option<Kernel>,
        /// What both tell is written twice.
        twice: bool,
    },
    /// An attach: a snapshot of `/proc`, then what the kernel sees, or `/proc` again and again.
    Attach {
        /// What the kernel sees, where it may be asked. It follows the process already.
        kernel: Option<Kernel>,
        /// CLOCK_MONOTONIC from which on the kernel tells whatever begins in the tree.
        since: u64,
        /// Files that processes have mapped and that could not be probed: process, path, reason.
        unprobed: Vec<Unprobed>,
        /// The Python frames of the processes.
        stacks: SharedStacks,
    },
}

/// What is left when a collection is over.
pub struct Collected {
    /// The fold of everything.
    pub model: Model,
    /// Why the trace could not be written to its end.
    pub trouble: Option<io::Error>,
    /// Descendants that were still running.
    pub still_running: Vec<u32>,
    /// Kernel programs that are being taken out.
    pub detaching: Option<Detaching>,
}

/// Collects until the command has ended and its last records are in, or until it is told to stop.
pub fn collect(plan: Plan, words: &Receiver<Word>) -> io::Result<Collected> {
    let Plan {
        header,
        trace,
        redactor,
        began,
        root,
        inputs,
        listener,
    } = plan;
    let mut desk = Desk::open(header, trace, redactor, began, listener)?;
    match inputs {
        Inputs::Launch {
            session,
            unreached,
            start,
            wait_all,
            kernel,
            twice,
        } => {
            let start = unreached.is_none().then_some(start);
            if let Some((exe, reason)) = unreached {
                desk.unreached(began, root, &exe.to_string_lossy(), reason);
            }
            if kernel.is_some() {
                desk.expect_two_witnesses(twice);
            }
            launch::Launch::new(session, root, start, desk, kernel).run(words, wait_all)
        }
        Inputs::Attach {
            kernel: None,
            stacks,
            ..
        } => attached::polled(root, desk, stacks, words),
        Inputs::Attach {
            kernel: Some(kernel),
            since,
            unprobed,
            stacks,
        } => {
            desk.unprobed(began, &unprobed);
            let tree = procfs::Tree::until(since, root, stacks);
            attached::followed(tree, desk, kernel, words)
        }
    }
}

//! The kernel's observations as the collector takes them in.
//!
//! [`Kernel`] is the running source with the thread that looks at each observation at once ([`sight`]);
//! [`Translate`] turns what was seen into drafts of events.

mod address;
mod asked;
mod image;
mod places;
mod sight;
mod translate;

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt,
    path::PathBuf,
    thread::JoinHandle,
};

use crossbeam_channel::Receiver;

use super::{monotonic_ns, stacks::Shared};
pub(super) use sight::Sight;
pub(super) use translate::Translate;

use crate::ebpf::{Detaching, KernelSource, Options, SourceError};

/// A mapped file in which no probe could be placed.
#[derive(Debug)]
pub struct Unprobed {
    /// Who has it mapped.
    pub pid: u32,
    /// Its path, as that process names it.
    pub path: PathBuf,
    /// Why it could not be opened.
    pub reason: String,
}

/// The running kernel source.
pub struct Kernel {
    source: KernelSource,
    sights: Receiver<Sight>,
    looking: JoinHandle<()>,
}

impl Kernel {
    /// Loads and attaches the kernel programs. Takes up to a second; nobody is followed yet. `stacks`: where Python frames
    /// are to be read from outside, because no shim tells them.
    ///
    /// # Errors
    /// What was refused.
    pub(crate) fn start(stacks: Option<Shared>) -> Result<Kernel, SourceError> {
        let (source, observations) = KernelSource::start(Options::default())?;
        let (sights, looking) =
            sight::look(observations, stacks).map_err(|error| SourceError::Refused {
                step: "starting a thread".to_owned(),
                reason: error.to_string(),
                errno: error.raw_os_error(),
                verifier: None,
            })?;
        Ok(Kernel {
            source,
            sights,
            looking,
        })
    }

    /// Places probes on the CUDA libraries that a command with this environment may load, so that not even their first
    /// call is missed.
    pub fn expect(&self, program: &OsStr, env: &[(OsString, OsString)]) {
        for library in libraries_of(program, env) {
            // A library that cannot be opened will not be loaded either.
            let _ = self.source.watch_file(&library);
        }
    }

    /// The same beside everything else: the command does not wait for it.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn expect_meanwhile(
        &self,
        program: OsString,
        env: Vec<(OsString, OsString)>,
    ) -> Result<(), SourceError> {
        self.source
            .watch_meanwhile(move || libraries_of(&program, &env))
    }

    /// The same for a live process: what it has not loaded yet.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn expect_of(&self, pid: u32) -> Result<(), SourceError> {
        self.source.watch_meanwhile(move || {
            let exe = std::fs::read_link(format!("/proc/{pid}/exe")).ok();
            let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            let env = crate::launch::variables(&environ);
            // A virtual environment's interpreter is a link: its own place is what was typed.
            let typed = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let typed = typed.split(|b| *b == 0).next().unwrap_or_default();
            let typed = PathBuf::from(OsStr::from_bytes(typed));
            [Some(typed), exe]
                .into_iter()
                .flatten()
                .flat_map(|program| libraries_of(program.as_os_str(), &env))
                .collect()
        })
    }

    /// Follows a process and whatever it starts from now on.
    ///
    /// # Errors
    /// The set of followed processes is full.
    pub fn follow(&self, pid: u32) -> Result<(), SourceError> {
        self.source.follow(pid)
    }

    /// Follows a live process and its descendants, and places probes on what they have mapped. Gives CLOCK_MONOTONIC from
    /// which on nothing in the tree begins unseen, and the files that could not be opened, with the reason.
    ///
    /// # Errors
    /// The set of followed processes is full.
    pub fn follow_tree(&self, pid: u32) -> Result<(u64, Vec<Unprobed>), SourceError> {
        let mut refused = Vec::new();
        let tree = self.source.follow_tree(pid)?;
        let since = monotonic_ns();
        for pid in tree {
            // A process that is gone meanwhile has nothing to probe.
            for (file, error) in self.source.watch_process(pid).unwrap_or_default() {
                refused.push(Unprobed {
                    pid,
                    path: file.path,
                    reason: error.to_string(),
                });
            }
        }
        Ok((since, refused))
    }

    /// What has been seen since the last call.
    pub(super) fn sights(&self) -> impl Iterator<Item = Sight> + '_ {
        self.sights.try_iter()
    }

    /// Stops following: gives the last sights, and what is still to be waited for until nothing is left in the kernel.
    pub(super) fn stop(self) -> (Vec<Sight>, Detaching) {
        let detaching = self.source.stop();
        // A thread that failed has passed on what it had.
        let _ = self.looking.join();
        (self.sights.try_iter().collect(), detaching)
    }
}

/// The CUDA libraries that a command with this environment may load.
fn libraries_of(program: &OsStr, env: &[(OsString, OsString)]) -> Vec<PathBuf> {
    let search = env
        .iter()
        .find(|(name, _)| name == "PATH")
        .map(|(_, value)| value.as_os_str());
    let program = crate::launch::find(program, search);
    places::libraries(program.as_deref(), env)
}

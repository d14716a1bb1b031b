//! The collection of a launch: the shim's session file, tailed until the command has ended and its last records are in,
//! and beside it what the kernel sees, where it follows the command.

use std::{
    fs::File,
    io,
    time::{Duration, Instant},
};

use crossbeam_channel::{Receiver, RecvTimeoutError};
use jittrace_model::event::{Body, Lost, ProcessExit, ProcessStart};
use jittrace_wire::Record;

use super::{
    Collected, Word,
    desk::Desk,
    draft::{Draft, Sink},
    follow::Following,
    kernel::Kernel,
    monotonic_ns,
    shim::Translate,
    stillborn,
    tail::Tail,
    watch::Watch,
};
use crate::launch::Ended;

/// How long the session file is left alone between two looks.
const POLL: Duration = Duration::from_millis(20);

/// How long the last records are waited for after the command has ended.
const DRAIN: Duration = Duration::from_millis(200);

/// The collection of a launch.
pub(super) struct Launch {
    tail: Tail,
    translate: Translate,
    following: Option<Following>,
    watch: Watch,
    desk: Desk,
    root: u32,
    /// How the command begins, until it says so itself.
    start: Option<Box<ProcessStart>>,
}

impl Launch {
    /// Begins with an empty session file. `kernel`, where there is one, follows the command already.
    pub(super) fn new(
        session: File,
        root: u32,
        start: Option<Box<ProcessStart>>,
        desk: Desk,
        kernel: Option<Kernel>,
    ) -> Launch {
        Launch {
            tail: Tail::new(session),
            translate: Translate::new(Some(root)),
            following: kernel.map(|kernel| Following::new(kernel, Some(root))),
            watch: Watch::default(),
            desk,
            root,
            start,
        }
    }

    /// Collects until the command has ended, or until the word comes.
    ///
    /// # Errors
    /// The session file cannot be read.
    pub(super) fn run(mut self, words: &Receiver<Word>, wait_all: bool) -> io::Result<Collected> {
        let ended = loop {
            self.look()?;
            match words.recv_timeout(POLL) {
                Ok(Word::Ended(ended)) => break Some(ended),
                Ok(Word::Stop) | Err(RecvTimeoutError::Disconnected) => break None,
                Err(RecvTimeoutError::Timeout) => {}
            }
        };
        let end_time = monotonic_ns();
        let deadline = Instant::now() + DRAIN;
        loop {
            self.look()?;
            let others = self.watch.living() > usize::from(self.watch.knows(self.root));
            if !others || !wait_all && Instant::now() >= deadline {
                break;
            }
            match words.recv_timeout(POLL) {
                Ok(Word::Stop) | Err(RecvTimeoutError::Disconnected) if wait_all => break,
                _ => {}
            }
        }
        self.translate.finish(end_time, &mut self.desk);
        let detaching = self
            .following
            .as_mut()
            .and_then(|following| following.stop(end_time, &mut self.desk));
        if let Some(ended) = ended {
            if ended == Ended::Code(stillborn::LOADER_STATUS) {
                self.desk
                    .ended_by_loader(self.start.take(), self.root, end_time);
            }
            self.desk.put(Draft {
                time: end_time,
                pid: self.root,
                tid: self.root,
                body: Body::ProcessExit(exit_of(ended)),
            });
        }
        self.desk.children_ended_by_loader(end_time);
        self.account_for_losses(end_time);
        self.desk.ask_tools(end_time);
        let root = self.root;
        let mut still_running: Vec<u32> = self.watch.pids().filter(|pid| *pid != root).collect();
        still_running.sort_unstable();
        let (model, trouble) = self.desk.close();
        Ok(Collected {
            model,
            trouble,
            still_running,
            detaching,
        })
    }

    /// Takes in what has come since the last look.
    fn look(&mut self) -> io::Result<()> {
        match &mut self.following {
            Some(following) => {
                self.tail.read(|header, record, bytes| {
                    if matches!(record, Record::Start(_)) {
                        self.watch.begin(header.pid);
                    }
                    following.record(header, bytes);
                })?;
                following.look(monotonic_ns(), &mut self.watch, &mut self.desk);
            }
            None => self.hear_shim()?,
        }
        self.desk.flush();
        Ok(())
    }

    /// The shim alone: its records are told as they are read, and who ends without a word is watched for.
    fn hear_shim(&mut self) -> io::Result<()> {
        let (translate, desk, watch) = (&mut self.translate, &mut self.desk, &mut self.watch);
        self.tail.read(|header, record, _| {
            if matches!(record, Record::Start(_)) {
                watch.begin(header.pid);
            }
            translate.record(header, record, desk);
        })?;
        for (pid, exit) in watch.ended() {
            let said = !translate.living().any(|p| p == pid);
            translate.gone(pid);
            if said || pid == self.root {
                continue;
            }
            if exit.code == Some(stillborn::LOADER_STATUS) {
                desk.ended_by_loader(None, pid, monotonic_ns());
            }
            desk.put(Draft {
                time: monotonic_ns(),
                pid,
                tid: pid,
                body: Body::ProcessExit(exit),
            });
        }
        Ok(())
    }

    fn account_for_losses(&mut self, time: u64) {
        for (what, count, reason) in [
            (
                "bytes",
                self.tail.damaged(),
                "part of the session file was damaged or cut off, as by a full disk",
            ),
            ("records", self.tail.unknown(), "records of a newer shim"),
        ] {
            if count > 0 {
                self.desk.put(Draft {
                    time,
                    pid: 0,
                    tid: 0,
                    body: Body::Lost(Lost {
                        what: what.to_owned(),
                        count,
                        reason: reason.to_owned(),
                    }),
                });
            }
        }
    }
}

fn exit_of(ended: Ended) -> ProcessExit {
    match ended {
        Ended::Code(code) => ProcessExit {
            code: Some(code),
            ..ProcessExit::default()
        },
        Ended::Signal(signal) => ProcessExit {
            signal: Some(signal),
            ..ProcessExit::default()
        },
    }
}

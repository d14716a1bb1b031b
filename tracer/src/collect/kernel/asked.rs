//! Which Python code asked for what the kernel saw: read from outside, for the few events where a reading a moment later
//! is honest.
//!
//! A compiler is started by a thread that then waits for it; while the compiler lives, that thread is where it was. A
//! dlopen keeps its thread until it returns; whether the reading was in time is known when it does
//! ([`translate`](super::translate)). Everything else is over before it could be looked at.

use std::{collections::HashMap, fs};

use jittrace_model::resolve::tool;

use super::super::{
    replay,
    stacks::{Shared, Stack},
};
use crate::ebpf::{Call, Exec, Function, KernelEvent, Observation, TaskViews};

/// Most forks whose forking thread is remembered; a child that runs nothing else is forgotten with them.
const FORKS: usize = 4096;

/// The threads that started children, and their frames.
pub(super) struct Asked {
    stacks: Shared,
    /// Child process → who forked it.
    forked: HashMap<u32, TaskViews>,
}

impl Asked {
    pub(super) fn new(stacks: Shared) -> Asked {
        Asked {
            stacks,
            forked: HashMap::new(),
        }
    }

    /// The frames of the code that asked for this, where they can be had.
    pub(super) fn of(&mut self, observation: &Observation) -> Option<Stack> {
        let task = observation.task;
        let pid = task.own.tgid;
        match &observation.event {
            KernelEvent::Fork { child } => {
                if self.forked.len() >= FORKS {
                    self.forked.clear();
                }
                self.forked.insert(child.own.tgid, task);
                None
            }
            KernelEvent::Exec(exec) => {
                let forker = self.forked.remove(&pid);
                self.forget(pid);
                let stack = is_compiler(exec).then(|| self.thread(forker?)).flatten()?;
                lives(pid).then_some(stack)
            }
            KernelEvent::Exit(_) => {
                self.forked.remove(&pid);
                self.forget(pid);
                None
            }
            KernelEvent::Entered(call) if asks_for_cuda(call) => self.thread(task),
            _ => None,
        }
    }

    fn thread(&self, task: TaskViews) -> Option<Stack> {
        let names = [task.own.tid, task.inner.tid, task.initial.tid];
        self.stacks.lock().ok()?.thread(task.own.tgid, &names)
    }

    fn forget(&self, pid: u32) {
        if let Ok(mut stacks) = self.stacks.lock() {
            stacks.forget(pid);
        }
    }
}

/// Whether a program compiles or starts those that do: a shell may, when it is told what to run.
fn is_compiler(exec: &Exec) -> bool {
    let path = exec.filename.to_string_lossy();
    let name = path.rsplit('/').next().unwrap_or_default();
    tool::Kind::of(name).is_some()
}

fn asks_for_cuda(call: &Call) -> bool {
    matches!(call.function, Function::Dlopen | Function::Dlmopen)
        && call
            .texts()
            .next()
            .is_some_and(|name| replay::is_of_cuda(&name.to_string_lossy()))
}

/// Whether a process has not ended yet.
fn lives(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
        stat.rsplit_once(") ")
            .is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
    })
}

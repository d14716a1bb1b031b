//! Programs that the loader ended: what of CUDA it missed is told in their place.

use jittrace_model::commandline::absolute;
use jittrace_model::event::{Body, ProcessExit, ProcessStart, Source};

use super::Desk;
use crate::collect::{
    draft::{Draft, Sink},
    stillborn,
};

impl Desk {
    /// A process ended with the loader's status and without a word: what of CUDA the loader missed. `start` is how it
    /// began, for one that did not live to say so.
    pub(in crate::collect) fn ended_by_loader(
        &mut self,
        start: Option<Box<ProcessStart>>,
        pid: u32,
        time: u64,
    ) {
        let begun = self
            .model
            .current_process(pid)
            .and_then(|index| self.model.process(index));
        let known = match (begun, start) {
            (Some(process), _) => {
                let mut start = process.started();
                if let Some(environment) = self.environments.get(&pid) {
                    start.env = environment.as_ref().clone();
                }
                start
            }
            (None, Some(start)) => {
                self.put_from(
                    Draft {
                        time: self.began,
                        pid,
                        tid: pid,
                        body: Body::ProcessStart(start.clone()),
                    },
                    Source::Collector,
                );
                *start
            }
            (None, None) => return,
        };
        self.missed(&known, pid, time);
    }

    /// Children that were to run a program and never said that they began: those that the loader ended.
    pub(in crate::collect) fn children_ended_by_loader(&mut self, time: u64) {
        let attempts: Vec<(u32, u32, String, Vec<String>)> = self
            .model
            .execs_without_start()
            .filter(|(_, exec)| exec.what.not_followed.is_none())
            .map(|(child, exec)| {
                let parent = exec.what.ppid.unwrap_or(exec.pid);
                let what = &exec.what;
                (child, parent, what.path.clone(), what.argv.clone())
            })
            .collect();
        for (child, parent, path, argv) in attempts {
            let Some(process) = self
                .model
                .current_process(parent)
                .and_then(|index| self.model.process(index))
            else {
                continue;
            };
            let start = ProcessStart {
                ppid: parent,
                exe: absolute(&process.what.cwd, &path),
                argv,
                cwd: process.what.cwd.clone(),
                env: process.env.as_ref().clone(),
                ..ProcessStart::default()
            };
            if self.replay.missed(&start).is_none() {
                continue;
            }
            self.put_from(
                Draft {
                    time,
                    pid: child,
                    tid: child,
                    body: Body::ProcessStart(Box::new(start.clone())),
                },
                Source::Collector,
            );
            self.missed(&start, child, time);
            self.put_from(
                Draft {
                    time,
                    pid: child,
                    tid: child,
                    body: Body::ProcessExit(ProcessExit {
                        code: Some(stillborn::LOADER_STATUS),
                        ..ProcessExit::default()
                    }),
                },
                Source::Collector,
            );
        }
    }

    fn missed(&mut self, start: &ProcessStart, pid: u32, time: u64) {
        if let Some(failed) = self.replay.missed(start) {
            self.put_from(
                Draft {
                    time,
                    pid,
                    tid: pid,
                    body: Body::LibraryFailed(Box::new(failed)),
                },
                Source::Collector,
            );
        }
    }
}

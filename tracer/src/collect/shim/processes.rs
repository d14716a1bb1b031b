//! Processes: programs that start, what they try to execute, ends.

use jittrace_model::event::{Body, Exec, ExecFailed, LibraryLoaded, ProcessExit, ProcessStart};
use jittrace_wire::record::{self, Mark};

use super::{At, Translate, caller, frames, objects, owned};
use crate::collect::draft::{Sink, without_ours};

impl Translate {
    pub(super) fn start(&mut self, at: At, start: &record::Start<'_>, sink: &mut impl Sink) {
        self.settle_all(at.header.pid, at.header.time, sink);
        let mut unread = indexmap::IndexMap::new();
        for (name, text) in [("exe", start.exe), ("cwd", start.cwd)] {
            if text.mark.has(Mark::UNREADABLE) {
                unread.insert(
                    name.to_owned(),
                    "it could not be read inside the process".to_owned(),
                );
            }
        }
        let early = std::mem::take(&mut self.process(at).early);
        let argv: Vec<String> = start.argv.iter().map(|a| a.value.to_owned()).collect();
        if (argv.len() as u64) < start.argc {
            unread.insert(
                "argv".to_owned(),
                format!("cut after {} of {} arguments", argv.len(), start.argc),
            );
        }
        let env = start
            .env
            .iter()
            .filter_map(|e| e.value.split_once('='))
            .filter_map(|(name, value)| without_ours(name, value, start.shim.value))
            .collect();
        let cwd = owned(start.cwd);
        let parents = (start.how.value == "fork")
            .then(|| self.processes.get(&(start.ppid as u32)))
            .flatten()
            .map(|parent| parent.bases.clone());
        let process = self.process(at);
        if let Some(parents) = parents {
            process.bases = parents;
        }
        process.cwd.clone_from(&cwd);
        process.alive = true;
        process.attempts.clear();
        process.requests.clear();
        process.lookups.clear();
        sink.put(at.draft(Body::ProcessStart(Box::new(ProcessStart {
            ppid: start.ppid as u32,
            exe: owned(start.exe),
            argv,
            cwd,
            env,
            uid: u32::try_from(start.uid).ok(),
            forked: start.how.value == "fork",
            unread,
            ..ProcessStart::default()
        }))));
        let first = [(at, objects(&start.objects, None, true).collect())];
        for (at, objects) in early.into_iter().chain(first) {
            for object in objects {
                sink.put(at.draft(Body::LibraryLoaded(Box::new(LibraryLoaded {
                    at_start: true,
                    ..object
                }))));
            }
        }
    }

    pub(super) fn exit(&mut self, at: At, exit: &record::Exit<'_>, sink: &mut impl Sink) {
        self.settle_all(at.header.pid, at.header.time, sink);
        if self.root == Some(at.header.pid) {
            return;
        }
        // Without a code, the kernel may still tell it: the process stays on the list of the living.
        if let Some(code) = exit.code {
            self.process(at).alive = false;
            sink.put(at.draft(Body::ProcessExit(ProcessExit {
                code: Some((code & 0xff) as i32),
                ..ProcessExit::default()
            })));
        }
    }

    pub(super) fn exec_attempt(
        &mut self,
        at: At,
        attempt: &record::ExecAttempt<'_>,
        sink: &mut impl Sink,
    ) {
        let mut python = frames(&attempt.python);
        if python.is_empty() && attempt.fork != 0 {
            let parent = self.processes.get(&(attempt.ppid as u32));
            python = parent
                .and_then(|p| p.forks.get(&(attempt.fork as u32)))
                .cloned()
                .unwrap_or_default();
        }
        let exec = Exec {
            call: owned(attempt.call),
            path: owned(attempt.path),
            argv: attempt.argv.iter().map(|a| a.value.to_owned()).collect(),
            python,
            caller: caller(attempt.caller, attempt.offset),
            ppid: (attempt.fork != 0 && attempt.ppid != 0).then_some(attempt.ppid as u32),
            child: None,
            not_followed: (attempt.environment.value == "cleared")
                .then(|| "the program cleared its child's environment".to_owned()),
        };
        sink.put(at.draft(Body::Exec(Box::new(exec.clone()))));
        self.process(at).attempts.insert(at.header.sequence, exec);
    }

    pub(super) fn exec_failed(
        &mut self,
        at: At,
        failed: &record::ExecFailed<'_>,
        sink: &mut impl Sink,
    ) {
        let attempt = self.process(at).attempts.remove(&(failed.attempt as u32));
        let exec = attempt.unwrap_or_default();
        sink.put(at.draft(Body::ExecFailed(Box::new(ExecFailed {
            path: failed.path.get().map_or(exec.path, str::to_owned),
            argv: exec.argv,
            errno: failed.errno as i32,
            call: exec.call,
            python: exec.python,
            caller: exec.caller,
            ppid: exec.ppid,
            tried: Vec::new(),
        }))));
    }

    pub(super) fn spawned(&mut self, at: At, spawned: &record::Spawned<'_>, sink: &mut impl Sink) {
        let Some(exec) = self.process(at).attempts.remove(&(spawned.attempt as u32)) else {
            return;
        };
        if spawned.child != 0 {
            // The attempt again, now with the child it made: the fold joins the two.
            sink.put(at.draft(Body::Exec(Box::new(Exec {
                child: Some(spawned.child as u32),
                ..exec
            }))));
        }
    }

    pub(super) fn not_followed(
        &mut self,
        at: At,
        not: &record::NotFollowed<'_>,
        sink: &mut impl Sink,
    ) {
        let process = self.process(at);
        let attempt = process.attempts.get(&(not.attempt as u32)).cloned();
        let exec = attempt.unwrap_or_default();
        let reason = match not.reason.value {
            "cleared-environment" => "the program cleared its child's environment; --follow-clean-env follows it".to_owned(),
            "static" => "it is statically linked, so no library can be preloaded into it; as root, --source ebpf sees it".to_owned(),
            "setuid" => "it is setuid, and the loader ignores LD_PRELOAD there; as root, --source ebpf sees it".to_owned(),
            "musl" => "it is linked against musl, and the shim needs glibc; as root, --source ebpf sees it".to_owned(),
            "32-bit" => "it is a 32-bit program".to_owned(),
            other => other.to_owned(),
        };
        // The child says nothing itself: what its parent knows of it is its start.
        sink.put(
            at.draft(Body::ProcessStart(Box::new(ProcessStart {
                exe: not
                    .path
                    .get()
                    .map_or_else(|| exec.path.clone(), str::to_owned),
                argv: exec.argv,
                not_followed: Some(reason),
                ..ProcessStart::default()
            }))),
        );
    }
}

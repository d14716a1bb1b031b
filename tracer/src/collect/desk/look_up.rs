//! What is looked up on this machine about an event, so that the trace needs no machine to be understood.

use std::rc::Rc;

use jittrace_model::{
    commandline::absolute,
    event::{Body, EventId, Fact, ProcessStart, Source},
    resolve::tool,
};

use super::Desk;
use crate::collect::draft::Draft;

impl Desk {
    /// A process began: its link map, its environment, whether it only builds. Gives what its start brings to light.
    pub(super) fn begin(&mut self, pid: u32, start: &mut ProcessStart) -> Vec<Fact> {
        self.replay.start(pid, start);
        let facts = self.facts.process(start);
        let before = self
            .environments
            .get(&pid)
            .or_else(|| self.environments.get(&start.ppid))
            .cloned();
        let environment = match before {
            Some(before) if start.forked || *before == start.env => {
                start.env_inherited = true;
                start.env.clear();
                before
            }
            _ => Rc::new(start.env.clone()),
        };
        self.environments.insert(pid, environment);
        let is_tool =
            |path: &str| tool::Kind::of(path.rsplit('/').next().unwrap_or_default()).is_some();
        let script = start
            .argv
            .get(1)
            .is_some_and(|a| a.contains('/') && is_tool(a));
        if is_tool(&start.exe) || script {
            self.tools.insert(pid);
        } else {
            self.tools.remove(&pid);
        }
        facts
    }

    /// A load that failed for its symbols has still chosen files, and which ones is what a verdict needs.
    pub(super) fn searches_of_failed(&mut self, time: u64, pid: u32, tid: u32, request: EventId) {
        for loaded in self.replay.searches_of(pid, request) {
            let mut draft = Draft {
                time,
                pid,
                tid,
                body: Body::LibraryLoaded(Box::new(loaded)),
            };
            let mut facts = Vec::new();
            self.look_up(&mut draft, &mut facts);
            for fact in facts {
                self.fact(time, fact);
            }
            self.write(draft, Source::Collector);
        }
    }

    /// Looks up what the model needs to understand an event.
    pub(super) fn look_up(&mut self, draft: &mut Draft, told: &mut Vec<Fact>) {
        let facts = &mut self.facts;
        let environment = self.environments.get(&draft.pid).cloned();
        let variable = |name: &str| environment.as_ref()?.get(name).cloned();
        let process = self.model.current_process(draft.pid);
        let cwd = process
            .and_then(|i| self.model.process(i))
            .map_or_else(|| "/".to_owned(), |p| p.what.cwd.clone());
        match &mut draft.body {
            Body::ProcessStart(start) => {
                let script = start
                    .argv
                    .get(1)
                    .filter(|a| a.contains('/') && !a.starts_with('-'))
                    .map(|a| absolute(&start.cwd, a));
                for path in [Some(start.exe.clone()), script].into_iter().flatten() {
                    let name = path.rsplit('/').next().unwrap_or_default();
                    if tool::Kind::of(name)
                        .is_some_and(|k| k != tool::Kind::Shell && k != tool::Kind::HostTool)
                    {
                        facts.file(&path, told);
                    }
                }
            }
            Body::Exec(exec) => {
                facts.frames(&mut exec.python, told);
                let name = exec.path.rsplit('/').next().unwrap_or_default();
                if tool::Kind::of(name).and_then(tool::Kind::part).is_some()
                    && exec.path.contains('/')
                {
                    let forker = exec.ppid.and_then(|ppid| self.model.current_process(ppid));
                    let cwd = process
                        .or(forker)
                        .and_then(|i| self.model.process(i))
                        .map_or("/", |p| p.what.cwd.as_str());
                    facts.file(&absolute(cwd, &exec.path), told);
                }
            }
            Body::ExecFailed(failed) => {
                facts.frames(&mut failed.python, told);
                let process = self
                    .model
                    .current_process(draft.pid)
                    .or_else(|| self.model.current_process(failed.ppid?));
                for path in self.vicinity.of_failed_tool(failed, process, &self.model) {
                    facts.file(&path, told);
                }
            }
            Body::LibraryRequest(request) => facts.frames(&mut request.python, told),
            Body::LibraryLoaded(loaded) => {
                facts.frames(&mut loaded.python, told);
                facts.file(&loaded.path, told);
                for path in self.vicinity.of_loaded(loaded, &cwd) {
                    facts.file(&path, told);
                }
                if !loaded.at_start {
                    told.extend(self.caches.look(&loaded.path, &variable));
                }
            }
            Body::LibraryFailed(failed) => {
                facts.frames(&mut failed.python, told);
                for path in self.vicinity.of_failed(failed, &cwd) {
                    facts.failed_object(&path, told);
                }
                failed.claimed = facts.claimed(failed, &cwd, told);
                // The object that could not be completed: what it needs, and whether it lies in a cache.
                let incomplete = failed.missing_for.as_ref().unwrap_or(&failed.requested);
                if incomplete.contains('/') {
                    let incomplete = absolute(&cwd, incomplete);
                    facts.failed_object(&incomplete, told);
                    told.extend(self.caches.look(&incomplete, &variable));
                }
            }
            Body::Call(call) => {
                facts.frames(&mut call.python, told);
                if let Some(caller) = &mut call.caller {
                    caller.distribution = facts.owner(&caller.object, told);
                }
            }
            Body::PythonStack(stack) => facts.frames(&mut stack.python, told),
            Body::File(access) => {
                facts.access(access, told);
                for path in self.vicinity.of_missing_header(access, &cwd, facts.sites()) {
                    facts.file(&path, told);
                }
                told.extend(self.caches.look(&access.path, &variable));
                if let Some(to) = &access.to {
                    told.extend(self.caches.look(to, &variable));
                }
            }
            _ => {}
        }
    }
}

//! Libraries that are asked for at run time: the request, and what it mapped.

use jittrace_model::event::{
    Body, EventId, LibraryFailed, LibraryLoaded, LibraryRequest, Rule, Source,
};

use super::{At, Translate, caller, explain, identity, text};
use crate::{
    collect::{draft::Sink, kernel::sight::Sight, stacks::Stack},
    ebpf::{Call, Function},
};

/// How long after a dlclose the map is looked at for what is gone, in ns.
const AFTER_CLOSE: u64 = 20_000_000;

/// How long a failure waits for the loader's text, in ns, which the shim hears when the program asks for it.
const FOR_WORDS: u64 = 1_000_000_000;

/// A dlopen that has not returned.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) event: EventId,
    request: LibraryRequest,
    /// Files that the loader opened for it, in order.
    pub(super) opened: Vec<String>,
    /// The Python code that its thread was found in, until it is known whether the thread was still inside then.
    pub(super) python: Option<Stack>,
}

impl Translate {
    pub(super) fn entered(&mut self, at: At, call: &Call, sight: &Sight, sink: &mut impl Sink) {
        match call.function {
            Function::Dlopen | Function::Dlmopen => {
                self.request(at, call, sight, sink);
            }
            Function::Dlclose => {
                let look = at.time + AFTER_CLOSE;
                self.process(at.pid).looks.push(look);
            }
            // Its return is told, or cannot be seen: then the entry is all there is.
            Function::Cuda(_) => {}
        }
    }

    fn request(&mut self, at: At, call: &Call, sight: &Sight, sink: &mut impl Sink) -> EventId {
        self.tell_fork(at.pid, sink);
        let [first, second, third, ..] = call.args;
        let (name, flags) = match call.function {
            Function::Dlmopen => (second, third),
            _ => (first, second),
        };
        let request = LibraryRequest {
            // A null name asks for the program itself.
            name: match name {
                0 => String::new(),
                _ => call.texts().next().map(text).unwrap_or_default(),
            },
            call: call.function.name().to_owned(),
            flags: flags as i32,
            caller: caller(sight.caller.as_ref()),
            python: Vec::new(),
        };
        let event = sink.put_from(
            at.draft(Body::LibraryRequest(Box::new(request.clone()))),
            Source::Ebpf,
        );
        self.process(at.pid).open.insert(
            (at.tid, call.begin_ns),
            Open {
                event,
                request,
                opened: Vec::new(),
                python: sight.python.clone(),
            },
        );
        event
    }

    /// A dlopen has returned.
    pub(super) fn answered(
        &mut self,
        at: At,
        call: &Call,
        sight: &Sight,
        covered: bool,
        sink: &mut impl Sink,
    ) {
        let key = (at.tid, call.begin_ns);
        if !self.process(at.pid).open.contains_key(&key) {
            // The entry was lost, or was before the probes.
            self.request(at, call, sight, sink);
        }
        let Some(open) = self.process(at.pid).open.remove(&key) else {
            return;
        };
        match open.python {
            Some(stack) if stack.read_at <= at.time => explain(at, open.event, stack, sink),
            Some(_) => self.read_late += 1,
            None => {}
        }
        let requested_by = open.request.caller.as_ref().map(|c| c.object.clone());
        if call.result == Some(0) {
            if open.request.flags & libc::RTLD_NOLOAD == 0 {
                let failed = at.draft(Body::LibraryFailed(Box::new(LibraryFailed {
                    requested: open.request.name,
                    requested_by,
                    request: Some(open.event),
                    error: "dlopen returned no handle".to_owned(),
                    ..LibraryFailed::default()
                })));
                if covered {
                    let until = at.time + FOR_WORDS;
                    self.process(at.pid).failed.push((until, failed));
                } else {
                    sink.put_from(failed, Source::Ebpf);
                }
            }
            return;
        }
        let mut fresh = 0;
        for path in open.opened {
            let file = identity(at.pid, &path);
            if let Some(file) = file {
                let process = self.process(at.pid);
                process.told.insert(file, at.time);
                if process.mapped.insert(file, path.clone()).is_some() {
                    continue;
                }
            }
            fresh += 1;
            sink.put_from(
                at.draft(Body::LibraryLoaded(Box::new(LibraryLoaded {
                    path,
                    request: Some(open.event),
                    dev: file.map(|f| f.0),
                    ino: file.map(|f| f.1),
                    ..LibraryLoaded::default()
                }))),
                Source::Ebpf,
            );
        }
        // The second text is what the loader calls the object.
        let named = call.texts().nth(1).map(text).unwrap_or_default();
        if fresh == 0 && !named.is_empty() {
            sink.put_from(
                at.draft(Body::LibraryLoaded(Box::new(LibraryLoaded {
                    path: named,
                    requested: Some(open.request.name),
                    requested_by,
                    request: Some(open.event),
                    rule: Rule::AlreadyLoaded,
                    ..LibraryLoaded::default()
                }))),
                Source::Ebpf,
            );
        }
    }
}

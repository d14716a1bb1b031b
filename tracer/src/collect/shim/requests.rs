//! Libraries that are asked for at run time, and how each request is settled.

use jittrace_model::event::{
    Body, EventId, LibraryFailed, LibraryLoaded, LibraryRequest, Note, Rule,
};
use jittrace_wire::record;

use super::{At, Translate, caller, frames, objects, owned};
use crate::collect::draft::{Draft, Sink};

#[derive(Debug, Clone)]
pub(super) struct Request {
    event: EventId,
    tid: u32,
    request: LibraryRequest,
    loaded: bool,
    /// Text of a failure that the program asked for.
    failed: bool,
}

impl Translate {
    pub(super) fn objects(
        &mut self,
        at: At,
        loaded: &record::ObjectLoaded<'_>,
        sink: &mut impl Sink,
    ) {
        let process = self.process(at);
        let request = process
            .requests
            .get_mut(&(loaded.request as u32))
            .map(|request| {
                request.loaded = true;
                request.clone()
            });
        let at_start = loaded.how.value == "start";
        for object in objects(&loaded.objects, request.map(|r| r.event), at_start) {
            sink.put(at.draft(Body::LibraryLoaded(Box::new(object))));
        }
    }

    pub(super) fn dl_request(
        &mut self,
        at: At,
        request: &record::DlRequest<'_>,
        sink: &mut impl Sink,
    ) {
        self.settle_thread(at, sink);
        let request = LibraryRequest {
            name: owned(request.name),
            call: owned(request.call),
            flags: request.flags as i32,
            caller: caller(request.caller, request.offset),
            python: frames(&request.python),
        };
        let event = sink.put(at.draft(Body::LibraryRequest(Box::new(request.clone()))));
        self.process(at).requests.insert(
            at.header.sequence,
            Request {
                event,
                tid: at.header.tid,
                request,
                loaded: false,
                failed: false,
            },
        );
    }

    pub(super) fn dl_settled(
        &mut self,
        at: At,
        settled: &record::DlSettled<'_>,
        sink: &mut impl Sink,
    ) {
        let requests = &mut self.process(at).requests;
        let sequence = settled.request as u32;
        let path = settled.path.get().unwrap_or_default();
        // Without a handle nothing is known yet but that the call has returned: dlerror may still say why it failed.
        let is_open = |r: &Request| !r.loaded && !r.failed;
        if path.is_empty() && requests.get(&sequence).is_some_and(is_open) {
            return;
        }
        let Some(request) = requests.remove(&sequence).filter(is_open) else {
            return;
        };
        sink.put(at.draft(Body::LibraryLoaded(Box::new(LibraryLoaded {
            path: path.to_owned(),
            requested: Some(request.request.name),
            requested_by: request.request.caller.map(|c| c.object),
            request: Some(request.event),
            rule: Rule::AlreadyLoaded,
            ..LibraryLoaded::default()
        }))));
    }

    pub(super) fn dl_error(&mut self, at: At, error: &record::DlError<'_>, sink: &mut impl Sink) {
        let requests = &mut self.process(at).requests;
        // An error of no open request is about the thread's last one that nothing has answered; but dlsym complains of
        // undefined symbols in the same words as dlopen.
        let is_of_a_look_up = owned(error.text).contains("undefined symbol");
        let last = requests
            .iter()
            .filter(|(_, r)| r.tid == at.header.tid && !r.loaded && !r.failed)
            .max_by_key(|(_, r)| r.event)
            .map(|(sequence, _)| *sequence);
        let sequence = Some(error.request as u32)
            .filter(|s| *s != 0)
            .or(last.filter(|_| !is_of_a_look_up));
        let Some(request) = sequence.and_then(|s| requests.get_mut(&s)) else {
            return;
        };
        request.failed = true;
        let request = request.clone();
        sink.put(at.draft(Body::LibraryFailed(Box::new(LibraryFailed {
            requested: request.request.name,
            requested_by: request.request.caller.map(|c| c.object),
            request: Some(request.event),
            error: owned(error.text),
            python: request.request.python,
            ..LibraryFailed::default()
        }))));
    }

    /// A thread that asks again has seen the outcome of its last request.
    pub(super) fn settle_thread(&mut self, at: At, sink: &mut impl Sink) {
        let process = self.process(at);
        let open: Vec<u32> = process
            .requests
            .iter()
            .filter(|(_, r)| r.tid == at.header.tid)
            .map(|(sequence, _)| *sequence)
            .collect();
        for sequence in open {
            if let Some(request) = self.process(at).requests.remove(&sequence) {
                unsettled(at.draft(Body::Note(Note::default())), request, sink);
            }
        }
    }

    pub(super) fn settle_all(&mut self, pid: u32, time: u64, sink: &mut impl Sink) {
        let Some(process) = self.processes.get_mut(&pid) else {
            return;
        };
        let mut open: Vec<Request> = process.requests.drain().map(|(_, r)| r).collect();
        open.sort_by_key(|r| r.event);
        for request in open {
            let tid = request.tid;
            unsettled(
                Draft {
                    time,
                    pid,
                    tid,
                    body: Body::Note(Note::default()),
                },
                request,
                sink,
            );
        }
    }
}

/// A request whose outcome nobody told: what the replay and the link map say is added by the collector.
fn unsettled(mut draft: Draft, request: Request, sink: &mut impl Sink) {
    if request.loaded || request.failed || request.request.name.is_empty() {
        return;
    }
    draft.body = Body::LibraryFailed(Box::new(LibraryFailed {
        requested: request.request.name,
        requested_by: request.request.caller.map(|c| c.object),
        request: Some(request.event),
        python: request.request.python,
        ..LibraryFailed::default()
    }));
    sink.put(draft);
}

//! Calls of watched functions, as they return.

use jittrace_model::event::{Body, Call as CallEvent, Image, Source};
use jittrace_wire::functions::Capture;

use super::{At, CALLS, Translate, caller, text};
use crate::{
    collect::{
        draft::{Sink, answer},
        kernel::sight::Sight,
    },
    ebpf::{Call, Captured, Function},
};

impl Translate {
    pub(super) fn returned(
        &mut self,
        at: At,
        call: &Call,
        sight: &Sight,
        covered: bool,
        sink: &mut impl Sink,
    ) {
        let Function::Cuda(watched) = call.function else {
            self.answered(at, call, sight, covered, sink);
            return;
        };
        let result = call.status();
        let asks_for_address = watched.capture == Capture::ProcAddress;
        // As the shim has it: what worked shows in the calls of what was found.
        if asks_for_address && result == Some(0) {
            return;
        }
        self.tell_fork(at.pid, sink);
        let function = watched.name.trim_end_matches(['*', '_']);
        let count = self.process(at.pid).calls.entry(function).or_default();
        *count += 1;
        if *count > CALLS {
            return;
        }
        let value = call
            .number()
            .filter(|_| result == Some(0))
            .map(|value| answer(function, value));
        let args = arguments(call, watched.capture);
        let image = match watched.capture {
            Capture::Image(_) | Capture::LinkInput => sight.image.clone(),
            Capture::FileName(_) => args.first().map(|file| Image {
                kind: "unknown".to_owned(),
                file: Some(file.clone()),
                ..Image::default()
            }),
            _ => None,
        };
        let object = call
            .object
            .as_ref()
            .map(|object| text(&object.path))
            .or_else(|| sight.object.as_ref().map(|place| place.object.clone()));
        sink.put_from(
            at.draft(Body::Call(Box::new(CallEvent {
                function: function.to_owned(),
                object,
                result: result.map(i64::from),
                value,
                caller: caller(sight.caller.as_ref()),
                duration_ns: Some(at.time.saturating_sub(call.begin_ns)),
                args,
                image,
                count: 1,
                ..CallEvent::default()
            }))),
            Source::Ebpf,
        );
    }
}

/// Arguments worth keeping, as the shim words them.
fn arguments(call: &Call, capture: Capture) -> Vec<String> {
    match capture {
        Capture::CapabilityAttribute => {
            let [_, _, device, ..] = call.args;
            let part = match call.capability_part() {
                Some(true) => "major",
                _ => "minor",
            };
            vec![format!("compute-capability-{part} device={device}")]
        }
        Capture::FileName(_) | Capture::LinkFile | Capture::Text(_) | Capture::ProcAddress => {
            call.texts().map(text).collect()
        }
        Capture::NvrtcCompile | Capture::Options => {
            let texts: Vec<String> = call.texts().map(text).collect();
            let cut = call
                .captured
                .iter()
                .any(|c| matches!(c, Captured::Text { cut: true, .. }));
            let joined = texts.join(" ");
            if joined.is_empty() {
                Vec::new()
            } else if cut {
                vec![joined + " …"]
            } else {
                vec![joined]
            }
        }
        _ => Vec::new(),
    }
}

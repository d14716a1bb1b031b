//! What came of a failure that was seen: from it follows how grave it is.
//!
//! A call that failed, an image that was refused, a tool that ended with an error is a failure, whatever status the
//! program ended with: most programs catch an error, print it and end well. It is less than that in three cases. What
//! was done again, and worked, is a note. A program that only *asked* for the GPU and computes without it has fallen
//! back: a warning, and a note where whoever started it wants no GPU. And what a program only *says* proves nothing by
//! itself when it ends well, for a log or a help text quotes the same words: it counts as far as events agree with it.
//!
//! | seen | the process, or one above it, failed | it did not |
//! |---|---|---|
//! | a refused question (how many GPUs?) | error | warning |
//! | the same, where no GPU is wanted, or another copy answered | note | note |
//! | a refused image, compile or link | error | error |
//! | the same, done again with success | note | note |
//! | a sentence that events agree with | error | warning |
//! | a sentence alone | error | note |
//!
//! An answer that can only mean that the wrong file was chosen (a stub's 34, 803, 804) stays an error for a question
//! too: no healthy machine gives it.

use std::sync::Arc;

use super::{Draft, View, view::Tool};
use crate::{
    event::{Call, EventId, Frame},
    fold::{Process, ProcessIndex, Seen},
    report::Severity,
};

/// What came of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Aftermath {
    /// The process, or one above it, failed.
    Failed,
    /// It went on, and never had what it wanted.
    WentWithout,
    /// The same was done again, and worked.
    WorkedLater,
    /// Whoever started the program wants no GPU.
    Unwanted,
}

/// Questions about GPUs whose refusal a program may live with.
const QUESTIONS: &[&str] = &["cudaGetDeviceCount", "cuInit", "cuDeviceGetCount"];

impl Aftermath {
    /// What came of a question about GPUs that was refused: `cuInit`, `cudaGetDeviceCount`.
    pub(super) fn of_question(view: &View<'_>, call: &Seen<Arc<Call>>) -> Aftermath {
        let Some(process) = call.process else {
            return Aftermath::WentWithout;
        };
        if answered_later(view, call) {
            Aftermath::WorkedLater
        } else {
            Aftermath::of_gpu_use(view, Some(process))
        }
    }

    /// What came of being refused the GPU, by whatever was said of it.
    pub(super) fn of_gpu_use(view: &View<'_>, process: Option<ProcessIndex>) -> Aftermath {
        match process.and_then(|p| without_gpu(view, p)) {
            Some(_) => Aftermath::Unwanted,
            None => Aftermath::of_process(view, process),
        }
    }

    /// What came of an image or a compile that was refused. `again` are the functions by which it may have been done
    /// again.
    pub(super) fn of_work(view: &View<'_>, call: &Seen<Arc<Call>>, again: &[&str]) -> Aftermath {
        let worked = view.calls(again).any(|later| {
            later.t > call.t
                && later.process == call.process
                && later.what.result == Some(0)
                && is_another_try(&call.what, &later.what)
        });
        if worked {
            Aftermath::WorkedLater
        } else {
            Aftermath::of_process(view, call.process)
        }
    }

    /// What came of a tool that failed: a build system tries what a compiler can do, and goes on.
    pub(super) fn of_tool(view: &View<'_>, tool: &Tool<'_>) -> Aftermath {
        let origin = view.origin(tool.process).index;
        let worked = view.tools_of(tool.kind).any(|later| {
            later.process.start > tool.process.start
                && !later.only_asked
                && view.origin(later.process).index == origin
                && view
                    .exit_of(later.process.index)
                    .is_some_and(|e| e.is_success())
        });
        match Aftermath::of_process(view, tool.process.parent) {
            Aftermath::WentWithout if worked => Aftermath::WorkedLater,
            other => other,
        }
    }

    /// Whether a process, or one above it, failed.
    pub(super) fn of_process(view: &View<'_>, process: Option<ProcessIndex>) -> Aftermath {
        match process.and_then(|p| view.failed_line(p)) {
            Some(_) => Aftermath::Failed,
            None => Aftermath::WentWithout,
        }
    }

    /// How grave a refused question is.
    pub(super) fn of_a_question(self) -> Severity {
        match self {
            Aftermath::Failed => Severity::Error,
            Aftermath::WentWithout => Severity::Warning,
            Aftermath::WorkedLater | Aftermath::Unwanted => Severity::Note,
        }
    }

    /// How grave a refused image, compile or link is, or an answer that no healthy machine gives.
    pub(super) fn of_a_refusal(self) -> Severity {
        match self {
            Aftermath::Failed | Aftermath::WentWithout => Severity::Error,
            Aftermath::WorkedLater | Aftermath::Unwanted => Severity::Note,
        }
    }

    /// How grave something is that a program only said. `agreed`: events agree with it.
    pub(super) fn of_a_sentence(self, agreed: bool) -> Severity {
        match (self, agreed) {
            (Aftermath::Failed, _) => Severity::Error,
            (Aftermath::WentWithout, true) => Severity::Warning,
            _ => Severity::Note,
        }
    }
}

impl Draft {
    /// What came of it, where that makes it less than it looks.
    #[must_use]
    pub(super) fn told_aftermath(
        self,
        view: &View<'_>,
        process: Option<ProcessIndex>,
        came: Aftermath,
    ) -> Self {
        match came {
            Aftermath::Failed | Aftermath::WentWithout => self,
            Aftermath::WorkedLater => self.cause("The same was tried again and worked."),
            Aftermath::Unwanted => match process.and_then(|p| without_gpu(view, p)) {
                Some((event, setting)) => self
                    .cause(format!("No GPU is wanted in this run ({setting})."))
                    .evidence(event, setting),
                None => self,
            },
        }
    }
}

/// The same question was answered afterwards: by another copy of the library in the same process, or in another process
/// of the same parent, as a launcher tries one runtime after the other.
fn answered_later(view: &View<'_>, call: &Seen<Arc<Call>>) -> bool {
    let parent = |process: Option<ProcessIndex>| {
        let process = view.model.process(process?)?;
        process.parent.filter(|_| !process.what.forked)
    };
    view.calls(QUESTIONS).any(|later| {
        later.t > call.t
            && later.what.function == call.what.function
            && later.what.result == Some(0)
            && later.what.value.as_deref() != Some("0")
            && (later.process == call.process
                || parent(later.process).is_some_and(|p| Some(p) == parent(call.process)))
    })
}

/// Whether `later` is another try of what `first` did: of the same file, or from another line of the same function. A
/// loop over several images is none, nor are the statements of a script one after the other.
fn is_another_try(first: &Call, later: &Call) -> bool {
    let file = |call: &Call| call.image.as_ref().and_then(|i| i.file.clone());
    if file(first).is_some_and(|f| Some(f) == file(later)) {
        return true;
    }
    let is_place = |a: &Frame, b: &Frame| a.file == b.file && a.function == b.function;
    let differs = first
        .python
        .iter()
        .rev()
        .zip(later.python.iter().rev())
        .find(|(a, b)| !is_place(a, b) || a.line != b.line);
    differs.is_some_and(|(a, b)| is_place(a, b) && a.function != "<module>")
}

/// What says that a run is to do without the GPU: the event and the words. CUDA_VISIBLE_DEVICES is read up to the first
/// entry that names no device, so that an empty value and -1 hide all of them.
fn without_gpu(view: &View<'_>, process: ProcessIndex) -> Option<(EventId, String)> {
    view.line(process)
        .find_map(|image| Some((image.id, by_variable(image).or_else(|| by_argument(image))?)))
}

fn by_variable(process: &Process) -> Option<String> {
    let (name, value) = [
        "CUDA_VISIBLE_DEVICES",
        "NVIDIA_VISIBLE_DEVICES",
        "JAX_PLATFORMS",
        "JAX_PLATFORM_NAME",
        "VLLM_TARGET_DEVICE",
        "SGLANG_USE_CPU_ENGINE",
    ]
    .into_iter()
    .filter_map(|name| Some((name, process.env(name)?)))
    .find(|(name, value)| match *name {
        "CUDA_VISIBLE_DEVICES" => {
            value.is_empty() || value.starts_with('-') || value.eq_ignore_ascii_case("NoDevFiles")
        }
        "NVIDIA_VISIBLE_DEVICES" => matches!(*value, "void" | "none"),
        "SGLANG_USE_CPU_ENGINE" => *value == "1",
        _ => value.eq_ignore_ascii_case("cpu"),
    })?;
    Some(if value.is_empty() {
        format!("{name} is empty")
    } else {
        format!("{name}={value}")
    })
}

/// `--device cpu`, `--device=cpu`, `device=cpu`.
fn by_argument(process: &Process) -> Option<String> {
    let arguments = process.arguments();
    let is_option = |a: &str| {
        let name = a.trim_start_matches('-');
        ["device", "platform", "accelerator"]
            .iter()
            .any(|word| name.ends_with(word))
    };
    let joined = arguments.iter().find(|a| {
        a.split_once('=')
            .is_some_and(|(name, value)| value == "cpu" && is_option(name))
    });
    joined.cloned().or_else(|| {
        arguments
            .iter()
            .zip(arguments.iter().skip(1))
            .find(|(name, value)| name.starts_with('-') && *value == "cpu" && is_option(name))
            .map(|(name, value)| format!("{name} {value}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(lines: &[(&str, u32)]) -> Vec<Frame> {
        lines
            .iter()
            .map(|(function, line)| Frame {
                file: "/w/app.py".into(),
                line: *line,
                function: (*function).into(),
                ..Frame::default()
            })
            .collect()
    }

    #[test]
    fn another_try_is_made_by_another_line_of_the_same_function() {
        for (first, later, again) in [
            (
                &[("load", 9), ("get", 20), ("<module>", 1)][..],
                &[("load", 9), ("get", 22), ("<module>", 1)][..],
                true,
            ),
            (
                &[("get", 20), ("<module>", 1)],
                &[("jit", 50), ("get", 22), ("<module>", 1)],
                true,
            ),
            // The same line: a loop.
            (
                &[("load", 9), ("<module>", 1)],
                &[("load", 9), ("<module>", 1)],
                false,
            ),
            // One statement of a script after the other.
            (
                &[("load", 9), ("<module>", 1)],
                &[("load", 9), ("<module>", 2)],
                false,
            ),
            (&[], &[], false),
        ] {
            let call = |stack: &[(&str, u32)]| Call {
                python: frames(stack),
                ..Call::default()
            };
            assert_eq!(
                is_another_try(&call(first), &call(later)),
                again,
                "{first:?} {later:?}"
            );
        }
    }
}

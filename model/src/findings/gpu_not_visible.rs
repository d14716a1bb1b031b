//! `gpu-not-visible`: the driver finds no GPU, as a variable hides them or their device nodes cannot be opened.
//!
//! Proof: the driver's answer (100 no device, 101 invalid device, 999 unknown), and what leads to it: the failed open of
//! `/dev/nvidia…`, or a CUDA_VISIBLE_DEVICES that names something. Which GPUs the machine has is not always known, so the
//! variable is `likely`. A program that wants no GPU, or goes on without one on a machine that has no node at all, is
//! healthy.

use std::sync::Arc;

use super::{
    Draft, View,
    aftermath::Aftermath,
    provider,
    words::{count, errno_words},
};
use crate::{
    event::{Call, FileAccess, Message},
    fold::{ProcessIndex, Seen},
    report::Severity,
    resolve::asker,
};

/// No device, invalid device, unknown error (cuda.h).
const NO_GPU: &[i64] = &[100, 101, 999];

/// ENOENT, ENXIO, ENODEV: no node, or none that a driver stands behind.
const ABSENT: &[i32] = &[2, 6, 19];

pub(super) fn find(view: &View<'_>) -> Vec<Draft> {
    let mut told: Vec<ProcessIndex> = Vec::new();
    let mut drafts = Vec::new();
    for call in view.calls(&["cu"]) {
        let Some(process) = call.process else {
            continue;
        };
        if told.contains(&process) || !call.what.result.is_some_and(|r| NO_GPU.contains(&r)) {
            continue;
        }
        told.push(process);
        drafts.extend(match refused_node(view, process, call.t) {
            Some(node) => Some(unopened(view, call, process, node)),
            None => hidden(view, call, process),
        });
    }
    drafts
}

/// Whether it is known why a process reaches no GPU, whatever driver library it has.
pub(super) fn is_explained(view: &View<'_>, process: ProcessIndex, t: u64) -> bool {
    refused_node(view, process, t).is_some() || hiding_variable(view, process).is_some()
}

/// The device node that could not be opened before `t`. Where several could not, the one that is there says more.
fn refused_node<'a>(
    view: &View<'a>,
    process: ProcessIndex,
    t: u64,
) -> Option<&'a Seen<Arc<FileAccess>>> {
    view.model
        .accesses()
        .iter()
        .filter(|a| {
            a.process == Some(process)
                && a.t <= t
                && a.what.errno != 0
                && is_node(&a.what.path)
                && !view.uses_of(&a.what.path).any(|later| {
                    later.what.errno == 0 && later.t > a.t && later.process == Some(process)
                })
        })
        .min_by_key(|a| (ABSENT.contains(&a.what.errno), a.id))
}

/// The nodes that every use of a GPU needs. Those of single GPUs, of NVLink and of MIG may be kept from a container.
fn is_node(path: &str) -> bool {
    matches!(path, "/dev/nvidiactl" | "/dev/nvidia-uvm" | "/dev/dxg")
}

fn hiding_variable(view: &View<'_>, process: ProcessIndex) -> Option<(u64, String)> {
    let image = view.model.process(process)?;
    let value = image.env("CUDA_VISIBLE_DEVICES")?;
    (!value.is_empty()).then(|| (image.id, value.to_owned()))
}

/// Sentences of programs that end for want of a GPU.
const SENTENCES: &[&str] = &["no-device", "cuda-error", "no-driver", "requires-gpus"];

fn said<'a>(view: &View<'a>, process: ProcessIndex) -> Option<&'a Seen<Message>> {
    view.said(SENTENCES).find(|m| view.concerns(m, process))
}

/// How grave it is that a program failed which was refused a GPU. Python's words are heard: where they are of something
/// else, so was its end.
fn of_its_end(view: &View<'_>, process: ProcessIndex) -> Severity {
    if provider::is_python(view, Some(process)) && said(view, process).is_none() {
        Severity::Note
    } else {
        Severity::Error
    }
}

fn draft(view: &View<'_>, call: &Seen<Arc<Call>>, severity: Severity) -> Draft {
    let answer = format!(
        "{} answered {}",
        call.what.function,
        call.what.result.unwrap_or_default()
    );
    let asker = asker::of_call(
        view.model,
        &call.what.python,
        call.what.caller.as_ref(),
        call.process,
    );
    Draft::of("gpu-not-visible", severity)
        .component(&asker.component)
        .cause(format!("{answer}."))
        .evidence(call.id, answer)
        .evidence_of(
            call.process
                .and_then(|p| said(view, p))
                .map(|m| (m.id, view.said_by(m))),
        )
        .in_process(call.pid)
}

fn unopened(
    view: &View<'_>,
    call: &Seen<Arc<Call>>,
    process: ProcessIndex,
    node: &Seen<Arc<FileAccess>>,
) -> Draft {
    let came = Aftermath::of_question(view, call);
    let path = &node.what.path;
    let is_absent = ABSENT.contains(&node.what.errno);
    let severity = match came {
        // A machine without a GPU, or a container that was given none.
        Aftermath::WentWithout if is_absent => Severity::Note,
        Aftermath::Failed => of_its_end(view, process),
        _ => came.of_a_question(),
    };
    let error = errno_words(node.what.errno);
    draft(view, call, severity)
        .title(if is_absent {
            format!("The driver finds no GPU: no driver answers at {path}")
        } else {
            format!("The driver finds no GPU: {path} could not be opened ({error})")
        })
        .cause(format!("The driver could not open {path} ({error})."))
        .evidence(node.id, format!("open of {path} gave {error}"))
        .told_aftermath(view, Some(process), came)
        .remedy(match (path.as_str(), is_absent) {
            ("/dev/nvidia-uvm", true) => "Load the module and make its node (modprobe nvidia-uvm; nvidia-modprobe -u), and in a container pass the device on.".to_owned(),
            (_, true) => "Give the container the GPU (docker run --gpus all, or the NVIDIA runtime; nvidia.com/gpu in Kubernetes), or load the driver on this machine (nvidia-smi shows whether it works).".to_owned(),
            (_, false) => format!("Let this user open {path}: ls -l {path} shows the group to join (video, render), and in a container the device must be in its list (--gpus all; with systemd cgroups, DeviceAllow)."),
        })
        .proven()
}

fn hidden(view: &View<'_>, call: &Seen<Arc<Call>>, process: ProcessIndex) -> Option<Draft> {
    let (event, value) = hiding_variable(view, process)?;
    let came = Aftermath::of_question(view, call);
    let severity = match came {
        Aftermath::Failed => of_its_end(view, process),
        _ => came.of_a_question(),
    };
    let gpus = view.model.gpus();
    let setting = format!("CUDA_VISIBLE_DEVICES={value}");
    let mut draft = draft(view, call, severity)
        .title(format!("{setting} leaves no GPU to this program"))
        .cause(format!(
            "{setting}: the driver takes the entries up to the first that names no GPU of this machine, and none was left."
        ))
        .evidence(event, format!("the environment at its start: {setting}"))
        .told_aftermath(view, Some(process), came);
    if let Some(gpu) = gpus.first() {
        let words = count(gpus.len(), "GPU is seen", "GPUs are seen");
        draft = draft
            .cause(format!("{words} from this machine."))
            .evidence(gpu.id, words);
    }
    Some(
        draft
            .remedy("Set CUDA_VISIBLE_DEVICES to GPUs of this machine, counted from 0 (nvidia-smi -L lists them and their UUIDs), or unset it. Inside a container only the GPUs that it was given are counted.")
            .proven_if(
                !gpus.is_empty(),
                "which GPUs this machine has; that it has one at all",
            ),
    )
}

//! `driver-not-ready`, `mps-unavailable`, `nvml-driver-mismatch`: the driver library is the right one, and a part of the
//! driver outside of the process is not there: the fabric manager of an NVSwitch machine, the daemon of MPS, the kernel
//! module of the library's release.
//!
//! Proof: the driver's own answer, which has one meaning each (802, 805 to 809 of cuda.h; 18 of nvml.h). A program that
//! asks again until it works, or that wants no GPU, is healthy. The sentence alone is as good as whoever says it.

use super::{Draft, View, aftermath::Aftermath, libcuda_compat::release_of, words::name};
use crate::{
    event::{Call, Message},
    fold::{ProcessIndex, Seen},
    resolve::asker,
    toolkit::DriverRelease,
};
use std::sync::Arc;

/// An answer, and what it says of the machine.
struct Service {
    id: &'static str,
    /// What the names of the functions begin with that give the answer.
    functions: &'static [&'static str],
    codes: &'static [i64],
    /// Patterns of the sentences that programs print of it.
    patterns: &'static [&'static str],
    /// Stem of the library that answers.
    library: &'static str,
    title: &'static str,
    cause: &'static str,
    /// The variable that has a say in it.
    variable: Option<&'static str>,
    remedy: fn(Option<&DriverRelease>, Option<&str>) -> String,
}

const SERVICES: &[Service] = &[
    Service {
        id: "driver-not-ready",
        functions: &["cu"],
        codes: &[802],
        patterns: &["driver-not-ready"],
        library: "libcuda.so",
        title: "The driver is not ready (802): the fabric manager does not run or is of another release",
        cause: "On a machine with NVSwitch (HGX, DGX) no program reaches a GPU before the fabric manager has set up NVLink, and it must be of exactly the driver's release. The toolkit and the libraries of this program have no part in it.",
        variable: None,
        remedy: start_fabric_manager,
    },
    Service {
        id: "mps-unavailable",
        functions: &["cu"],
        codes: &[805, 806, 807, 808, 809],
        patterns: &["mps-unavailable"],
        library: "libcuda.so",
        title: "The driver was sent to an MPS daemon that does not serve it",
        cause: "With CUDA_MPS_PIPE_DIRECTORY, or its default /tmp/nvidia-mps, the driver hands its work to the MPS control daemon that listens there.",
        variable: Some("CUDA_MPS_PIPE_DIRECTORY"),
        remedy: start_mps,
    },
    Service {
        id: "nvml-driver-mismatch",
        functions: &["nvml"],
        codes: &[18],
        patterns: &["nvml-driver-mismatch"],
        library: "libnvidia-ml",
        title: "libnvidia-ml is of another release than the loaded kernel module (NVML 18)",
        cause: "The driver's files were replaced while its kernel module stayed loaded, as an unattended upgrade does, or a container brought its own copy.",
        variable: None,
        remedy: reload_module,
    },
];

fn start_fabric_manager(driver: Option<&DriverRelease>, _: Option<&str>) -> String {
    let release = match driver {
        Some(release) => format!("nvidia-fabricmanager of the driver's own release {release}"),
        None => "nvidia-fabricmanager of the driver's own release".to_owned(),
    };
    format!(
        "Install {release} on the host and start it (systemctl enable --now nvidia-fabricmanager); nvidia-smi -q shows Fabric State: Completed when it is done. In a container or a virtual machine it is the host's to run."
    )
}

fn start_mps(_: Option<&DriverRelease>, directory: Option<&str>) -> String {
    match directory {
        Some(directory) => format!(
            "Start the daemon with the same CUDA_MPS_PIPE_DIRECTORY={directory} (nvidia-cuda-mps-control -d, by the same user), or unset CUDA_MPS_PIPE_DIRECTORY for this program."
        ),
        None => "Start the daemon (nvidia-cuda-mps-control -d, by the same user), or end it and remove /tmp/nvidia-mps so that programs reach the GPU themselves.".to_owned(),
    }
}

fn reload_module(driver: Option<&DriverRelease>, _: Option<&str>) -> String {
    let release = driver.map(|r| format!(" {r}")).unwrap_or_default();
    format!(
        "Restart the machine, or unload and load the kernel modules (nvidia_uvm, nvidia_drm, nvidia_modeset, nvidia), so that the module is that of the library{release}; in a container, take its own copy of the library out of the search."
    )
}

pub(super) fn find(view: &View<'_>) -> Vec<Draft> {
    let mut drafts: Vec<Draft> = Vec::new();
    for service in SERVICES {
        let mut told: Vec<ProcessIndex> = Vec::new();
        let refused = view
            .calls(service.functions)
            .filter(|c| c.what.result.is_some_and(|r| service.codes.contains(&r)))
            .map(|c| (c.process, Some(c), None));
        let said = view
            .said(service.patterns)
            .map(|m| (m.process, None, Some(m)));
        for (process, call, message) in refused.chain(said) {
            let Some(process) = process else { continue };
            // What a child says is read by its parent, and said again.
            if told.iter().any(|known| view.related(*known, process)) {
                continue;
            }
            told.push(process);
            drafts.push(unavailable(view, service, process, call, message));
        }
    }
    drafts
}

fn unavailable(
    view: &View<'_>,
    service: &Service,
    process: ProcessIndex,
    call: Option<&Seen<Arc<Call>>>,
    message: Option<&Seen<Message>>,
) -> Draft {
    let came = match call {
        Some(call) => Aftermath::of_question(view, call),
        None => Aftermath::of_gpu_use(view, Some(process)),
    };
    let severity = match call {
        Some(_) => came.of_a_question(),
        None => came.of_a_sentence(false),
    };
    let asker = match call {
        Some(call) => asker::of_call(
            view.model,
            &call.what.python,
            call.what.caller.as_ref(),
            call.process,
        ),
        None => asker::of_call(view.model, &[], None, Some(process)),
    };
    let library = view
        .loaded(Some(process))
        .find(|l| name(&l.what.path).starts_with(service.library));
    let release = library.and_then(|l| release_of(view, &l.what.path, &l.what.realpath));
    let image = view.model.process(process);
    let variable = service
        .variable
        .and_then(|name| Some((name, view.env(image?, name)?)));
    let mut draft = Draft::of(service.id, severity)
        .component(&asker.component)
        .title(service.title)
        .in_process(image.map_or(0, |p| p.pid));
    if let Some(call) = call {
        let answer = format!(
            "{} answered {}",
            call.what.function,
            call.what.result.unwrap_or_default()
        );
        draft = draft.cause(format!("{answer}.")).evidence(call.id, answer);
    }
    let said = message.or_else(|| {
        view.said(service.patterns)
            .find(|m| view.concerns(m, process))
    });
    if let Some(said) = said {
        draft = draft
            .cause(if call.is_none() {
                format!("{}.", view.said_by(said))
            } else {
                String::new()
            })
            .evidence(said.id, view.said_by(said));
    }
    draft = draft.cause(service.cause);
    if let Some(library) = library {
        let words = match &release {
            Some(release) => format!("{} is of driver {release}", library.what.path),
            None => format!("{} was loaded", library.what.path),
        };
        draft = draft.cause(format!("{words}.")).evidence(library.id, words);
    }
    let kernel = view
        .model
        .drivers()
        .iter()
        .find_map(|d| Some((d, DriverRelease::parse(d.what.version.as_deref()?)?)));
    if let Some((fact, kernel)) = kernel {
        let words = format!("the kernel module is {kernel} ({})", fact.what.from);
        draft = draft
            .cause(format!("The kernel module is {kernel}."))
            .evidence(fact.id, words);
    }
    if let (Some((variable, value)), Some(image)) = (variable, image) {
        draft = draft
            .cause(format!("This run has {variable}={value}."))
            .evidence(
                image.id,
                format!("the environment at its start: {variable}={value}"),
            );
    }
    if came == Aftermath::WentWithout {
        draft = draft.cause("The program went on without a GPU.");
    }
    draft
        .told_aftermath(view, Some(process), came)
        .remedy((service.remedy)(
            release.as_ref(),
            variable.map(|(_, value)| value),
        ))
        .proven_if(call.is_some(), "the call that was answered so")
}

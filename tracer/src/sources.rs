//! Who watches: which sources are asked for, which of them may, and why the others do not.

use jittrace_model::log::{SourceState, SourceStatus};

use crate::{
    cli::SourceChoice,
    collect::{Kernel, SharedStacks},
    doctor::refusal::{Attempt, Refusal, Standing, explain},
    ebpf::SourceError,
    launch::Reach,
};

/// The sources of a trace.
pub struct Sources {
    /// The shim is loaded into the command.
    pub preload: bool,
    /// The kernel source, running.
    pub kernel: Option<Kernel>,
    /// What both of them tell is written twice, to be compared.
    pub twice: bool,
    /// What the trace's header says of each.
    pub statuses: Vec<SourceStatus>,
}

/// The source that was asked for alone may not watch.
#[derive(Debug, thiserror::Error)]
#[error("the kernel source cannot watch: {0}; `jittrace doctor` tells more")]
pub struct NoSource(String);

impl Sources {
    /// The sources of a launch.
    ///
    /// # Errors
    /// The kernel alone was asked for, and may not watch.
    pub fn of_launch(choice: SourceChoice, reach: &Reach) -> Result<Sources, NoSource> {
        let preload = match (choice, reach) {
            (SourceChoice::Ebpf, _) => status("preload", SourceState::Absent, None),
            (_, Reach::Yes) => status("preload", SourceState::Active, None),
            (_, Reach::No(reason)) => status("preload", SourceState::Refused, Some(reason.clone())),
        };
        let (kernel, ebpf) = match (choice, reach) {
            (SourceChoice::Preload, _) => (None, status("ebpf", SourceState::Absent, None)),
            (SourceChoice::Auto, Reach::Yes) => kernel_where_it_may(),
            // It was asked for, or is all there is where the shim sees nothing.
            _ => kernel(None),
        };
        if let (SourceChoice::Ebpf, None) = (choice, &kernel) {
            return Err(NoSource(ebpf.reason.unwrap_or_default()));
        }
        Ok(Sources {
            preload: preload.state == SourceState::Active,
            kernel,
            twice: choice == SourceChoice::All,
            statuses: vec![preload, ebpf],
        })
    }

    /// The sources of an attach to `pid`. `stacks` will read Python frames.
    ///
    /// # Errors
    /// The kernel was asked for by name, and may not watch.
    pub(crate) fn of_attach(
        choice: SourceChoice,
        pid: u32,
        stacks: &SharedStacks,
    ) -> Result<Sources, NoSource> {
        let procfs = status("procfs", SourceState::Active, None);
        let frames = stacks.lock().ok().map(|mut stacks| stacks.status(pid));
        let (kernel, ebpf) = match choice {
            SourceChoice::Preload => (None, status("ebpf", SourceState::Absent, None)),
            _ => kernel(Some(stacks)),
        };
        if let (SourceChoice::Ebpf, None) = (choice, &kernel) {
            return Err(NoSource(ebpf.reason.unwrap_or_default()));
        }
        Ok(Sources {
            preload: false,
            kernel,
            twice: false,
            statuses: [procfs, ebpf].into_iter().chain(frames).collect(),
        })
    }
}

/// The kernel source where it comes on top of the shim: nobody has asked for it, so that it is no matter where it may
/// not watch.
fn kernel_where_it_may() -> (Option<Kernel>, SourceStatus) {
    if !Standing::here().may_bpf() {
        return (None, status("ebpf", SourceState::Absent, None));
    }
    match kernel(None) {
        (None, refused) => (None, status("ebpf", SourceState::Absent, refused.reason)),
        active => active,
    }
}

/// Starts the kernel source, or says why it cannot.
fn kernel(stacks: Option<&SharedStacks>) -> (Option<Kernel>, SourceStatus) {
    match Kernel::start(stacks.cloned()) {
        Ok(kernel) => (Some(kernel), status("ebpf", SourceState::Active, None)),
        Err(error) => {
            let Refusal { reason, remedy } = refusal(&error);
            (
                None,
                status(
                    "ebpf",
                    SourceState::Refused,
                    Some(format!("{reason}; {remedy}")),
                ),
            )
        }
    }
}

/// Why the kernel source did not start, in words that help.
fn refusal(error: &SourceError) -> Refusal {
    let attempt = match error {
        SourceError::Btf(_) => Attempt::Btf,
        SourceError::Tracefs(_) => Attempt::Tracefs,
        SourceError::Refused { step, .. } if step.contains("tracepoint") => Attempt::PerfEvent,
        SourceError::Refused { .. } | SourceError::Object(_) => Attempt::Bpf,
    };
    match error.errno() {
        Some(errno) => explain(attempt, errno, &Standing::here()),
        None => Refusal {
            reason: error.to_string(),
            remedy: "`jittrace doctor` tries each step".to_owned(),
        },
    }
}

fn status(name: &str, state: SourceState, reason: Option<String>) -> SourceStatus {
    SourceStatus {
        name: name.to_owned(),
        state,
        reason,
    }
}

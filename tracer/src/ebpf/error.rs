//! Why the kernel source could not start.

use std::{error::Error, io};

use aya::programs::ProgramError;

use super::btf::BtfError;

/// See the module.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The kernel's types are not known.
    #[error(transparent)]
    Btf(#[from] BtfError),
    /// tracefs can neither be found nor mounted.
    #[error(
        "tracefs is not mounted and cannot be mounted privately ({0}); run `mount -t tracefs tracefs /sys/kernel/tracing` as root"
    )]
    Tracefs(#[source] io::Error),
    /// A step of loading or attaching was refused.
    #[error("{step} failed: {reason}")]
    Refused {
        /// What was tried.
        step: String,
        /// Why it failed, in the kernel's words.
        reason: String,
        /// The error number, where there is one.
        errno: Option<i32>,
        /// The end of the verifier's log, when it was the verifier that refused: what to put into a bug report.
        verifier: Option<String>,
    },
    /// The embedded object is not the one this program was written for.
    #[error(
        "the embedded kernel programs do not fit this build ({0}); rebuild them with ebpf/build.sh"
    )]
    Object(String),
}

impl SourceError {
    /// What was refused, and the error number if any.
    pub(crate) fn refused(step: impl Into<String>, error: &(dyn Error + 'static)) -> Self {
        Self::Refused {
            step: step.into(),
            reason: reason(error),
            errno: errno(error),
            verifier: verifier(error),
        }
    }

    /// The error number, where there is one.
    #[must_use]
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::Btf(BtfError::Unreadable(error)) | Self::Tracefs(error) => error.raw_os_error(),
            Self::Refused { errno, .. } => *errno,
            Self::Btf(_) | Self::Object(_) => None,
        }
    }
}

/// Lines of a verifier log that say why.
const VERIFIER_LINES: usize = 12;

/// The end of the verifier's log, if the error carries one.
fn verifier(error: &(dyn Error + 'static)) -> Option<String> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(ProgramError::LoadError { verifier_log, .. }) =
            error.downcast_ref::<ProgramError>()
        {
            let log = verifier_log.to_string();
            let lines: Vec<&str> = log.lines().collect();
            let last = lines
                .get(lines.len().saturating_sub(VERIFIER_LINES)..)?
                .join("\n");
            return (!last.is_empty()).then_some(last);
        }
        next = error.source();
    }
    None
}

/// The innermost system error of a chain.
fn errno(error: &(dyn Error + 'static)) -> Option<i32> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(number) = error
            .downcast_ref::<io::Error>()
            .and_then(io::Error::raw_os_error)
        {
            return Some(number);
        }
        next = error.source();
    }
    None
}

/// The innermost message of a chain, first line: aya's outer errors carry whole verifier logs.
fn reason(error: &(dyn Error + 'static)) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    let text = innermost.to_string();
    text.lines().next().unwrap_or_default().to_owned()
}

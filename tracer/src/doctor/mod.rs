//! `jittrace doctor`: which sources work on this machine, and what would enable the others.
//!
//! Every capability is tried, none is guessed from a sysctl; a refusal is explained by [`refusal`], which `attach` uses
//! as well.

mod kernel;
pub mod refusal;
mod report;
mod userland;

use std::process::ExitCode;

use anyhow::Result;

use crate::cli::{DoctorArgs, PlainFormat};

pub use report::{Check, Findings, Outcome, Source};

use refusal::Standing;

/// What the sources need, by the names of the checks.
const SOURCES: [(&str, &str, &[&str]); 4] = [
    ("launch", "jittrace -- COMMAND", &["preload"]),
    (
        "attach-ebpf",
        "jittrace attach and --source ebpf, live events",
        &[
            "bpf-map",
            "bpf-ring-buffer",
            "bpf-program",
            "btf",
            "tracefs",
            "tracepoint",
            "raw-tracepoint",
            "uprobe",
        ],
    ),
    (
        "attach-snapshot",
        "jittrace attach, snapshot and polling",
        &["process-memory"],
    ),
    (
        "python-frames",
        "Python frames of a launched program",
        &["preload", "python-c-api"],
    ),
];

/// Tries everything.
#[must_use]
pub fn examine() -> Findings {
    let standing = Standing::here();
    let host = crate::collect::host();
    let mut checks = vec![userland::preload(&host.libc), userland::python()];
    checks.extend(kernel::checks(&standing));
    let sources = SOURCES
        .into_iter()
        .map(|(name, title, needs)| {
            let lacking: Vec<&'static str> = checks
                .iter()
                .filter(|check| needs.contains(&check.id) && !check.outcome.is_yes())
                .map(|check| check.id)
                .collect();
            Source {
                name,
                title,
                works: lacking.is_empty(),
                lacking,
            }
        })
        .collect();
    Findings {
        schema: "jittrace.doctor/1",
        standing,
        sources,
        checks,
    }
}

/// Runs the command.
///
/// # Errors
///
/// Standard output cannot be written to.
pub fn doctor(args: &DoctorArgs) -> Result<ExitCode> {
    use std::io::Write;
    let findings = examine();
    let text = match args.format {
        PlainFormat::Text => findings.text(),
        PlainFormat::Json => serde_json::to_string_pretty(&findings)? + "\n",
    };
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

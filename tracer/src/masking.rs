//! What is masked in a trace: credentials always, places when asked for.

use jittrace_model::redact::{Options, Places, Redactor};

use crate::{
    cli::{Redact, TraceArgs},
    collect,
};

/// The redactor of a trace. It knows the credentials in jittrace's own environment, so that they are masked wherever the
/// traced program prints them.
pub fn redactor(trace: &TraceArgs) -> Redactor {
    let mut redactor = Redactor::new(redaction(trace));
    redactor.learn_environment(std::env::vars_os().map(|(n, v)| {
        (
            n.to_string_lossy().into_owned(),
            v.to_string_lossy().into_owned(),
        )
    }));
    redactor
}

/// What is masked. The placeholders of one user on one machine are the same in every trace, so that a diff works.
fn redaction(trace: &TraceArgs) -> Options {
    let machine = std::fs::read_to_string("/etc/machine-id").unwrap_or_default();
    let user = rustix::process::getuid().as_raw();
    let places = trace.redact.map(|Redact::Paths| Places {
        homes: std::env::var("HOME").into_iter().collect(),
        users: ["USER", "LOGNAME", "SUDO_USER"]
            .iter()
            .filter_map(|n| std::env::var(n).ok())
            .collect(),
        projects: std::env::current_dir()
            .map(|d| d.to_string_lossy().into_owned())
            .into_iter()
            .collect(),
        hosts: vec![collect::host().name],
    });
    Options {
        key: format!("{}/{user}", machine.trim()).into_bytes(),
        places,
    }
}

//! Why the kernel refused something, and what would change that: the one place that knows user ids, capabilities, Yama,
//! seccomp, lockdown and containers.

use std::{fs, path::Path};

use serde::Serialize;

/// What was tried when the kernel refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attempt {
    /// bpf(2): a map, a program, a link.
    Bpf,
    /// perf_event_open(2): a tracepoint or a uprobe.
    PerfEvent,
    /// Reading or mounting tracefs.
    Tracefs,
    /// Reading the kernel's BTF.
    Btf,
    /// Looking into another process: its memory, maps, environment.
    Process {
        /// Its user, where known.
        owner: Option<u32>,
    },
    /// Following `/proc/PID/map_files`.
    MapFiles,
}

/// A refusal in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// Why, as far as it can be told.
    pub reason: String,
    /// What would change it.
    pub remedy: String,
}

/// What of this machine and process decides about refusals.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Standing {
    /// Effective user.
    pub uid: u32,
    /// Effective capabilities, as `CapEff` of `/proc/self/status`.
    pub capabilities: u64,
    /// This is the initial user namespace, where capabilities count for the whole machine.
    pub initial_user_namespace: bool,
    /// A seccomp filter is in force.
    pub seccomp: bool,
    /// `kernel.yama.ptrace_scope`, where Yama is there.
    pub yama: Option<u32>,
    /// `kernel.unprivileged_bpf_disabled`.
    pub unprivileged_bpf_disabled: Option<u32>,
    /// `kernel.perf_event_paranoid`.
    pub perf_event_paranoid: Option<i32>,
    /// Kernel lockdown: `none`, `integrity`, `confidentiality`.
    pub lockdown: Option<String>,
    /// The kind of container, if any.
    pub container: Option<String>,
    /// Kernel release.
    pub kernel: String,
}

/// Capability numbers of linux/capability.h.
mod capability {
    pub(super) const SYS_PTRACE: u32 = 19;
    pub(super) const SYS_ADMIN: u32 = 21;
    pub(super) const PERFMON: u32 = 38;
    pub(super) const BPF: u32 = 39;
    pub(super) const CHECKPOINT_RESTORE: u32 = 40;
}

impl Standing {
    /// Looks at this process and this machine.
    #[must_use]
    pub fn here() -> Self {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let field = |name: &str| {
            status
                .lines()
                .find_map(|line| line.strip_prefix(name))
                .map(str::trim)
        };
        let number = |path: &str| {
            fs::read_to_string(path)
                .ok()
                .and_then(|text| text.trim().parse::<i64>().ok())
        };
        let host = crate::collect::host();
        Self {
            uid: rustix::process::geteuid().as_raw(),
            capabilities: field("CapEff:")
                .and_then(|text| u64::from_str_radix(text, 16).ok())
                .unwrap_or(0),
            initial_user_namespace: is_identity_map(
                &fs::read_to_string("/proc/self/uid_map").unwrap_or_default(),
            ),
            seccomp: field("Seccomp:").is_some_and(|mode| mode != "0"),
            yama: number("/proc/sys/kernel/yama/ptrace_scope")
                .and_then(|scope| u32::try_from(scope).ok()),
            unprivileged_bpf_disabled: number("/proc/sys/kernel/unprivileged_bpf_disabled")
                .and_then(|value| u32::try_from(value).ok()),
            perf_event_paranoid: number("/proc/sys/kernel/perf_event_paranoid")
                .and_then(|value| i32::try_from(value).ok()),
            lockdown: fs::read_to_string("/sys/kernel/security/lockdown")
                .ok()
                .and_then(|text| chosen(&text)),
            container: host.container,
            kernel: host.kernel,
        }
    }

    fn has(&self, capability: u32) -> bool {
        self.capabilities >> capability & 1 == 1
    }

    /// Whether the capabilities are there that the kernel source needs.
    pub(crate) fn may_bpf(&self) -> bool {
        self.has(capability::SYS_ADMIN)
            || (self.has(capability::BPF) && self.has(capability::PERFMON))
    }

    /// "by user 1000 without CAP_BPF and CAP_PERFMON"
    fn without(&self, capabilities: &str) -> String {
        format!("this runs as user {} without {capabilities}", self.uid)
    }
}

/// The choice in brackets: `none [integrity] confidentiality`.
fn chosen(text: &str) -> Option<String> {
    let (_, behind) = text.split_once('[')?;
    behind.split_once(']').map(|(word, _)| word.to_owned())
}

/// Whether a uid_map maps all ids to themselves, as only the initial user namespace does.
fn is_identity_map(map: &str) -> bool {
    map.split_ascii_whitespace().eq(["0", "0", "4294967295"])
}

fn refusal(reason: impl Into<String>, remedy: impl Into<String>) -> Refusal {
    Refusal {
        reason: reason.into(),
        remedy: remedy.into(),
    }
}

/// Explains `errno` of `attempt` to somebody who stands like this.
#[must_use]
pub fn explain(attempt: Attempt, errno: i32, standing: &Standing) -> Refusal {
    match (attempt, errno) {
        (Attempt::Process { .. }, libc::ESRCH | libc::ENOENT) => refusal(
            "there is no such process (any more)",
            "check the pid; in a container, use the pid seen from here",
        ),
        (Attempt::Process { owner }, _) => process_refused(owner, errno, standing),
        (Attempt::Bpf | Attempt::PerfEvent, libc::ENOSYS) => refusal(
            "this kernel has no such system call, or a seccomp filter hides it",
            "use a kernel with CONFIG_BPF_SYSCALL and CONFIG_UPROBE_EVENTS; in a container see its seccomp profile",
        ),
        (Attempt::Bpf, libc::EINVAL) => refusal(
            format!(
                "kernel {} does not know what was asked for",
                standing.kernel
            ),
            "use kernel 5.10 or newer",
        ),
        (Attempt::Bpf, libc::ENOMEM) => refusal(
            "the kernel has no memory for it (before 5.11: beyond RLIMIT_MEMLOCK)",
            "raise the limit: `ulimit -l unlimited`",
        ),
        (Attempt::Bpf, libc::EACCES | libc::E2BIG) if standing.may_bpf() => refusal(
            "the kernel's verifier refused the program",
            format!(
                "report this with the kernel release ({}); the shim and the snapshot work without it",
                standing.kernel
            ),
        ),
        (Attempt::Tracefs | Attempt::Btf, libc::ENOENT | libc::ENODEV) => kernel_lacks(attempt),
        (Attempt::PerfEvent, libc::ENOENT | libc::ENODEV) => refusal(
            "this kernel has no uprobes or tracepoints as perf events",
            "use a kernel with CONFIG_UPROBE_EVENTS and CONFIG_FTRACE_SYSCALLS",
        ),
        _ => denied(attempt, errno, standing),
    }
}

fn kernel_lacks(attempt: Attempt) -> Refusal {
    match attempt {
        Attempt::Btf => refusal(
            "the kernel publishes no BTF",
            "use a kernel with CONFIG_DEBUG_INFO_BTF=y",
        ),
        _ => refusal(
            "the kernel has no tracefs",
            "use a kernel with CONFIG_FTRACE_SYSCALLS=y",
        ),
    }
}

/// EPERM and its kin: who stands in the way, the nearest first.
fn denied(attempt: Attempt, errno: i32, standing: &Standing) -> Refusal {
    let (may, capabilities) = match attempt {
        Attempt::Bpf | Attempt::PerfEvent => (standing.may_bpf(), "CAP_BPF and CAP_PERFMON"),
        Attempt::MapFiles => (
            standing.has(capability::SYS_ADMIN) || standing.has(capability::CHECKPOINT_RESTORE),
            "CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE",
        ),
        Attempt::Tracefs | Attempt::Btf | Attempt::Process { .. } => {
            (standing.has(capability::SYS_ADMIN), "CAP_SYS_ADMIN")
        }
    };
    if !may {
        return match &standing.container {
            Some(container) => refusal(
                format!(
                    "{} in a {container} container",
                    standing.without(capabilities)
                ),
                "run it as root on the host, or as root in a container that was started with --cap-add BPF --cap-add \
                 PERFMON --cap-add SYS_ADMIN --cap-add SYS_PTRACE",
            ),
            None if standing.uid != 0 => {
                let sysctl = match (
                    attempt,
                    standing.unprivileged_bpf_disabled,
                    standing.perf_event_paranoid,
                ) {
                    (Attempt::Bpf, Some(value), _) => {
                        format!(" (kernel.unprivileged_bpf_disabled is {value})")
                    }
                    (Attempt::PerfEvent, _, Some(value)) => {
                        format!(" (kernel.perf_event_paranoid is {value})")
                    }
                    _ => String::new(),
                };
                refusal(
                    format!("{}{sysctl}", standing.without(capabilities)),
                    "run it through sudo",
                )
            }
            None => refusal(
                standing.without(capabilities),
                format!("give this process {capabilities}"),
            ),
        };
    }
    if !standing.initial_user_namespace {
        return refusal(
            "this runs in a user namespace, where capabilities do not count for the kernel's tracing",
            "run jittrace on the host, as root of the initial user namespace",
        );
    }
    if attempt == Attempt::Bpf && standing.lockdown.as_deref() == Some("confidentiality") {
        return refusal(
            "kernel lockdown is at `confidentiality`, which forbids BPF programs to read memory",
            "boot with lockdown=integrity or without it",
        );
    }
    if standing.seccomp {
        return refusal(
            "a seccomp filter is in force and probably refuses the call",
            "start the container with --security-opt seccomp=unconfined, or run jittrace on the host",
        );
    }
    refusal(
        format!(
            "refused (errno {errno}) although the capabilities are there: a policy of this host (a security module)"
        ),
        "ask who administrates the host; the shim (jittrace -- COMMAND) needs no privilege",
    )
}

fn process_refused(owner: Option<u32>, errno: i32, standing: &Standing) -> Refusal {
    if standing.has(capability::SYS_PTRACE) {
        return if standing.initial_user_namespace {
            denied(
                Attempt::Process { owner },
                errno,
                &Standing {
                    capabilities: u64::MAX,
                    ..standing.clone()
                },
            )
        } else {
            refusal(
                "the process belongs to another user namespace",
                "run jittrace on the host, as root of the initial user namespace",
            )
        };
    }
    match (owner, standing.yama) {
        (Some(owner), _) if owner != standing.uid => refusal(
            format!(
                "the process belongs to user {owner}, this runs as user {}",
                standing.uid
            ),
            format!("run it through sudo, or as user {owner}"),
        ),
        (_, Some(scope)) if scope > 0 => refusal(
            format!(
                "Yama (kernel.yama.ptrace_scope is {scope}) allows to look into descendants only"
            ),
            "run it through sudo, launch the program under jittrace, or set kernel.yama.ptrace_scope to 0",
        ),
        _ if standing.container.is_some() => refusal(
            format!("{} in a container", standing.without("CAP_SYS_PTRACE")),
            "run jittrace on the host, or start the container with --cap-add SYS_PTRACE",
        ),
        _ => refusal(
            "the process may not be looked into: it is set-user-id, has dropped its privileges, or made itself undumpable",
            "run it through sudo",
        ),
    }
}

/// The user that a process belongs to.
#[must_use]
pub fn owner_of(pid: u32) -> Option<u32> {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(Path::new("/proc").join(pid.to_string()))
        .ok()
        .map(|metadata| metadata.uid())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: u64 = u64::MAX;

    fn root() -> Standing {
        Standing {
            capabilities: ALL,
            initial_user_namespace: true,
            kernel: "6.1".to_owned(),
            ..Standing::default()
        }
    }

    fn user() -> Standing {
        Standing {
            uid: 1000,
            capabilities: 0,
            ..root()
        }
    }

    #[test]
    fn refusals_name_what_stands_in_the_way_and_what_helps() {
        let process = |owner| Attempt::Process { owner: Some(owner) };
        let container = |standing: Standing| Standing {
            container: Some("docker".to_owned()),
            ..standing
        };
        let cases = [
            (
                Attempt::Bpf,
                libc::EPERM,
                user(),
                "user 1000 without CAP_BPF",
                "sudo",
            ),
            (
                Attempt::Bpf,
                libc::EPERM,
                Standing {
                    unprivileged_bpf_disabled: Some(2),
                    ..user()
                },
                "unprivileged_bpf_disabled is 2",
                "sudo",
            ),
            (
                Attempt::PerfEvent,
                libc::EACCES,
                Standing {
                    perf_event_paranoid: Some(3),
                    ..user()
                },
                "perf_event_paranoid is 3",
                "sudo",
            ),
            (
                Attempt::Bpf,
                libc::EPERM,
                container(Standing {
                    capabilities: 0,
                    ..root()
                }),
                "in a docker container",
                "--cap-add BPF",
            ),
            (
                Attempt::Bpf,
                libc::EPERM,
                Standing {
                    seccomp: true,
                    ..root()
                },
                "seccomp",
                "seccomp=unconfined",
            ),
            (
                Attempt::Bpf,
                libc::EPERM,
                Standing {
                    initial_user_namespace: false,
                    ..root()
                },
                "user namespace",
                "on the host",
            ),
            (
                Attempt::Bpf,
                libc::EPERM,
                Standing {
                    lockdown: Some("confidentiality".to_owned()),
                    ..root()
                },
                "lockdown",
                "integrity",
            ),
            (
                Attempt::Bpf,
                libc::EPERM,
                root(),
                "policy of this host",
                "needs no privilege",
            ),
            (Attempt::Bpf, libc::EACCES, root(), "verifier", "6.1"),
            (Attempt::Bpf, libc::EINVAL, root(), "does not know", "5.10"),
            (
                Attempt::Bpf,
                libc::ENOSYS,
                user(),
                "no such system call",
                "CONFIG_BPF_SYSCALL",
            ),
            (
                Attempt::Tracefs,
                libc::EPERM,
                user(),
                "without CAP_SYS_ADMIN",
                "sudo",
            ),
            (
                Attempt::Tracefs,
                libc::ENODEV,
                root(),
                "no tracefs",
                "CONFIG_FTRACE_SYSCALLS",
            ),
            (
                Attempt::Btf,
                libc::ENOENT,
                root(),
                "no BTF",
                "CONFIG_DEBUG_INFO_BTF",
            ),
            (
                Attempt::MapFiles,
                libc::EPERM,
                user(),
                "CAP_CHECKPOINT_RESTORE",
                "sudo",
            ),
            (process(0), libc::EPERM, user(), "belongs to user 0", "sudo"),
            (
                process(1000),
                libc::EPERM,
                Standing {
                    yama: Some(1),
                    ..user()
                },
                "Yama",
                "ptrace_scope to 0",
            ),
            (
                process(1000),
                libc::EPERM,
                Standing {
                    yama: Some(0),
                    ..user()
                },
                "undumpable",
                "sudo",
            ),
            (
                process(1000),
                libc::EPERM,
                container(user()),
                "CAP_SYS_PTRACE in a container",
                "--cap-add SYS_PTRACE",
            ),
            (
                process(0),
                libc::EPERM,
                Standing {
                    initial_user_namespace: false,
                    ..root()
                },
                "another user namespace",
                "on the host",
            ),
            (
                process(1),
                libc::ESRCH,
                root(),
                "no such process",
                "check the pid",
            ),
        ];
        for (attempt, errno, standing, reason, remedy) in cases {
            let told = explain(attempt, errno, &standing);
            assert!(
                told.reason.contains(reason),
                "{attempt:?} {errno}: {} lacks {reason:?}",
                told.reason
            );
            assert!(
                told.remedy.contains(remedy),
                "{attempt:?} {errno}: {} lacks {remedy:?}",
                told.remedy
            );
        }
    }

    #[test]
    fn words_of_the_kernel() {
        assert_eq!(
            chosen("none [integrity] confidentiality\n").as_deref(),
            Some("integrity")
        );
        assert_eq!(chosen("none"), None);
        assert!(is_identity_map("         0          0 4294967295\n"));
        assert!(!is_identity_map("         0       1000          1\n"));
        assert!(!is_identity_map(""));
    }
}

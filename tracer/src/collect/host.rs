//! What kind of machine this is, for the trace's header.

use std::fs;

use indexmap::IndexMap;
use jittrace_model::log::Host;

/// Looks at this machine.
pub fn host() -> Host {
    let uname = rustix::system::uname();
    let text = |c: &std::ffi::CStr| c.to_string_lossy().into_owned();
    Host {
        name: text(uname.nodename()),
        kernel: text(uname.release()),
        os: os_name().unwrap_or_default(),
        libc: libc_version(),
        machine: text(uname.machine()),
        cpus: std::thread::available_parallelism().map_or(0, |n| n.get() as u32),
        container: container(),
        namespaces: namespaces(),
    }
}

fn os_name() -> Option<String> {
    let text = fs::read_to_string("/etc/os-release").ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix("PRETTY_NAME="))?;
    Some(line.trim_matches('"').to_owned())
}

fn libc_version() -> String {
    // SAFETY: returns a pointer to a constant string.
    let version = unsafe { std::ffi::CStr::from_ptr(libc::gnu_get_libc_version()) };
    format!("glibc {}", version.to_string_lossy())
}

/// The kind of container, by the marks that the engines leave.
fn container() -> Option<String> {
    if fs::metadata("/.dockerenv").is_ok() {
        return Some("docker".to_owned());
    }
    if fs::metadata("/run/.containerenv").is_ok() {
        return Some("podman".to_owned());
    }
    if std::env::var_os("KUBERNETES_SERVICE_HOST").is_some() {
        return Some("kubernetes".to_owned());
    }
    let cgroup = fs::read_to_string("/proc/1/cgroup").unwrap_or_default();
    ["docker", "containerd", "kubepods", "lxc"]
        .iter()
        .find(|mark| cgroup.contains(*mark))
        .map(|mark| (*mark).to_owned())
}

fn namespaces() -> IndexMap<String, String> {
    ["mnt", "pid", "user"]
        .iter()
        .filter_map(|name| {
            let link = fs::read_link(format!("/proc/self/ns/{name}")).ok()?;
            Some(((*name).to_owned(), link.to_string_lossy().into_owned()))
        })
        .collect()
}

//! The words that jittrace's sources speak.
//!
//! The shim inside the traced program, the kernel programs and the collector share nothing but this crate: how a
//! [`record`] is laid out, which [`functions`] are watched, which [`environment`] variables, [`paths`] and
//! [`messages`] are of interest and what must be [`secrets::mask`]ed before it leaves the program. Nothing here
//! allocates, blocks or calls the operating system, so it may run in a vfork child or under the loader's lock.
#![no_std]

#[cfg(test)]
extern crate std;

pub mod environment;
pub mod functions;
pub mod messages;
pub mod paths;
pub mod record;
pub mod secrets;

pub use record::{DecodeError, Record, decode};

/// Environment variable that names the session file. Without it the shim does nothing at all.
pub const SESSION_VARIABLE: &str = "JITTRACE_SESSION";

/// What the session file's name begins with; the rest is the id of the mount that it lies on, see [`launcher_mount`].
pub const SESSION_NAME: &str = "session.";

/// The id (`STATX_MNT_ID`) of the mount on which the session file lies for the launcher; `None` when its name does not
/// say so.
///
/// Another mount namespace has mounts of its own, with ids of their own: a process that finds the file on the mount of
/// this id is in the launcher's mount namespace, and need not ask for its name, which takes longer than all else that is
/// asked at a start.
#[must_use]
pub fn launcher_mount(session: &[u8]) -> Option<u64> {
    let name = session.rsplit(|byte| *byte == b'/').next()?;
    let digits = name.strip_prefix(SESSION_NAME.as_bytes())?;
    core::str::from_utf8(digits).ok()?.parse().ok()
}

/// Environment variable with options for the shim, separated by commas: `follow-clean-env`.
pub const OPTIONS_VARIABLE: &str = "JITTRACE_OPTIONS";

#[cfg(test)]
mod tests {
    use super::launcher_mount;

    #[test]
    fn the_session_file_is_named_after_its_mount() {
        for (path, mount) in [
            ("/run/user/0/jittrace-x1/session.29", Some(29)),
            ("/tmp/session.", None),
            ("/tmp/session", None),
            ("/tmp/session.29/other", None),
            ("", None),
        ] {
            assert_eq!(launcher_mount(path.as_bytes()), mount, "{path}");
        }
    }
}

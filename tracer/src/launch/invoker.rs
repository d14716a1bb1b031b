//! Who ran `sudo jittrace`: the command is to run as that user, with the environment of the shell that called sudo.
//!
//! sudo resets the environment (`env_reset`): CUDA_HOME, LD_LIBRARY_PATH, PATH and HOME, the very things under study,
//! would be others. The environment that sudo itself was started with is still in `/proc`.

use std::{
    ffi::{CStr, CString, OsStr, OsString},
    fs,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::PathBuf,
};

/// The user behind sudo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invoker {
    /// User.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Supplementary groups.
    pub groups: Vec<u32>,
    /// The environment of the shell that called sudo.
    pub env: Vec<(OsString, OsString)>,
}

/// How many ancestors are looked at for sudo: itself, and its monitor when it runs commands in a pseudo-terminal.
const ANCESTORS: usize = 4;

/// The user behind sudo; `None` when this is no root process that an ordinary user started through sudo.
#[must_use]
pub fn invoker() -> Option<Invoker> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let number = |name: &str| std::env::var(name).ok()?.parse::<u32>().ok();
    let uid = number("SUDO_UID").filter(|uid| *uid != 0)?;
    let user = User::of(uid);
    let gid = number("SUDO_GID").or(user.as_ref().map(|u| u.gid))?;
    Some(Invoker {
        uid,
        gid,
        groups: user.as_ref().map_or_else(|| vec![gid], |u| u.groups(gid)),
        env: environment_of_sudo().unwrap_or_else(|| own_environment(user.as_ref())),
    })
}

/// What sudo was started with.
fn environment_of_sudo() -> Option<Vec<(OsString, OsString)>> {
    let mut pid = std::process::id();
    for _ in 0..ANCESTORS {
        pid = parent(pid)?;
        let exe = fs::read_link(format!("/proc/{pid}/exe")).ok()?;
        if exe.file_name() == Some(OsStr::new("sudo")) {
            let bytes = fs::read(format!("/proc/{pid}/environ")).ok()?;
            return Some(variables(&bytes)).filter(|env| !env.is_empty());
        }
    }
    None
}

fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything; the fields begin after the last one.
    let (_, behind) = stat.rsplit_once(')')?;
    behind.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// The variables of an environment as `/proc/PID/environ` holds it.
pub fn variables(bytes: &[u8]) -> Vec<(OsString, OsString)> {
    bytes
        .split(|b| *b == 0)
        .filter_map(|entry| {
            let at = entry.iter().position(|b| *b == b'=')?;
            let (name, value) = (entry.get(..at)?, entry.get(at + 1..)?);
            Some((
                OsString::from_vec(name.to_vec()),
                OsString::from_vec(value.to_vec()),
            ))
        })
        .collect()
}

/// This process's environment with the user's own home and name: what is left when sudo cannot be asked.
fn own_environment(user: Option<&User>) -> Vec<(OsString, OsString)> {
    let theirs = |name: &OsStr| match (name.as_bytes(), user) {
        (b"HOME", Some(user)) => Some(user.home.clone().into_os_string()),
        (b"USER" | b"LOGNAME", Some(user)) => {
            Some(OsStr::from_bytes(user.name.to_bytes()).to_owned())
        }
        _ => None,
    };
    std::env::vars_os()
        .filter(|(name, _)| !name.as_bytes().starts_with(b"SUDO_"))
        .map(|(name, value)| {
            let value = theirs(&name).unwrap_or(value);
            (name, value)
        })
        .collect()
}

/// An entry of the user database.
struct User {
    name: CString,
    gid: u32,
    home: PathBuf,
}

impl User {
    fn of(uid: u32) -> Option<User> {
        let mut buffer = vec![0_u8; 16 * 1024];
        let mut found = std::ptr::null_mut();
        // SAFETY: plain data, filled in by the call below.
        let mut entry: libc::passwd = unsafe { std::mem::zeroed() };
        // SAFETY: the entry, the buffer of that length and the result live through the call.
        let failed = unsafe {
            libc::getpwuid_r(
                uid,
                &raw mut entry,
                buffer.as_mut_ptr().cast(),
                buffer.len(),
                &raw mut found,
            )
        };
        if failed != 0 || found.is_null() {
            return None;
        }
        // SAFETY: a found entry's texts are NUL-terminated and lie in the buffer, which is still there.
        let (name, home) = unsafe { (CStr::from_ptr(entry.pw_name), CStr::from_ptr(entry.pw_dir)) };
        Some(User {
            name: name.to_owned(),
            gid: entry.pw_gid,
            home: PathBuf::from(OsStr::from_bytes(home.to_bytes())),
        })
    }

    /// Every group that the user is in.
    fn groups(&self, gid: u32) -> Vec<u32> {
        let mut groups = vec![gid; 1024];
        let mut count = groups.len() as libc::c_int;
        // SAFETY: the name is NUL-terminated, and there is room for as many groups as `count` says.
        let got = unsafe {
            libc::getgrouplist(self.name.as_ptr(), gid, groups.as_mut_ptr(), &raw mut count)
        };
        if got < 0 {
            return vec![gid];
        }
        groups.truncate(usize::try_from(count).unwrap_or(0));
        groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_in_the_database_with_its_group() {
        let root = User::of(0).unwrap();
        assert_eq!(root.name.to_bytes(), b"root");
        assert!(root.groups(0).contains(&0));
    }

    #[test]
    fn variables_are_split_at_their_first_equals_sign() {
        assert_eq!(
            variables(b"A=1\0B=x=y\0nonsense\0C=\0"),
            [("A", "1"), ("B", "x=y"), ("C", "")]
                .map(|(n, v)| (OsString::from(n), OsString::from(v)))
        );
    }
}

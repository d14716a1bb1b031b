//! Whether a program that is about to be started can be followed.

use crate::arch::system_call;
use crate::session;
use crate::text::Short;
use core::ffi::c_char;

/// What the file about to be started is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    /// A dynamic program of this machine, which loads the shim.
    Followed,
    /// Nothing to execute was found: the attempt will fail.
    Missing,
    /// No dynamic loader: `LD_PRELOAD` means nothing to it, but its children may honour it.
    Static,
    /// Runs with another user's rights: the loader ignores `LD_PRELOAD`.
    SetUid,
    /// Its loader is musl's, which cannot load the shim.
    Musl,
    /// 32-bit: its loader would complain about the shim.
    ThirtyTwoBit,
    /// For another machine (an emulator is to run it).
    OtherMachine,
}

impl Target {
    /// Name in the log of why it cannot be followed.
    pub(crate) const fn reason(self) -> Option<&'static str> {
        match self {
            Target::Followed | Target::Missing => None,
            Target::Static => Some("static"),
            Target::SetUid => Some("setuid"),
            Target::Musl => Some("musl"),
            Target::ThirtyTwoBit => Some("32-bit"),
            Target::OtherMachine => Some("other-machine"),
        }
    }

    /// Whether our entry in `LD_PRELOAD` would break the program or make its loader complain.
    pub(crate) const fn is_harmed(self) -> bool {
        matches!(
            self,
            Target::Musl | Target::ThirtyTwoBit | Target::OtherMachine
        )
    }
}

/// Longest path that is examined.
pub(crate) const PATH: usize = 1024;

/// Examines the file; a script is followed to its interpreter, whose path is left in `examined`.
pub(crate) fn examine(directory: i32, path: &[u8], examined: &mut Short<PATH>) -> Target {
    examined.push(path);
    for _ in 0..4 {
        let mut head = [0_u8; 1024];
        let Some(path) = examined.as_c() else {
            return Target::Followed;
        };
        let (length, status) = match read_head(directory, path, &mut head) {
            Ok(read) => read,
            // Executable but not readable: nothing is known.
            Err(libc::EACCES) => return Target::Followed,
            Err(_) => return Target::Missing,
        };
        let head = head.get(..length).unwrap_or_default();
        if let Some(line) = head.strip_prefix(b"#!") {
            let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
            let interpreter = line
                .trim_ascii()
                .split(|byte| byte.is_ascii_whitespace())
                .next()
                .unwrap_or_default();
            *examined = Short::new();
            examined.push(interpreter);
            continue;
        }
        return examine_elf(head, &status);
    }
    Target::Followed
}

fn examine_elf(head: &[u8], status: &libc::stat) -> Target {
    if !head.starts_with(b"\x7fELF") {
        return Target::Followed; // a script without a first line, or nothing executable at all
    }
    if head.get(4) == Some(&1) {
        return Target::ThirtyTwoBit;
    }
    let half = |at: usize| {
        let two = head.get(at..at + 2).and_then(|two| two.try_into().ok());
        u16::from_le_bytes(two.unwrap_or_default())
    };
    let word = |at: usize| {
        let eight = head.get(at..at + 8).and_then(|eight| eight.try_into().ok());
        u64::from_le_bytes(eight.unwrap_or_default()) as usize
    };
    const THIS_MACHINE: u16 = if cfg!(target_arch = "x86_64") {
        62
    } else {
        183
    };
    if half(18) != THIS_MACHINE {
        return Target::OtherMachine;
    }
    let user = system_call(libc::SYS_getuid, [0; 6]) as u32;
    let group = system_call(libc::SYS_getgid, [0; 6]) as u32;
    if (status.st_mode & libc::S_ISUID != 0 && status.st_uid != user)
        || (status.st_mode & libc::S_ISGID != 0 && status.st_gid != group)
    {
        return Target::SetUid;
    }
    let (table, size, count) = (word(32), usize::from(half(54)), usize::from(half(56)));
    for number in 0..count {
        let at = table + number * size;
        if at + size > head.len() {
            return Target::Followed; // beyond what was read: nothing is known
        }
        const PT_INTERP: u16 = 3;
        if half(at) == PT_INTERP && half(at + 2) == 0 {
            let (offset, length) = (word(at + 8), word(at + 32));
            let loader = head
                .get(offset..offset.saturating_add(length))
                .unwrap_or_default();
            let is_musl = loader.windows(4).any(|four| four == b"musl");
            return if is_musl {
                Target::Musl
            } else {
                Target::Followed
            };
        }
    }
    Target::Static
}

/// The first bytes of a regular file and its status, or `errno`.
fn read_head(
    directory: i32,
    path: *const c_char,
    head: &mut [u8],
) -> Result<(usize, libc::stat), i32> {
    let flags = libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NOCTTY | libc::O_NONBLOCK;
    let arguments = [directory as usize, path as usize, flags as usize, 0, 0, 0];
    let descriptor = system_call(libc::SYS_openat, arguments);
    if descriptor < 0 {
        return Err(-descriptor as i32);
    }
    let descriptor = descriptor as usize;
    let status = session::status_of(descriptor as i32);
    let regular = status.filter(|status| status.st_mode & libc::S_IFMT == libc::S_IFREG);
    let length = match regular {
        Some(_) => system_call(
            libc::SYS_pread64,
            [descriptor, head.as_mut_ptr() as usize, head.len(), 0, 0, 0],
        ),
        None => -1,
    };
    system_call(libc::SYS_close, [descriptor, 0, 0, 0, 0, 0]);
    match regular {
        Some(status) if length >= 0 => Ok((length as usize, status)),
        _ => Err(libc::EACCES),
    }
}

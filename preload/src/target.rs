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
    /// Linked to a sanitizer's runtime, which ends the program when another library comes before it.
    Sanitized,
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
            Target::Sanitized => Some("sanitizer"),
            Target::OtherMachine => Some("other-machine"),
        }
    }

    /// Whether our entry in `LD_PRELOAD` would break the program or make its loader complain.
    pub(crate) const fn is_harmed(self) -> bool {
        matches!(
            self,
            Target::Musl | Target::ThirtyTwoBit | Target::Sanitized | Target::OtherMachine
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
        let file = match Opened::open(directory, path) {
            Ok(file) => file,
            // Executable but not readable: nothing is known.
            Err(libc::EACCES) => return Target::Followed,
            Err(_) => return Target::Missing,
        };
        let head = file.read_at(0, &mut head);
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
        return examine_elf(&file, head);
    }
    Target::Followed
}

fn examine_elf(file: &Opened, head: &[u8]) -> Target {
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
    let is_anothers = |status: &libc::stat| {
        (status.st_mode & libc::S_ISUID != 0 && status.st_uid != user)
            || (status.st_mode & libc::S_ISGID != 0 && status.st_gid != group)
    };
    if file.status.as_ref().is_some_and(is_anothers) {
        return Target::SetUid;
    }
    let (table, size, count) = (
        word_at(head, 32),
        usize::from(half(54)),
        usize::from(half(56)),
    );
    if table.saturating_add(size * count) > head.len() {
        return Target::Followed; // beyond what was read: nothing is known
    }
    let headers = (0..count).map(|number| {
        let at = table + number * size;
        let kind = u32::from(half(at)) | u32::from(half(at + 2)) << 16;
        let (offset, address, length) = (
            word_at(head, at + 8),
            word_at(head, at + 16),
            word_at(head, at + 32),
        );
        Segment {
            kind,
            offset,
            address,
            length,
        }
    });
    let Some(interpreter) = headers
        .clone()
        .find(|segment| segment.kind == libc::PT_INTERP)
    else {
        return Target::Static;
    };
    let mut bytes = [0; 128];
    let loader = file.read_at(
        interpreter.offset,
        bytes
            .get_mut(..interpreter.length.min(128))
            .unwrap_or_default(),
    );
    if loader.windows(4).any(|four| four == b"musl") {
        Target::Musl
    } else if needs_sanitizer(file, headers) {
        Target::Sanitized
    } else {
        Target::Followed
    }
}

/// A file that is looked at, closed when dropped.
struct Opened {
    descriptor: usize,
    /// `None` only where it was not a file that could be looked at.
    status: Option<libc::stat>,
}

impl Opened {
    /// Opens a regular file, or says `errno`.
    fn open(directory: i32, path: *const c_char) -> Result<Opened, i32> {
        let flags = libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NOCTTY | libc::O_NONBLOCK;
        let arguments = [directory as usize, path as usize, flags as usize, 0, 0, 0];
        let descriptor = system_call(libc::SYS_openat, arguments);
        if descriptor < 0 {
            return Err(-descriptor as i32);
        }
        let opened = Opened {
            descriptor: descriptor as usize,
            status: session::status_of(descriptor as i32),
        };
        let is_regular = |status: &libc::stat| status.st_mode & libc::S_IFMT == libc::S_IFREG;
        if opened.status.as_ref().is_some_and(is_regular) {
            Ok(opened)
        } else {
            Err(libc::EACCES)
        }
    }

    /// Fills `bytes` from this place in the file; gives what could be read.
    fn read_at<'b>(&self, offset: usize, bytes: &'b mut [u8]) -> &'b [u8] {
        let arguments = [
            self.descriptor,
            bytes.as_mut_ptr() as usize,
            bytes.len(),
            offset,
            0,
            0,
        ];
        let length = system_call(libc::SYS_pread64, arguments).max(0) as usize;
        bytes.get(..length).unwrap_or_default()
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        system_call(libc::SYS_close, [self.descriptor, 0, 0, 0, 0, 0]);
    }
}

/// Whether one of the first two libraries that the dynamic section asks for is the address sanitizer's runtime.
fn needs_sanitizer(file: &Opened, headers: impl Iterator<Item = Segment> + Clone) -> bool {
    const DT_NEEDED: usize = 1;
    const DT_STRTAB: usize = 5;
    const ENTRY: usize = 16;
    let Some(dynamic) = headers
        .clone()
        .find(|segment| segment.kind == libc::PT_DYNAMIC)
    else {
        return false;
    };
    let mut bytes = [0; 48 * ENTRY];
    let wanted = dynamic.length.min(bytes.len());
    let bytes = file.read_at(dynamic.offset, bytes.get_mut(..wanted).unwrap_or_default());
    let entries = || {
        bytes
            .chunks_exact(ENTRY)
            .map(|entry| (word_at(entry, 0), word_at(entry, 8)))
    };
    let Some((_, strings)) = entries().find(|(tag, _)| *tag == DT_STRTAB) else {
        return false;
    };
    let holds = |segment: &Segment| {
        segment.kind == libc::PT_LOAD && strings.wrapping_sub(segment.address) < segment.length
    };
    let Some(segment) = headers.clone().find(holds) else {
        return false;
    };
    let strings = strings - segment.address + segment.offset;
    entries()
        .filter(|(tag, _)| *tag == DT_NEEDED)
        .take(2)
        .any(|(_, name)| {
            let mut bytes = [0; 24];
            let name = file.read_at(strings.saturating_add(name), &mut bytes);
            [&b"libasan.so"[..], b"libclang_rt.asan", b"libhwasan.so"]
                .iter()
                .any(|runtime| name.starts_with(runtime))
        })
}

/// A program header.
#[derive(Clone, Copy)]
struct Segment {
    kind: u32,
    offset: usize,
    address: usize,
    length: usize,
}

fn word_at(bytes: &[u8], at: usize) -> usize {
    let eight = bytes
        .get(at..at + 8)
        .and_then(|eight| eight.try_into().ok());
    u64::from_le_bytes(eight.unwrap_or_default()) as usize
}

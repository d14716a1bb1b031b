//! The files that a live process has mapped, opened so that they are certainly those files.
//!
//! A path in `/proc/PID/maps` is a name in the mount namespace of that process, and the file may have been deleted or
//! replaced since. `/proc/PID/map_files/RANGE` is the mapped file itself (it needs CAP_SYS_ADMIN or
//! CAP_CHECKPOINT_RESTORE to follow); without it the path is looked up under `/proc/PID/root` and device and inode must
//! be those of the mapping.

use std::{
    fs::{self, File},
    io,
    os::{
        fd::AsRawFd,
        unix::{ffi::OsStrExt, fs::MetadataExt},
    },
    path::{Path, PathBuf},
};

/// Which file, whatever its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId {
    /// Major device number.
    pub major: u32,
    /// Minor device number.
    pub minor: u32,
    /// Inode number.
    pub inode: u64,
}

impl FileId {
    /// The identity of an open file.
    ///
    /// # Errors
    ///
    /// What fstat says.
    pub fn of(file: &File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        let device = metadata.dev();
        Ok(Self {
            major: libc::major(device),
            minor: libc::minor(device),
            inode: metadata.ino(),
        })
    }

    /// From the kernel's own encoding of a device (MINORBITS is 20).
    pub(crate) fn from_kernel(device: u32, inode: u64) -> Self {
        Self {
            major: device >> 20,
            minor: device & 0xf_ffff,
            inode,
        }
    }
}

/// An executable mapping of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MappedFile {
    /// First and last byte of the mapping, as named under `map_files`.
    pub range: (u64, u64),
    /// Offset in the file of the mapping's first byte.
    pub offset: u64,
    /// The file, by device and inode as the maps show them.
    pub id: FileId,
    /// Its path in the process's mount namespace, without the mark of a deleted file.
    pub path: PathBuf,
    /// The name no longer leads to it.
    pub deleted: bool,
}

/// A file, opened for reading, that is certainly the one asked for.
#[derive(Debug)]
pub struct ObjectFile {
    /// The open file.
    pub file: File,
    /// Its identity by fstat.
    pub id: FileId,
    /// How the process names it.
    pub path: PathBuf,
}

/// The executable file mappings of process `pid`, each file once, in the order of their addresses.
///
/// # Errors
///
/// `/proc/PID/maps` cannot be read: the process is gone, or another user's.
pub fn mapped_files(pid: u32) -> io::Result<Vec<MappedFile>> {
    let maps = fs::read(format!("/proc/{pid}/maps"))?;
    let mut files: Vec<MappedFile> = Vec::new();
    for mapped in maps
        .split(|byte| *byte == b'\n')
        .filter_map(executable_mapping)
    {
        if !files.iter().any(|file| file.id == mapped.id) {
            files.push(mapped);
        }
    }
    Ok(files)
}

/// One line of `/proc/PID/maps`, where it is an executable mapping of a file.
fn executable_mapping(line: &[u8]) -> Option<MappedFile> {
    // range perms offset dev inode path; the path may hold spaces and starts behind padding.
    let mut rest = line;
    let mut field = || {
        let end = rest
            .iter()
            .position(|byte| *byte == b' ')
            .unwrap_or(rest.len());
        let (word, tail) = rest.split_at(end);
        rest = tail.get(1..).unwrap_or_default();
        std::str::from_utf8(word).ok()
    };
    let (range, permissions, offset, device, inode) =
        (field()?, field()?, field()?, field()?, field()?);
    if permissions.as_bytes().get(2) != Some(&b'x') || inode == "0" {
        return None;
    }
    let start = rest.iter().position(|byte| *byte != b' ')?;
    let path = rest.get(start..)?;
    if path.first() != Some(&b'/') {
        return None;
    }
    let hex = |text| u64::from_str_radix(text, 16).ok();
    let (from, to) = range.split_once('-')?;
    let (major, minor) = device.split_once(':')?;
    let (path, deleted) = match path.strip_suffix(b" (deleted)") {
        Some(path) => (path, true),
        None => (path, false),
    };
    Some(MappedFile {
        range: (hex(from)?, hex(to)?),
        offset: hex(offset)?,
        id: FileId {
            major: u32::from_str_radix(major, 16).ok()?,
            minor: u32::from_str_radix(minor, 16).ok()?,
            inode: inode.parse().ok()?,
        },
        path: PathBuf::from(std::ffi::OsStr::from_bytes(path)),
        deleted,
    })
}

/// Opens a mapped file: the mapped inode, not what its name leads to by now.
///
/// # Errors
///
/// One sentence with the file and the reason.
pub fn open_mapped(pid: u32, mapped: &MappedFile) -> io::Result<ObjectFile> {
    let (from, to) = mapped.range;
    if let Ok(file) = File::open(format!("/proc/{pid}/map_files/{from:x}-{to:x}")) {
        return Ok(ObjectFile {
            id: FileId::of(&file)?,
            file,
            path: mapped.path.clone(),
        });
    }
    let object = open_in(pid, &mapped.path)?;
    if object.id != mapped.id {
        return Err(io::Error::other(format!(
            "{} was replaced since process {pid} mapped it, and /proc/{pid}/map_files may not be read (CAP_SYS_ADMIN \
             or CAP_CHECKPOINT_RESTORE)",
            mapped.path.display()
        )));
    }
    Ok(object)
}

/// Opens `path` as process `pid` would: in its mount namespace and below its root.
///
/// # Errors
///
/// What open says, with the path.
pub fn open_in(pid: u32, path: &Path) -> io::Result<ObjectFile> {
    let below = path.strip_prefix("/").unwrap_or(path);
    let seen = Path::new("/proc")
        .join(pid.to_string())
        .join("root")
        .join(below);
    let file = File::open(&seen)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", seen.display())))?;
    Ok(ObjectFile {
        id: FileId::of(&file)?,
        file,
        path: path.to_path_buf(),
    })
}

impl ObjectFile {
    /// Opens a file by a path of our own.
    ///
    /// # Errors
    ///
    /// What open says, with the path.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path).map_err(|error| {
            io::Error::new(error.kind(), format!("{}: {error}", path.display()))
        })?;
        Ok(Self {
            id: FileId::of(&file)?,
            file,
            path: path.to_path_buf(),
        })
    }

    /// A path that leads to this inode for as long as the file is open, for interfaces that take a path.
    pub(crate) fn path_of_descriptor(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.file.as_raw_fd()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_maps() {
        let line = b"7f0a1000-7f0a3000 r-xp 00002000 fe:00 1234                       /opt/a b/lib x.so (deleted)";
        let mapped = executable_mapping(line).unwrap();
        assert_eq!(mapped.range, (0x7f0a_1000, 0x7f0a_3000));
        assert_eq!(mapped.offset, 0x2000);
        assert_eq!(
            mapped.id,
            FileId {
                major: 0xfe,
                minor: 0,
                inode: 1234
            }
        );
        assert_eq!(mapped.path, Path::new("/opt/a b/lib x.so"));
        assert!(mapped.deleted);
        let others: &[&[u8]] = &[
            b"7f0a1000-7f0a3000 rw-p 00002000 fe:00 1234                       /opt/lib.so",
            b"7ffc1000-7ffc3000 r-xp 00000000 00:00 0                          [vdso]",
            b"7ffc1000-7ffc3000 rwxp 00000000 00:00 0 ",
            b"",
            b"garbage",
        ];
        for line in others {
            assert_eq!(
                executable_mapping(line),
                None,
                "{}",
                String::from_utf8_lossy(line)
            );
        }
    }

    #[test]
    fn own_program_is_found_and_is_the_same_file() {
        let pid = std::process::id();
        let exe = File::open("/proc/self/exe").unwrap();
        let id = FileId::of(&exe).unwrap();
        let files = mapped_files(pid).unwrap();
        let own = files
            .iter()
            .find(|file| file.id.inode == id.inode)
            .expect("own executable among the mappings");
        assert_eq!(open_mapped(pid, own).unwrap().id, id);
    }
}

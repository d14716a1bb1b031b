//! The system calls that are watched: their numbers, names, and where their paths are.

use jittrace_ebpf::{ENDING, FileShape, NO_ARGUMENT};

use super::event::FileOperation;

/// A watched system call on a path.
pub(crate) struct Call {
    /// Its name, as in `sys_enter_NAME`.
    pub(crate) name: &'static str,
    /// Its number on this machine.
    pub(crate) number: u32,
    /// Where its paths are.
    pub(crate) shape: FileShape,
    /// What it does.
    pub(crate) operation: FileOperation,
}

const fn shape(directory: u8, path: u8, directory2: u8, path2: u8, flags: u8) -> FileShape {
    FileShape {
        path,
        directory,
        path2,
        directory2,
        flags,
        flags_behind: 0,
        reserved: [0; 2],
    }
}

const NO: u8 = NO_ARGUMENT;
const OPEN: FileOperation = FileOperation::Open { flags: 0 };

const fn call(
    name: &'static str,
    number: libc::c_long,
    shape: FileShape,
    operation: FileOperation,
) -> Call {
    Call {
        name,
        number: number as u32,
        shape,
        operation,
    }
}

/// Exec. They share the table of shapes with the file calls; argv is the argument behind the path.
#[rustfmt::skip]
pub(crate) const EXEC: &[Call] = &[
    call("execve",     libc::SYS_execve,     shape(NO, 0, NO, NO, NO), OPEN),
    call("execveat",   libc::SYS_execveat,   shape(0, 1, NO, NO, NO),  OPEN),
];

/// Files.
#[rustfmt::skip]
pub(crate) const FILES: &[Call] = &[
    call("open",       libc::SYS_open,       shape(NO, 0, NO, NO, 1),  OPEN),
    call("creat",      libc::SYS_creat,      shape(NO, 0, NO, NO, NO), OPEN),
    call("openat",     libc::SYS_openat,     shape(0, 1, NO, NO, 2),   OPEN),
    call("openat2",    libc::SYS_openat2,    FileShape { flags_behind: 1, ..shape(0, 1, NO, NO, 2) }, OPEN),
    call("rename",     libc::SYS_rename,     shape(NO, 0, NO, 1, NO),  FileOperation::Rename),
    call("renameat",   libc::SYS_renameat,   shape(0, 1, 2, 3, NO),    FileOperation::Rename),
    call("renameat2",  libc::SYS_renameat2,  shape(0, 1, 2, 3, NO),    FileOperation::Rename),
    call("unlink",     libc::SYS_unlink,     shape(NO, 0, NO, NO, NO), FileOperation::Unlink),
    call("unlinkat",   libc::SYS_unlinkat,   shape(0, 1, NO, NO, NO),  FileOperation::Unlink),
    call("rmdir",      libc::SYS_rmdir,      shape(NO, 0, NO, NO, NO), FileOperation::Unlink),
    call("mkdir",      libc::SYS_mkdir,      shape(NO, 0, NO, NO, NO), FileOperation::Mkdir),
    call("mkdirat",    libc::SYS_mkdirat,    shape(0, 1, NO, NO, NO),  FileOperation::Mkdir),
];

/// Libraries of the system, of which a failed try says nothing: no toolkit brings them.
pub(crate) const BORING: &[&str] = &[
    "libc.so.6",
    "libm.so.6",
    "libdl.so.2",
    "librt.so.1",
    "libpthread.so.0",
    "libutil.so.1",
    "libresolv.so.2",
    "libgcc_s.so.1",
    "libselinux.so.1",
    "libtinfo.so.6",
    "libpcre2-8.so.0",
    "libcap.so.2",
    "libacl.so.1",
    "libattr.so.1",
    "libgmp.so.10",
    "libmpfr.so.6",
    "libmpc.so.3",
    "libisl.so.23",
    "libcrypt.so.1",
    "libz.so.1",
];

/// The last bytes of a name, as the kernel programs compare them.
pub(crate) fn ending(name: &str) -> Option<[u8; ENDING]> {
    name.as_bytes().last_chunk().copied()
}

/// What the system call of this number does.
pub(crate) fn operation(number: u32, flags: u64) -> Option<FileOperation> {
    let call = FILES.iter().find(|call| call.number == number)?;
    Some(match call.operation {
        FileOperation::Open { .. } if call.name == "creat" => FileOperation::Open {
            flags: (libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC) as u64,
        },
        FileOperation::Open { .. } => FileOperation::Open { flags },
        other => other,
    })
}

//! Directories as the kernel knows them: the working directory and open ones, by the names on the way to the root.
//!
//! A relative path means something only to the process that gave it, and that may be gone when the record is read.

use jittrace_ebpf::EXEC_CWD;

use crate::kernel::{constant, kernel, kernel_text};

/// Deepest directory that is told.
const DEPTH: usize = 40;
/// Longest name of a directory (NAME_MAX and its NUL).
const NAME: usize = 256;

/// Where the working directory's `struct path` of `task` is.
#[inline(always)]
pub(crate) fn working_directory(task: u64) -> u64 {
    let fs: u64 = kernel(task, constant!(task_fs));
    fs + constant!(fs_pwd)
}

/// Where the `struct path` of the open directory `descriptor` of `task` is; an address that cannot be read where there is
/// none.
#[inline(always)]
pub(crate) fn open_directory(task: u64, descriptor: u32) -> u64 {
    let files: u64 = kernel(task, constant!(task_files));
    let table: u64 = kernel(files, constant!(files_fdt));
    let count: u32 = kernel(table, constant!(fdtable_max));
    if descriptor >= count {
        return 0;
    }
    let descriptors: u64 = kernel(table, constant!(fdtable_fd));
    let file: u64 = kernel(descriptors, 8 * u64::from(descriptor));
    file + constant!(file_path)
}

/// Writes the names of the directory at `path`, innermost first and each ended by NUL, to [`EXEC_CWD`] bytes at `to`.
/// How many bytes that took, and whether the root was reached.
///
/// The walk goes over mount points up to the root of the mount tree: the path of a task in a container or a chroot is
/// told as far as its mounts reach.
#[inline(always)]
pub(crate) fn names_of(to: *mut u8, path: u64) -> (u32, bool) {
    let mut dentry: u64 = kernel(path, constant!(path_dentry));
    let vfsmount: u64 = kernel(path, constant!(path_mnt));
    let mut mount = vfsmount.wrapping_sub(constant!(mount_mnt));
    let mut end: usize = 0;
    let mut whole = false;
    for _ in 0..DEPTH {
        // Read as volatile and masked, the position is any in the room at the start of every round: the verifier finds
        // that the rounds are alike and walks one of them, where exact ranges would have it walk all their combinations.
        // SAFETY: a local variable.
        let at = unsafe { core::ptr::read_volatile(&raw const end) } & (EXEC_CWD - 1);
        let root: u64 = kernel(mount + constant!(mount_mnt), constant!(vfsmount_root));
        let above: u64 = kernel(dentry, constant!(dentry_parent));
        if dentry == root || dentry == above {
            let parent: u64 = kernel(mount, constant!(mount_parent));
            if parent == mount || parent == 0 {
                whole = true;
                break;
            }
            dentry = kernel(mount, constant!(mount_mountpoint));
            mount = parent;
            continue;
        }
        if at > EXEC_CWD - NAME {
            break;
        }
        let name: u64 = kernel(dentry, constant!(dentry_name));
        // SAFETY: `at` leaves room for one name.
        match kernel_text::<NAME>(unsafe { to.add(at) }, name) {
            Ok(length) => end = at + length as usize + 1,
            Err(_) => break,
        }
        dentry = above;
    }
    (end as u32, whole)
}

//! Directories as the kernel knows them: the working directory and open ones, by the names on the way to the root.
//!
//! A relative path means something only to the process that gave it, and that may be gone when the record is read.

use aya_ebpf::{helpers::generated::bpf_probe_read_kernel, macros::map, maps::PerCpuArray};
use jittrace_ebpf::{EXEC_CWD, flag};

use crate::kernel::{constant, kernel, kernel_text};

/// Deepest directory that is told.
const DEPTH: usize = 40;
/// Longest name of a directory (NAME_MAX and its NUL).
const NAME: usize = 256;

/// A walk, for the time until its record is made.
///
/// In the memory of a map the verifier knows of no value. That is the point: it finds every round of the walk like the one
/// before, and all that follows like what it has seen, where values of registers and of the stack would have it walk all
/// their combinations.
#[repr(C)]
struct Walk {
    /// Bytes of `names`.
    length: u32,
    /// 1: the root was reached.
    whole: u32,
    names: [u8; EXEC_CWD],
}

/// Who walks. Programs at one tracepoint do not interrupt each other on one CPU, nor are they moved to another
/// (trace_call_bpf, __bpf_trace_run).
#[derive(Clone, Copy)]
pub(crate) enum Walker {
    Exec,
    File,
}

#[map]
static WALKS: PerCpuArray<Walk> = PerCpuArray::with_max_entries(2, 0);

/// A directory's names, innermost first and each ended by NUL, which wait on this CPU for their record.
pub(crate) struct Names(*mut Walk);

impl Names {
    /// Of the directory whose `struct path` is at `path`.
    #[inline(always)]
    pub(crate) fn of(path: u64, walker: Walker) -> Option<Names> {
        let walk = WALKS.get_ptr_mut(walker as u32)?;
        // SAFETY: one value of the map, which nobody else uses now.
        names_of(unsafe { &mut *walk }, path);
        Some(Names(walk))
    }

    /// Copies them to [`EXEC_CWD`] bytes at `to`. How many bytes they are, and the flag of a directory that is not told
    /// up to the root.
    ///
    /// # Safety
    ///
    /// There is that room.
    #[inline(always)]
    pub(crate) unsafe fn copy(&self, to: *mut u8) -> (u32, u32) {
        // SAFETY: as the caller says; the source is one value of the map.
        unsafe {
            bpf_probe_read_kernel(
                to.cast(),
                EXEC_CWD as u32,
                (&raw const (*self.0).names).cast(),
            );
            (
                (*self.0).length,
                flag::CUT_CWD * (1 - ((*self.0).whole & 1)),
            )
        }
    }
}

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

/// Writes down the names of the directory at `path`.
///
/// The walk goes over mount points up to the root of the mount tree: the path of a task in a container or a chroot is
/// told as far as its mounts reach.
#[inline(always)]
fn names_of(walk: &mut Walk, path: u64) {
    let mut dentry: u64 = kernel(path, constant!(path_dentry));
    let vfsmount: u64 = kernel(path, constant!(path_mnt));
    let mut mount = vfsmount.wrapping_sub(constant!(mount_mnt));
    let length = &raw mut walk.length;
    let whole = &raw mut walk.whole;
    let names: *mut u8 = (&raw mut walk.names).cast();
    // SAFETY: members of one value of the map; volatile, so that the compiler keeps them there.
    unsafe {
        length.write_volatile(0);
        whole.write_volatile(0);
    }
    for _ in 0..DEPTH {
        let root: u64 = kernel(mount + constant!(mount_mnt), constant!(vfsmount_root));
        let above: u64 = kernel(dentry, constant!(dentry_parent));
        if dentry == root || dentry == above {
            let parent: u64 = kernel(mount, constant!(mount_parent));
            if parent == mount || parent == 0 {
                // SAFETY: as above.
                unsafe { whole.write_volatile(1) };
                break;
            }
            dentry = kernel(mount, constant!(mount_mountpoint));
            mount = parent;
            continue;
        }
        // SAFETY: as above.
        let at = unsafe { length.read_volatile() } as usize;
        if at > EXEC_CWD - NAME {
            break;
        }
        let name: u64 = kernel(dentry, constant!(dentry_name));
        // SAFETY: `at` leaves room for one name.
        match kernel_text::<NAME>(unsafe { names.add(at) }, name) {
            // SAFETY: as above.
            Ok(read) => unsafe { length.write_volatile(at as u32 + read + 1) },
            Err(_) => break,
        }
        dentry = above;
    }
}

//! Kernel and user memory at an offset: the one place that reads through pointers the programs were given.

use aya_ebpf::helpers::{bpf_probe_read_user, generated::bpf_probe_read_kernel};
use jittrace_ebpf::Constants;

/// Set by the loader from the running kernel's BTF; frozen before the programs are verified.
#[unsafe(no_mangle)]
pub(crate) static CONSTANTS: Constants = Constants {
    own_pid_namespace: 0,
    task_pid: 0,
    task_tgid: 0,
    task_thread_pid: 0,
    task_group_leader: 0,
    task_real_parent: 0,
    task_signal: 0,
    task_mm: 0,
    task_fs: 0,
    task_files: 0,
    files_fdt: 0,
    fdtable_fd: 0,
    fdtable_max: 0,
    file_path: 0,
    task_exit_code: 0,
    pid_level: 0,
    pid_numbers: 0,
    upid_size: 0,
    upid_nr: 0,
    upid_ns: 0,
    pid_namespace_inum: 0,
    signal_live: 0,
    signal_flags: 0,
    signal_group_exit_code: 0,
    mm_arg_start: 0,
    mm_arg_end: 0,
    mm_env_end: 0,
    fs_pwd: 0,
    path_mnt: 0,
    path_dentry: 0,
    dentry_parent: 0,
    dentry_name: 0,
    vfsmount_root: 0,
    mount_mnt: 0,
    mount_parent: 0,
    mount_mountpoint: 0,
    bprm_filename: 0,
    bprm_file: 0,
    file_inode: 0,
    inode_ino: 0,
    inode_sb: 0,
    super_block_dev: 0,
};

/// A member of [`Constants`] as the loader set it (the compiler must not fold the zeros above).
macro_rules! constant {
    ($member:ident) => {
        $crate::kernel::volatile(&raw const $crate::kernel::CONSTANTS.$member)
    };
}
pub(crate) use constant;

/// One constant, read where it stands.
#[inline(always)]
pub(crate) fn volatile(constant: *const u32) -> u64 {
    // SAFETY: points into CONSTANTS, which lives in a frozen map for as long as the program does.
    u64::from(unsafe { core::ptr::read_volatile(constant) })
}

/// An integer, of which zero is a value.
pub(crate) trait Integer: Copy + Default {}
impl Integer for u32 {}
impl Integer for u64 {}

/// The integer that lies `offset` bytes into the kernel object at `base`; 0 where it cannot be read.
///
/// Without a branch on the outcome: each one doubles what the verifier has to walk, and the helper zeroes what it could
/// not read.
#[inline(always)]
pub(crate) fn kernel<T: Integer>(base: u64, offset: u64) -> T {
    let mut value = T::default();
    // SAFETY: the helper checks the address and fails instead of faulting; the destination is one T.
    unsafe {
        bpf_probe_read_kernel(
            (&raw mut value).cast(),
            size_of::<T>() as u32,
            base.wrapping_add(offset) as *const _,
        )
    };
    value
}

/// The `T` at `address` in the current process.
#[inline(always)]
pub(crate) fn user<T>(address: u64) -> Result<T, i32> {
    // SAFETY: the helper checks the address and fails instead of faulting.
    unsafe { bpf_probe_read_user(address as *const T) }
}

/// Copies a NUL-ended text of the current process to `N` bytes at `to`. The number of bytes, NUL not counted.
#[inline(always)]
pub(crate) fn user_text<const N: usize>(to: *mut u8, from: u64) -> Result<u32, i32> {
    // SAFETY: `to` has room for N bytes (the callers' records say so); the helper checks the source.
    let read = unsafe {
        aya_ebpf::helpers::generated::bpf_probe_read_user_str(to.cast(), N as u32, from as *const _)
    };
    text_length(read)
}

/// Copies a NUL-ended text of the kernel, as [`user_text`].
#[inline(always)]
pub(crate) fn kernel_text<const N: usize>(to: *mut u8, from: u64) -> Result<u32, i32> {
    // SAFETY: as above.
    let read = unsafe {
        aya_ebpf::helpers::generated::bpf_probe_read_kernel_str(
            to.cast(),
            N as u32,
            from as *const _,
        )
    };
    text_length(read)
}

#[inline(always)]
fn text_length(read: i64) -> Result<u32, i32> {
    if read > 0 {
        Ok((read - 1) as u32)
    } else if read == 0 {
        Ok(0)
    } else {
        Err(read as i32)
    }
}

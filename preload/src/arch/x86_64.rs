//! Everything that must be written for one processor: x86-64, System V calling convention.
//!
//! - raw system calls, which neither touch `errno` nor pass through anybody's interposed functions;
//! - one block of thread-local storage in the initial-exec model (stable no_std has no `thread_local!`);
//! - the *tail-jump hooks*: glibc takes the caller of `dlopen`, `dlsym(RTLD_NEXT)` and friends from the return address,
//!   so the real function must be entered with the stack as the program left it (mechanisms 4a);
//! - the *thunks* handed out for watched functions, and the definitions with hidden symbol versions;
//! - `execl` and friends, which Rust cannot define as variadic functions.
//!
//! An `aarch64.rs` beside this file needs the same names.

use core::arch::{asm, global_asm, naked_asm};

/// Where a tail-jump hook goes on: to `target`, or back to the caller with `value` when `target` is null.
#[repr(C)]
pub(crate) struct Next {
    pub(crate) target: usize,
    pub(crate) value: usize,
}

/// Kernel entry; a negative result is `-errno`.
pub(crate) fn system_call(number: libc::c_long, arguments: [usize; 6]) -> isize {
    let [a, b, c, d, e, f] = arguments;
    let result;
    // SAFETY: the callers pass arguments that the kernel checks; registers as the ABI says.
    unsafe {
        asm!("syscall", inlateout("rax") number as isize => result, in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d,
             in("r8") e, in("r9") f, lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    result
}

// Memory functions of our own, hidden: the compiler calls them, and a program that interposes libc's (sanitizers do) may
// look the real ones up with `dlsym`, which is where we are called from.
global_asm!(
    ".text",
    ".irp name, memcpy, memmove, memset, memcmp, bcmp, strlen",
    ".hidden \\name",
    ".globl \\name",
    ".type \\name,@function",
    ".endr",
    "memmove:",
    "mov rax, rdi",
    "sub rax, rsi",
    "cmp rax, rdx",
    "mov rax, rdi",
    "jae 2f",
    "mov rcx, rdx", // the target begins inside the source: backwards
    "lea rsi, [rsi + rdx - 1]",
    "lea rdi, [rdi + rdx - 1]",
    "std",
    "rep movsb",
    "cld",
    "ret",
    "memcpy:",
    "mov rax, rdi",
    "2: mov rcx, rdx",
    "rep movsb",
    "ret",
    "memset:",
    "mov r8, rdi",
    "mov eax, esi",
    "mov rcx, rdx",
    "rep stosb",
    "mov rax, r8",
    "ret",
    "memcmp:",
    "bcmp:",
    "mov rcx, rdx",
    "xor eax, eax",
    "xor edx, edx",
    "repe cmpsb",
    "je 3f",
    "movzx eax, byte ptr [rdi - 1]",
    "movzx edx, byte ptr [rsi - 1]",
    "sub edx, eax",
    "mov eax, edx",
    "3: ret",
    "strlen:",
    "xor eax, eax",
    "4: cmp byte ptr [rdi + rax], 0",
    "je 5f",
    "inc rax",
    "jmp 4b",
    "5: ret",
);

/// Bytes of the thread-local block; [`crate::thread`] lays its state over it.
pub(crate) const THREAD_BLOCK: usize = 160;

global_asm!(
    ".section .tbss,\"awT\",@nobits",
    ".balign 16",
    ".hidden jittrace_thread",
    ".globl jittrace_thread",
    ".type jittrace_thread,@object",
    ".size jittrace_thread,{size}",
    "jittrace_thread: .zero {size}",
    ".text",
    size = const THREAD_BLOCK,
);

/// Address of this thread's block, zero-filled when the thread began.
#[inline]
pub(crate) fn thread_block() -> *mut u8 {
    let address: *mut u8;
    // SAFETY: reads the thread pointer and a constant that the loader filled in.
    unsafe {
        asm!("mov {0}, qword ptr fs:[0]", "add {0}, qword ptr [rip + jittrace_thread@GOTTPOFF]", out(reg) address,
             options(nostack, readonly));
    }
    address
}

/// Address of the loader's `_r_debug`; null when it exports none.
///
/// By a weak reference: a strong one would put the loader among our dependencies, and so at another place in the
/// program's search order.
pub(crate) fn loader_debug() -> *const u8 {
    let address: *const u8;
    // SAFETY: reads what the loader filled in.
    unsafe {
        asm!(".weak _r_debug", "mov {0}, qword ptr [rip + _r_debug@GOTPCREL]", out(reg) address, options(nostack, readonly));
    }
    address
}

/// Runs `body(memory, context)` with `bytes` of stack, so that nothing needs the heap.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn with_stack(
    bytes: usize,
    body: unsafe extern "C" fn(*mut u8, *mut u8) -> isize,
    context: *mut u8,
) -> isize {
    naked_asm!(
        ".cfi_startproc",
        "push rbp",
        ".cfi_adjust_cfa_offset 8",
        ".cfi_rel_offset rbp, 0",
        "mov rbp, rsp",
        ".cfi_def_cfa_register rbp",
        "add rdi, 31",
        "and rdi, -16",
        "sub rsp, rdi",
        "mov rax, rsi",
        "mov rsi, rdx",
        "mov rdi, rsp",
        "call rax",
        "leave",
        ".cfi_def_cfa rsp, 8",
        "ret",
        ".cfi_endproc",
    )
}

/// Defines exported functions that record and then jump to the real function with the program's own stack.
///
/// The recorder gets the first three arguments and the address of the return address.
macro_rules! tail_jump_hooks {
    ($($name:ident => $recorder:path;)*) => { $(
        #[doc = concat!("Interposed `", stringify!($name), "`.")]
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            naked_asm!(
                ".cfi_startproc",
                "endbr64",
                "push rdi",
                ".cfi_adjust_cfa_offset 8",
                "push rsi",
                ".cfi_adjust_cfa_offset 8",
                "push rdx",
                ".cfi_adjust_cfa_offset 8",
                "lea rcx, [rsp + 24]",
                "call {recorder}",
                "mov r11, rax",
                "mov r10, rdx",
                "pop rdx",
                ".cfi_adjust_cfa_offset -8",
                "pop rsi",
                ".cfi_adjust_cfa_offset -8",
                "pop rdi",
                ".cfi_adjust_cfa_offset -8",
                "test r11, r11",
                "jz 2f",
                "jmp r11",
                "2:",
                "mov rax, r10",
                "ret",
                ".cfi_endproc",
                recorder = sym $recorder,
            )
        }
    )* };
}

tail_jump_hooks! {
    dlopen => crate::dl::before_dlopen;
    dlmopen => crate::dl::before_dlmopen;
    dlclose => crate::dl::before_dlclose;
    dlsym => crate::dl::before_dlsym;
    dlvsym => crate::dl::before_dlvsym;
    __gmon_start__ => crate::dl::on_announcement;
    fork => crate::process::before_fork;
    vfork => crate::process::before_vfork;
}

/// Defines exported functions whose Rust body does the call itself, and wants to know who called.
///
/// The body gets the six register arguments as an array and the address of the return address.
macro_rules! hooks {
    ($($name:ident => $body:path;)*) => { $(
        #[doc = concat!("Interposed `", stringify!($name), "`.")]
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            naked_asm!(
                ".cfi_startproc",
                "endbr64",
                "push r9",
                "push r8",
                "push rcx",
                "push rdx",
                "push rsi",
                "push rdi",
                ".cfi_adjust_cfa_offset 48",
                "mov rdi, rsp",
                "lea rsi, [rsp + 48]",
                "sub rsp, 8",
                ".cfi_adjust_cfa_offset 8",
                "call {body}",
                "add rsp, 56",
                ".cfi_adjust_cfa_offset -56",
                "ret",
                ".cfi_endproc",
                body = sym $body,
            )
        }
    )* };
}

hooks! {
    execve => crate::exec::on_execve;
    execv => crate::exec::on_execv;
    execvp => crate::exec::on_execvp;
    execvpe => crate::exec::on_execvpe;
    fexecve => crate::exec::on_fexecve;
    execveat => crate::exec::on_execveat;
    posix_spawn => crate::exec::on_posix_spawn;
    posix_spawnp => crate::exec::on_posix_spawnp;
    system => crate::exec::on_system;
    popen => crate::exec::on_popen;
    open => crate::files::on_open;
    open64 => crate::files::on_open64;
    __open_2 => crate::files::on_open_2;
    __open64_2 => crate::files::on_open64_2;
    openat => crate::files::on_openat;
    openat64 => crate::files::on_openat64;
    __openat_2 => crate::files::on_openat_2;
    __openat64_2 => crate::files::on_openat64_2;
    creat => crate::files::on_creat;
    creat64 => crate::files::on_creat64;
    fopen => crate::files::on_fopen;
    fopen64 => crate::files::on_fopen64;
    freopen => crate::files::on_freopen;
    freopen64 => crate::files::on_freopen64;
    opendir => crate::files::on_opendir;
    stat => crate::files::on_stat;
    stat64 => crate::files::on_stat64;
    lstat => crate::files::on_lstat;
    lstat64 => crate::files::on_lstat64;
    fstatat => crate::files::on_fstatat;
    fstatat64 => crate::files::on_fstatat64;
    statx => crate::files::on_statx;
    __xstat => crate::files::on_xstat;
    __xstat64 => crate::files::on_xstat64;
    __lxstat => crate::files::on_lxstat;
    __lxstat64 => crate::files::on_lxstat64;
    __fxstatat => crate::files::on_fxstatat;
    __fxstatat64 => crate::files::on_fxstatat64;
    access => crate::files::on_access;
    faccessat => crate::files::on_faccessat;
    eaccess => crate::files::on_eaccess;
    euidaccess => crate::files::on_euidaccess;
    readlink => crate::files::on_readlink;
    readlinkat => crate::files::on_readlinkat;
    rename => crate::files::on_rename;
    renameat => crate::files::on_renameat;
    renameat2 => crate::files::on_renameat2;
    link => crate::files::on_link;
    unlink => crate::files::on_unlink;
    unlinkat => crate::files::on_unlinkat;
    remove => crate::files::on_remove;
    mkdir => crate::files::on_mkdir;
    mkdirat => crate::files::on_mkdirat;
    rmdir => crate::files::on_rmdir;
    flock => crate::files::on_flock;
    lockf => crate::files::on_lockf;
    lockf64 => crate::files::on_lockf64;
    fcntl => crate::files::on_fcntl;
    fcntl64 => crate::files::on_fcntl64;
    write => crate::messages::on_write;
    writev => crate::messages::on_writev;
    read => crate::messages::on_read;
    __read_chk => crate::messages::on_read_chk;
    pthread_sigmask => crate::process::on_pthread_sigmask;
}

/// How many thunks there are. Beyond it the real address is handed out, and counted.
pub(crate) const THUNKS: usize = 512;

/// Numbers from here on belong to definitions with hidden versions.
pub(crate) const FIRST_LINKED: usize = 0x10000;

const THUNK_BYTES: usize = 16;

global_asm!(
    ".text",
    ".balign 16",
    ".hidden jittrace_thunks",
    ".globl jittrace_thunks",
    "jittrace_thunks:",
    ".cfi_startproc",
    ".set jittrace_number, 0",
    ".rept {thunks}",
    ".balign 16",
    "endbr64",
    "push jittrace_number",
    "jmp {entered}",
    ".set jittrace_number, jittrace_number + 1",
    ".endr",
    ".balign 16",
    ".cfi_endproc",
    // jittrace_linked NAME, VERSION, NUMBER: a definition that only references to VERSION bind to.
    ".macro jittrace_linked name, version, number",
    ".balign 16",
    ".globl jittrace_linked_\\number",
    ".type jittrace_linked_\\number,@function",
    "jittrace_linked_\\number:",
    ".cfi_startproc",
    "endbr64",
    "push {first_linked} + \\number",
    "jmp {entered}",
    ".cfi_endproc",
    ".size jittrace_linked_\\number, . - jittrace_linked_\\number",
    ".symver jittrace_linked_\\number, \\name\\()@\\version",
    ".endm",
    ".balign 16",
    ".hidden jittrace_all_linked",
    ".globl jittrace_all_linked",
    "jittrace_all_linked:",
    include_str!(concat!(env!("OUT_DIR"), "/linked.s")),
    ".text",
    thunks = const THUNKS,
    first_linked = const FIRST_LINKED,
    entered = sym watched_function_entered,
);

unsafe extern "C" {
    static jittrace_thunks: u8;
    static jittrace_all_linked: u8;
}

/// Address of the thunk with this number.
pub(crate) fn thunk_address(number: usize) -> usize {
    &raw const jittrace_thunks as usize + number * THUNK_BYTES
}

/// Number of the thunk, or of the definition with a hidden version, that begins at this address.
pub(crate) fn thunk_at(address: usize) -> Option<usize> {
    let number = |base: usize, count: usize| {
        let distance = address.wrapping_sub(base);
        (distance.is_multiple_of(THUNK_BYTES) && distance / THUNK_BYTES < count)
            .then_some(distance / THUNK_BYTES)
    };
    number(&raw const jittrace_thunks as usize, THUNKS).or_else(|| {
        number(
            &raw const jittrace_all_linked as usize,
            crate::calls::LINKED.len(),
        )
        .map(|linked| FIRST_LINKED + linked)
    })
}

/// Every thunk jumps here with its number pushed; the six register arguments are laid out as an array.
#[unsafe(naked)]
unsafe extern "C" fn watched_function_entered() {
    naked_asm!(
        ".cfi_startproc",
        ".cfi_adjust_cfa_offset 8",
        "push r9",
        "push r8",
        "push rcx",
        "push rdx",
        "push rsi",
        "push rdi",
        ".cfi_adjust_cfa_offset 48",
        "mov rdi, rsp",
        "mov rsi, [rsp + 48]",
        "lea rdx, [rsp + 56]",
        "call {called}",
        "add rsp, 56",
        ".cfi_adjust_cfa_offset -56",
        "ret",
        ".cfi_endproc",
        called = sym crate::calls::watched_function_called,
    )
}

/// Defines the `execl` family: gathers the arguments into an array on the stack, as glibc does.
macro_rules! exec_list_hooks {
    ($($name:ident => $recorder:path;)*) => { $(
        #[doc = concat!("Interposed `", stringify!($name), "`.")]
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            naked_asm!(
                ".cfi_startproc",
                "endbr64",
                "push rbp",
                ".cfi_adjust_cfa_offset 8",
                ".cfi_rel_offset rbp, 0",
                "mov rbp, rsp",
                ".cfi_def_cfa_register rbp",
                "push r9",
                "push r8",
                "push rcx",
                "push rdx",
                "push rsi",
                "push rdi",
                "lea rdi, [rbp - 40]", // the five variadic arguments in registers
                "lea rsi, [rbp + 16]", // those on the stack
                "call {count}",
                "lea rcx, [rax * 8 + 31]",
                "and rcx, -16",
                "sub rsp, rcx",
                "lea rdi, [rbp - 40]",
                "lea rsi, [rbp + 16]",
                "mov rdx, rsp",
                "call {gather}",
                "mov rdi, [rbp - 48]",
                "mov rsi, rsp",
                "mov rdx, rax", // what follows the null pointer: the environment of execle
                "lea rcx, [rbp + 8]",
                "call {recorder}",
                "leave",
                ".cfi_def_cfa rsp, 8",
                "ret",
                ".cfi_endproc",
                count = sym count_arguments,
                gather = sym gather_arguments,
                recorder = sym $recorder,
            )
        }
    )* };
}

exec_list_hooks! {
    execl => crate::exec::execl_gathered;
    execle => crate::exec::execle_gathered;
    execlp => crate::exec::execlp_gathered;
}

unsafe fn variadic(registers: *const usize, stack: *const usize, number: usize) -> usize {
    // SAFETY: the caller wrote as many arguments as it has, with a null pointer at the end.
    unsafe {
        if number < 5 {
            *registers.add(number)
        } else {
            *stack.add(number - 5)
        }
    }
}

unsafe extern "C" fn count_arguments(registers: *const usize, stack: *const usize) -> usize {
    let mut count = 0;
    while unsafe { variadic(registers, stack, count) } != 0 {
        count += 1;
    }
    count
}

unsafe extern "C" fn gather_arguments(
    registers: *const usize,
    stack: *const usize,
    array: *mut usize,
) -> usize {
    let mut count = 0;
    loop {
        let argument = unsafe { variadic(registers, stack, count) };
        unsafe { *array.add(count) = argument };
        count += 1;
        if argument == 0 {
            return unsafe { variadic(registers, stack, count) };
        }
    }
}

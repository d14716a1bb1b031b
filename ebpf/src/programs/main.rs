//! The kernel programs: small observers that copy what happened into the ring buffer and never decide what it means.
//!
//! They stay with what a kernel 5.10 verifier accepts and loads without kprobes, fentry or LSM: raw tracepoints for
//! fork, exec and exit, system call tracepoints for exec attempts and paths, uprobes for calls. A record that finds no
//! room is counted, never waited for.
#![no_std]
#![no_main]

mod call;
mod directory;
mod exec;
mod file;
mod kernel;
mod process;
mod ring;
mod task;

/// Helpers such as bpf_probe_read_* are open to programs under a compatible licence only; the source is dual-licensed.
#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // No program can reach this: nothing here indexes, unwraps or divides.
    loop {}
}

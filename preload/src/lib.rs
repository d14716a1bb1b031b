//! The shim: what jittrace loads into a traced program by `LD_PRELOAD`.
//!
//! It sees calls from inside and knows nothing but how to write a [record](jittrace_wire::record) of them to the session
//! file. It is bound to leave the program as it is: it never prints, panics, blocks or allocates, keeps `errno`, holds
//! signal handlers back while it is at work, changes nothing in a vfork child's memory, which is its parent's, and does
//! nothing at all when the environment names no session.
//!
//! - `session` finds the session and appends records; `thread` is the little that is kept for each thread.
//! - `elf` reads the link map without the loader's help; `real` finds the functions behind our own.
//! - `process` and `program`: start, fork, exit. `exec` and `target`: starts of programs and whether they can be followed.
//! - `dl` and `objects`: requests for libraries, what came of them. `calls` and `image`: watched CUDA functions.
//! - `files` and `messages`: what is opened in caches and toolkits, what is said about them.
//! - `python`: the Python stack. `arch`: everything in assembly.
#![no_std]
#![allow(
    clippy::missing_safety_doc,
    reason = "every exported function has the contract of the libc function it is named after"
)]

#[macro_use]
mod real;

mod arch;
mod calls;
mod dl;
mod elf;
mod exec;
mod files;
mod image;
mod messages;
mod objects;
mod process;
mod program;
mod python;
mod session;
mod target;
mod text;
mod thread;

#[link(name = "c")]
unsafe extern "C" {}

/// Never reached: no code here panics on purpose. Ending the program would be worse than ending one thread's progress,
/// but a `panic_handler` must not return; a trap at least names the place in a core file.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: abort has no preconditions.
    unsafe { libc::abort() }
}

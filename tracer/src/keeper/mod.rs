//! `jittrace --tui -- COMMAND`: the command in a pseudo-terminal, the view in the real one.
//!
//! Two processes. The **keeper** is a session of its own: it holds the master of the pseudo-terminal, launches and
//! collects exactly as without a view, and reads what the command writes whether anyone looks at it or not. The
//! **view** is the process that the shell knows: it follows the trace file as `jittrace view --follow` does, shows the
//! output, and hands keys over. When the view is left, is killed or loses its terminal, the keeper goes on until the
//! command has ended and nobody writes to the pseudo-terminal any more.
//!
//! ```text
//! shell ── jittrace (view) ══ sockets ══ jittrace (keeper, own session) ── command, on the pseudo-terminal
//!              └─ follows ───────────────► trace file ◄── writes ─┘
//! ```

mod frames;
mod keep;
mod pty;
mod show;

use std::{
    io::{self, IsTerminal},
    os::unix::net::UnixStream,
    process::ExitCode,
};

use anyhow::{Context, Result};

use crate::cli::{RunArgs, TraceArgs};

/// Whether a view is to be shown: asked for, or everything is a terminal and nobody asked for none.
pub fn wanted(args: &TraceArgs) -> bool {
    let terminals =
        io::stdin().is_terminal() && io::stdout().is_terminal() && io::stderr().is_terminal();
    args.tui || (terminals && !args.no_tui)
}

/// Traces a command with the view; gives the command's own exit status. To be called before any thread exists.
///
/// # Errors
/// There is no terminal, or no process or pseudo-terminal could be made.
pub fn run(args: &RunArgs) -> Result<ExitCode> {
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        anyhow::bail!(
            "--tui needs a terminal on standard input and output; --no-tui works without one"
        );
    }
    let size = rustix::termios::tcgetwinsize(io::stdout())
        .context("cannot ask the terminal for its size")?;
    // Two lines above and one below belong to the view.
    let pty = pty::Pty::new(size.ws_col, size.ws_row.saturating_sub(3))
        .context("cannot make a pseudo-terminal; --no-tui works without one")?;
    let (view, keeper) = UnixStream::pair().context("cannot make a pair of sockets")?;
    // SAFETY: no other thread exists yet, so that the child is a whole process.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()).context("cannot make a process"),
        0 => {
            drop(view);
            keep::keep(args, pty, keeper);
            std::process::exit(0)
        }
        _ => {
            drop((keeper, pty));
            show::show(view)
        }
    }
}

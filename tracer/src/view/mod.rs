//! `jittrace view FILE`: a recorded trace, or one that is still being written, in the terminal view.
//!
//! A thread of its own reads and parses the trace, so that the first screen is there before the last event is.

mod export;
pub(crate) mod feed;
mod settings;

use std::{
    io::{IsTerminal, Write},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use anyhow::{Context, Result};
use crossbeam_channel::Receiver;
use jittrace_model::log::Header;
use jittrace_tui::{Input, Mode, Outcome, Settings, Setup, theme::Theme};

pub use export::Exporter;
pub use settings::settings;

use crate::cli::ViewArgs;

/// Opens a trace in the view; returns when it is left.
///
/// # Errors
/// The trace cannot be read, or there is no terminal to show it in.
pub fn run(args: &ViewArgs) -> Result<ExitCode> {
    let Some(file) = args.file.as_deref().filter(|_| !args.defaults) else {
        std::io::stdout()
            .write_all(Settings::file().as_bytes())
            .context("cannot write to standard output")?;
        return Ok(ExitCode::SUCCESS);
    };
    if !std::io::stdout().is_terminal() {
        anyhow::bail!(
            "the view needs a terminal on standard output; `jittrace report {}` writes text anywhere",
            file.display()
        );
    }
    let (input, events) = crossbeam_channel::bounded(feed::AHEAD);
    let header = feed::start(file, args.follow, input)?;
    // A pipe may be fed by a trace that is still being written.
    let mode = if args.follow || file == Path::new("-") {
        Mode::Follow
    } else {
        Mode::Replay
    };
    let setup = setup(mode, name(file), &header);
    let commands = Arc::new(Exporter::beside(file));
    jittrace_tui::run(header, events, setup, commands).context("the view ended early")?;
    Ok(ExitCode::SUCCESS)
}

/// Shows a collection while it goes on: `collect` runs in a thread of its own and writes the trace that the view
/// follows. When the view is left, or a signal asks for that, `stop` ends the collection.
///
/// # Errors
/// The trace cannot be followed or the collection broke. A view that breaks is said, and the collection goes on.
pub fn watch<R: Send + 'static>(
    trace: &Path,
    leave: &Receiver<()>,
    stop: impl FnOnce(),
    collect: impl FnOnce() -> R + Send + 'static,
) -> Result<R> {
    let complete = Arc::new(AtomicBool::new(false));
    let collector = {
        let complete = Arc::clone(&complete);
        thread::Builder::new()
            .name("collector".to_owned())
            .spawn(move || {
                let collected = collect();
                complete.store(true, Ordering::SeqCst);
                collected
            })
            .context("cannot start a thread")?
    };
    let (input, events) = crossbeam_channel::bounded(feed::AHEAD);
    let header = feed::follow(trace, complete, input.clone())?;
    let leave = leave.clone();
    thread::spawn(move || {
        if leave.recv().is_ok() {
            let _ = input.send(Input::End(Outcome::Quit));
        }
    });
    let setup = setup(Mode::Attach, name(trace), &header);
    match jittrace_tui::run(header, events, setup, Arc::new(Exporter::beside(trace))) {
        Ok(_) => stop(),
        Err(error) => eprintln!("jittrace: {error}"),
    }
    collector.join().map_err(|_| {
        anyhow::anyhow!(
            "the collector failed; the trace {} has what it wrote",
            trace.display()
        )
    })
}

/// What a screen is begun with: the look that the environment asks for, and the user's settings.
pub fn setup(mode: Mode, trace: String, header: &Header) -> Setup {
    let settings = settings();
    Setup {
        mode,
        theme: Theme::from_environment(&settings.theme, |name| std::env::var(name).ok()),
        trace,
        settings,
        ahead_of_utc: ahead_of_utc(header.started_unix_ns / 1_000_000_000),
    }
}

/// Seconds that the clock of whoever looks was ahead of UTC at a moment, in seconds since 1970.
fn ahead_of_utc(moment: u64) -> i32 {
    let Ok(moment) = libc::time_t::try_from(moment) else {
        return 0;
    };
    // SAFETY: all zero is a value of this structure of numbers and a pointer.
    let mut local: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: both point to what they say, and this form of the function keeps nothing of its own.
    let known = unsafe { !libc::localtime_r(&raw const moment, &raw mut local).is_null() };
    if known {
        i32::try_from(local.tm_gmtoff).unwrap_or(0)
    } else {
        0
    }
}

fn name(file: &Path) -> String {
    if file == Path::new("-") {
        return "standard input".to_owned();
    }
    file.display().to_string()
}

/// A name for a file that is written beside a trace: the trace's own with another ending.
fn beside(trace: &Path, ending: &str) -> PathBuf {
    let name = trace.file_name().map(|n| n.to_string_lossy().into_owned());
    let mut stem = name.as_deref().filter(|n| *n != "-").unwrap_or("jittrace");
    for end in [".zst", ".gz", ".jtrace"] {
        stem = stem.strip_suffix(end).unwrap_or(stem);
    }
    PathBuf::from(format!("{stem}{ending}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_named_after_the_trace() {
        for (trace, ending, name) in [
            ("/var/tmp/server.jtrace", "-report.md", "server-report.md"),
            ("server.jtrace.zst", ".tar.gz", "server.tar.gz"),
            ("-", "-report.txt", "jittrace-report.txt"),
        ] {
            assert_eq!(beside(Path::new(trace), ending), Path::new(name));
        }
    }
}

//! The view's side: follow the trace, show the output, hand keys over, and end as the command ended.

use std::{
    ffi::OsString,
    io::{self, Write},
    os::unix::{ffi::OsStringExt, net::UnixStream},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{
        Arc, Condvar, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use anyhow::{Context, Result};
use crossbeam_channel::Sender;
use jittrace_model::report::{Exit, Report};
use jittrace_tui::{Commands, Export, Input, Mode, Outcome};

use super::frames::{FromKeeper, FromView};
use crate::{
    launch,
    view::{self, Exporter, feed},
};

/// What is known of the command's end.
#[derive(Debug, Default)]
struct End {
    status: Option<i32>,
    said: Option<Vec<u8>>,
    /// The view was left: what the command writes from now on is kept, to be printed at its end.
    left: bool,
    /// What it wrote since.
    rest: Vec<u8>,
    /// The keeper is gone, or has said everything.
    over: bool,
}

/// How long an end is waited for without a word.
const SILENCE: Duration = Duration::from_millis(500);

/// Where the end is waited for.
type SharedEnd = Arc<(Mutex<End>, Condvar)>;

/// Shows the view until it is left; gives the command's status, if it has ended by then.
pub(super) fn show(mut keeper: UnixStream) -> Result<ExitCode> {
    // Signals that are sent to jittrace while the view is shown are for the command.
    let mut signals = signal_hook::iterator::Signals::new([
        libc::SIGTERM,
        libc::SIGINT,
        libc::SIGQUIT,
        libc::SIGHUP,
    ])
    .context("cannot take signals")?;
    let (pid, trace) = match FromKeeper::read(&mut keeper) {
        Ok(Some(FromKeeper::Ready { pid, trace })) => {
            (pid, PathBuf::from(OsString::from_vec(trace)))
        }
        Ok(Some(FromKeeper::Failed { status, sentence })) => {
            eprintln!("jittrace: {sentence}");
            return Ok(ExitCode::from(status));
        }
        _ => anyhow::bail!(
            "the process that launches the command ended too soon; --no-tui launches without it"
        ),
    };
    let keys = Arc::new(Mutex::new(
        keeper.try_clone().context("cannot copy a socket")?,
    ));
    let complete = Arc::new(AtomicBool::new(false));
    let (input, events) = crossbeam_channel::bounded(feed::AHEAD);
    let header = feed::follow(&trace, Arc::clone(&complete), input.clone())?;
    let end = SharedEnd::default();
    listen(
        keeper,
        input.clone(),
        Arc::clone(&end),
        Arc::clone(&complete),
    );
    {
        let (keys, input) = (Arc::clone(&keys), input.clone());
        thread::spawn(move || {
            for signal in signals.forever() {
                if signal == libc::SIGHUP {
                    let _ = input.send(Input::End(Outcome::TerminalLost));
                } else {
                    say(&keys, &FromView::Signal(signal));
                    let _ = input.send(Input::End(Outcome::Stop));
                }
            }
        });
    }
    drop(input);
    let setup = view::setup(Mode::Launch, trace.display().to_string(), &header);
    let commands = Arc::new(Keys {
        keeper: Arc::clone(&keys),
        exporter: Exporter::beside(&trace),
    });
    let left = match jittrace_tui::run(header, events, setup, commands) {
        Ok(left) => left,
        Err(error) => {
            eprintln!("jittrace: {error}");
            leave(pid, &trace);
            return Ok(ExitCode::SUCCESS);
        }
    };
    end.0.lock().unwrap_or_else(PoisonError::into_inner).left = true;
    match left.outcome {
        Outcome::Leave => {
            leave(pid, &trace);
            return Ok(ExitCode::SUCCESS);
        }
        // Nobody is there to be told.
        Outcome::TerminalLost => return Ok(ExitCode::from(129)),
        Outcome::Stop => say(&keys, &FromView::Signal(libc::SIGTERM)),
        Outcome::Quit => {}
    }
    conclude(&end, pid, &left.last_lines)
}

/// Waits for the command's end, prints its last lines and what jittrace has to say, and ends as it did.
fn conclude(end: &SharedEnd, pid: i32, last_lines: &str) -> Result<ExitCode> {
    let (lock, changed) = &**end;
    let end = lock.lock().unwrap_or_else(PoisonError::into_inner);
    let (mut end, waited) = changed
        .wait_timeout_while(end, SILENCE, |end| !end.over)
        .unwrap_or_else(PoisonError::into_inner);
    if waited.timed_out() {
        match end.status {
            None => eprintln!("jittrace: waiting for process {pid} to end; Ctrl-C goes to it"),
            Some(_) => eprintln!("jittrace: finishing the trace"),
        }
    }
    while !end.over {
        end = changed.wait(end).unwrap_or_else(PoisonError::into_inner);
    }
    let mut out = io::stdout();
    if !last_lines.is_empty() {
        let _ = writeln!(out, "{last_lines}");
    }
    let _ = out.write_all(&end.rest);
    let _ = out.flush();
    if let Some(said) = &end.said {
        let _ = io::stderr().write_all(said);
    }
    match end.status {
        Some(code @ 0..) => Ok(ExitCode::from(u8::try_from(code & 0xff).unwrap_or(u8::MAX))),
        Some(signal) => launch::die_like(-signal),
        None => anyhow::bail!(
            "the process that kept the command's terminal is gone; the trace has what it wrote until then"
        ),
    }
}

fn leave(pid: i32, trace: &Path) {
    eprintln!("jittrace: process {pid} goes on, and so does its recording");
    eprintln!(
        "jittrace: jittrace view --follow {} shows it again",
        trace.display()
    );
}

/// Takes what the keeper says.
fn listen(mut keeper: UnixStream, input: Sender<Input>, end: SharedEnd, complete: Arc<AtomicBool>) {
    thread::spawn(move || {
        let (lock, changed) = &*end;
        let note = |change: &mut dyn FnMut(&mut End)| {
            change(&mut lock.lock().unwrap_or_else(PoisonError::into_inner));
            changed.notify_all();
        };
        while let Ok(Some(frame)) = FromKeeper::read(&mut keeper) {
            match frame {
                FromKeeper::Output(bytes) => {
                    let mut left = false;
                    note(&mut |end| {
                        left = end.left;
                        if left {
                            end.rest.extend_from_slice(&bytes);
                        }
                    });
                    if !left {
                        let _ = input.send(Input::Output(bytes));
                    }
                }
                FromKeeper::Ended(status) => {
                    note(&mut |end| end.status = Some(status));
                    let exit = match status {
                        0.. => Exit {
                            code: Some(status),
                            signal: None,
                        },
                        signal => Exit {
                            code: None,
                            signal: Some(-signal),
                        },
                    };
                    let _ = input.send(Input::Ended(exit));
                }
                FromKeeper::Done(said) => {
                    complete.store(true, Ordering::SeqCst);
                    let mut said = Some(said);
                    note(&mut |end| {
                        end.said = said.take();
                        end.over = true;
                    });
                }
                FromKeeper::Failed { sentence, .. } => {
                    let _ = input.send(Input::Notice(sentence));
                }
                FromKeeper::Ready { .. } => {}
            }
        }
        complete.store(true, Ordering::SeqCst);
        note(&mut |end| end.over = true);
    });
}

fn say(keeper: &Mutex<UnixStream>, what: &FromView) {
    let mut keeper = keeper.lock().unwrap_or_else(PoisonError::into_inner);
    // A keeper that is gone has said so already.
    let _ = what.write(&mut *keeper);
}

/// What the view asks for, handed to the keeper or done here.
struct Keys {
    keeper: Arc<Mutex<UnixStream>>,
    exporter: Exporter,
}

impl Commands for Keys {
    fn export(&self, what: Export, report: &Report) -> Result<String, String> {
        self.exporter.export(what, report)
    }

    fn send(&self, bytes: &[u8]) {
        for part in bytes.chunks(1 << 16) {
            say(&self.keeper, &FromView::Input(part.to_vec()));
        }
    }

    fn resize(&self, columns: u16, rows: u16) {
        say(&self.keeper, &FromView::Resize(columns, rows));
    }
}

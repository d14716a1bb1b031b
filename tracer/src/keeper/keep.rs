//! The keeper's side: launch, collect, and read the pseudo-terminal until nobody writes to it any more.

use std::{
    fs::File,
    io::{self, Read, Seek, Write},
    os::{
        fd::AsRawFd,
        unix::{ffi::OsStrExt, net::UnixStream},
    },
    sync::atomic::{AtomicI32, Ordering},
    thread,
    time::Duration,
};

use crossbeam_channel::{Receiver, Sender, TrySendError};
use rustix::fs::{MemfdFlags, memfd_create};

use super::{
    frames::{FromKeeper, FromView},
    pty::{self, Pty},
};
use crate::{
    cli::RunArgs,
    launch::{Ended, LaunchError, Stops},
    run::{self, Place},
};

/// Pieces of output that wait for the view. A view that does not take them must not hold up the command.
const WAITING: usize = 4096;

/// Bytes that are read from the pseudo-terminal at a time.
const PIECE: usize = 16 << 10;

/// How long a command that was asked to end is waited for before it is made to.
const PATIENCE: Duration = Duration::from_secs(10);

/// The command's process, once it runs.
static COMMAND: AtomicI32 = AtomicI32::new(0);

/// Keeps a command until its end. Never fails: what goes wrong is said to the view.
pub(super) fn keep(args: &RunArgs, pty: Pty, view: UnixStream) {
    rustix::process::setsid().ok();
    let said = quiet();
    let (send, frames) = crossbeam_channel::bounded(WAITING);
    let Ok((keys, reader, master)) = copies(&view, &pty.master) else {
        return;
    };
    let writer = thread::spawn(move || tell(view, &frames));
    thread::spawn(move || obey(keys, &master));
    let terminal = pty.slave.as_raw_fd();
    let output = send.clone();
    // The command's end is closed here once the command has it, so that the last writer's leaving is noticed.
    let mut slave = Some(pty.slave);
    let mut drain = None;
    let mut reader = Some(reader);
    let mut started = |pid: i32, trace: &std::path::Path| {
        COMMAND.store(pid, Ordering::SeqCst);
        drop(slave.take());
        let _ = send.send(FromKeeper::Ready {
            pid,
            trace: std::path::absolute(trace)
                .unwrap_or_else(|_| trace.to_owned())
                .as_os_str()
                .as_bytes()
                .to_vec(),
        });
        // Only now, so that the first thing the view hears is that the command runs.
        if let Some(reader) = reader.take() {
            let output = output.clone();
            drain = Some(thread::spawn(move || read_all(reader, &output)));
        }
    };
    let mut ended = |ended: Ended| {
        let status = match ended {
            Ended::Code(code) => code,
            Ended::Signal(signal) => -signal,
        };
        COMMAND.store(0, Ordering::SeqCst);
        let _ = send.send(FromKeeper::Ended(status));
    };
    let place = Place {
        terminal: Some(terminal),
        stops: Stops::Leave,
        started: &mut started,
        ended: &mut ended,
    };
    match run::trace(args, place) {
        Ok(_) => {}
        Err(failure) => {
            let status = failure
                .downcast_ref::<LaunchError>()
                .map_or(run::OWN_FAILURE, LaunchError::status);
            let _ = send.send(FromKeeper::Failed {
                status,
                sentence: format!("{failure:#}"),
            });
        }
    }
    drop(slave);
    let _ = send.send(FromKeeper::Done(said.map(all_of).unwrap_or_default()));
    drop((send, output));
    drop(pty.master);
    // Descendants may still write: reading goes on for as long as they do.
    if let Some(drain) = drain {
        let _ = drain.join();
    }
    let _ = writer.join();
}

/// Standard input from nowhere; what jittrace itself prints goes to a place from which the view can print it later.
fn quiet() -> Option<File> {
    let null = File::options()
        .read(true)
        .write(true)
        .open("/dev/null")
        .ok()?;
    let said = memfd_create("jittrace-said", MemfdFlags::CLOEXEC)
        .ok()
        .map(File::from);
    rustix::stdio::dup2_stdin(&null).ok();
    let out = said.as_ref().unwrap_or(&null);
    rustix::stdio::dup2_stdout(out).ok();
    rustix::stdio::dup2_stderr(out).ok();
    said
}

fn all_of(mut file: File) -> Vec<u8> {
    let mut text = Vec::new();
    if file.rewind().is_ok() {
        let _ = file.take(1 << 19).read_to_end(&mut text);
    }
    text
}

fn copies(view: &UnixStream, master: &File) -> io::Result<(UnixStream, File, File)> {
    Ok((view.try_clone()?, master.try_clone()?, master.try_clone()?))
}

/// Tells the view what there is to tell; goes on taking it when the view has left.
fn tell(mut view: UnixStream, frames: &Receiver<FromKeeper>) {
    let mut there = true;
    while let Ok(frame) = frames.recv() {
        there = there && frame.write(&mut view).is_ok();
    }
}

/// Reads the pseudo-terminal until the last writer has left.
fn read_all(mut master: File, send: &Sender<FromKeeper>) {
    let mut piece = vec![0; PIECE];
    let mut skipped = 0;
    loop {
        match master.read(&mut piece) {
            // EIO is how Linux tells that nobody has the other end open any more.
            Ok(0) => return,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error)
                if error.raw_os_error() == Some(libc::EIO)
                    && COMMAND.load(Ordering::SeqCst) != 0 =>
            {
                // Every process closed the terminal, but one of them may open it again.
                thread::sleep(Duration::from_millis(20));
            }
            Err(_) => return,
            Ok(read) => {
                let mut bytes = piece.get(..read).unwrap_or_default().to_vec();
                if skipped > 0 {
                    let note = format!("\x1b[0m\r\n[{skipped} bytes of output were not shown]\r\n");
                    bytes.splice(0..0, note.into_bytes());
                }
                match send.try_send(FromKeeper::Output(bytes)) {
                    Ok(()) => skipped = 0,
                    Err(TrySendError::Full(_)) => skipped += read,
                    Err(TrySendError::Disconnected(_)) => {}
                }
            }
        }
    }
}

/// Does what the view asks for.
fn obey(mut view: UnixStream, master: &File) {
    let mut input = master;
    while let Ok(Some(asked)) = FromView::read(&mut view) {
        match asked {
            FromView::Input(bytes) => {
                let _ = input.write_all(&bytes);
            }
            FromView::Resize(columns, rows) => {
                let _ = pty::resize(master, columns, rows);
            }
            FromView::Signal(signal) => {
                pass_on(signal);
                if signal == libc::SIGTERM {
                    thread::spawn(|| {
                        let asked = COMMAND.load(Ordering::SeqCst);
                        thread::sleep(PATIENCE);
                        if asked != 0 && COMMAND.load(Ordering::SeqCst) == asked {
                            pass_on(libc::SIGKILL);
                        }
                    });
                }
            }
        }
    }
}

/// Sends a signal to the command's process group, as long as the command runs.
fn pass_on(signal: i32) {
    let pid = COMMAND.load(Ordering::SeqCst);
    if pid > 1 {
        // SAFETY: the command leads a session of its own, so that this is its process group and nobody else's.
        unsafe { libc::kill(-pid, signal) };
    }
}

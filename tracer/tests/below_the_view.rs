//! A command below the view, in a real pseudo-terminal: it ends as without the view, and outlives whatever befalls it.

#![allow(clippy::unwrap_used, reason = "tests may fail by panicking")]

mod terminal;

use std::{
    fs::File,
    io::{Read, Write},
    os::unix::process::ExitStatusExt,
    path::Path,
    process::{Child, Command, ExitStatus},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    termios::{LocalModes, tcgetattr},
};

/// jittrace on a terminal of its own.
struct Terminal {
    /// The end of a terminal emulator, until its window is closed.
    master: Option<File>,
    child: Child,
    screen: Arc<Mutex<vt100::Parser>>,
    closed: Arc<AtomicBool>,
    reading: Option<thread::JoinHandle<()>>,
}

const PATIENCE: Duration = Duration::from_secs(60);

impl Terminal {
    fn start(trace: &Path, script: &str) -> Terminal {
        let mut command = Command::new(env!("CARGO_BIN_EXE_jittrace"));
        command
            .args(["--report", "none", "--source", "preload", "-o"])
            .arg(trace)
            .args(["--", "sh", "-c", script])
            .env("TERM", "xterm-256color")
            .env("JITTRACE_TEST_BREAK", "1")
            .env("LANG", "C.UTF-8")
            // Whoever runs the tests may have keys of their own.
            .env("XDG_CONFIG_HOME", "/nonexistent")
            .env("XDG_CONFIG_DIRS", "/nonexistent");
        let (master, child) = terminal::spawn(command, (100, 24));
        let screen = Arc::new(Mutex::new(vt100::Parser::new(24, 100, 100)));
        let (mut reader, shown) = (master.try_clone().unwrap(), Arc::clone(&screen));
        let closed = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&closed);
        let reading = thread::spawn(move || {
            let mut bytes = [0; 4096];
            while !stop.load(Ordering::Relaxed) {
                let mut polled = [PollFd::new(&reader, PollFlags::IN)];
                let pause = Timespec {
                    tv_sec: 0,
                    tv_nsec: 20_000_000,
                };
                if poll(&mut polled, Some(&pause)) == Ok(0) {
                    continue;
                }
                match reader.read(&mut bytes) {
                    Ok(read @ 1..) => shown.lock().unwrap().process(&bytes[..read]),
                    _ => return,
                }
            }
        });
        Terminal {
            master: Some(master),
            child,
            screen,
            closed,
            reading: Some(reading),
        }
    }

    /// Closes the window, as when a connection breaks.
    fn close(&mut self) {
        self.closed.store(true, Ordering::Relaxed);
        if let Some(reading) = self.reading.take() {
            reading.join().unwrap();
        }
        self.master = None;
    }

    /// Whether the terminal is as a shell expects it: lines are edited and echoed, and nothing lies over them.
    fn is_restored(&self) -> bool {
        let modes = tcgetattr(self.master.as_ref().unwrap())
            .unwrap()
            .local_modes;
        let screen = self.screen.lock().unwrap();
        let screen = screen.screen();
        modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
            && !screen.alternate_screen()
            && !screen.hide_cursor()
            && !screen.bracketed_paste()
            && screen.mouse_protocol_mode() == vt100::MouseProtocolMode::None
    }

    fn text(&self) -> String {
        self.screen.lock().unwrap().screen().contents()
    }

    fn press(&mut self, keys: &str) {
        let master = self.master.as_mut().unwrap();
        master.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until the screen shows a text.
    fn see(&self, wanted: &str) {
        let until = Instant::now() + PATIENCE;
        while !self.text().contains(wanted) {
            assert!(Instant::now() < until, "no {wanted:?} in\n{}", self.text());
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn end(&mut self) -> ExitStatus {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                // What it wrote last is still on its way through the terminal.
                thread::sleep(Duration::from_millis(200));
                return status;
            }
            assert!(Instant::now() < until, "no end of\n{}", self.text());
            thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn wait_for(what: &str, holds: impl Fn() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < until, "{what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// The command came to its end, and the trace tells of it.
fn went_on(trace: &Path, done: &Path) {
    wait_for("the command did not go on", || done.exists());
    wait_for("the recording did not go on", || {
        let text = std::fs::read_to_string(trace).unwrap_or_default();
        text.contains("\"process-exit\"")
    });
}

#[test]
fn the_command_ends_as_without_a_view_and_its_last_lines_stay() {
    let folder = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::start(
        &folder.path().join("t.jtrace"),
        "echo hello from below; exit 3",
    );
    terminal.see("exit 3");
    terminal.press("8");
    terminal.see("hello from below");
    terminal.press("q");
    assert_eq!(terminal.end().code(), Some(3));
    // The view's screen is gone, the command's lines are on the real one.
    let text = terminal.text();
    assert!(
        text.contains("hello from below") && !text.contains("Resolution"),
        "{text}"
    );
}

#[test]
fn keys_reach_the_command_and_its_terminal_is_as_large_as_the_pane() {
    let folder = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::start(
        &folder.path().join("t.jtrace"),
        "read answer; echo \"got $answer\"; stty size; exec sleep 60",
    );
    terminal.see("running");
    terminal.press("8i");
    terminal.see("keys go to the program");
    terminal.press("yes\r");
    terminal.see("got yes");
    terminal.see("21 100");
    // Ctrl-] gives the keys back; stopping ends the command, and jittrace as the command.
    terminal.press("\x1d");
    terminal.see("keys are yours again");
    terminal.press("q");
    terminal.see("still running");
    terminal.press("s");
    assert_eq!(terminal.end().signal(), Some(libc::SIGTERM));
}

#[test]
fn left_running_the_command_and_its_recording_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, done) = (folder.path().join("t.jtrace"), folder.path().join("done"));
    let script = format!("sleep 2; yes | head -200000; touch {}", done.display());
    let mut terminal = Terminal::start(&trace, &script);
    terminal.see("running");
    terminal.press("q");
    terminal.see("still running");
    terminal.press("l");
    assert_eq!(terminal.end().code(), Some(0));
    assert!(
        terminal.text().contains("view --follow"),
        "{}",
        terminal.text()
    );
    // Only the keeper reads its terminal now: more output than a terminal holds must not stop it.
    went_on(&trace, &done);
}

#[test]
fn a_view_that_breaks_gives_the_screen_back_and_takes_nothing_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, done) = (folder.path().join("t.jtrace"), folder.path().join("done"));
    let script = format!("sleep 2; echo still here; touch {}", done.display());
    let mut terminal = Terminal::start(&trace, &script);
    terminal.see("running");
    assert!(!terminal.is_restored());
    // F12
    terminal.press("\x1b[24~");
    assert_eq!(terminal.end().code(), Some(0));
    assert!(terminal.is_restored(), "{}", terminal.text());
    let text = terminal.text();
    for said in [
        "the view ended after an error of its own (broken for a test)",
        "goes on, and so does its recording",
    ] {
        assert!(text.contains(said), "{said} in\n{text}");
    }
    went_on(&trace, &done);
}

#[test]
fn a_closed_terminal_takes_nothing_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, done) = (folder.path().join("t.jtrace"), folder.path().join("done"));
    let script = format!("sleep 2; echo still here; touch {}", done.display());
    let mut terminal = Terminal::start(&trace, &script);
    terminal.see("running");
    terminal.close();
    terminal.end();
    went_on(&trace, &done);
}

#[test]
fn a_killed_view_takes_nothing_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, done) = (folder.path().join("t.jtrace"), folder.path().join("done"));
    let script = format!("sleep 2; echo still here; touch {}", done.display());
    let mut terminal = Terminal::start(&trace, &script);
    terminal.see("running");
    terminal.child.kill().unwrap();
    terminal.end();
    went_on(&trace, &done);
}

#[test]
fn a_lost_terminal_takes_nothing_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, done) = (folder.path().join("t.jtrace"), folder.path().join("done"));
    let script = format!("sleep 2; echo still here; touch {}", done.display());
    let mut terminal = Terminal::start(&trace, &script);
    terminal.see("running");
    let pid = i32::try_from(terminal.child.id()).unwrap();
    // SAFETY: the signal that the kernel sends when a terminal is gone, to our own child.
    unsafe { libc::kill(pid, libc::SIGHUP) };
    assert_eq!(terminal.end().code(), Some(129));
    went_on(&trace, &done);
}

#[test]
fn a_command_that_cannot_be_run_is_said_without_a_view() {
    let folder = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::start(&folder.path().join("t.jtrace"), "exec /nowhere/at-all");
    terminal.see("exit 127");
    terminal.press("q");
    assert_eq!(terminal.end().code(), Some(127));
    assert!(
        terminal.text().contains("/nowhere/at-all"),
        "{}",
        terminal.text()
    );
}

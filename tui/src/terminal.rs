//! The terminal: entered, drawn to at most thirty times a second, and given back whatever happens.

use std::{
    io::{self, IsTerminal, Write},
    os::fd::{AsFd, OwnedFd},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
#[cfg(debug_assertions)]
use crossterm::event::KeyCode;
use crossterm::{
    cursor,
    event::{
        self, DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture,
    },
    execute,
    terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode},
};
use jittrace_model::{log::Header, report::Report};
use ratatui::{Terminal, backend::CrosstermBackend};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use thiserror::Error;

use crate::{
    app::{App, Effect, Export, Msg, Outcome, Setup},
    copy, draw,
    worker::{self, Input},
};

/// Shortest time between two frames.
const FRAME: Duration = Duration::from_millis(33);

/// What a view asks of whoever holds the trace and the launched program. Called from threads of the view.
pub trait Commands: Send + Sync + 'static {
    /// Writes a report or a bundle and says where it is.
    ///
    /// # Errors
    /// A sentence that names what could not be written and why.
    fn export(&self, what: Export, report: &Report) -> Result<String, String>;

    /// Hands keys to the launched program.
    fn send(&self, _bytes: &[u8]) {}

    /// The launched program's terminal has another size.
    fn resize(&self, _columns: u16, _rows: u16) {}
}

/// Why a view could not be shown.
#[derive(Debug, Error)]
pub enum TuiError {
    /// The terminal cannot be used.
    #[error("the terminal cannot be used for a view ({0}); --no-tui works without one")]
    Terminal(#[from] io::Error),
    /// The view broke; the terminal is as it was before.
    #[error("the view ended after an error of its own ({0}); the program and the recording go on")]
    Broken(String),
}

/// How a view was left, and what stood in it last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// How it was left.
    pub outcome: Outcome,
    /// The last lines that the launched program wrote.
    pub last_lines: String,
}

impl Left {
    fn of(app: &App, outcome: Outcome) -> Left {
        Left {
            outcome,
            last_lines: app.screen.text().trim_end().to_owned(),
        }
    }
}

/// Shows a view until it is left.
///
/// # Errors
/// The terminal cannot be used, or the view broke; either way the terminal is given back as it was, and whatever runs
/// is not touched.
pub fn run(
    header: Header,
    input: Receiver<Input>,
    setup: Setup,
    commands: Arc<dyn Commands>,
) -> Result<Left, TuiError> {
    let (send, messages) = crossbeam_channel::unbounded();
    let guard = Screen::enter()?;
    worker::start(
        header.clone(),
        input,
        worker::into(send.clone(), Msg::Published),
    )?;
    let stop = Arc::new(AtomicBool::new(false));
    let keys = read_keys(send.clone(), Arc::clone(&stop))?;
    let shown = catch_unwind(AssertUnwindSafe(|| {
        show(App::new(header, setup), &messages, &send, &commands)
    }));
    stop.store(true, Ordering::Relaxed);
    drop(guard);
    // The thread looks at the flag many times a second, unless it is stuck on a terminal that is gone.
    let until = Instant::now() + Duration::from_millis(300);
    while !keys.is_finished() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
    }
    match shown {
        Ok(outcome) => outcome,
        Err(panic) => Err(TuiError::Broken(
            panic
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| panic.downcast_ref::<&str>().copied())
                .unwrap_or("no reason given")
                .to_owned(),
        )),
    }
}

/// The screen as a view needs it, until dropped.
struct Screen {
    /// The hook that was there before, to be put back.
    restored: Arc<AtomicBool>,
}

impl Screen {
    fn enter() -> io::Result<Screen> {
        enable_raw_mode()?;
        let restored = Arc::new(AtomicBool::new(false));
        let entered = execute!(
            io::stdout(),
            EnterAlternateScreen,
            EnableMouseCapture,
            EnableBracketedPaste,
            cursor::Hide
        );
        if let Err(error) = entered {
            let _ = disable_raw_mode();
            return Err(error);
        }
        // A panic's message must not be printed into the alternate screen, where nobody would read it.
        let previous = std::panic::take_hook();
        let flag = Arc::clone(&restored);
        let shows = std::thread::current().id();
        std::panic::set_hook(Box::new(move |panic| {
            // What breaks on another thread is caught there and said in the view, which stays.
            if std::thread::current().id() == shows {
                restore(&flag);
                previous(panic);
            }
        }));
        Ok(Screen { restored })
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore(&self.restored);
        if !std::thread::panicking() {
            drop(std::panic::take_hook());
        }
    }
}

/// Gives the terminal back, once.
fn restore(done: &AtomicBool) {
    if done.swap(true, Ordering::SeqCst) {
        return;
    }
    let _ = execute!(
        io::stdout(),
        DisableBracketedPaste,
        DisableMouseCapture,
        LeaveAlternateScreen,
        cursor::Show
    );
    let _ = disable_raw_mode();
}

/// Reads keys on a thread of its own, so that they wait for nothing else.
fn read_keys(send: Sender<Msg>, stop: Arc<AtomicBool>) -> io::Result<std::thread::JoinHandle<()>> {
    let terminal = if io::stdin().is_terminal() {
        io::stdin().as_fd().try_clone_to_owned()?
    } else {
        std::fs::File::open("/dev/tty")?.into()
    };
    std::thread::Builder::new()
        .name("jittrace-keys".to_owned())
        .spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                // A terminal that hung up is always readable, and reading it would never end.
                let read = if hung_up(&terminal) {
                    Err(io::Error::from(io::ErrorKind::UnexpectedEof))
                } else {
                    match event::poll(Duration::ZERO) {
                        Ok(true) => event::read(),
                        Ok(false) => continue,
                        Err(error) => Err(error),
                    }
                };
                let msg = match read {
                    Ok(event::Event::Key(key)) => Msg::Key(key),
                    Ok(event::Event::Mouse(mouse)) => match mouse.kind {
                        event::MouseEventKind::Moved | event::MouseEventKind::Drag(_) => continue,
                        _ => Msg::Mouse(mouse),
                    },
                    Ok(event::Event::Paste(text)) => Msg::Paste(text),
                    Ok(event::Event::Resize(columns, rows)) => Msg::Resize(columns, rows),
                    Ok(_) => continue,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(_) => Msg::TerminalLost,
                };
                let lost = matches!(msg, Msg::TerminalLost);
                if send.send(msg).is_err() || lost {
                    return;
                }
            }
        })
}

/// Waits a moment for keys; whether the terminal is gone instead.
fn hung_up(terminal: &OwnedFd) -> bool {
    let mut polled = [PollFd::new(terminal, PollFlags::IN)];
    let pause = Timespec {
        tv_sec: 0,
        tv_nsec: 50_000_000,
    };
    // A signal that interrupts is a new size: crossterm tells of it.
    let _ = poll(&mut polled, Some(&pause));
    polled.iter().any(|p| {
        p.revents()
            .intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL)
    })
}

/// With this variable F12 breaks the view: so a test sees what becomes of the screen and of whatever runs. Builds for
/// users know neither.
#[cfg(debug_assertions)]
const BREAK: &str = "JITTRACE_TEST_BREAK";

#[cfg(debug_assertions)]
#[allow(clippy::panic, reason = "a panic is what the test is about")]
fn break_down() {
    panic!("broken for a test");
}

fn show(
    mut app: App,
    messages: &Receiver<Msg>,
    send: &Sender<Msg>,
    commands: &Arc<dyn Commands>,
) -> Result<Left, TuiError> {
    let mut terminal = Terminal::new(CrosstermBackend::new(io::stdout()))?;
    #[cfg(debug_assertions)]
    let breaking = std::env::var_os(BREAK).is_some();
    let size = terminal.size()?;
    let began = Instant::now();
    let mut effects = app.update(Msg::Resize(size.width, size.height));
    let mut dirty = true;
    let mut drawn = began.checked_sub(FRAME).unwrap_or(began);
    loop {
        for effect in effects.drain(..) {
            match effect {
                Effect::End(outcome) => return Ok(Left::of(&app, outcome)),
                Effect::Copy(text) => {
                    let mut out = io::stdout();
                    out.write_all(copy::osc52(&text).as_bytes())?;
                    out.flush()?;
                }
                Effect::Export(what, report) => {
                    let (commands, send) = (Arc::clone(commands), send.clone());
                    std::thread::spawn(move || {
                        let written =
                            catch_unwind(AssertUnwindSafe(|| commands.export(what, &report)));
                        let written = written.unwrap_or_else(|_| {
                            Err("nothing was written: jittrace broke on it; `jittrace report` writes it from the trace"
                                .to_owned())
                        });
                        let _ = send.send(Msg::Exported(written));
                    });
                }
                Effect::Send(bytes) => commands.send(&bytes),
                Effect::ResizeTerminal(columns, rows) => commands.resize(columns, rows),
            }
        }
        if dirty && drawn.elapsed() >= FRAME {
            drawn = Instant::now();
            if terminal.draw(|frame| draw::draw(&app, frame)).is_err() {
                return Ok(Left::of(&app, Outcome::TerminalLost));
            }
            dirty = false;
        }
        // Work goes on between frames; keys come first all the same, since a slice of it is short.
        let wait = if app.has_work() {
            Duration::ZERO
        } else if dirty {
            FRAME.saturating_sub(drawn.elapsed())
        } else if app.notice.is_some() || !app.progress.complete {
            Duration::from_secs(1)
        } else {
            Duration::from_secs(3600)
        };
        let first = match messages.recv_timeout(wait) {
            Ok(msg) => Some(msg),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                return Ok(Left::of(&app, Outcome::TerminalLost));
            }
        };
        let now = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let noticed = app.notice.is_some();
        let (rate, second) = (app.rate, app.now / 1_000_000_000);
        effects.extend(app.update(Msg::Tick(now)));
        dirty |= noticed != app.notice.is_some() || rate != app.rate;
        dirty |= !app.progress.complete && second != app.now / 1_000_000_000;
        #[cfg(debug_assertions)]
        if breaking && matches!(&first, Some(Msg::Key(key)) if key.code == KeyCode::F(12)) {
            break_down();
        }
        match first {
            Some(msg) => {
                effects.extend(app.update(msg));
                dirty = true;
                // What has piled up is taken in together, but not for longer than a frame.
                let until = Instant::now() + FRAME / 2;
                while Instant::now() < until
                    && let Ok(msg) = messages.try_recv()
                {
                    effects.extend(app.update(msg));
                }
            }
            None if app.has_work() => {
                effects.extend(app.update(Msg::Work));
                dirty = true;
            }
            None => {}
        }
    }
}

//! The view of a million events, driven in a pseudo-terminal as a person drives it: how long until all is there, how
//! much memory, how long the worst key waits for its screen, what it costs when nothing happens.
//!
//! `cargo bench -p jittrace --bench view`. A quicker build that tells nearly the same:
//! `cargo bench -p jittrace --bench view --config profile.release.lto=false --config profile.release.codegen-units=16`.
//! `JITTRACE_BENCH_TRACE` names another trace, which is then the one that is opened.

#![allow(
    clippy::unwrap_used,
    reason = "whoever measures wants to know what went wrong"
)]

#[path = "../../model/benches/server_run/mod.rs"]
mod server_run;
#[path = "../tests/terminal/mod.rs"]
mod terminal;

use std::{
    fs::{self, File},
    io::{Read, Write},
    path::{Path, PathBuf},
    process::{Child, Command, ExitCode},
    sync::{Arc, Condvar, Mutex},
    thread,
    time::{Duration, Instant},
};

/// Columns and rows of the terminal.
const SIZE: (u16, u16) = (120, 40);

/// What a view may take at most.
const OPEN: Duration = Duration::from_secs(2);
const KEY: Duration = Duration::from_millis(50);
const MEMORY: u64 = 400;
const IDLE: f64 = 1.0;

/// After so long something does not come any more.
const PATIENCE: Duration = Duration::from_secs(120);

/// After so long without an answer a key has none.
const ANSWER: Duration = Duration::from_secs(2);

/// How long an idle view is watched.
const WATCH: Duration = Duration::from_secs(10);

/// What the terminal shows, and when it last changed.
struct Shown {
    parser: vt100::Parser,
    changed: Instant,
}

/// A view in a terminal of its own.
struct View {
    master: File,
    child: Child,
    shown: Arc<(Mutex<Shown>, Condvar)>,
    began: Instant,
}

impl View {
    fn open(trace: &Path, more: &[&str]) -> View {
        let mut command = Command::new(env!("CARGO_BIN_EXE_jittrace"));
        command
            .arg("view")
            .arg(trace)
            .args(more)
            .env("TERM", "xterm-256color")
            .env("LANG", "C.UTF-8")
            .env("XDG_CONFIG_HOME", "/nonexistent");
        let began = Instant::now();
        let (master, child) = terminal::spawn(command, SIZE);
        let parser = vt100::Parser::new(SIZE.1, SIZE.0, 0);
        let shown = Arc::new((
            Mutex::new(Shown {
                parser,
                changed: began,
            }),
            Condvar::new(),
        ));
        let (mut reader, seen) = (master.try_clone().unwrap(), Arc::clone(&shown));
        thread::spawn(move || {
            let mut bytes = [0; 65536];
            while let Ok(read @ 1..) = reader.read(&mut bytes) {
                let mut shown = seen.0.lock().unwrap();
                let before = shown.parser.screen().contents();
                shown.parser.process(&bytes[..read]);
                if shown.parser.screen().contents() != before {
                    shown.changed = Instant::now();
                }
                seen.1.notify_all();
            }
        });
        View {
            master,
            child,
            shown,
            began,
        }
    }

    /// Waits until the screen is so, and says when it became so.
    fn until(&self, what: &str, holds: impl Fn(&str) -> bool) -> Instant {
        let (shown, changed) = &*self.shown;
        let mut shown = shown.lock().unwrap();
        let end = Instant::now() + PATIENCE;
        loop {
            let text = shown.parser.screen().contents();
            if holds(&text) {
                return shown.changed;
            }
            assert!(Instant::now() < end, "{what} is not shown\n{text}");
            shown = changed
                .wait_timeout(shown, Duration::from_millis(100))
                .unwrap()
                .0;
        }
    }

    fn text(&self) -> String {
        self.shown.0.lock().unwrap().parser.screen().contents()
    }

    /// Presses a key and says how long it took until the screen was another; nothing where it stays as it is.
    fn press(&mut self, keys: &str) -> Option<Duration> {
        let (shown, changed) = &*self.shown;
        let mut shown = shown.lock().unwrap();
        let before = shown.parser.screen().contents();
        let pressed = Instant::now();
        (&self.master).write_all(keys.as_bytes()).unwrap();
        while shown.parser.screen().contents() == before {
            if pressed.elapsed() > ANSWER {
                return None;
            }
            shown = changed
                .wait_timeout(shown, Duration::from_millis(100))
                .unwrap()
                .0;
        }
        Some(shown.changed.saturating_duration_since(pressed))
    }

    /// Processor time of each of its threads, the most busy first.
    fn threads(&self) -> String {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        let mut all: Vec<(Duration, String)> = tasks
            .filter_map(|task| {
                let stat = fs::read_to_string(task.ok()?.path().join("stat")).ok()?;
                let name = stat.split(['(', ')']).nth(1)?.to_owned();
                Some((processor_time(&stat), name))
            })
            .collect();
        all.sort_by_key(|(spent, _)| std::cmp::Reverse(*spent));
        let told = all
            .iter()
            .map(|(spent, name)| format!("{name} {spent:.2?}"));
        told.collect::<Vec<_>>().join(", ")
    }

    /// A field of `/proc/PID/status`, in megabytes.
    fn megabytes(&self, field: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(field));
        let kilobytes = line.and_then(|line| line.split_whitespace().nth(1));
        kilobytes.unwrap().parse::<u64>().unwrap() / 1024
    }

    /// Processor time so far.
    fn spent(&self) -> Duration {
        processor_time(&fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap())
    }

    /// Percent of one processor that it takes while nobody does anything.
    fn idle(&self) -> f64 {
        // What was begun by the last key is over when the screen has been still for a while.
        thread::sleep(Duration::from_secs(8));
        let before = self.spent();
        thread::sleep(WATCH);
        (self.spent() - before).as_secs_f64() * 100.0 / WATCH.as_secs_f64()
    }

    fn quit(mut self) {
        self.master.write_all(b"q").unwrap();
        let until = Instant::now() + PATIENCE;
        while self.child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < until, "q does not end it\n{}", self.text());
            thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Processor time in a `stat` file of a process or a thread (proc(5): fields 14 and 15).
fn processor_time(stat: &str) -> Duration {
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .unwrap()
        .split_whitespace()
        .collect();
    let ticks: u64 = [11, 12]
        .iter()
        .map(|at| fields[*at].parse::<u64>().unwrap())
        .sum();
    // SAFETY: a question about the system that has no conditions.
    let second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    Duration::from_millis(ticks * 1000 / u64::try_from(second).unwrap())
}

/// Keys on a trace that is all there, with what they do.
const KEYS: &[(&str, &str)] = &[
    ("7", "Events"),
    ("g", "to the first event"),
    ("j", "one row down"),
    ("\x1b[6~", "a page down"),
    ("G", "to the last event"),
    ("\x1b[5~", "a page up"),
    ("\r", "details of an event"),
    ("j", "one line of the evidence down"),
    ("\t", "to the list"),
    ("k", "one row up, the evidence follows"),
    ("w", "the evidence beside"),
    ("\x1b", "close"),
    ("v", "failed look-ups one by one"),
    ("v", "failed look-ups folded"),
    ("g", "to the first event"),
    ("}", "the next failure"),
    ("/", "search"),
    ("o", "typed"),
    ("p", "typed"),
    ("4", "typed"),
    ("\r", "the first hit"),
    ("n", "the next hit"),
    ("f", "filter"),
    ("b", "typed, the list shrinks"),
    ("u", "typed, the list shrinks"),
    ("i", "typed, the list shrinks"),
    ("\r", "filtered"),
    ("x", "everything"),
    ("1", "Resolution"),
    ("\x1b[C", "one column right"),
    ("\r", "why"),
    ("j", "one line down"),
    ("\x1b", "close"),
    ("2", "Findings"),
    ("3", "Processes"),
    ("G", "to the last process"),
    ("\r", "evidence of a process"),
    ("\t", "to the list"),
    ("k", "one row up, the evidence follows"),
    ("\x1b", "close"),
    ("Z", "everything folded"),
    ("Z", "everything unfolded"),
    ("s", "sorted"),
    ("4", "Builds"),
    ("t", "columns"),
    ("5", "Caches"),
    ("6", "Libraries"),
    ("G", "to the last library"),
    ("\r", "the whole search"),
    ("\x1b", "close"),
    ("?", "help"),
    ("\x1b", "close"),
    (":", "palette"),
    ("\x1b", "close"),
];

fn trace() -> (PathBuf, Option<tempfile::TempPath>) {
    if let Some(given) = std::env::var_os("JITTRACE_BENCH_TRACE") {
        return (given.into(), None);
    }
    let (file, path) = tempfile::NamedTempFile::new().unwrap().into_parts();
    server_run::write(file).unwrap();
    (path.to_path_buf(), Some(path))
}

/// One line of the answer.
fn told(what: &str, value: &str, limit: &str, good: bool) -> bool {
    let verdict = if good { "ok" } else { "TOO MUCH" };
    println!("{what:<46} {value:>12}   at most {limit:<8} {verdict}");
    good
}

fn main() -> ExitCode {
    // `cargo test --all-targets` runs this too, and does not want to measure.
    if !std::env::args().any(|argument| argument == "--bench") {
        return ExitCode::SUCCESS;
    }
    let (trace, _written) = trace();
    let bytes = fs::metadata(&trace).unwrap().len();
    println!("{} MB in {SIZE:?}", bytes / 1_000_000);
    let mut good = true;

    // While it is read: one key after another.
    let mut view = View::open(&trace, &[]);
    view.until("the view", |text| text.contains("Resolution"));
    let first = view.began.elapsed();
    // What is read to its end is neither being read nor running.
    let whole = |text: &str| {
        let head = text.lines().next().unwrap_or_default();
        head.contains('●') && !head.contains("running") && !head.contains("reading ")
    };
    let (mut worst, mut pressed) = (Duration::ZERO, 0);
    while !whole(&view.text()) {
        for key in ["7", "1"] {
            if let Some(took) = view.press(key) {
                worst = worst.max(took);
                pressed += 1;
            }
        }
        thread::sleep(Duration::from_millis(10));
    }
    println!("{:<46} {first:>12.0?}", "the first screen");
    good &= told(
        &format!("the worst of {pressed} keys while it is read"),
        &format!("{worst:.1?}"),
        &format!("{KEY:?}"),
        worst <= KEY,
    );
    view.quit();

    // Nobody does anything until all is there.
    let mut view = View::open(&trace, &[]);
    view.until("the view", |text| text.contains("Resolution"));
    let complete = view.until("all of it", whole);
    let open = complete.saturating_duration_since(view.began);
    good &= told(
        "all is there after",
        &format!("{open:.2?}"),
        &format!("{OPEN:?}"),
        open <= OPEN,
    );
    println!(
        "    processor time {:.2?}; of the threads that go on: {}",
        view.spent(),
        view.threads()
    );
    let peak = view.megabytes("VmHWM");
    good &= told(
        "memory when all is there, at most ever",
        &format!("{peak} MB"),
        &format!("{MEMORY} MB"),
        peak <= MEMORY,
    );
    thread::sleep(Duration::from_secs(1));
    let mut times: Vec<(Duration, &str, &str)> = Vec::new();
    for (keys, what) in KEYS {
        match view.press(keys) {
            Some(took) => times.push((took, keys, what)),
            None => println!("    nothing changes: {what}"),
        }
        thread::sleep(Duration::from_millis(60));
    }
    times.sort_by_key(|(took, ..)| std::cmp::Reverse(*took));
    let worst = times[0].0;
    good &= told(
        &format!("the worst of {} keys", times.len()),
        &format!("{worst:.1?}"),
        &format!("{KEY:?}"),
        worst <= KEY,
    );
    for (took, keys, what) in times.iter().take(5) {
        println!(
            "    {:>8} {:<42} {}",
            format!("{took:.1?}"),
            what,
            keys.escape_default()
        );
    }
    let peak = view.megabytes("VmHWM");
    good &= told(
        "memory after all these keys, at most ever",
        &format!("{peak} MB"),
        &format!("{MEMORY} MB"),
        peak <= MEMORY,
    );
    println!(
        "{:<46} {:>12}",
        "memory now",
        format!("{} MB", view.megabytes("VmRSS"))
    );
    let idle = view.idle();
    good &= told(
        "idle",
        &format!("{idle:.2} %"),
        &format!("{IDLE} %"),
        idle <= IDLE,
    );
    view.quit();

    // A trace that may still grow is looked at again and again.
    let view = View::open(&trace, &["--follow"]);
    let events = |text: &str| text.contains(" events") && text.contains("running");
    view.until("the trace followed", events);
    thread::sleep(Duration::from_secs(15));
    let idle = view.idle();
    good &= told(
        "idle, following",
        &format!("{idle:.2} %"),
        &format!("{IDLE} %"),
        idle <= IDLE,
    );
    view.quit();
    if good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

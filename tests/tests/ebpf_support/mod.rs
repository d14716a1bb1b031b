//! A traced command under the eBPF source alone, and small programs to trace.

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, ExitStatus, Output, Stdio},
    sync::{Arc, Condvar, Mutex, MutexGuard},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use crossbeam_channel::Receiver;
use jittrace::ebpf::{KernelEvent, KernelSource, Observation, Options};

/// Set where the eBPF source must work: then a test that cannot use it fails instead of being skipped.
pub(crate) const REQUIRE: &str = "JITTRACE_TESTS_REQUIRE_EBPF";

/// One source at a time: some tests count what is loaded in the kernel.
static ALONE: Mutex<()> = Mutex::new(());

/// The running source and what it has told.
pub(crate) struct Session {
    pub(crate) source: KernelSource,
    told: JoinHandle<Vec<Observation>>,
    /// Files in which probes were placed.
    watched: Arc<(Mutex<Vec<PathBuf>>, Condvar)>,
    _alone: MutexGuard<'static, ()>,
}

/// Starts the source. `None` after printing why the test is skipped.
pub(crate) fn session(test: &str) -> Option<Session> {
    session_with(test, Options::default())
}

/// As [`session`].
pub(crate) fn session_with(test: &str, options: Options) -> Option<Session> {
    let alone = ALONE
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    match KernelSource::start(options) {
        Ok((source, observations)) => {
            let watched = Arc::default();
            let told = std::thread::spawn({
                let watched = Arc::clone(&watched);
                move || take_all(&observations, &watched)
            });
            Some(Session {
                source,
                told,
                watched,
                _alone: alone,
            })
        }
        Err(error) => {
            assert!(
                std::env::var_os(REQUIRE).is_none(),
                "{REQUIRE} is set, but: {error}"
            );
            eprintln!("{test}: skipped, the eBPF source does not start here: {error}");
            None
        }
    }
}

fn take_all(
    observations: &Receiver<Observation>,
    watched: &(Mutex<Vec<PathBuf>>, Condvar),
) -> Vec<Observation> {
    let note = |observation: &Observation| {
        if let KernelEvent::Watching(object) = &observation.event {
            watched.0.lock().unwrap().push(object.path.clone());
            watched.1.notify_all();
        }
    };
    observations.iter().inspect(note).collect()
}

impl Session {
    /// Stops the source and gives everything it told.
    pub(crate) fn finish(self) -> Vec<Observation> {
        let detaching = self.source.stop();
        let told = self.told.join().unwrap();
        detaching.wait();
        told
    }

    /// Waits until probes are placed in a file, at most 20 s.
    pub(crate) fn wait_for_probes(&self, file: &Path) {
        let (watched, changed) = &*self.watched;
        let waited = changed
            .wait_timeout_while(
                watched.lock().unwrap(),
                Duration::from_secs(20),
                |watched| !watched.iter().any(|path| path == file),
            )
            .unwrap()
            .1;
        assert!(!waited.timed_out(), "no probes in {}", file.display());
    }

    /// Starts a command that is followed from before its first instruction.
    pub(crate) fn launch(&self, command: &mut Command) -> Launched {
        let program = command.get_program().to_owned();
        let arguments: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
        let mut gate = Command::new("/bin/sh");
        gate.args(["-c", r#"read -r _ && exec "$0" "$@""#])
            .arg(program)
            .args(arguments);
        // cargo's own search path is not part of any test.
        gate.env_remove("LD_LIBRARY_PATH");
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => gate.env(name, value),
                None => gate.env_remove(name),
            };
        }
        if let Some(directory) = command.get_current_dir() {
            gate.current_dir(directory);
        }
        let mut child = gate
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        self.source.follow(child.id()).unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(b"\n").unwrap();
        Launched {
            child,
            input: Some(input),
        }
    }

    /// As [`Session::launch`], to its end. What it printed, and its pid.
    pub(crate) fn run(&self, command: &mut Command) -> (Output, u32) {
        let mut launched = self.launch(command);
        launched.input = None;
        let pid = launched.child.id();
        (launched.child.wait_with_output().unwrap(), pid)
    }
}

/// A followed command.
pub(crate) struct Launched {
    pub(crate) child: Child,
    input: Option<ChildStdin>,
}

impl Launched {
    /// Lets a command that reads a line go on.
    pub(crate) fn line(&mut self) {
        self.input.as_mut().unwrap().write_all(b"\n").unwrap();
    }

    /// Waits for its end, at most 20 s.
    pub(crate) fn end(mut self) -> ExitStatus {
        self.input = None;
        let started = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            if started.elapsed() > Duration::from_secs(20) {
                self.child.kill().unwrap();
                panic!("the traced command does not end");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// What was lost, as (reason, count); tests that count everything must find nothing here.
pub(crate) fn lost(told: &[Observation]) -> Vec<(&'static str, u64)> {
    told.iter()
        .filter_map(|observation| match observation.event {
            KernelEvent::Lost { reason, count } => Some((reason, count)),
            _ => None,
        })
        .collect()
}

/// Compiles a C or C++ source text (by the ending of `output`'s `.c`/`.cc` twin) with these flags.
pub(crate) fn compile(
    directory: &Path,
    source_name: &str,
    source: &str,
    output: &str,
    flags: &[&str],
) -> PathBuf {
    let source_path = directory.join(source_name);
    std::fs::write(&source_path, source).unwrap();
    let compiler = if source_name.ends_with(".cc") {
        "g++"
    } else {
        "gcc"
    };
    let output = directory.join(output);
    std::fs::create_dir_all(output.parent().unwrap()).unwrap();
    // Libraries after the source: the linker takes from an archive only what was asked for before.
    let status = Command::new(compiler)
        .arg("-O1")
        .arg(&source_path)
        .arg("-o")
        .arg(&output)
        .args(flags)
        .current_dir(directory)
        .status()
        .unwrap_or_else(|error| panic!("{compiler} is needed for this test: {error}"));
    assert!(status.success(), "{compiler} failed on {source_name}");
    output
}

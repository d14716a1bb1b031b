//! Asking a tool for its version, when its file does not tell it and the program did not ask either.
//!
//! Only tools that the program itself ran are asked, after it has ended, with a clean environment and two seconds.

use std::{
    io::Read,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use jittrace_model::event::{Fact, ToolOutputFact};

/// How long a tool may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// Most bytes of an answer that are kept.
const MOST: u64 = 4096;

/// What `FILE --version` prints.
pub(super) fn version_of(path: &str) -> Option<Fact> {
    // A file that another user owns and only root runs is not run by root.
    let owner = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(path).ok()?);
    let me = rustix::process::geteuid().as_raw();
    if me == 0 && owner != 0 {
        return None;
    }
    let mut child = Command::new(path)
        .arg("--version")
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let mut output = child.stdout.take()?;
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        let _ = (&mut output).take(MOST).read_to_string(&mut text);
        text
    });
    let deadline = Instant::now() + PATIENCE;
    while child.try_wait().ok()?.is_none() {
        if Instant::now() >= deadline {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let text = reader.join().ok()?;
    Some(Fact::ToolOutput(ToolOutputFact {
        path: path.to_owned(),
        argv: vec!["--version".to_owned()],
        text,
        from: "probe".to_owned(),
    }))
}

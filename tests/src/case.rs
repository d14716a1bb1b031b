//! The scripts in `cases/`: each plays a report again, and starts traced programs by `$RUN`.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use crate::jittrace;

/// A script that was run: the n-th traced start left `n.jtrace` in `out`, and `n.json` where a report was asked for.
#[derive(Debug)]
pub struct Played {
    /// Traces and reports.
    pub out: PathBuf,
    /// The directory that the script made for itself, without links.
    pub directory: PathBuf,
    /// How the script ended.
    pub output: Output,
}

impl Played {
    /// The files of all starts with this ending, in order.
    #[must_use]
    pub fn files(&self, ending: &str) -> Vec<PathBuf> {
        (1..)
            .map(|number| self.out.join(format!("{number}.{ending}")))
            .take_while(|file| file.exists())
            .collect()
    }
}

/// Runs a script below `place`, watched by `source` (`preload`, `auto` …). With `reports`, each start writes one as JSON.
///
/// # Panics
/// The place cannot be prepared, or there is no `sh`.
#[must_use]
pub fn play(script: &str, place: &Path, source: &str, reports: bool) -> Played {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases");
    let (work, out) = (place.join("work"), place.join("out"));
    fs::create_dir(&work).expect("a directory for the script");
    fs::create_dir(&out).expect("a directory for the reports");
    let run = runner(place, &out, source, reports);
    let output = Command::new("timeout")
        .args(["600", "sh"])
        .arg(cases.join(format!("{script}.sh")))
        .env("CASES", &cases)
        .env("RUN", &run)
        .env("TMPDIR", &work)
        .env_remove("CUDA_HOME")
        .env_remove("CUDA_PATH")
        .env_remove("CUDA_VISIBLE_DEVICES")
        .env_remove("CONDA_PREFIX")
        .env_remove("LD_LIBRARY_PATH")
        .stdin(Stdio::null())
        .output()
        .expect("sh runs");
    let made = fs::read_dir(&work)
        .expect("the script's directory")
        .flatten()
        .map(|entry| entry.path())
        .next()
        .unwrap_or_default();
    Played {
        out,
        directory: made.canonicalize().unwrap_or(made),
        output,
    }
}

/// A program that runs its arguments under jittrace, the n-th time with the n-th trace.
fn runner(place: &Path, out: &Path, source: &str, reports: bool) -> PathBuf {
    let path = place.join("run");
    let out = out.display();
    let report = match reports {
        true => format!("json='{out}'/$n.json"),
        false => "none".to_owned(),
    };
    let text = format!(
        "#!/bin/sh\nn=1; while [ -e '{out}'/$n.started ]; do n=$((n+1)); done; : > '{out}'/$n.started\n\
         exec '{jittrace}' --source {source} --no-tui --quiet -o '{out}'/$n.jtrace --report {report} -- \"$@\"\n",
        jittrace = jittrace().display()
    );
    fs::write(&path, text).expect("the runner is written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("the runner may be run");
    path
}

//! Trying what needs no privilege: the shim, and Python's C API.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use crate::launch::Session;

use super::{
    refusal::Refusal,
    report::{Check, Outcome},
};

/// Programs of the system's own libc, one of which every machine has.
const PROGRAMS: [&str; 3] = ["/bin/true", "/usr/bin/true", "/bin/ls"];

/// Runs a small program of this system with the shim and looks whether it announces itself.
pub(super) fn preload(libc: &str) -> Check {
    let outcome = match try_preload() {
        Ok(program) => Outcome::Yes {
            detail: format!("{libc}: {program} announced itself"),
        },
        Err(refusal) => Outcome::No(refusal),
    };
    Check {
        id: "preload",
        title: "preload into this libc",
        outcome,
    }
}

fn try_preload() -> Result<&'static str, Refusal> {
    let refusal = |reason: String, remedy: &str| Refusal {
        reason,
        remedy: remedy.to_owned(),
    };
    let session = Session::create(None).map_err(|error| {
        refusal(
            error.to_string(),
            "set TMPDIR to a directory that can be written and whose files may be executed",
        )
    })?;
    let program = PROGRAMS
        .into_iter()
        .find(|program| Path::new(program).exists())
        .ok_or_else(|| {
            refusal(
                "no program to try it on".to_owned(),
                "none needed: jittrace -- COMMAND tries it itself",
            )
        })?;
    let output = Command::new(program)
        .env("LD_PRELOAD", session.shim())
        .env(jittrace_wire::SESSION_VARIABLE, session.records())
        .stdin(Stdio::null())
        .output()
        .map_err(|error| {
            refusal(
                format!("{program} does not start: {error}"),
                "check the program",
            )
        })?;
    let told = fs::metadata(session.records())
        .map(|metadata| metadata.len())
        .unwrap_or(0);
    if told > 0 {
        return Ok(program);
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    let complaint = complaint.lines().next().unwrap_or("it said nothing");
    Err(refusal(
        format!("{program} ran without the shim: {complaint}"),
        "use a glibc 2.17 or newer, and a TMPDIR that is not mounted noexec; musl is not supported",
    ))
}

/// What the shim asks of Python, and the release that brought it.
const PYTHON_API: &str =
    "PyGILState_Check PyThreadState_GetFrame PyFrame_GetBack PyFrame_GetCode PyFrame_GetLineNumber";

/// Asks the first python3 on PATH for the functions that frames are read with.
pub(super) fn python() -> Check {
    let script = format!(
        "import sys, ctypes\n\
         lacking = [n for n in '{PYTHON_API}'.split() if not hasattr(ctypes.pythonapi, n)]\n\
         print('%d.%d.%d' % sys.version_info[:3], sys.executable, *lacking)"
    );
    let output = Command::new("python3")
        .args(["-c", &script])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    let outcome = match output {
        Err(_) => Outcome::NotTried {
            detail: "no python3 on PATH".to_owned(),
        },
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout);
            let words: Vec<&str> = text.split_whitespace().collect();
            match words.as_slice() {
                [version, executable] => Outcome::Yes {
                    detail: format!("Python {version}, {executable}"),
                },
                [version, executable, lacking @ ..] => Outcome::No(Refusal {
                    reason: format!(
                        "Python {version}, {executable} lacks {}",
                        lacking.join(", ")
                    ),
                    remedy: "use Python 3.9 or newer; everything but Python frames works without"
                        .to_owned(),
                }),
                _ => Outcome::NotTried {
                    detail: "python3 does not answer".to_owned(),
                },
            }
        }
    };
    Check {
        id: "python-c-api",
        title: "Python frames by the C API",
        outcome,
    }
}

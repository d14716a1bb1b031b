//! Where a report goes: a file, or standard output, which may be a terminal or a pipe whose reader has left.

use std::{
    env,
    fs::File,
    io::{self, BufWriter, IsTerminal, Write},
    path::{Path, PathBuf},
};

use jittrace_model::report::text::Style;
use thiserror::Error;

/// Why an output cannot be written.
#[derive(Debug, Error)]
#[error("cannot write {}: {error}; give another place with -o", .path.display())]
pub struct DeliverError {
    path: PathBuf,
    error: io::Error,
}

/// Writes to a file, or to standard output. A reader that has left (`| head`) is no error.
///
/// # Errors
/// The file cannot be created or written.
pub fn deliver(
    to: Option<&Path>,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), DeliverError> {
    let path = to.filter(|path| *path != Path::new("-"));
    let outcome = match path {
        Some(path) => File::create(path).and_then(|file| {
            let mut file = BufWriter::new(file);
            write(&mut file)?;
            file.flush()
        }),
        None => {
            let mut out = BufWriter::new(io::stdout().lock());
            write(&mut out).and_then(|()| out.flush())
        }
    };
    match outcome {
        Err(error) if path.is_none() && error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(DeliverError {
            path: path.map_or_else(|| PathBuf::from("standard output"), Path::to_owned),
            error,
        }),
        Ok(()) => Ok(()),
    }
}

/// How text is drawn on standard output: coloured on a terminal unless `NO_COLOR` is set, as wide as the terminal but
/// no wider than a hundred columns.
pub fn style(to: Option<&Path>) -> Style {
    let stdout = io::stdout();
    style_for(to.is_none() && stdout.is_terminal(), || {
        rustix::termios::tcgetwinsize(&stdout)
            .ok()
            .map(|size| usize::from(size.ws_col))
    })
}

/// The same for standard error.
pub fn stderr_style() -> Style {
    let stderr = io::stderr();
    style_for(stderr.is_terminal(), || {
        rustix::termios::tcgetwinsize(&stderr)
            .ok()
            .map(|size| usize::from(size.ws_col))
    })
}

fn style_for(terminal: bool, columns: impl FnOnce() -> Option<usize>) -> Style {
    let plain = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
        || env::var_os("TERM").is_some_and(|value| value == "dumb");
    let width = match terminal {
        true => columns().filter(|columns| *columns > 0).unwrap_or(100),
        false => 100,
    };
    Style {
        width: width.clamp(60, 100),
        colour: terminal && !plain,
    }
}

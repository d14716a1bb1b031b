//! Where a trace is written.

use std::{
    env,
    ffi::OsStr,
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use thiserror::Error;

/// Why no trace can be written.
#[derive(Debug, Error)]
#[error("cannot write the trace to {}: {error}; give another place with -o FILE", .path.display())]
pub struct OutputError {
    path: PathBuf,
    error: io::Error,
}

/// Opens the trace file: the one asked for, else one named after the command in the first directory that can be
/// written: the current one, `$XDG_STATE_HOME/jittrace`, the temporary directory.
///
/// # Errors
/// No file could be created there.
pub fn open(asked: Option<&Path>, command: &str) -> Result<(PathBuf, File), OutputError> {
    if let Some(asked) = asked {
        let path = fill_in(asked);
        return create(&path)
            .map(|file| (path.clone(), file))
            .map_err(|error| OutputError { path, error });
    }
    let name = fill_in(Path::new(&format!("jittrace-{}-%t.jtrace", safe(command))));
    let state = env::var_os("XDG_STATE_HOME")
        .map(PathBuf::from)
        .or_else(|| env::var_os("HOME").map(|h| PathBuf::from(h).join(".local/state")))
        .map(|d| d.join("jittrace"));
    let places = [Some(PathBuf::from(".")), state, Some(env::temp_dir())];
    let mut last = None;
    for place in places.into_iter().flatten() {
        if place != Path::new(".") {
            let _ = fs::create_dir_all(&place);
        }
        let path = if place == Path::new(".") {
            name.clone()
        } else {
            place.join(&name)
        };
        match create(&path) {
            Ok(file) => return Ok((path, file)),
            Err(error) => last = Some(OutputError { path, error }),
        }
    }
    Err(last.unwrap_or_else(|| OutputError {
        path: name,
        error: io::Error::from(io::ErrorKind::NotFound),
    }))
}

/// A trace tells what runs on a machine: it is its owner's to read.
fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
}

/// Fills in `%t`, the UTC time, and `%p`, the process id.
fn fill_in(path: &Path) -> PathBuf {
    let text = path.to_string_lossy();
    if !text.contains('%') {
        return path.to_owned();
    }
    PathBuf::from(
        text.replace("%t", &utc_now())
            .replace("%p", &std::process::id().to_string()),
    )
}

/// The command's name with nothing in it that a path or a shell would mind.
fn safe(command: &str) -> String {
    let base = Path::new(command)
        .file_name()
        .and_then(OsStr::to_str)
        .unwrap_or("command");
    base.chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '+') {
                c
            } else {
                '_'
            }
        })
        .take(40)
        .collect()
}

/// `20260131T235959Z`.
fn utc_now() -> String {
    let seconds = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| d.as_secs());
    let (year, month, day) = civil(seconds / 86_400);
    let of_day = seconds % 86_400;
    format!(
        "{year:04}{month:02}{day:02}T{:02}{:02}{:02}Z",
        of_day / 3600,
        of_day % 3600 / 60,
        of_day % 60
    )
}

/// The Gregorian date of a day since 1970-01-01, by counting eras of 400 years that begin on a first of March.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let era = days / 146_097;
    let of_era = days % 146_097;
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_right_across_leap_years() {
        for (days, date) in [
            (0, (1970, 1, 1)),
            (59, (1970, 3, 1)),
            (11_016, (2000, 2, 29)),
            (20_786, (2026, 11, 29)),
        ] {
            assert_eq!(civil(days), date);
        }
    }

    #[test]
    fn names_keep_nothing_dangerous() {
        assert_eq!(safe("/usr/bin/python3.12"), "python3.12");
        assert_eq!(safe("a b;c"), "a_b_c");
    }
}

//! What the view may ask to be written: reports and bundles, beside the user's work and never over a file.

use std::{
    fs::OpenOptions,
    io::{self, Write},
    path::{Path, PathBuf},
    slice,
};

use jittrace_model::report::{
    Report,
    html::{self, EventSample},
    markdown, text,
};
use jittrace_tui::{Commands, Export};

use super::beside;
use crate::{bundle_command, input};

/// Writes what the view asks for, named after its trace.
#[derive(Debug, Clone)]
pub struct Exporter {
    trace: PathBuf,
}

impl Exporter {
    /// For a trace at this place.
    pub fn beside(trace: &Path) -> Exporter {
        Exporter {
            trace: trace.to_owned(),
        }
    }
}

impl Exporter {
    /// The trace's file, which standard input has none of.
    fn file(&self) -> Result<&PathBuf, String> {
        if self.trace == Path::new("-") {
            return Err(
                "a trace from standard input cannot be read again for that; save it in a file first"
                    .to_owned(),
            );
        }
        Ok(&self.trace)
    }
}

impl Commands for Exporter {
    fn export(&self, what: Export, report: &Report) -> Result<String, String> {
        let (ending, content) = match what {
            Export::Text => ("-report.txt", text::render(report, text::Style::default())),
            Export::Markdown => ("-report.md", markdown::render(report)),
            Export::Json => {
                let json = serde_json::to_string_pretty(report)
                    .map_err(|error| format!("the report cannot be written as JSON: {error}"))?;
                ("-report.json", json + "\n")
            }
            Export::Html => {
                let mut sample = EventSample::default();
                let folded = input::fold(slice::from_ref(self.file()?), |event| sample.add(event))
                    .map_err(|error| error.to_string())?;
                ("-report.html", html::render(&folded.report(), &sample))
            }
            Export::Bundle => {
                let output = free_name(&beside(&self.trace, ".tar.gz"));
                bundle_command::write(self.file()?, &output)
                    .map_err(|error| format!("{error:#}"))?;
                return Ok(output.display().to_string());
            }
        };
        write_new(&beside(&self.trace, ending), content.as_bytes())
    }
}

/// Writes a file that did not exist before: in the current directory, else in the temporary one; a number sets it
/// apart from earlier ones.
fn write_new(name: &Path, content: &[u8]) -> Result<String, String> {
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for place in [PathBuf::new(), std::env::temp_dir()] {
        for number in 1..1000 {
            let path = place.join(numbered(name, number));
            let created = OpenOptions::new().write(true).create_new(true).open(&path);
            match created.and_then(|mut file| file.write_all(content)) {
                Ok(()) => return Ok(path.display().to_string()),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => {
                    last = error;
                    break;
                }
            }
        }
    }
    Err(format!(
        "cannot write {}: {last}; change to a directory that can be written",
        name.display()
    ))
}

/// A name that no file has yet.
fn free_name(name: &Path) -> PathBuf {
    (1..1000)
        .map(|number| numbered(name, number))
        .find(|path| path.symlink_metadata().is_err())
        .unwrap_or_else(|| name.to_owned())
}

/// `report.md`, `report-2.md`, `report-3.md` …
fn numbered(name: &Path, number: u32) -> PathBuf {
    if number == 1 {
        return name.to_owned();
    }
    let text = name.display().to_string();
    // `.tar.gz` is one ending.
    let ending = if text.ends_with(".tar.gz") {
        text.len() - 7
    } else {
        text.rfind('.').unwrap_or(text.len())
    };
    match text
        .split_at_checked(ending)
        .and_then(|(stem, ending)| Some((stem, ending.strip_prefix('.')?)))
    {
        Some((stem, ending)) => PathBuf::from(format!("{stem}-{number}.{ending}")),
        None => PathBuf::from(format!("{text}-{number}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_file_gets_a_number() {
        assert_eq!(
            numbered(Path::new("a-report.md"), 1),
            Path::new("a-report.md")
        );
        assert_eq!(
            numbered(Path::new("a-report.md"), 3),
            Path::new("a-report-3.md")
        );
    }
}

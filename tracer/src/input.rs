//! Reading traces: from a file or standard input, plain or compressed, whole, growing or cut off.
//!
//! Compression is told by the first bytes, not by the name. A file that ends in the middle, compressed or not, is read
//! up to there, and what is missing is said in one sentence.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Cursor, Read},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use jittrace_model::{
    Event, Model,
    join::Join,
    log::{LogError, Reader},
};
use thiserror::Error;

/// Bytes that are read at a time.
const CHUNK: usize = 256 << 10;

/// Why a trace cannot be read.
#[derive(Debug, Error)]
pub enum InputError {
    /// No such file.
    #[error("there is no file {name}; give the trace that jittrace named at the end of its run")]
    Missing {
        /// The file as it was asked for.
        name: String,
    },
    /// It may not be read.
    #[error("may not read {name}; a trace can be read by the user whose program was traced")]
    NotPermitted {
        /// The file as it was asked for.
        name: String,
    },
    /// A directory was given.
    #[error("{name} is a directory; give a trace file in it")]
    Directory {
        /// The directory.
        name: String,
    },
    /// A bundle was given.
    #[error("{name} is a bundle, not a trace; unpack it (tar xf) and give the trace inside")]
    Bundle {
        /// The bundle.
        name: String,
    },
    /// A compression that is not read.
    #[error("{name} is compressed with {with}; unpack it first, or use .zst or .gz")]
    Compression {
        /// The file.
        name: String,
        /// The compression.
        with: &'static str,
    },
    /// Something else than a trace.
    #[error("{name}: {error}")]
    NotATrace {
        /// The file.
        name: String,
        /// What it is.
        error: LogError,
    },
    /// Reading failed.
    #[error("cannot read {name}: {error}")]
    Io {
        /// The file.
        name: String,
        /// What failed.
        error: io::Error,
    },
}

/// An opened trace.
pub struct Trace {
    /// How it was asked for: a path, or `standard input`.
    pub name: String,
    /// Its events.
    pub reader: Reader<Box<dyn BufRead>>,
    cut: Arc<AtomicBool>,
}

impl Trace {
    /// What a reader should know about the trace, once it was read to its end: one sentence each.
    pub fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> = self.reader.newer_format().into_iter().collect();
        if let Some(first) = self.reader.skipped().first() {
            let count = self.reader.skipped_count();
            notes.push(format!(
                "{}: {count} line{} could not be read and {} left out; the first is line {}: {}",
                self.name,
                if count == 1 { "" } else { "s" },
                if count == 1 { "was" } else { "were" },
                first.line,
                first.reason
            ));
        }
        if let Some(torn) = self.reader.torn_tail() {
            notes.push(format!(
                "{}: {}; it is still being written, or its writer was killed: all before was read",
                self.name, torn.reason
            ));
        } else if self.cut.load(Ordering::Relaxed) {
            notes.push(format!(
                "{}: the compressed file ends in the middle; all before was read",
                self.name
            ));
        }
        notes
    }
}

/// Opens a trace; `-` is standard input.
///
/// # Errors
/// The file cannot be read or is no trace.
pub fn open_trace(path: &Path) -> Result<Trace, InputError> {
    let Bytes { name, text, cut } = open_bytes(path)?;
    match Reader::new(text) {
        Ok(reader) => Ok(Trace { name, reader, cut }),
        Err(LogError::Io(error)) => Err(InputError::Io { name, error }),
        Err(error) => Err(InputError::NotATrace { name, error }),
    }
}

/// The decompressed bytes of a trace.
pub struct Bytes {
    /// How it was asked for.
    pub name: String,
    /// Its text.
    pub text: Box<dyn BufRead>,
    cut: Arc<AtomicBool>,
}

impl Bytes {
    /// Tells, once the text was read, whether compressed input ended in the middle.
    pub fn watch(&self) -> impl Fn() -> bool + 'static {
        let cut = Arc::clone(&self.cut);
        move || cut.load(Ordering::Relaxed)
    }
}

/// Opens the decompressed bytes of a trace; `-` is standard input.
///
/// # Errors
/// The file cannot be read, or is compressed in another way.
pub fn open_bytes(path: &Path) -> Result<Bytes, InputError> {
    let name = name_of(path);
    let fail = |error: io::Error| {
        let name = name.clone();
        match error.kind() {
            io::ErrorKind::NotFound => InputError::Missing { name },
            io::ErrorKind::PermissionDenied => InputError::NotPermitted { name },
            io::ErrorKind::IsADirectory => InputError::Directory { name },
            _ => InputError::Io { name, error },
        }
    };
    let mut input: Box<dyn Read> = if path == Path::new("-") {
        Box::new(io::stdin().lock())
    } else {
        Box::new(File::open(path).map_err(fail)?)
    };
    // The first bytes tell the compression; a pipe may give fewer at a time.
    let mut head = Vec::with_capacity(6);
    input
        .by_ref()
        .take(6)
        .read_to_end(&mut head)
        .map_err(fail)?;
    let whole = BufReader::with_capacity(CHUNK, Cursor::new(head.clone()).chain(input));
    let cut = Arc::new(AtomicBool::new(false));
    let bytes: Box<dyn BufRead> = match head.as_slice() {
        [0x1f, 0x8b, ..] => buffered(flate2::bufread::MultiGzDecoder::new(whole), &cut),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => {
            let decoder = zstd::stream::read::Decoder::with_buffer(whole).map_err(fail)?;
            buffered(decoder, &cut)
        }
        [0xfd, b'7', b'z', ..] => return Err(InputError::Compression { name, with: "xz" }),
        [b'B', b'Z', b'h', ..] => {
            return Err(InputError::Compression {
                name,
                with: "bzip2",
            });
        }
        _ => {
            return Ok(Bytes {
                name,
                text: Box::new(whole),
                cut,
            });
        }
    };
    let mut bytes = bytes;
    if is_tar(bytes.fill_buf().map_err(fail)?) {
        return Err(InputError::Bundle { name });
    }
    Ok(Bytes {
        name,
        text: bytes,
        cut,
    })
}

/// The word for a trace in messages.
pub fn name_of(path: &Path) -> String {
    if path == Path::new("-") {
        "standard input".to_owned()
    } else {
        path.display().to_string()
    }
}

fn is_tar(start: &[u8]) -> bool {
    start.get(257..262) == Some(b"ustar")
}

fn buffered(decoder: impl Read + 'static, cut: &Arc<AtomicBool>) -> Box<dyn BufRead> {
    Box::new(BufReader::with_capacity(
        CHUNK,
        UntilCut {
            inner: decoder,
            cut: Arc::clone(cut),
        },
    ))
}

/// Reads up to where compressed data breaks off, and remembers that it did.
struct UntilCut<R> {
    inner: R,
    cut: Arc<AtomicBool>,
}

impl<R: Read> Read for UntilCut<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self.inner.read(into) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                self.cut.store(true, Ordering::Relaxed);
                Ok(0)
            }
            other => other,
        }
    }
}

/// Traces, read and folded.
pub struct Folded {
    /// What all of them together say.
    pub model: Model,
    /// Their names.
    pub names: Vec<String>,
    /// What a reader should know about them.
    pub notes: Vec<String>,
    /// Those that could not be read, when others could.
    pub unread: Vec<InputError>,
}

impl Folded {
    /// The report, with the notes on the traces themselves in it.
    pub fn report(&self) -> jittrace_model::report::Report {
        let mut report = self.model.report();
        report.notes.extend(self.notes.iter().cloned());
        if self.names.len() > 1 {
            report.traces.clone_from(&self.names);
        }
        report
    }
}

/// Reads traces and folds them into one model; `each` sees every event on its way.
///
/// # Errors
/// None of them can be read. Where others can, the error is kept in [`Folded::unread`].
pub fn fold(paths: &[PathBuf], mut each: impl FnMut(&Event)) -> Result<Folded, InputError> {
    let mut traces = Vec::new();
    let mut unread = Vec::new();
    for path in paths {
        match open_trace(path) {
            Ok(trace) => traces.push(trace),
            Err(error) => unread.push(error),
        }
    }
    if traces.is_empty()
        && let Some(error) = unread.pop()
    {
        return Err(error);
    }
    let mut join = Join::new(traces.iter().map(|trace| trace.reader.header()));
    let header = traces
        .first()
        .map(|trace| trace.reader.header().clone())
        .unwrap_or_default();
    let mut folded = Folded {
        model: Model::new(header),
        names: traces.iter().map(|trace| trace.name.clone()).collect(),
        notes: Vec::new(),
        unread,
    };
    for mut trace in traces {
        join.begin(trace.reader.header());
        loop {
            match trace.reader.next_event() {
                Ok(Some(mut event)) => {
                    join.place(&mut event);
                    each(&event);
                    folded.model.apply(event);
                }
                Ok(None) => break,
                // A disk that fails half way still leaves what was read.
                Err(error) => {
                    folded
                        .notes
                        .push(format!("{}: reading stopped: {error}", trace.name));
                    break;
                }
            }
        }
        folded.notes.extend(trace.notes());
    }
    Ok(folded)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const TRACE: &str = "{\"jittrace\":1,\"version\":\"0.1.0\",\"command\":[\"true\"]}\n{\"id\":1,\"t\":5,\"pid\":9,\"tid\":9,\"source\":\"preload\",\"kind\":\"process-exit\",\"code\":0}\n";

    fn file(bytes: &[u8]) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    fn gzipped(text: &str) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    fn read(bytes: &[u8]) -> (u64, Vec<String>) {
        let file = file(bytes);
        let folded = fold(&[file.path().to_owned()], |_| {}).unwrap();
        (folded.model.event_count(), folded.notes)
    }

    #[test]
    fn a_trace_is_read_however_it_is_packed() {
        for bytes in [
            TRACE.as_bytes().to_vec(),
            gzipped(TRACE),
            [gzipped(&TRACE[..60]), gzipped(&TRACE[60..])].concat(),
            zstd::encode_all(TRACE.as_bytes(), 3).unwrap(),
        ] {
            assert_eq!(read(&bytes), (1, Vec::new()));
        }
    }

    #[test]
    fn what_was_cut_off_is_read_up_to_there() {
        let long = TRACE.to_owned()
            + &TRACE
                .lines()
                .nth(1)
                .map(|l| format!("{l}\n"))
                .unwrap()
                .repeat(2000);
        for packed in [
            gzipped(&long),
            zstd::encode_all(long.as_bytes(), 3).unwrap(),
            long.into_bytes(),
        ] {
            let (events, notes) = read(&packed[..packed.len() - 9]);
            assert!(events >= 1, "{events}");
            assert_eq!(notes.len(), 1, "{notes:?}");
            assert!(notes[0].contains("all before was read"), "{notes:?}");
        }
    }

    #[test]
    fn what_is_no_trace_is_named_with_the_remedy() {
        let message = |path: &Path| {
            open_trace(path)
                .err()
                .map(|error| error.to_string())
                .unwrap_or_default()
        };
        for (bytes, expected) in [
            (&b""[..], "the trace is empty"),
            (b"#!/bin/sh\n", "is no jittrace header"),
            (b"\xfd7zXZ\0", "compressed with xz"),
        ] {
            let file = file(bytes);
            let text = message(file.path());
            assert!(text.contains(expected), "{text}");
            assert!(text.contains(&file.path().display().to_string()), "{text}");
        }
        assert!(
            message(Path::new("/nowhere/x.jtrace"))
                .starts_with("there is no file /nowhere/x.jtrace;")
        );
        assert!(message(Path::new("/tmp")).starts_with("/tmp is a directory"));
    }

    #[test]
    fn one_that_cannot_be_read_does_not_hide_the_others() {
        let file = file(TRACE.as_bytes());
        let folded = fold(
            &[
                "/nowhere".into(),
                file.path().to_owned(),
                file.path().to_owned(),
            ],
            |_| {},
        )
        .unwrap();
        assert_eq!(
            (
                folded.model.event_count(),
                folded.unread.len(),
                folded.names.len()
            ),
            (2, 1, 2)
        );
        assert_eq!(folded.report().traces.len(), 2);
    }
}

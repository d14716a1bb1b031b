//! `jittrace bundle FILE`: one file with all that a bug report needs.
//!
//! The archive holds the trace, its reports and a manifest with the checksum of each. What goes into it is listed before
//! it is written, and a file that exists is never replaced.

use std::{
    fs::File,
    io::{self, BufWriter, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    process::ExitCode,
    slice,
    time::{SystemTime, UNIX_EPOCH},
};

use flate2::{Compression, write::GzEncoder};
use jittrace_model::{
    export::jsonl,
    report::{self, Report, html::EventSample, text::Style},
};
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::{cli::BundleArgs, input};

/// Packs a trace and its reports.
///
/// # Errors
/// The trace cannot be read, the archive exists already or cannot be written.
pub fn run(args: &BundleArgs) -> anyhow::Result<ExitCode> {
    let output = args
        .output
        .clone()
        .unwrap_or_else(|| default_output(&args.file));
    refuse_existing(&output)?;
    let packed = Packed::new(&args.file)?;
    eprintln!("jittrace: {} will hold", output.display());
    for entry in &packed.entries {
        eprintln!(
            "  {:<18} {:>9}  {}",
            entry.name,
            size(entry.bytes),
            entry.what
        );
    }
    eprintln!("{}", packed.privacy);
    packed.write(&output)?;
    eprintln!(
        "jittrace: wrote {} ({})",
        output.display(),
        size(output.metadata()?.len())
    );
    for note in &packed.notes {
        eprintln!("jittrace: {note}");
    }
    Ok(ExitCode::SUCCESS)
}

/// Packs a trace and its reports without a word, for the view.
///
/// # Errors
/// The trace cannot be read, the archive exists already or cannot be written.
pub(crate) fn write(file: &Path, output: &Path) -> anyhow::Result<()> {
    refuse_existing(output)?;
    Packed::new(file)?.write(output)
}

fn default_output(file: &Path) -> PathBuf {
    if file == Path::new("-") {
        return PathBuf::from("jittrace-bundle.tar.gz");
    }
    let name = file
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let mut stem = name.as_str();
    for end in [".zst", ".gz", ".jtrace"] {
        stem = stem.strip_suffix(end).unwrap_or(stem);
    }
    file.with_file_name(format!("{stem}.tar.gz"))
}

fn refuse_existing(output: &Path) -> anyhow::Result<()> {
    if output.symlink_metadata().is_ok() {
        anyhow::bail!(
            "{} exists and is not replaced; give another name with -o",
            output.display()
        );
    }
    Ok(())
}

fn size(bytes: u64) -> String {
    match bytes {
        0..=9_999 => format!("{bytes} B"),
        10_000..=999_999 => format!("{} kB", bytes / 1000),
        _ => format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000),
    }
}

/// A file of the archive.
struct Entry {
    name: &'static str,
    what: &'static str,
    bytes: u64,
    sha256: String,
    content: Content,
}

enum Content {
    Text(Vec<u8>),
    File(File),
}

/// What goes into the archive.
struct Packed {
    directory: String,
    entries: Vec<Entry>,
    privacy: String,
    notes: Vec<String>,
}

impl Packed {
    fn new(file: &Path) -> anyhow::Result<Self> {
        let (trace, notes) = compressed(file)?;
        // From the copy: what is in the archive is what the reports are made of, even when the trace still grows.
        let mut sample = EventSample::default();
        let path = trace.path().to_owned();
        let folded = input::fold(slice::from_ref(&path), |event| sample.add(event))?;
        let mut report = folded.report();
        report.notes.extend(notes.iter().cloned());
        let mut trace = trace.reopen()?;
        let (bytes, sha256) = checksum(&mut trace)?;
        let mut entries = vec![Entry {
            name: "trace.jtrace.zst",
            what: "the trace: every event, credentials masked when it was taken",
            bytes,
            sha256,
            content: Content::File(trace),
        }];
        let mut json = serde_json::to_vec_pretty(&report)?;
        json.push(b'\n');
        for (name, what, text) in [
            (
                "report.txt",
                "the report for a terminal",
                report::text::render(&report, Style::default()).into_bytes(),
            ),
            (
                "report.md",
                "the report to paste into an issue",
                report::markdown::render(&report).into_bytes(),
            ),
            ("report.json", "the report for scripts", json),
            (
                "report.html",
                "the report for a browser",
                report::html::render(&report, &sample).into_bytes(),
            ),
        ] {
            entries.push(Entry {
                name,
                what,
                bytes: text.len() as u64,
                sha256: hex(&Sha256::digest(&text)),
                content: Content::Text(text),
            });
        }
        let manifest = manifest(&report, &entries)?;
        entries.insert(
            0,
            Entry {
                name: "MANIFEST.json",
                what: "versions and the checksum of every other file",
                bytes: manifest.len() as u64,
                sha256: String::new(),
                content: Content::Text(manifest),
            },
        );
        let directory = file
            .file_stem()
            .map(|stem| {
                stem.to_string_lossy().replace(
                    |c: char| !c.is_ascii_alphanumeric() && !"-_.".contains(c),
                    "_",
                )
            })
            .filter(|stem| stem != "-" && !stem.starts_with('.'))
            .unwrap_or_else(|| "jittrace-bundle".to_owned());
        Ok(Packed {
            directory,
            entries,
            privacy: privacy(&report),
            notes,
        })
    }

    /// Writes the archive beside its final name and moves it there, so that it is whole or not there at all.
    fn write(&self, output: &Path) -> anyhow::Result<()> {
        let directory = output
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        let fail = |error: io::Error| {
            anyhow::anyhow!(
                "cannot write {}: {error}; give another place with -o",
                output.display()
            )
        };
        let partial = tempfile::NamedTempFile::new_in(directory).map_err(fail)?;
        let packed = GzEncoder::new(BufWriter::new(partial), Compression::default());
        let mut archive = tar::Builder::new(packed);
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |time| time.as_secs());
        for entry in &self.entries {
            let mut header = tar::Header::new_gnu();
            header.set_size(entry.bytes);
            header.set_mode(0o644);
            header.set_mtime(now);
            let path = format!("{}/{}", self.directory, entry.name);
            match &entry.content {
                Content::Text(text) => archive.append_data(&mut header, path, text.as_slice()),
                Content::File(file) => {
                    let mut file = file;
                    file.seek(SeekFrom::Start(0)).map_err(fail)?;
                    archive.append_data(&mut header, path, file)
                }
            }
            .map_err(fail)?;
        }
        let partial = archive
            .into_inner()
            .and_then(GzEncoder::finish)
            .and_then(|buffer| buffer.into_inner().map_err(io::IntoInnerError::into_error))
            .map_err(fail)?;
        partial.as_file().sync_all().map_err(fail)?;
        match partial.persist_noclobber(output) {
            Ok(_) => Ok(()),
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => {
                refuse_existing(output)
            }
            Err(error) => Err(fail(error.error)),
        }
    }
}

/// Copies a trace, whatever its form, into a compressed temporary file; lines that are no events are left out.
fn compressed(file: &Path) -> anyhow::Result<(tempfile::NamedTempFile, Vec<String>)> {
    let bytes = input::open_bytes(file)?;
    let was_cut = bytes.watch();
    let input::Bytes { name, text, .. } = bytes;
    let lines = jsonl::Lines::new(text).map_err(|error| input::InputError::NotATrace {
        name: name.clone(),
        error,
    })?;
    let mut copy = tempfile::NamedTempFile::new()?;
    let mut encoder = zstd::stream::write::Encoder::new(BufWriter::new(copy.as_file_mut()), 9)?;
    encoder.write_all(lines.header().as_bytes())?;
    encoder.write_all(b"\n")?;
    let left_out = lines.copy(&mut encoder)?;
    encoder.finish()?.flush()?;
    let mut notes = Vec::new();
    if left_out > 0 {
        notes.push(format!(
            "{name}: {left_out} lines are no events or were cut off, and were left out"
        ));
    }
    if was_cut() {
        notes.push(format!(
            "{name}: the compressed file ends in the middle; all before was read"
        ));
    }
    Ok((copy, notes))
}

fn checksum(file: &mut File) -> io::Result<(u64, String)> {
    let mut hash = Sha256::new();
    let mut bytes = 0;
    let mut chunk = vec![0; 1 << 16];
    loop {
        let read = file.read(&mut chunk)?;
        let Some(part) = chunk.get(..read).filter(|part| !part.is_empty()) else {
            break;
        };
        hash.update(part);
        bytes += read as u64;
    }
    Ok((bytes, hex(&hash.finalize())))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn manifest(report: &Report, entries: &[Entry]) -> anyhow::Result<Vec<u8>> {
    let files: Vec<_> = entries
        .iter()
        .map(|entry| json!({ "path": entry.name, "bytes": entry.bytes, "sha256": entry.sha256, "what": entry.what }))
        .collect();
    let versions: Vec<_> = report
        .components
        .iter()
        .map(|component| json!({ "component": component.name, "version": component.version, "built_for": component.built_for.cuda }))
        .collect();
    let mut manifest = serde_json::to_vec_pretty(&json!({
        "schema": "jittrace.bundle/1",
        "jittrace": env!("CARGO_PKG_VERSION"),
        "command": report.command,
        "host": report.host,
        "driver": report.driver,
        "gpus": report.gpus,
        "versions": versions,
        "files": files,
    }))?;
    manifest.push(b'\n');
    Ok(manifest)
}

/// What somebody who reads the archive learns about the machine and its user.
fn privacy(report: &Report) -> String {
    let mut named = Vec::new();
    if !report.host.name.is_empty() && !report.host.name.starts_with('<') {
        named.push(format!("the host's name ({})", report.host.name));
    }
    let text = format!("{:?} {:?}", report.command, report.environment);
    if text.contains("/home/") || text.contains("/root/") {
        named.push("home directories".to_owned());
    }
    match named.is_empty() {
        true => "  credentials are masked, user and host are hidden".to_owned(),
        false => format!(
            "  credentials are masked; it names {}: trace with --redact paths to hide that",
            named.join(" and ")
        ),
    }
}

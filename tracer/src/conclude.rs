//! The end of a trace: the report, and where the trace is.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use jittrace_model::{
    Model,
    report::{markdown, text},
};

use crate::{cli::TraceArgs, collect::Collected, deliver};

/// What is shown at the end, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportChoice {
    format: Format,
    file: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Text,
    Markdown,
    Json,
    None,
}

impl ReportChoice {
    /// From the value of `--report`.
    ///
    /// # Errors
    /// A format that does not exist.
    pub fn parse(text: Option<&str>) -> Result<ReportChoice> {
        let text = text.unwrap_or("text");
        let (format, file) = match text.split_once('=') {
            Some((format, file)) => (format, Some(PathBuf::from(file))),
            None => (text, None),
        };
        let format = match format {
            "text" => Format::Text,
            "markdown" => Format::Markdown,
            "json" => Format::Json,
            "none" => Format::None,
            other => anyhow::bail!(
                "--report knows text, markdown, json and none, each with =FILE, not {other:?}"
            ),
        };
        Ok(ReportChoice { format, file })
    }
}

/// Writes the report and says where the trace is.
pub fn conclude(trace: &TraceArgs, choice: &ReportChoice, path: &Path, collected: &Collected) {
    if let Some(error) = &collected.trouble {
        eprintln!(
            "jittrace: the trace {} is incomplete: {error}; the report covers all of it",
            path.display()
        );
    }
    if let Err(error) = report(trace, choice, &collected.model) {
        eprintln!("jittrace: {error:#}");
    }
    if trace.quiet {
        return;
    }
    if !collected.still_running.is_empty() {
        let pids: Vec<String> = collected
            .still_running
            .iter()
            .take(10)
            .map(ToString::to_string)
            .collect();
        eprintln!(
            "jittrace: still running, no longer traced: {}",
            pids.join(", ")
        );
    }
    eprintln!("jittrace: trace in {}", path.display());
}

fn report(trace: &TraceArgs, choice: &ReportChoice, model: &Model) -> Result<()> {
    let report = model.report();
    let text = match choice.format {
        Format::None => return Ok(()),
        Format::Json => serde_json::to_string_pretty(&report)? + "\n",
        Format::Markdown => markdown::render(&report),
        Format::Text if choice.file.is_some() => text::render(&report, text::Style::default()),
        Format::Text => text::render(&report, deliver::stderr_style()),
    };
    match &choice.file {
        Some(file) => std::fs::write(file, text)
            .with_context(|| format!("cannot write the report to {}", file.display())),
        None if trace.quiet => Ok(()),
        None => {
            let mut stderr = io::stderr().lock();
            stderr
                .write_all(text.as_bytes())
                .context("cannot write the report")
        }
    }
}

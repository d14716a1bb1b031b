//! `jittrace report FILE…`

use std::process::ExitCode;

use jittrace_model::report::{self, html::EventSample};

use crate::{
    cli::{ReportArgs, ReportFormat},
    deliver, input,
};

/// Writes the report of one or more traces.
///
/// # Errors
/// No trace can be read, or the report cannot be written.
pub fn run(args: &ReportArgs) -> anyhow::Result<ExitCode> {
    let html = args.format == ReportFormat::Html;
    let mut sample = EventSample::default();
    let folded = input::fold(&args.files, |event| {
        if html {
            sample.add(event);
        }
    })?;
    let report = folded.report();
    deliver::deliver(args.output.as_deref(), |out| match args.format {
        ReportFormat::Text => {
            let style = deliver::style(args.output.as_deref());
            out.write_all(report::text::render(&report, style).as_bytes())
        }
        ReportFormat::Markdown => out.write_all(report::markdown::render(&report).as_bytes()),
        ReportFormat::Json => {
            serde_json::to_writer_pretty(&mut *out, &report)?;
            out.write_all(b"\n")
        }
        ReportFormat::Html => out.write_all(report::html::render(&report, &sample).as_bytes()),
    })?;
    for error in &folded.unread {
        eprintln!("jittrace: {error}");
    }
    Ok(if folded.unread.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(1)
    })
}

//! `jittrace diff GOOD BAD`

use std::{path::Path, process::ExitCode, slice};

use jittrace_model::{diff, report::Report};

use crate::{
    cli::{DiffArgs, DiffFormat},
    deliver, input,
};

/// Nothing that matters differs.
const SAME: u8 = 0;
/// Something does.
const DIFFERS: u8 = 1;
/// There was trouble, as `diff` has it.
const TROUBLE: u8 = 2;

/// Writes what changed between two runs. The status is that of `diff`: 0 same, 1 differs, 2 trouble.
pub fn run(args: &DiffArgs) -> ExitCode {
    compare(args).unwrap_or_else(|error| {
        eprintln!("jittrace: {error:#}");
        ExitCode::from(TROUBLE)
    })
}

fn compare(args: &DiffArgs) -> anyhow::Result<ExitCode> {
    if args.good == Path::new("-") && args.bad == Path::new("-") {
        anyhow::bail!("only one of the two traces can come from standard input");
    }
    // One after the other: only one model is in memory at a time.
    let good = report(&args.good)?;
    let bad = report(&args.bad)?;
    let diff = diff::compare(&good, &bad);
    deliver::deliver(None, |out| match args.format {
        DiffFormat::Text => out.write_all(diff::text(&diff, deliver::style(None)).as_bytes()),
        DiffFormat::Markdown => out.write_all(diff::markdown(&diff).as_bytes()),
        DiffFormat::Json => {
            serde_json::to_writer_pretty(&mut *out, &diff)?;
            out.write_all(b"\n")
        }
    })?;
    Ok(ExitCode::from(if diff.same { SAME } else { DIFFERS }))
}

fn report(path: &Path) -> anyhow::Result<Report> {
    let folded = input::fold(slice::from_ref(&path.to_owned()), |_| {})?;
    for note in &folded.notes {
        eprintln!("jittrace: {note}");
    }
    Ok(folded.report())
}

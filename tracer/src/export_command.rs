//! `jittrace export FILE --format jsonl|perfetto`

use std::{cell::RefCell, io, path::Path, process::ExitCode, slice};

use jittrace_model::export::{jsonl, perfetto};

use crate::{
    cli::{ExportArgs, ExportFormat},
    deliver, input,
};

/// Writes a trace in another form, as it is read.
///
/// # Errors
/// The trace cannot be read, or the output cannot be written.
pub fn run(args: &ExportArgs) -> anyhow::Result<ExitCode> {
    let notes = match args.format {
        ExportFormat::Jsonl => export_jsonl(&args.file, args.output.as_deref())?,
        ExportFormat::Perfetto => {
            use std::io::IsTerminal;
            if args.output.is_none() && io::stdout().is_terminal() {
                anyhow::bail!(
                    "a Perfetto trace is binary and standard output is a terminal; give a file with -o, then open it at ui.perfetto.dev"
                );
            }
            export_perfetto(&args.file, args.output.as_deref())?
        }
    };
    for note in notes {
        eprintln!("jittrace: {note}");
    }
    Ok(ExitCode::SUCCESS)
}

fn export_jsonl(from: &Path, to: Option<&Path>) -> anyhow::Result<Vec<String>> {
    // Opened as a trace first, so that what is no trace is refused before anything is written.
    let input::Bytes { name, text, .. } = input::open_bytes(from)?;
    let lines = jsonl::Lines::new(text).map_err(|error| input::InputError::NotATrace {
        name: name.clone(),
        error,
    })?;
    let mut left_out = 0;
    deliver::deliver(to, |out| {
        left_out = lines.copy(out)?;
        Ok(())
    })?;
    Ok((left_out > 0)
        .then(|| {
            format!("{name}: {left_out} lines are no events or were cut off, and were left out")
        })
        .into_iter()
        .collect())
}

fn export_perfetto(from: &Path, to: Option<&Path>) -> anyhow::Result<Vec<String>> {
    // An unreadable trace is refused before the output is created.
    if from != Path::new("-") {
        drop(input::open_trace(from)?);
    }
    let mut outcome = Ok(Vec::new());
    deliver::deliver(to, |out| {
        let exporter = RefCell::new((perfetto::Exporter::new(out), Ok(())));
        let folded = input::fold(slice::from_ref(&from.to_owned()), |event| {
            let (exporter, written) = &mut *exporter.borrow_mut();
            if written.is_ok() {
                *written = exporter.event(event);
            }
        });
        let (exporter, written) = exporter.into_inner();
        written?;
        match folded {
            Ok(folded) => {
                exporter.finish(&folded.report())?;
                outcome = Ok(folded.notes);
            }
            Err(error) => outcome = Err(error),
        }
        Ok(())
    })?;
    Ok(outcome?)
}

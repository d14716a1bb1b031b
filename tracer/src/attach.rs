//! `jittrace attach PID`: look into a live process and follow it, without touching it.

use std::{
    io,
    process::ExitCode,
    thread,
    time::{SystemTime, UNIX_EPOCH},
};

use anyhow::{Context, Result, bail};
use jittrace_model::log::{FORMAT, Header, SourceState, SourceStatus};

use crate::{
    cli::AttachArgs,
    collect::{self, Inputs, Plan, Word},
    conclude::{ReportChoice, conclude},
    masking, output,
};

/// Attaches until Ctrl-C or the end of the process.
///
/// # Errors
/// The process is not there or may not be looked into; the trace cannot be written.
pub fn attach(args: &AttachArgs) -> Result<ExitCode> {
    let Some(pid) = args.pid.or(args.pid_option) else {
        eprintln!("jittrace: attach needs the process: jittrace attach PID");
        return Ok(ExitCode::from(2));
    };
    let report = ReportChoice::parse(args.trace.report.as_deref())?;
    may_look_into(pid)?;
    let (path, file) = output::open(args.trace.output.as_deref(), &format!("attach-{pid}"))?;
    let mut redactor = masking::redactor(&args.trace);
    let mut header = Header {
        jittrace: FORMAT,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command: Vec::new(),
        attached: Some(pid),
        started_unix_ns: SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |d| d.as_nanos() as u64),
        host: collect::host(),
        sources: vec![SourceStatus {
            name: "procfs".to_owned(),
            state: SourceState::Active,
            reason: None,
        }],
    };
    redactor.header(&mut header);
    let plan = Plan {
        header,
        trace: Box::new(io::BufWriter::new(file)),
        redactor,
        began: collect::monotonic_ns(),
        root: pid,
        inputs: Inputs::Attach,
        listener: None,
    };
    let (words, heard) = crossbeam_channel::unbounded();
    let mut signals =
        signal_hook::iterator::Signals::new([libc::SIGINT, libc::SIGTERM, libc::SIGHUP])
            .context("cannot take signals")?;
    let stop = signals.handle();
    thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            if signals.forever().next().is_some() {
                let _ = words.send(Word::Stop);
            }
        })
        .context("cannot start a thread")?;
    let collected = collect::collect(plan, &heard)
        .with_context(|| format!("the trace {} is incomplete", path.display()))?;
    stop.close();
    conclude(&args.trace, &report, &path, &collected);
    Ok(ExitCode::SUCCESS)
}

/// Whether there is such a process, and whether its memory map may be read.
fn may_look_into(pid: u32) -> Result<()> {
    let maps = format!("/proc/{pid}/maps");
    match std::fs::read(&maps) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            bail!("there is no process {pid}; it may have ended: ps -e lists those that live")
        }
        Err(error) => bail!(
            "process {pid} may not be looked into ({error}): it belongs to another user or is protected; run jittrace as its owner or as root"
        ),
    }
}

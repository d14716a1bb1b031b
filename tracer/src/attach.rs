//! `jittrace attach PID`: look into a live process and follow it, without touching it.

use std::{
    io,
    process::ExitCode,
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context, Result, bail};
use jittrace_model::log::{FORMAT, Header};

use crate::{
    cli::{AttachArgs, SourceChoice},
    collect::{self, Inputs, Plan, SharedStacks, Word},
    conclude::{ReportChoice, conclude},
    doctor::refusal::{self, Attempt, Standing},
    keeper, masking, output,
    sources::Sources,
    view,
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
    if args.trace.source == SourceChoice::Preload {
        eprintln!(
            "jittrace: the shim cannot be put into a live process; use --source auto, or launch the program under jittrace"
        );
        return Ok(ExitCode::from(2));
    }
    let report = ReportChoice::parse(args.trace.report.as_deref())?;
    may_look_into(pid)?;
    let mut signals =
        signal_hook::iterator::Signals::new([libc::SIGINT, libc::SIGTERM, libc::SIGHUP])
            .context("cannot take signals")?;
    let stacks = SharedStacks::default();
    let Sources {
        kernel, statuses, ..
    } = Sources::of_attach(args.trace.source, pid, &stacks)?;
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
        sources: statuses,
    };
    redactor.header(&mut header);
    let began = collect::monotonic_ns();
    let (since, unprobed) = match &kernel {
        Some(kernel) => {
            if keeper::wanted(&args.trace) {
                eprintln!("jittrace: looking for what to watch in process {pid}");
            }
            let followed = kernel.follow_tree(pid)?;
            kernel.expect_of(pid)?;
            followed
        }
        None => (began, Vec::new()),
    };
    let plan = Plan {
        header,
        trace: Box::new(io::BufWriter::new(file)),
        redactor,
        began,
        root: pid,
        inputs: Inputs::Attach {
            kernel,
            since,
            unprobed,
            stacks,
        },
        listener: None,
    };
    let (words, heard) = crossbeam_channel::unbounded();
    let stop = signals.handle();
    let (leave, left) = crossbeam_channel::bounded(1);
    let ask = words.clone();
    thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            if signals.forever().next().is_some() {
                let _ = words.send(Word::Stop);
                let _ = leave.send(());
            }
        })
        .context("cannot start a thread")?;
    let collect = move || collect::collect(plan, &heard);
    let collected = if keeper::wanted(&args.trace) {
        let stop = || drop(ask.send(Word::Stop));
        view::watch(&path, &left, stop, collect)?
    } else {
        collect()
    };
    let collected =
        collected.with_context(|| format!("the trace {} is incomplete", path.display()))?;
    stop.close();
    if collected.model.processes().is_empty() {
        let _ = std::fs::remove_file(&path);
        bail!(
            "process {pid} ended before anything of it could be seen; launch it under jittrace: jittrace -- COMMAND"
        );
    }
    conclude(&args.trace, &report, &path, &collected);
    if let Some(detaching) = collected.detaching
        && !detaching.wait_at_most(DETACHING)
    {
        eprintln!("jittrace: the kernel is still taking the probes out; nothing is told any more");
    }
    Ok(ExitCode::SUCCESS)
}

/// How long the prompt is kept for the kernel to take the probes out: two or three seconds do where it is quick, and
/// half a minute was seen where it is not.
const DETACHING: Duration = Duration::from_secs(5);

/// Whether there is such a process, and whether its memory map may be read.
fn may_look_into(pid: u32) -> Result<()> {
    let maps = format!("/proc/{pid}/maps");
    match std::fs::read(&maps) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            bail!("there is no process {pid}; it may have ended: ps -e lists those that live")
        }
        Err(error) => {
            let attempt = Attempt::Process {
                owner: refusal::owner_of(pid),
            };
            let errno = error.raw_os_error().unwrap_or(libc::EACCES);
            let refusal = refusal::explain(attempt, errno, &Standing::here());
            bail!(
                "process {pid} may not be looked into: {}; {}",
                refusal.reason,
                refusal.remedy
            )
        }
    }
}

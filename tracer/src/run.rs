//! `jittrace -- COMMAND`: launch, collect, report.

use std::{
    ffi::{OsStr, OsString},
    io,
    path::{Path, PathBuf},
    process::ExitCode,
    thread,
    time::{SystemTime, UNIX_EPOCH},
};

use anyhow::{Context, Result};
use jittrace_model::{
    event::ProcessStart,
    log::{FORMAT, Header, SourceStatus},
};
use jittrace_wire::{OPTIONS_VARIABLE, SESSION_VARIABLE, environment::is_captured};

use crate::{
    cli::{RunArgs, SourceChoice, TraceArgs},
    collect::{self, Inputs, Plan, Word},
    conclude::{ReportChoice, conclude},
    keeper,
    launch::{self, Command, Ended, Reach, Session, Stops},
    masking, output,
    sources::Sources,
};

/// Status when jittrace itself fails, as `env` and `timeout` give it.
pub(crate) const OWN_FAILURE: u8 = 125;

/// Traces a command; gives its own exit status.
pub fn run(args: &RunArgs) -> Result<ExitCode> {
    if keeper::wanted(&args.trace) {
        return keeper::run(args);
    }
    let place = Place {
        terminal: None,
        stops: Stops::Follow,
        started: &mut |_, _| {},
        ended: &mut |_| {},
    };
    match trace(args, place) {
        Ok(Ended::Code(code)) => Ok(ExitCode::from(code as u8)),
        Ok(Ended::Signal(signal)) => launch::die_like(signal),
        Err(failure) => {
            let status = failure
                .downcast_ref::<launch::LaunchError>()
                .map_or(OWN_FAILURE, launch::LaunchError::status);
            eprintln!("jittrace: {failure:#}");
            Ok(ExitCode::from(status))
        }
    }
}

/// Where a command runs, and who wants to know.
pub(crate) struct Place<'a> {
    /// The terminal that it is to have as its own; none leaves it in ours.
    pub(crate) terminal: Option<i32>,
    /// What its being stopped means for us.
    pub(crate) stops: Stops,
    /// It runs, as this process, and its trace is in this file.
    pub(crate) started: &'a mut dyn FnMut(i32, &Path),
    /// It ended; the last records are still to come.
    pub(crate) ended: &'a mut dyn FnMut(Ended),
}

/// Traces a command to its end and reports.
pub(crate) fn trace(args: &RunArgs, place: Place<'_>) -> Result<Ended> {
    let report = ReportChoice::parse(args.trace.report.as_deref())?;
    let program = args.command.first().cloned().unwrap_or_default();
    let (path, file) = output::open(args.trace.output.as_deref(), &program.to_string_lossy())?;
    let invoker = launch::invoker();
    let owner = invoker.as_ref().map(|i| (i.uid, i.gid));
    if let Some((uid, gid)) = owner {
        // The trace is the user's, as the command is. A file system without owners keeps it as it is.
        let _ = std::os::unix::fs::fchown(&file, Some(uid), Some(gid));
    }
    let session = Session::create(owner)?;
    let mut env = match &invoker {
        Some(invoker) => invoker.env.clone(),
        None => std::env::vars_os().collect(),
    };
    let search = variable(&env, "PATH");
    let reach = launch::reach(&program, search.as_deref());

    // Signals are taken from here on, also by the threads of the sources; the command gets back what jittrace was
    // started with.
    launch::block_signals();
    let Sources {
        preload,
        kernel,
        twice,
        statuses,
    } = Sources::of_launch(args.trace.source, &reach).inspect_err(|_| {
        let _ = std::fs::remove_file(&path);
    })?;
    if place.terminal.is_some() {
        // The view emulates this terminal, whatever the real one is.
        env.retain(|(name, _)| name != "TERM");
        env.push((OsString::from("TERM"), OsString::from("xterm-256color")));
    }
    if let Some(kernel) = &kernel {
        match args.trace.source {
            // The shim sees first calls; the command does not wait for a cold disk.
            SourceChoice::Auto if preload => kernel
                .expect_meanwhile(program.clone(), env.clone())
                .context("cannot start a thread")?,
            _ => kernel.expect(&program, &env),
        }
    }
    let start = start_of(&args.command, search.as_deref(), &env);
    let mut command = Command::new(
        &args.command,
        environment(&args.trace, &session, env, preload),
    )?;
    if let Some(terminal) = place.terminal {
        command.terminal(terminal);
    }
    if let Some(invoker) = invoker {
        command.user(invoker.uid, invoker.gid, invoker.groups);
    }

    let mut redactor = masking::redactor(&args.trace);
    let mut header = header(args, statuses);
    redactor.header(&mut header);

    let began = collect::monotonic_ns();
    let follow = |pid| match &kernel {
        Some(kernel) => kernel.follow(pid).map_err(io::Error::other),
        None => Ok(()),
    };
    let launched = command.start_after(follow).inspect_err(|_| {
        let _ = std::fs::remove_file(&path);
    })?;
    (place.started)(launched.pid, &path);
    let plan = Plan {
        header,
        trace: Box::new(io::BufWriter::new(file)),
        redactor,
        began,
        root: launched.pid as u32,
        inputs: Inputs::Launch {
            session: session
                .open()
                .context("cannot read the session file that was just made")?,
            unreached: match reach {
                Reach::No(reason) if kernel.is_none() => Some((PathBuf::from(&program), reason)),
                _ => None,
            },
            start: Box::new(start),
            wait_all: args.trace.wait_all,
            kernel,
            twice,
        },
        listener: None,
    };
    let (words, heard) = crossbeam_channel::unbounded();
    let collector = thread::Builder::new()
        .name("collector".to_owned())
        .spawn(move || collect::collect(plan, &heard))
        .context("cannot start a thread")?;
    let ended =
        launch::supervise(launched.pid, place.stops).context("cannot wait for the command")?;
    (place.ended)(ended);
    let _ = words.send(Word::Ended(ended));
    // The command's status is what counts: a collector that failed is said, and changes nothing.
    let collected = collector.join();
    match &collected {
        Ok(Ok(collected)) if collected.still_running.is_empty() => drop(session),
        _ => session.outlived(),
    }
    match collected {
        Ok(Ok(collected)) => conclude(&args.trace, &report, &path, &collected),
        Ok(Err(error)) => eprintln!(
            "jittrace: the trace {} is incomplete: {error}",
            path.display()
        ),
        Err(_) => eprintln!(
            "jittrace: the trace {} is incomplete: the collector failed; please report this",
            path.display()
        ),
    }
    Ok(ended)
}

/// How the command begins, as far as it is known before.
fn start_of(
    command: &[OsString],
    search: Option<&OsStr>,
    env: &[(OsString, OsString)],
) -> ProcessStart {
    let program = command.first().map(OsString::as_os_str).unwrap_or_default();
    let found = launch::find(program, search).unwrap_or_else(|| PathBuf::from(program));
    let exe = found.canonicalize().unwrap_or(found);
    let text = |word: &OsString| word.to_string_lossy().into_owned();
    ProcessStart {
        ppid: std::process::id(),
        exe: exe.to_string_lossy().into_owned(),
        argv: command.iter().map(text).collect(),
        cwd: std::env::current_dir()
            .map(|cwd| cwd.to_string_lossy().into_owned())
            .unwrap_or_default(),
        env: env
            .iter()
            .filter(|(name, _)| is_captured(name.as_encoded_bytes()))
            .map(|(name, value)| (text(name), text(value)))
            .collect(),
        ..ProcessStart::default()
    }
}

fn variable(env: &[(OsString, OsString)], name: &str) -> Option<OsString> {
    let (_, value) = env.iter().find(|(n, _)| n == name)?;
    Some(value.clone())
}

/// The environment of the command: the user's, with the shim first in LD_PRELOAD.
fn environment(
    trace: &TraceArgs,
    session: &Session,
    mut env: Vec<(OsString, OsString)>,
    preloaded: bool,
) -> Vec<(OsString, OsString)> {
    if !preloaded {
        return env;
    }
    let theirs = variable(&env, "LD_PRELOAD");
    let mut set = |name: &str, value: OsString| {
        env.retain(|(n, _)| n != name);
        env.push((OsString::from(name), value));
    };
    let mut preload = session.shim().as_os_str().to_owned();
    if let Some(others) = theirs.filter(|v| !v.is_empty()) {
        preload.push(":");
        preload.push(others);
    }
    set("LD_PRELOAD", preload);
    set(SESSION_VARIABLE, session.records().as_os_str().to_owned());
    if trace.follow_clean_env {
        set(OPTIONS_VARIABLE, OsString::from("follow-clean-env"));
    }
    env
}

fn header(args: &RunArgs, sources: Vec<SourceStatus>) -> Header {
    Header {
        jittrace: FORMAT,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command: args
            .command
            .iter()
            .map(|a| a.to_string_lossy().into_owned())
            .collect(),
        attached: None,
        started_unix_ns: SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |d| d.as_nanos() as u64),
        host: collect::host(),
        sources,
    }
}

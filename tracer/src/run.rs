//! `jittrace -- COMMAND`: launch, collect, report.

use std::{
    ffi::OsString,
    io::{self, IsTerminal, Write},
    path::{Path, PathBuf},
    process::ExitCode,
    thread,
    time::{SystemTime, UNIX_EPOCH},
};

use anyhow::{Context, Result};
use jittrace_model::{
    Model,
    log::{FORMAT, Header, SourceState, SourceStatus},
    redact::{Options, Places, Redactor},
    report::text,
};
use jittrace_wire::{OPTIONS_VARIABLE, SESSION_VARIABLE};

use crate::{
    cli::{RunArgs, SourceChoice, TraceArgs},
    collect::{self, Collected, Plan, Word},
    launch::{self, Command, Ended, Reach, Session},
    output,
};

/// Status when jittrace itself fails, as `env` and `timeout` give it.
const OWN_FAILURE: u8 = 125;

/// Traces a command; gives its own exit status.
pub fn run(args: &RunArgs) -> Result<ExitCode> {
    match trace(args) {
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

fn trace(args: &RunArgs) -> Result<Ended> {
    let report = ReportChoice::parse(args.trace.report.as_deref())?;
    let program = args.command.first().cloned().unwrap_or_default();
    let (path, file) = output::open(args.trace.output.as_deref(), &program.to_string_lossy())?;
    let session = Session::create(None)?;
    let search = std::env::var_os("PATH");
    let reach = launch::reach(&program, search.as_deref());
    let followed = reach == Reach::Yes && args.trace.source != SourceChoice::Ebpf;
    let command = Command::new(&args.command, environment(&args.trace, &session, followed))?;

    let mut redactor = Redactor::new(redaction(&args.trace));
    redactor.learn_environment(std::env::vars_os().map(|(n, v)| {
        (
            n.to_string_lossy().into_owned(),
            v.to_string_lossy().into_owned(),
        )
    }));
    let mut header = header(args, &reach);
    redactor.header(&mut header);

    // Signals are taken from here on; the command gets back what jittrace was started with.
    launch::block_signals();
    let began = collect::monotonic_ns();
    let launched = command.start().inspect_err(|_| {
        let _ = std::fs::remove_file(&path);
    })?;
    let plan = Plan {
        header,
        trace: Box::new(io::BufWriter::new(file)),
        session: session
            .open()
            .context("cannot read the session file that was just made")?,
        redactor,
        began,
        root: launched.pid as u32,
        unreached: match reach {
            Reach::No(reason) => Some((PathBuf::from(&program), reason)),
            Reach::Yes => None,
        },
        wait_all: args.trace.wait_all,
        listener: None,
    };
    let (words, heard) = crossbeam_channel::unbounded();
    let collector = thread::Builder::new()
        .name("collector".to_owned())
        .spawn(move || collect::collect(plan, &heard))
        .context("cannot start a thread")?;
    let ended = launch::supervise(launched.pid).context("cannot wait for the command")?;
    let _ = words.send(Word::Ended(ended));
    // The command's status is what counts: a collector that failed is said, and changes nothing.
    match collector.join() {
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

/// The environment of the command: the caller's, with the shim first in LD_PRELOAD.
fn environment(trace: &TraceArgs, session: &Session, followed: bool) -> Vec<(OsString, OsString)> {
    let mut env: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    if !followed {
        return env;
    }
    let mut set = |name: &str, value: OsString| {
        env.retain(|(n, _)| n != name);
        env.push((OsString::from(name), value));
    };
    let mut preload = session.shim().as_os_str().to_owned();
    if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|v| !v.is_empty()) {
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

/// What is masked. The placeholders of one user on one machine are the same in every trace, so that a diff works.
fn redaction(trace: &TraceArgs) -> Options {
    let machine = std::fs::read_to_string("/etc/machine-id").unwrap_or_default();
    let user = rustix::process::getuid().as_raw();
    let places = trace.redact.map(|crate::cli::Redact::Paths| Places {
        homes: std::env::var("HOME").into_iter().collect(),
        users: ["USER", "LOGNAME", "SUDO_USER"]
            .iter()
            .filter_map(|n| std::env::var(n).ok())
            .collect(),
        projects: std::env::current_dir()
            .map(|d| d.to_string_lossy().into_owned())
            .into_iter()
            .collect(),
        hosts: vec![collect::host().name],
    });
    Options {
        key: format!("{}/{user}", machine.trim()).into_bytes(),
        places,
    }
}

fn header(args: &RunArgs, reach: &Reach) -> Header {
    let preload = match (args.trace.source, reach) {
        (SourceChoice::Ebpf, _) => SourceStatus {
            name: "preload".to_owned(),
            state: SourceState::Absent,
            reason: None,
        },
        (_, Reach::Yes) => SourceStatus {
            name: "preload".to_owned(),
            state: SourceState::Active,
            reason: None,
        },
        (_, Reach::No(reason)) => SourceStatus {
            name: "preload".to_owned(),
            state: SourceState::Refused,
            reason: Some(reason.clone()),
        },
    };
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
        sources: vec![preload],
    }
}

/// What is shown at the end, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ReportChoice {
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
    fn parse(text: Option<&str>) -> Result<ReportChoice> {
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
fn conclude(trace: &TraceArgs, choice: &ReportChoice, path: &Path, collected: &Collected) {
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

/// Colour and the terminal's own width where a person reads, a plain hundred columns elsewhere.
fn style(choice: &ReportChoice) -> text::Style {
    let terminal = choice.file.is_none() && io::stderr().is_terminal();
    text::Style {
        colour: terminal && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty()),
        ..text::Style::default()
    }
}

fn report(trace: &TraceArgs, choice: &ReportChoice, model: &Model) -> Result<()> {
    let report = model.report();
    let text = match choice.format {
        Format::None => return Ok(()),
        Format::Json => serde_json::to_string_pretty(&report)? + "\n",
        Format::Text | Format::Markdown => text::render(&report, style(choice)),
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

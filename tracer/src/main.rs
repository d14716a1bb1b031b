//! `jittrace`: the command.

use std::process::ExitCode;

use clap::Parser;
use jittrace::{
    attach, bundle_command,
    cli::{Action, AttachArgs, Cli},
    demo, diff_command, doctor, export_command, report_command, run, view, which,
};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let outcome = match cli.action {
        None if cli.pid.is_some() => attach::attach(&AttachArgs {
            trace: cli.run.trace,
            pid: cli.pid,
            pid_option: None,
        }),
        None => run::run(&cli.run),
        Some(Action::Run(args)) => run::run(&args),
        Some(Action::Attach(args)) => attach::attach(&args),
        Some(Action::Demo(args)) => demo::demo(&args),
        Some(Action::Doctor(args)) => doctor::doctor(&args),
        Some(Action::Report(args)) => report_command::run(&args),
        Some(Action::Diff(args)) => Ok(diff_command::run(&args)),
        Some(Action::Export(args)) => export_command::run(&args),
        Some(Action::Bundle(args)) => bundle_command::run(&args),
        Some(Action::Which(args)) => which::which(&args),
        Some(Action::View(args)) => view::run(&args),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("jittrace: {error:#}");
        ExitCode::from(1)
    })
}

//! `jittrace`: the command.

use std::process::ExitCode;

use clap::Parser;
use jittrace::{
    cli::{Action, Cli},
    run,
};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let outcome = match cli.action {
        None => run::run(&cli.run),
        Some(Action::Run(args)) => run::run(&args),
        Some(_) => Err(anyhow::anyhow!("not built yet")),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("jittrace: {error:#}");
        ExitCode::from(1)
    })
}

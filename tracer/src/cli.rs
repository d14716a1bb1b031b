//! The command line (design section 4): what can be asked, and nothing of how it is done.

use std::{ffi::OsString, path::PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Which CUDA toolkit did each component resolve, by which rule, and what puts it right.
#[derive(Debug, Parser)]
#[command(
    name = "jittrace",
    version,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    override_usage = "jittrace [OPTIONS] -- COMMAND [ARGS]…\n       jittrace attach [OPTIONS] PID\n       jittrace view | report | diff | export | bundle | which | doctor | demo …",
    after_help = "Examples:\n  jittrace -- python -m sglang.launch_server --model-path …\n  jittrace attach 4711\n  jittrace report server.jtrace --format markdown\n  jittrace diff worked.jtrace broken.jtrace"
)]
pub struct Cli {
    /// What to do; without it, the command after `--` is traced.
    #[command(subcommand)]
    pub action: Option<Action>,
    /// The command to trace.
    #[command(flatten)]
    pub run: RunArgs,
    /// Trace this live process (the same as `jittrace attach PID`).
    #[arg(
        short = 'p',
        long = "pid",
        value_name = "PID",
        conflicts_with = "command"
    )]
    pub pid: Option<u32>,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Trace a command (the same as `jittrace -- COMMAND`)
    Run(RunArgs),
    /// Trace a live process and all that it starts
    Attach(AttachArgs),
    /// Open a recorded trace in the terminal view
    View(ViewArgs),
    /// What each component resolved and what is wrong, from one or more traces
    Report(ReportArgs),
    /// What changed between a good and a bad trace, the likely cause first
    Diff(DiffArgs),
    /// Turn a trace into JSON Lines or a Perfetto trace
    Export(ExportArgs),
    /// Pack a trace and its reports into one file for a bug report
    Bundle(BundleArgs),
    /// What each component would resolve, without running it
    Which(WhichArgs),
    /// Which sources work on this machine, and what would enable the others
    Doctor(DoctorArgs),
    /// The SM120 story on stand-in toolkits: no GPU, no network
    Demo(DemoArgs),
}

/// Options that a launch and an attach share.
#[derive(Debug, Clone, Args)]
pub struct TraceArgs {
    /// The trace file; %t is the UTC time, %p the process id [default: jittrace-COMMAND-%t.jtrace]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Show the live view
    #[arg(long, conflicts_with = "no_tui")]
    pub tui: bool,
    /// Do not show the live view
    #[arg(long)]
    pub no_tui: bool,
    /// Who watches
    #[arg(long, value_enum, default_value_t = SourceChoice::Auto)]
    pub source: SourceChoice,
    /// The report at the end [default: text, to stderr]
    #[arg(long, value_name = "text|markdown|json|none[=FILE]")]
    pub report: Option<String>,
    /// Wait for every descendant, not only for the command
    #[arg(long)]
    pub wait_all: bool,
    /// Follow children whose environment the program cleared (they will see LD_PRELOAD)
    #[arg(long)]
    pub follow_clean_env: bool,
    /// Also hide user, host and project directories in the trace
    #[arg(long, value_enum, value_name = "WHAT")]
    pub redact: Option<Redact>,
    /// Say nothing at the end
    #[arg(short, long)]
    pub quiet: bool,
}

/// `jittrace run`, and `jittrace` alone.
#[derive(Debug, Clone, Args)]
pub struct RunArgs {
    /// What to record and to show.
    #[command(flatten)]
    pub trace: TraceArgs,
    /// The command and its arguments
    #[arg(last = true, value_name = "COMMAND", required = true)]
    pub command: Vec<OsString>,
}

/// `jittrace attach`.
#[derive(Debug, Clone, Args)]
pub struct AttachArgs {
    /// What to record and to show.
    #[command(flatten)]
    pub trace: TraceArgs,
    /// The process
    #[arg(value_name = "PID")]
    pub pid: Option<u32>,
    /// The process
    #[arg(short = 'p', long = "pid", value_name = "PID", conflicts_with = "pid")]
    pub pid_option: Option<u32>,
}

/// `jittrace view`.
#[derive(Debug, Clone, Args)]
pub struct ViewArgs {
    /// The trace; `-` for standard input
    #[arg(required_unless_present = "defaults")]
    pub file: Option<PathBuf>,
    /// Go on reading a trace that is still being written
    #[arg(long)]
    pub follow: bool,
    /// Print a file of settings (keys, layout, look) as they come, for ~/.config/jittrace/view.toml
    #[arg(long, conflicts_with_all = ["file", "follow"])]
    pub defaults: bool,
}

/// `jittrace report`.
#[derive(Debug, Clone, Args)]
pub struct ReportArgs {
    /// The traces; `-` for standard input; several are joined
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// How to write it
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub format: ReportFormat,
    /// Where to write it [default: standard output]
    #[arg(short, long, value_name = "OUT")]
    pub output: Option<PathBuf>,
}

/// `jittrace diff`.
#[derive(Debug, Clone, Args)]
pub struct DiffArgs {
    /// The trace of the run that worked
    pub good: PathBuf,
    /// The trace of the run that did not
    pub bad: PathBuf,
    /// How to write it
    #[arg(long, value_enum, default_value_t = DiffFormat::Text)]
    pub format: DiffFormat,
}

/// `jittrace export`.
#[derive(Debug, Clone, Args)]
pub struct ExportArgs {
    /// The trace; `-` for standard input
    pub file: PathBuf,
    /// What to turn it into
    #[arg(long, value_enum)]
    pub format: ExportFormat,
    /// Where to write it [default: standard output]
    #[arg(short, long, value_name = "OUT")]
    pub output: Option<PathBuf>,
}

/// `jittrace bundle`.
#[derive(Debug, Clone, Args)]
pub struct BundleArgs {
    /// The trace
    pub file: PathBuf,
    /// Where to write it [default: the trace's name with .tar.gz]
    #[arg(short, long, value_name = "OUT.tar.gz")]
    pub output: Option<PathBuf>,
}

/// `jittrace which`.
#[derive(Debug, Clone, Args)]
pub struct WhichArgs {
    /// The interpreter whose packages are meant [default: python3 on PATH]
    #[arg(long, value_name = "PYTHON")]
    pub python: Option<PathBuf>,
    /// Pretend that a variable has this value
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,
    /// How to write it
    #[arg(long, value_enum, default_value_t = PlainFormat::Text)]
    pub format: PlainFormat,
}

/// `jittrace doctor`.
#[derive(Debug, Clone, Args)]
pub struct DoctorArgs {
    /// How to write it
    #[arg(long, value_enum, default_value_t = PlainFormat::Text)]
    pub format: PlainFormat,
}

/// `jittrace demo`.
#[derive(Debug, Clone, Args)]
pub struct DemoArgs {
    /// Keep the stand-in toolkits and the traces in this directory
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
}

/// Who watches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum SourceChoice {
    /// The shim for a launch, and the kernel beside it where that is allowed; the kernel for an attach
    #[default]
    Auto,
    /// The shim alone
    Preload,
    /// The kernel alone
    Ebpf,
    /// Both, each with all that it sees
    All,
}

/// What else to hide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Redact {
    /// User, host and project directories
    Paths,
}

/// Formats of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// For a terminal
    Text,
    /// For an issue
    Markdown,
    /// For a script (schema jittrace.report/1)
    Json,
    /// For a browser, one file
    Html,
}

/// Formats of a diff.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DiffFormat {
    /// For a terminal
    Text,
    /// For an issue
    Markdown,
    /// For a script
    Json,
}

/// Formats of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// One event a line
    Jsonl,
    /// For ui.perfetto.dev
    Perfetto,
}

/// Text or JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PlainFormat {
    /// For a terminal
    Text,
    /// For a script
    Json,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_command_needs_no_word_before_it() {
        let cli =
            Cli::try_parse_from(["jittrace", "--no-tui", "-o", "t", "--", "python", "-c", "x"])
                .unwrap();
        assert!(cli.action.is_none());
        assert_eq!(cli.run.command, ["python", "-c", "x"]);
        let cli = Cli::try_parse_from(["jittrace", "run", "--", "true"]).unwrap();
        assert!(matches!(cli.action, Some(Action::Run(run)) if run.command == ["true"]));
    }

    #[test]
    fn attach_takes_a_pid_in_three_ways() {
        for args in [
            ["jittrace", "attach", "12"].as_slice(),
            &["jittrace", "attach", "-p", "12"],
        ] {
            let cli = Cli::try_parse_from(args).unwrap();
            let Some(Action::Attach(attach)) = cli.action else {
                panic!("{args:?}")
            };
            assert_eq!(attach.pid.or(attach.pid_option), Some(12));
        }
        assert_eq!(
            Cli::try_parse_from(["jittrace", "-p", "12"]).unwrap().pid,
            Some(12)
        );
    }
}

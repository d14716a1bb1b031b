//! The words for rules and outcomes.

use jittrace_model::event::{Outcome, Rule};

use crate::theme::Tone;

/// A rule as a sentence.
pub fn rule_sentence(rule: Rule) -> &'static str {
    match rule {
        Rule::CudaHome => "CUDA_HOME names the toolkit",
        Rule::CudaPath => "CUDA_PATH names the toolkit",
        Rule::Path => "it is the first on PATH",
        Rule::OverrideVariable => "a variable names this file",
        Rule::DefaultDirectory => "it is in a built-in directory",
        Rule::Bundled => "the component carries its own",
        Rule::Wheel => "it is in a wheel of site-packages",
        Rule::Conda => "it is in the conda environment",
        Rule::Rpath => "DT_RPATH leads there",
        Rule::Runpath => "DT_RUNPATH leads there",
        Rule::LdLibraryPath => "LD_LIBRARY_PATH leads there",
        Rule::LdSoCache => "ld.so.cache lists it",
        Rule::LdDefaultDirectory => "it is in a default directory of the loader",
        Rule::AbsolutePath => "this path was asked for",
        Rule::AlreadyLoaded => "it was loaded before",
        Rule::Preload => "LD_PRELOAD names it",
        Rule::Inherited => "it came from the parent process",
        Rule::BuildFile => "the build file names it",
        Rule::ToolRelative => "the tool finds it beside itself",
        Rule::Unknown => "the rule was not seen",
    }
}

/// A rule as a sentence, with what decided.
pub fn rule_long(rule: Rule, detail: &str) -> String {
    match detail {
        "" => rule_sentence(rule).to_owned(),
        detail => format!("{}: {detail}", rule_sentence(rule)),
    }
}

/// A rule in a few words, with what decided.
pub fn rule_short(rule: Rule, detail: &str) -> String {
    match detail {
        "" => rule.word().to_owned(),
        detail => format!("{}: {detail}", rule.word()),
    }
}

/// What became of a place, in words.
pub fn outcome(outcome: Outcome) -> (&'static str, Tone) {
    match outcome {
        Outcome::Chosen => ("chosen", Tone::Good),
        Outcome::Missing => ("no such file", Tone::Dim),
        Outcome::DirectoryMissing => ("no such directory", Tone::Dim),
        Outcome::NotElf => ("not an ELF file", Tone::Warning),
        Outcome::WrongClass => ("for another machine", Tone::Warning),
        Outcome::Unreadable => ("not readable", Tone::Warning),
        Outcome::Broken => ("cannot be mapped", Tone::Error),
        Outcome::NotTried => ("not tried any more", Tone::Plain),
    }
}

//! `build.ninja`: the toolkit, compilers and architectures that a JIT build was written for.

use crate::commandline::{self, Purpose, Tool, ToolCommand};
use crate::toolkit::Arch;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How much of a file and a value is kept, at most.
const MAX_TEXT: usize = 4 << 20;
const MAX_VALUE: usize = 256 << 10;
const MAX_STATEMENTS: usize = 50_000;

/// What a `build.ninja` says about the toolkit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuildFile {
    /// `cuda_home`, or the directory above the compiler's `bin`.
    pub cuda_home: Option<String>,
    /// Whether the file has `cuda_home` in so many words.
    pub states_cuda_home: bool,
    /// The nvcc that its rules run, with variables filled in.
    pub nvcc: Option<String>,
    /// The host compiler that its rules run.
    pub cxx: Option<String>,
    /// Architectures in the flags, in order.
    pub archs: Vec<Arch>,
    /// Header directories of the GPU compiles.
    pub includes: Vec<String>,
    /// Library directories of the link.
    pub library_directories: Vec<String>,
    /// What it builds, in order.
    pub outputs: Vec<String>,
}

/// Reads the text of a `build.ninja`. Unknown statements are passed over.
#[must_use]
pub fn read(text: &str) -> BuildFile {
    let mut end = text.len().min(MAX_TEXT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let text = text.get(..end).unwrap_or_default();
    let mut variables: BTreeMap<String, String> = BTreeMap::new();
    let mut commands: Vec<String> = Vec::new();
    let mut found = BuildFile::default();
    for line in logical_lines(text).take(MAX_STATEMENTS) {
        let indented = line.starts_with([' ', '\t']);
        let line = line.trim();
        if let Some(rest) = line.strip_prefix("build ") {
            if let Some((outputs, _)) = split_unescaped_colon(rest) {
                found.outputs.extend(
                    outputs
                        .split_ascii_whitespace()
                        .map(|output| expand(output, &variables)),
                );
            }
            continue;
        }
        let Some((name, value)) = line.split_once('=') else {
            continue;
        };
        let (name, value) = (name.trim(), value.trim());
        if indented {
            if name == "command" {
                commands.push(value.to_owned());
            }
        } else if name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
        {
            let value = expand(value, &variables);
            variables.insert(name.to_owned(), value);
        }
    }
    for command in commands {
        note_command(&expand(&command, &variables), &mut found);
    }
    if let Some(home) = variables.get("cuda_home").filter(|home| !home.is_empty()) {
        found.cuda_home = Some(home.clone());
        found.states_cuda_home = true;
    }
    if found.nvcc.is_none() {
        found.nvcc = variables.get("nvcc").cloned();
    }
    if found.cxx.is_none() {
        found.cxx = variables.get("cxx").cloned();
    }
    if found.cuda_home.is_none() {
        let above_bin = found
            .nvcc
            .as_ref()
            .and_then(|nvcc| nvcc.rsplit_once("/bin/"))
            .map(|(home, _)| home.to_owned());
        found.cuda_home = above_bin;
    }
    found
}

fn note_command(command: &str, found: &mut BuildFile) {
    for simple in commandline::shell_commands(command) {
        let parsed = commandline::parse(&simple.words);
        for step in parsed.leaves() {
            note_step(step, found);
        }
    }
}

fn note_step(step: &ToolCommand, found: &mut BuildFile) {
    match step.tool {
        Tool::Nvcc => {
            found.nvcc.get_or_insert_with(|| step.program.clone());
            for arch in &step.archs {
                if !found.archs.contains(arch) {
                    found.archs.push(*arch);
                }
            }
            if found.includes.is_empty() {
                found.includes.clone_from(&step.includes);
            }
        }
        Tool::HostCompiler => {
            found.cxx.get_or_insert_with(|| step.program.clone());
        }
        _ => return,
    }
    if matches!(step.purpose, Purpose::Link | Purpose::Build)
        && found.library_directories.is_empty()
    {
        found
            .library_directories
            .clone_from(&step.library_directories);
    }
}

/// Lines with `$` at their end joined to the next.
fn logical_lines(text: &str) -> impl Iterator<Item = String> + '_ {
    let mut lines = text.lines();
    std::iter::from_fn(move || {
        let mut line = lines.next()?.to_owned();
        while line.ends_with('$') && !line.ends_with("$$") && line.len() < MAX_VALUE {
            line.pop();
            let Some(next) = lines.next() else { break };
            line.push_str(next.trim_start());
        }
        Some(line)
    })
}

/// The outputs of a `build` statement end at the first colon that is not escaped.
fn split_unescaped_colon(text: &str) -> Option<(&str, &str)> {
    let mut escaped = false;
    for (at, character) in text.char_indices() {
        match character {
            '$' => escaped = !escaped,
            ':' if !escaped => return Some((text.get(..at)?, text.get(at + 1..)?)),
            _ => escaped = false,
        }
    }
    None
}

/// Fills in `$name` and `${name}` and unescapes `$$`, `$ ` and `$:`. Ninja's own `$in` and `$out` stay.
///
/// Once is enough: ninja evaluates a variable where it is assigned, so values hold no references.
fn expand(text: &str, variables: &BTreeMap<String, String>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        if out.len() > MAX_VALUE {
            return out;
        }
        let (name, tail) = match after.strip_prefix('{') {
            Some(braced) => braced.split_once('}').unwrap_or((braced, "")),
            None => {
                let end = after
                    .bytes()
                    .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
                    .count();
                after.split_at_checked(end).unwrap_or((after, ""))
            }
        };
        if name.is_empty() {
            // An escape: the next character is meant.
            let mut characters = after.chars();
            out.extend(characters.next());
            rest = characters.as_str();
            continue;
        }
        match variables.get(name) {
            Some(value) => out.push_str(value),
            None => {
                out.push('$');
                out.push_str(name);
            }
        }
        rest = tail;
    }
    out.push_str(rest);
    out.truncate(out.floor_char_boundary(MAX_VALUE));
    out
}

//! What a compiler, linker or build tool was asked to do, from its argument vector; and what it answered.
//!
//! [`parse`] reads argument vectors as the kernel hands them over; a shell's `-c` text is taken apart into the
//! commands inside. [`answer`] reads what version and architecture probes print, [`message`] what went wrong.

pub mod answer;
mod handed;
pub mod message;
mod options;
mod rebuilt;
mod shell;

pub use answer::{VersionAnswer, read_arch_list, read_version};
pub use handed::{HANDED_OVER, Handed, handed_over};
pub use message::{Message, meanings};
pub use rebuilt::{REBUILT_SINCE, made_of};
pub use shell::{Simple, commands as shell_commands};

use crate::toolkit::{Arch, Part, is_host_compiler};
use options::Field;
use serde::{Deserialize, Serialize};

/// How deep shells and launchers are followed into each other.
const MAX_DEPTH: u32 = 4;
/// How many arguments of one command are read.
const MAX_ARGUMENTS: usize = 100_000;

/// The kind of program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the variants are the names of the programs")]
pub enum Tool {
    Nvcc,
    Ptxas,
    Cicc,
    Cudafe,
    Nvlink,
    Fatbinary,
    Cuobjdump,
    Nvdisasm,
    Bin2c,
    Nvprune,
    /// gcc, g++, clang, cc, c++ and their spellings with a version or target.
    HostCompiler,
    /// A host compiler's own stage: cc1, cc1plus, cpp.
    CompilerStage,
    Assembler,
    /// ld and collect2.
    Linker,
    /// What packs or changes objects: ar, objcopy, strip.
    ObjectTool,
    Ninja,
    Make,
    Cmake,
    Which,
    Ldconfig,
    NvidiaSmi,
    Shell,
    /// What starts the program that follows it: env, ccache, timeout.
    Launcher,
    Python,
    Other,
}

/// What the program was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// To state its version; nothing is compiled.
    VersionProbe,
    /// To list the architectures that it knows.
    ListArchs,
    /// To compile, without linking.
    Compile,
    /// To link or pack what is compiled already.
    Link,
    /// To preprocess or list dependencies.
    Preprocess,
    /// To run a whole build, or to compile and link in one go.
    Build,
    /// To look for a program.
    Search,
    /// Anything else.
    Other,
}

/// One command, understood.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCommand {
    /// The kind of program.
    pub tool: Tool,
    /// The program as it was named: a path, or a bare name for PATH.
    pub program: String,
    /// What it was asked for.
    pub purpose: Purpose,
    /// The architectures asked for, real and virtual, each once, in the order of the command.
    pub archs: Vec<Arch>,
    /// Architecture values that name no single one: `native`, `all-major`.
    pub arch_words: Vec<String>,
    /// The host compiler named by `-ccbin`.
    pub ccbin: Option<String>,
    /// Header directories, in the order of the command (`-I`, `-isystem`, `-iquote`).
    pub includes: Vec<String>,
    /// Library directories (`-L`).
    pub library_directories: Vec<String>,
    /// Libraries to link (`-l`).
    pub libraries: Vec<String>,
    /// Files written.
    pub outputs: Vec<String>,
    /// Files read: what is no option and no option's value. For ninja: the targets.
    pub sources: Vec<String>,
    /// Names defined by `-D`; their values are not kept.
    pub defines: Vec<String>,
    /// Files with further arguments (`@FILE`, `-optf FILE`); what they say is not in here.
    pub response_files: Vec<String>,
    /// The directory changed to first: ninja's `-C`, a shell's `cd`.
    pub directory: Option<String>,
    /// ninja's build file.
    pub build_file: Option<String>,
    /// Programs that `which` or `command -v` was asked for.
    pub asks_for: Vec<String>,
    /// The commands inside: a shell's `-c`, or what a launcher such as ccache starts.
    pub steps: Vec<ToolCommand>,
}

impl ToolCommand {
    fn new(tool: Tool, program: &str) -> Self {
        Self {
            tool,
            program: program.to_owned(),
            purpose: Purpose::Other,
            archs: Vec::new(),
            arch_words: Vec::new(),
            ccbin: None,
            includes: Vec::new(),
            library_directories: Vec::new(),
            libraries: Vec::new(),
            outputs: Vec::new(),
            sources: Vec::new(),
            defines: Vec::new(),
            response_files: Vec::new(),
            directory: None,
            build_file: None,
            asks_for: Vec::new(),
            steps: Vec::new(),
        }
    }

    /// The commands that do something by themselves: this one, or those inside it.
    #[must_use]
    pub fn leaves(&self) -> Vec<&Self> {
        if self.steps.is_empty() {
            return vec![self];
        }
        self.steps.iter().flat_map(Self::leaves).collect()
    }

    /// Whether it makes GPU code, so that its toolkit and architectures count.
    #[must_use]
    pub fn compiles_for_gpu(&self) -> bool {
        let tool = matches!(
            self.tool,
            Tool::Nvcc | Tool::Ptxas | Tool::Cicc | Tool::Nvlink | Tool::Fatbinary
        );
        tool && matches!(
            self.purpose,
            Purpose::Compile | Purpose::Link | Purpose::Build
        )
    }

    fn add_arch(&mut self, text: &str) {
        let text = text.trim_matches(['"', '\'', '[', ']']);
        match Arch::parse(text) {
            Some(arch) if !self.archs.contains(&arch) => self.archs.push(arch),
            Some(_) => {}
            None if text.is_empty() || self.arch_words.iter().any(|word| word == text) => {}
            None => self.arch_words.push(text.to_owned()),
        }
    }
}

/// A path made absolute against a working directory. Nothing is looked up: `..` and links stay.
#[must_use]
pub fn absolute(cwd: &str, path: &str) -> String {
    if path.starts_with('/') {
        path.to_owned()
    } else {
        format!(
            "{}/{}",
            cwd.trim_end_matches('/'),
            path.trim_start_matches("./")
        )
    }
}

/// The kind of program that a path or name stands for: the one table of the tools that are known.
#[must_use]
pub fn tool_of(program: &str) -> Tool {
    let name = program.rsplit('/').next().unwrap_or(program);
    match Part::of_file_name(name) {
        Part::Nvcc => return Tool::Nvcc,
        Part::Ptxas => return Tool::Ptxas,
        Part::Cicc => return Tool::Cicc,
        Part::Cudafe => return Tool::Cudafe,
        Part::Nvlink => return Tool::Nvlink,
        Part::Fatbinary => return Tool::Fatbinary,
        Part::Cuobjdump => return Tool::Cuobjdump,
        Part::Nvdisasm => return Tool::Nvdisasm,
        Part::Bin2c => return Tool::Bin2c,
        Part::Ninja => return Tool::Ninja,
        _ => {}
    }
    match name {
        "nvprune" => Tool::Nvprune,
        "cc1" | "cc1plus" | "cpp" => Tool::CompilerStage,
        "as" => Tool::Assembler,
        "ld" | "ld.bfd" | "ld.gold" | "ld.lld" | "ld.mold" | "mold" | "lld" | "collect2" => {
            Tool::Linker
        }
        "ar" | "ranlib" | "objcopy" | "strip" | "lto-wrapper" => Tool::ObjectTool,
        "make" | "gmake" => Tool::Make,
        "cmake" => Tool::Cmake,
        "which" => Tool::Which,
        "ldconfig" | "ldconfig.real" => Tool::Ldconfig,
        "nvidia-smi" => Tool::NvidiaSmi,
        "sh" | "bash" | "dash" | "zsh" | "ksh" | "busybox" => Tool::Shell,
        "env" | "ccache" | "sccache" | "distcc" | "icecc" | "nohup" | "setsid" | "nice"
        | "stdbuf" | "time" | "timeout" => Tool::Launcher,
        name if name.starts_with("python") => Tool::Python,
        name if is_host_compiler(name) => Tool::HostCompiler,
        _ => Tool::Other,
    }
}

/// Understands a command from its argument vector, the program's name first. An empty vector gives an `other`
/// command without a name.
#[must_use]
pub fn parse(argv: &[impl AsRef<str>]) -> ToolCommand {
    let words: Vec<&str> = argv.iter().take(MAX_ARGUMENTS).map(AsRef::as_ref).collect();
    parse_words(&words, 0)
}

fn parse_words(words: &[&str], depth: u32) -> ToolCommand {
    let Some((program, arguments)) = words.split_first() else {
        return ToolCommand::new(Tool::Other, "");
    };
    let mut command = ToolCommand::new(tool_of(program), program);
    match command.tool {
        Tool::Shell => parse_shell(&mut command, arguments, depth),
        Tool::Which => {
            command.purpose = Purpose::Search;
            command.asks_for = arguments
                .iter()
                .filter(|word| !word.starts_with('-'))
                .map(|word| (*word).to_owned())
                .collect();
        }
        Tool::Other | Tool::Python | Tool::Launcher => {
            if let Some(started) = launched(program, arguments).filter(|_| depth < MAX_DEPTH) {
                let inner = parse_words(started, depth + 1);
                command.purpose = inner.purpose;
                command.steps.push(inner);
            }
        }
        Tool::Ldconfig | Tool::NvidiaSmi => command.purpose = Purpose::Other,
        _ => {
            options::read(&mut command, arguments);
            command.purpose = options::purpose(&command, arguments);
        }
    }
    command
}

/// What a launcher starts: the words after `ccache`, `env NAME=VALUE`, `nice`, or `python -m` for ninja.
fn launched<'a, 'w>(program: &str, arguments: &'a [&'w str]) -> Option<&'a [&'w str]> {
    let name = program.rsplit('/').next().unwrap_or(program);
    let start = match name {
        "ccache" | "sccache" | "distcc" | "icecc" | "nohup" | "setsid" => 0,
        "env" => arguments
            .iter()
            .position(|word| !word.contains('=') && !word.starts_with('-'))?,
        "nice" | "stdbuf" | "time" => arguments
            .iter()
            .position(|word| !word.starts_with('-') && word.parse::<i32>().is_err())?,
        "timeout" => arguments
            .iter()
            .position(|word| !word.starts_with('-'))
            .map(|duration| duration + 1)?,
        name if name.starts_with("python") && matches!(arguments.first(), Some(&"-m")) => 1,
        _ => return None,
    };
    let started = arguments.get(start..)?;
    let (first, rest) = started.split_first()?;
    let is_known = tool_of(first) != Tool::Other || launched(first, rest).is_some();
    (!first.starts_with('-') && is_known).then_some(started)
}

fn parse_shell(command: &mut ToolCommand, arguments: &[&str], depth: u32) {
    // `sh -c TEXT`, also `-ec TEXT`; a script file is no text that is known here.
    let Some(flag) = arguments
        .iter()
        .position(|word| word.starts_with('-') && !word.starts_with("--") && word.contains('c'))
    else {
        return;
    };
    let Some(text) = arguments.get(flag + 1) else {
        return;
    };
    if depth >= MAX_DEPTH {
        return;
    }
    for simple in shell::commands(text) {
        let words: Vec<&str> = simple.words.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["cd", directory, ..] => command.directory = Some((*directory).to_owned()),
            ["command", "-v" | "-V", names @ ..] | ["type", names @ ..] => {
                let mut search = ToolCommand::new(Tool::Which, "command");
                search.purpose = Purpose::Search;
                search.asks_for = names.iter().map(|name| (*name).to_owned()).collect();
                command.steps.push(search);
            }
            ["exec", words @ ..] if !words.is_empty() => {
                command.steps.push(parse_words(words, depth + 1))
            }
            [] => {}
            words => command.steps.push(parse_words(words, depth + 1)),
        }
    }
    if let Some(step) = command
        .steps
        .iter()
        .find(|step| step.purpose != Purpose::Other)
    {
        command.purpose = step.purpose;
    }
}

fn put(command: &mut ToolCommand, field: Field, value: &str) {
    let text = value.to_owned();
    match field {
        Field::Arch => value.split(',').for_each(|arch| command.add_arch(arch)),
        Field::Gencode => {
            // arch=compute_80,code=[sm_80,compute_80]
            for part in value.split(',') {
                let part = part.trim_start_matches("arch=").trim_start_matches("code=");
                command.add_arch(part);
            }
        }
        Field::Image => {
            for part in value.split(',') {
                match part.split_once('=') {
                    Some(("sm" | "profile", arch)) => command.add_arch(arch),
                    Some(("file", file)) => command.sources.push(file.to_owned()),
                    _ => {}
                }
            }
        }
        Field::Ccbin => command.ccbin = Some(text),
        Field::Include => command.includes.push(text),
        Field::LibraryDirectory => command.library_directories.push(text),
        Field::Library => command.libraries.push(text),
        Field::Output => command.outputs.push(text),
        Field::Define => command
            .defines
            .push(value.split('=').next().unwrap_or_default().to_owned()),
        Field::ResponseFile => command.response_files.push(text),
        Field::Directory => command.directory = Some(text),
        Field::BuildFile => command.build_file = Some(text),
        Field::Ignored => {}
    }
}

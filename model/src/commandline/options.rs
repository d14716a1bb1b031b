//! The options of compilers and build tools that matter here, and those whose value must not be taken for a file.

use super::{Purpose, Tool, ToolCommand, put};

/// Where an option's value belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    Arch,
    Gencode,
    Image,
    Ccbin,
    Include,
    LibraryDirectory,
    Library,
    Output,
    Define,
    ResponseFile,
    Directory,
    BuildFile,
    Ignored,
}

/// Options with a value, as `NAME VALUE` or `NAME=VALUE`.
type Table = &'static [(&'static str, Field)];

const NVIDIA: Table = &[
    ("-arch", Field::Arch),
    ("--gpu-architecture", Field::Arch),
    ("-code", Field::Arch),
    ("--gpu-code", Field::Arch),
    ("--gpu-name", Field::Arch),
    ("-gpu-name", Field::Arch),
    ("-gencode", Field::Gencode),
    ("--generate-code", Field::Gencode),
    ("-image", Field::Image),
    ("--image", Field::Image),
    ("-image3", Field::Image),
    ("--image3", Field::Image),
    ("-ccbin", Field::Ccbin),
    ("--compiler-bindir", Field::Ccbin),
    ("-o", Field::Output),
    ("-out", Field::Output),
    ("--output-file", Field::Output),
    ("-odir", Field::Output),
    ("--output-directory", Field::Output),
    ("--create", Field::Output),
    ("-create", Field::Output),
    ("--embedded-fatbin", Field::Output),
    ("--gen_c_file_name", Field::Output),
    ("--stub_file_name", Field::Output),
    ("--gen_module_id_file_name", Field::Ignored),
    ("--module_id_file_name", Field::Ignored),
    ("--include_file_name", Field::Ignored),
    ("-I", Field::Include),
    ("--include-path", Field::Include),
    ("-isystem", Field::Include),
    ("--system-include", Field::Include),
    ("-L", Field::LibraryDirectory),
    ("--library-path", Field::LibraryDirectory),
    ("-l", Field::Library),
    ("--library", Field::Library),
    ("-D", Field::Define),
    ("--define-macro", Field::Define),
    ("-optf", Field::ResponseFile),
    ("--options-file", Field::ResponseFile),
    ("--options-file-list", Field::ResponseFile),
    ("-include", Field::Ignored),
    ("--pre-include", Field::Ignored),
    ("-Xcompiler", Field::Ignored),
    ("--compiler-options", Field::Ignored),
    ("-Xptxas", Field::Ignored),
    ("--ptxas-options", Field::Ignored),
    ("-Xlinker", Field::Ignored),
    ("--linker-options", Field::Ignored),
    ("-Xfatbin", Field::Ignored),
    ("--fatbinary-options", Field::Ignored),
    ("-Xcudafe", Field::Ignored),
    ("--cudafe-options", Field::Ignored),
    ("-Xnvlink", Field::Ignored),
    ("-Xarchive", Field::Ignored),
    ("-Xcicc", Field::Ignored),
    ("-x", Field::Ignored),
    ("--x", Field::Ignored),
    ("-std", Field::Ignored),
    ("--std", Field::Ignored),
    ("-t", Field::Ignored),
    ("--threads", Field::Ignored),
    ("-m", Field::Ignored),
    ("--machine", Field::Ignored),
    ("-O", Field::Ignored),
    ("--opt-level", Field::Ignored),
    ("-MF", Field::Ignored),
    ("-MT", Field::Ignored),
    ("-MQ", Field::Ignored),
    ("--dependency-output", Field::Ignored),
    ("-cudart", Field::Ignored),
    ("--cudart", Field::Ignored),
    ("-cudadevrt", Field::Ignored),
    ("-keep-dir", Field::Ignored),
    ("--keep-dir", Field::Ignored),
    ("-maxrregcount", Field::Ignored),
    ("--maxrregcount", Field::Ignored),
    ("-rdc", Field::Ignored),
    ("-diag-suppress", Field::Ignored),
    ("--diag-suppress", Field::Ignored),
    ("-diag_suppress", Field::Ignored),
    ("-time", Field::Ignored),
    ("-ldir", Field::Ignored),
    ("-target-dir", Field::Ignored),
    ("--cicc-cmdline", Field::Ignored),
    ("--cmdline", Field::Ignored),
    ("--key", Field::Ignored),
    ("--ident", Field::Ignored),
    ("--register-link-binaries", Field::Ignored),
    ("--host-ptr-size", Field::Ignored),
    ("-orig_src_file_name", Field::Ignored),
    ("--orig_src_file_name", Field::Ignored),
    ("--orig_src_path_name", Field::Ignored),
    ("-nvvmir-library", Field::Ignored),
    ("-tused", Field::Ignored),
];

const HOST: Table = &[
    ("-o", Field::Output),
    ("-I", Field::Include),
    ("-isystem", Field::Include),
    ("-iquote", Field::Include),
    ("-idirafter", Field::Include),
    ("-L", Field::LibraryDirectory),
    ("-l", Field::Library),
    ("-D", Field::Define),
    ("-U", Field::Ignored),
    ("-include", Field::Ignored),
    ("-imacros", Field::Ignored),
    ("-imultiarch", Field::Ignored),
    ("-iprefix", Field::Ignored),
    ("-x", Field::Ignored),
    ("-MF", Field::Ignored),
    ("-MT", Field::Ignored),
    ("-MQ", Field::Ignored),
    ("-Xlinker", Field::Ignored),
    ("-Xassembler", Field::Ignored),
    ("-Xpreprocessor", Field::Ignored),
    ("-Xclang", Field::Ignored),
    ("-T", Field::Ignored),
    ("-z", Field::Ignored),
    ("-m", Field::Ignored),
    ("-h", Field::Ignored),
    ("-soname", Field::Ignored),
    ("-rpath", Field::Ignored),
    ("-rpath-link", Field::Ignored),
    ("-plugin", Field::Ignored),
    ("-dynamic-linker", Field::Ignored),
    ("-dumpbase", Field::Ignored),
    ("-dumpbase-ext", Field::Ignored),
    ("-dumpdir", Field::Ignored),
    ("-auxbase", Field::Ignored),
    ("-auxbase-strip", Field::Ignored),
    ("-target", Field::Ignored),
    ("--param", Field::Ignored),
    ("-arch", Field::Ignored),
    ("-u", Field::Ignored),
    ("-e", Field::Ignored),
];

const BUILD: Table = &[
    ("-C", Field::Directory),
    ("--directory", Field::Directory),
    ("-f", Field::BuildFile),
    ("--file", Field::BuildFile),
    ("-j", Field::Ignored),
    ("-k", Field::Ignored),
    ("-l", Field::Ignored),
    ("-t", Field::Ignored),
    ("-d", Field::Ignored),
    ("-w", Field::Ignored),
    ("-D", Field::Define),
    ("-S", Field::Ignored),
    ("-B", Field::Directory),
    ("--build", Field::Directory),
    ("-G", Field::Ignored),
];

/// Options whose value may be glued to one letter: `-I/usr/include`, `-lcudart`.
const GLUED: &[(&str, Field)] = &[
    ("-I", Field::Include),
    ("-L", Field::LibraryDirectory),
    ("-l", Field::Library),
    ("-D", Field::Define),
    ("-isystem", Field::Include),
];

const GLUED_BUILD: &[(&str, Field)] = &[
    ("-C", Field::Directory),
    ("-f", Field::BuildFile),
    ("-D", Field::Define),
];

const fn is_host(tool: Tool) -> bool {
    matches!(
        tool,
        Tool::HostCompiler
            | Tool::CompilerStage
            | Tool::Assembler
            | Tool::Linker
            | Tool::ObjectTool
    )
}

const fn is_build(tool: Tool) -> bool {
    matches!(tool, Tool::Ninja | Tool::Make | Tool::Cmake)
}

/// Sorts the arguments into the command's fields.
pub(super) fn read(command: &mut ToolCommand, arguments: &[&str]) {
    let table = if is_host(command.tool) {
        HOST
    } else if is_build(command.tool) {
        BUILD
    } else {
        NVIDIA
    };
    let glued = if is_build(command.tool) {
        GLUED_BUILD
    } else {
        GLUED
    };
    let mut words = arguments.iter().copied();
    let mut options_ended = false;
    while let Some(word) = words.next() {
        if options_ended || !word.starts_with('-') || word == "-" {
            match word.strip_prefix('@') {
                Some(file) if !is_build(command.tool) => {
                    command.response_files.push(file.to_owned())
                }
                _ => command.sources.push(word.to_owned()),
            }
        } else if word == "--" {
            options_ended = true;
        } else if let Some((_, field)) = table.iter().find(|(name, _)| *name == word) {
            if let Some(value) = words.next() {
                put(command, *field, value);
            }
        } else if let Some((name, value)) = word.split_once('=')
            && let Some((_, field)) = table.iter().find(|(known, _)| *known == name)
        {
            put(command, *field, value);
        } else if let Some((prefix, field)) =
            glued.iter().find(|(prefix, _)| word.starts_with(prefix))
        {
            // -lineinfo and -link are no libraries.
            let is_word = *field == Field::Library
                && !is_host(command.tool)
                && matches!(word, "-lineinfo" | "-link" | "-lib");
            if !is_word {
                put(
                    command,
                    *field,
                    word.strip_prefix(prefix).unwrap_or_default(),
                );
            }
        }
    }
}

/// What the command was asked for.
pub(super) fn purpose(command: &ToolCommand, arguments: &[&str]) -> Purpose {
    let has = |names: &[&str]| arguments.iter().any(|word| names.contains(word));
    if has(&["--list-gpu-arch", "--list-gpu-code", "-arch-ls", "-code-ls"]) {
        return Purpose::ListArchs;
    }
    let host = is_host(command.tool);
    let nothing_to_do = command.sources.is_empty() && command.response_files.is_empty();
    if has(&["--version"])
        || !host && !is_build(command.tool) && has(&["-V"])
        || host && has(&["-dumpversion", "-dumpfullversion", "-dumpmachine"])
        || host && nothing_to_do && has(&["-v", "-V"])
    {
        return Purpose::VersionProbe;
    }
    if has(&["--help", "-h", "--dryrun", "-dryrun"]) && !matches!(command.tool, Tool::Linker) {
        return Purpose::Other;
    }
    if is_build(command.tool) {
        return if command.tool == Tool::Ninja && has(&["-t"]) {
            Purpose::Other
        } else {
            Purpose::Build
        };
    }
    if nothing_to_do {
        return Purpose::Other;
    }
    match command.tool {
        Tool::Ptxas | Tool::Cicc | Tool::Cudafe | Tool::Assembler => Purpose::Compile,
        Tool::CompilerStage => {
            if has(&["-E"]) {
                Purpose::Preprocess
            } else {
                Purpose::Compile
            }
        }
        Tool::Nvlink | Tool::Fatbinary | Tool::Linker => Purpose::Link,
        Tool::Nvcc | Tool::HostCompiler => {
            let compiled = |source: &String| {
                [".o", ".obj", ".a", ".so", ".cubin", ".fatbin"]
                    .iter()
                    .any(|end| source.ends_with(end))
            };
            if has(&[
                "-E",
                "--preprocess",
                "-M",
                "-MM",
                "--generate-dependencies",
                "--generate-nonsystem-dependencies",
                "-fsyntax-only",
            ]) {
                Purpose::Preprocess
            } else if has(&[
                "-dlink",
                "--device-link",
                "-lib",
                "--lib",
                "-link",
                "--link",
            ]) || command.sources.iter().all(compiled)
            {
                Purpose::Link
            } else if has(&[
                "-c",
                "-S",
                "--compile",
                "-dc",
                "--device-c",
                "-dw",
                "--device-w",
                "-cubin",
                "--cubin",
                "-ptx",
                "--ptx",
                "-fatbin",
                "--fatbin",
                "-cuda",
                "--cuda",
                "-optix-ir",
                "-ltoir",
            ]) || command.outputs.iter().any(|output| {
                [".o", ".cubin", ".ptx", ".fatbin"]
                    .iter()
                    .any(|end| output.ends_with(end))
            }) {
                Purpose::Compile
            } else {
                Purpose::Build
            }
        }
        _ => Purpose::Other,
    }
}

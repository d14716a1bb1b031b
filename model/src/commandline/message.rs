//! What toolkit messages mean: the values in the lines that tools, loaders and frameworks print when a toolkit
//! does not fit (resolution.md 3).

use crate::toolkit::{Arch, Part, Version};
use serde::{Deserialize, Serialize};

/// How much of a text is read, and how many meanings are kept.
const MAX_TEXT: usize = 1 << 20;
const MAX_MEANINGS: usize = 64;

/// The meaning of a message, with the values in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "means", rename_all = "kebab-case")]
pub enum Message {
    /// `nvcc fatal : Unsupported gpu architecture 'compute_120'`, `ptxas fatal : Value 'sm_121a' is not defined …`.
    ArchUnsupported {
        /// The tool that says so, where the line names it.
        tool: Option<Part>,
        /// The architecture.
        arch: Arch,
    },
    /// `nvcc fatal : Unknown option '…'`: the tool is older than the option.
    OptionUnknown {
        /// The tool that says so.
        tool: Option<Part>,
        /// The option.
        option: String,
    },
    /// `Unsupported .version 8.7; current version is '8.4'`.
    PtxTooNew {
        /// The PTX ISA of the text.
        ptx: Version,
        /// The highest that the reader knows.
        reads: Version,
    },
    /// `PTX .version 8.6 does not support .target sm_120`.
    PtxTooOldForTarget {
        /// The PTX ISA of the text.
        ptx: Version,
        /// Its target.
        target: Arch,
    },
    /// `SM 12.x requires CUDA >= 12.9`, `NVCC version should be >= 12.3`.
    NeedsCuda {
        /// What requires it, as the message names it: `SM 12.x`.
        subject: String,
        /// The lowest release that would do.
        at_least: Version,
    },
    /// `libcudart.so.13: cannot open shared object file`.
    LibraryNotFound {
        /// The library that was looked for.
        library: String,
    },
    /// `undefined symbol: __nvJitLinkComplete_12_9, version libnvJitLink.so.12`.
    SymbolUndefined {
        /// The object that wants it, where the line names it.
        object: Option<String>,
        /// The symbol.
        symbol: String,
        /// The symbol version that is asked for.
        version: Option<String>,
    },
    /// `CUDA driver version is insufficient for CUDA runtime version`, `driver on your system is too old`.
    DriverInsufficient {
        /// The CUDA release that the driver is said to have.
        found: Option<Version>,
    },
    /// `no kernel image is available for execution on the device` (209).
    NoKernelImage,
    /// `the provided PTX was compiled with an unsupported toolchain` (222).
    UnsupportedToolchain,
    /// `device kernel image is invalid` (200).
    InvalidImage,
    /// `CUDA driver is a stub library` (34).
    StubDriver,
    /// `system has unsupported display driver / cuda driver combination` (803).
    DriverMismatch,
    /// `forward compatibility was attempted on non supported HW` (804).
    ForwardCompatibility,
    /// `FlashInfer requires GPUs with sm75 or higher`, `No supported CUDA architectures found …`: a list of
    /// targets came out empty.
    NoArchs,
    /// `CUDA compiler (13030) and CUDA toolkit headers (13000) are incompatible`.
    HeadersIncompatible {
        /// The compiler's release, where the message states it.
        compiler: Option<Version>,
        /// The headers' release, where the message states it.
        headers: Option<Version>,
    },
    /// `The detected CUDA version (12.8) mismatches the version that was used to compile PyTorch (13.0)`.
    DetectedMismatch {
        /// The toolkit found.
        detected: Version,
        /// The toolkit that the framework was built with.
        built_for: Version,
    },
    /// `fatal error: curand_kernel.h: No such file or directory`.
    HeaderMissing {
        /// The header.
        header: String,
    },
    /// `FileNotFoundError: … 'ninja'`, `nvcc: not found`.
    ProgramMissing {
        /// The program, as it was named.
        program: String,
    },
    /// `Could not find nvcc and default cuda_home=… doesn't exist`, `CUDA_HOME environment variable is not set`.
    ToolkitMissing,
    /// `unsupported GNU version! gcc versions later than 13 are not supported!`
    HostCompilerUnsupported {
        /// The newest that is supported, as the message names it: `gcc 13`.
        newest: Option<String>,
    },
    /// `failed to open libnvrtc-builtins.so.13.0`.
    BuiltinsNotFound {
        /// The file that was looked for.
        library: String,
    },
    /// `cannot find -lcudart`.
    LinkLibraryMissing {
        /// The library, without `-l`.
        library: String,
    },
    /// `CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH`, `cuDNN version incompatibility`.
    CudnnMismatch,
    /// `Multiple libcudart libraries found: libcudart.so.12 and libcudart.so.13`.
    SeveralCudart {
        /// The libraries, in the order of the message.
        libraries: Vec<String>,
    },
}

/// The text between two markers.
fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(before)?;
    rest.split_once(after).map(|(inner, _)| inner)
}

/// The quoted text after a marker: `'x'`, `"x"`.
fn quoted_after<'a>(text: &'a str, marker: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(marker)?;
    let rest = rest.trim_start();
    let quote = rest
        .chars()
        .next()
        .filter(|quote| matches!(quote, '\'' | '"' | '`'))?;
    let rest = rest.strip_prefix(quote)?;
    rest.split(['\'', '"']).next()
}

/// The last word of a text, without quotes and a colon.
fn last_word(text: &str) -> Option<&str> {
    // A leading colon stays: it is what a CUDA_HOME written like PATH leaves.
    let quotes = ['\'', '"', '`', '(', ')'];
    let word = text
        .split_whitespace()
        .next_back()?
        .trim_matches(quotes)
        .trim_end_matches(':');
    (!word.is_empty()).then_some(word)
}

/// The tool at the beginning of a line such as `ptxas fatal   : …` or `ptxas k.ptx, line 1; fatal : …`.
fn speaker(line: &str) -> Option<Part> {
    let first = line.split_whitespace().next()?.trim_end_matches(':');
    let part = Part::of_file_name(first.rsplit('/').next()?);
    part.is_tool().then_some(part)
}

type Rule = fn(&str) -> Option<Message>;

/// Rules for one line, the more telling ones first.
const RULES: &[Rule] = &[
    arch_unsupported,
    option_unknown,
    ptx_too_new,
    ptx_too_old,
    headers_incompatible,
    detected_mismatch,
    needs_cuda,
    builtins_not_found,
    symbol_undefined,
    several_cudart,
    library_not_found,
    header_missing,
    host_compiler,
    link_library,
    driver_insufficient,
    program_missing,
    fixed_text,
];

/// The meanings of a text, line by line, each once.
#[must_use]
pub fn meanings(text: &str) -> Vec<Message> {
    let mut found = Vec::new();
    let mut end = text.len().min(MAX_TEXT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    for line in text.get(..end).unwrap_or_default().lines() {
        if let Some(meaning) = RULES.iter().find_map(|rule| rule(line))
            && !found.contains(&meaning)
        {
            found.push(meaning);
            if found.len() == MAX_MEANINGS {
                break;
            }
        }
    }
    found
}

fn arch_unsupported(line: &str) -> Option<Message> {
    let value = quoted_after(line, "Unsupported gpu architecture").or_else(|| {
        let value = quoted_after(line, "Value")?;
        line.contains("is not defined").then_some(value)
    })?;
    Some(Message::ArchUnsupported {
        tool: speaker(line),
        arch: Arch::parse(value)?,
    })
}

fn option_unknown(line: &str) -> Option<Message> {
    let tool = speaker(line)?;
    let option = quoted_after(line, "Unknown option")
        .or_else(|| quoted_after(line, "unrecognized option"))?;
    Some(Message::OptionUnknown {
        tool: Some(tool),
        option: option.to_owned(),
    })
}

fn ptx_too_new(line: &str) -> Option<Message> {
    let (_, rest) = line.split_once("Unsupported .version ")?;
    let reads = Version::parse(quoted_after(rest, "current version is")?)?;
    Some(Message::PtxTooNew {
        ptx: Version::parse(rest)?,
        reads,
    })
}

fn ptx_too_old(line: &str) -> Option<Message> {
    let (_, rest) = line.split_once("PTX .version ")?;
    let (isa, target) = rest.split_once(" does not support .target ")?;
    let target = target.split_whitespace().next()?;
    Some(Message::PtxTooOldForTarget {
        ptx: Version::parse(isa)?,
        target: Arch::parse(target.trim_end_matches(['.', ',']))?,
    })
}

fn headers_incompatible(line: &str) -> Option<Message> {
    if !(line.contains("CUDA compiler")
        && line.contains("toolkit headers")
        && line.contains("incompatible"))
    {
        return None;
    }
    let release = |marker: &str| {
        let inside = between(line, marker, ")")?;
        inside
            .trim()
            .parse()
            .ok()
            .and_then(Version::from_cuda_number)
            .or_else(|| Version::parse(inside))
    };
    Some(Message::HeadersIncompatible {
        compiler: release("CUDA compiler ("),
        headers: release("toolkit headers ("),
    })
}

fn detected_mismatch(line: &str) -> Option<Message> {
    let (_, rest) = line.split_once("detected CUDA version (")?;
    let (detected, rest) = rest.split_once(')')?;
    let (_, rest) = rest.split_once("mismatches")?;
    Some(Message::DetectedMismatch {
        detected: Version::parse(detected)?,
        built_for: Version::parse(between(rest, "(", ")")?)?,
    })
}

/// `SM 12.x requires CUDA >= 12.9`, `requires CUDA 12.8 or newer`, `please use at least NVCC 12.9`.
fn needs_cuda(line: &str) -> Option<Message> {
    let verb = [
        "requires ",
        "require ",
        "needs ",
        "need ",
        "should be ",
        "must be ",
        "at least ",
    ]
    .iter()
    .filter_map(|verb| line.find(verb))
    .min()?;
    let (before, after) = line.split_at_checked(verb)?;
    let whole = format!("{before}{after}");
    let lower = whole.to_ascii_lowercase();
    if !(lower.contains("cuda") || lower.contains("nvcc")) {
        return None;
    }
    let bounded = after.split_once(">=").map(|(_, rest)| rest).or_else(|| {
        let (_, rest) = after.split_once("at least ")?;
        Some(rest.trim_start_matches(|c: char| !c.is_ascii_digit()))
    });
    let open_ended = || {
        let words = [
            "or newer",
            "or later",
            "or higher",
            "or above",
            "or greater",
        ];
        if !words.iter().any(|word| after.contains(word)) {
            return None;
        }
        let (_, rest) = after
            .split_once("CUDA ")
            .or_else(|| after.split_once("nvcc "))?;
        Some(rest.trim_start_matches(|c: char| !c.is_ascii_digit()))
    };
    let at_least = Version::parse(bounded.or_else(open_ended)?)?;
    // The subject is what stands before the verb, without a log prefix: `Failed to get device capability: SM 12.x`.
    let subject = before.rsplit(": ").next().unwrap_or(before).trim();
    Some(Message::NeedsCuda {
        subject: subject.chars().take(80).collect(),
        at_least,
    })
}

fn builtins_not_found(line: &str) -> Option<Message> {
    let at = line.find("libnvrtc-builtins")?;
    if !(line.contains("failed to open") || line.contains("Failed to open")) {
        return None;
    }
    let name = line
        .get(at..)?
        .split(|c: char| c.is_whitespace() || matches!(c, '\'' | '"' | ','))
        .next()?;
    Some(Message::BuiltinsNotFound {
        library: name.trim_end_matches(['.', ':']).to_owned(),
    })
}

fn symbol_undefined(line: &str) -> Option<Message> {
    let (before, rest) = line.split_once("undefined symbol: ")?;
    let mut words = rest
        .split(|c: char| c.is_whitespace() || matches!(c, ',' | '\'' | '"' | '(' | ')'))
        .filter(|word| !word.is_empty());
    let symbol = words.next()?.to_owned();
    let version = rest
        .split_once("version ")
        .and_then(|(_, version)| version.split_whitespace().next());
    let object = before
        .trim_end()
        .strip_suffix(':')
        .and_then(last_word)
        .filter(|word| word.contains(".so") || word.contains('/'));
    Some(Message::SymbolUndefined {
        object: object.map(str::to_owned),
        symbol,
        version: version.map(|version| {
            version
                .trim_end_matches(['.', ',', '\'', '"', ')'])
                .to_owned()
        }),
    })
}

fn several_cudart(line: &str) -> Option<Message> {
    let (_, rest) = line.split_once("Multiple libcudart libraries found")?;
    let words = rest.split(|c: char| c.is_whitespace() || matches!(c, ',' | ':' | '\'' | '"'));
    let libraries = words
        .filter(|word| word.contains("libcudart"))
        .take(8)
        .map(|word| word.trim_end_matches('.').to_owned());
    Some(Message::SeveralCudart {
        libraries: libraries.collect(),
    })
}

fn library_not_found(line: &str) -> Option<Message> {
    let (before, _) = line.split_once(": cannot open shared object file")?;
    Some(Message::LibraryNotFound {
        library: last_word(before)?.to_owned(),
    })
}

fn header_missing(line: &str) -> Option<Message> {
    let header = match line.split_once("fatal error: ") {
        Some((_, rest)) => rest
            .split_once(": No such file or directory")
            .map(|(header, _)| header.trim())?,
        None => quoted_after(line, "cannot open source file")
            .or_else(|| quoted_after(line, "could not open source file"))?,
    };
    let header = header
        .trim_matches(['\'', '"', '<', '>'])
        .trim_end_matches(" file not found");
    (!header.contains(char::is_whitespace) && !header.is_empty()).then(|| Message::HeaderMissing {
        header: header.to_owned(),
    })
}

fn host_compiler(line: &str) -> Option<Message> {
    let gnu = line.contains("unsupported GNU version");
    let clang =
        line.contains("unsupported clang version") || line.contains("unsupported Clang version");
    if !(gnu || clang) {
        return None;
    }
    let newest = line.split_once("later than ").and_then(|(before, rest)| {
        let number = rest.split_whitespace().next()?;
        let compiler = before
            .split_whitespace()
            .rev()
            .find(|word| matches!(*word, "gcc" | "g++" | "clang"));
        Some(format!(
            "{} {number}",
            compiler.unwrap_or(if gnu { "gcc" } else { "clang" })
        ))
    });
    Some(Message::HostCompilerUnsupported { newest })
}

fn link_library(line: &str) -> Option<Message> {
    let (_, rest) = line.split_once("cannot find -l")?;
    let library = rest
        .split([':', ' '])
        .next()
        .filter(|library| !library.is_empty())?;
    Some(Message::LinkLibraryMissing {
        library: library.to_owned(),
    })
}

fn driver_insufficient(line: &str) -> Option<Message> {
    if line.contains("driver version is insufficient for CUDA runtime version") {
        return Some(Message::DriverInsufficient { found: None });
    }
    if line.contains("driver on your system is too old") {
        let number = between(line, "found version ", ")");
        return Some(Message::DriverInsufficient {
            found: number
                .and_then(|n| n.trim().parse().ok())
                .and_then(Version::from_cuda_number),
        });
    }
    None
}

fn program_missing(line: &str) -> Option<Message> {
    let named = if line.contains("FileNotFoundError") {
        // A file that the program wanted to open is no missing program: only names without a slash, and paths
        // of known tools.
        let name = quoted_after(line, "No such file or directory:")?;
        let is_program = !name.contains(['/', '.']) || super::tool_of(name) != super::Tool::Other;
        is_program.then_some(name)?
    } else if let Some((before, _)) = line.split_once(": command not found") {
        last_word(before)?
    } else if let Some(before) = line.trim_end().strip_suffix(": not found") {
        last_word(before)?
    } else {
        let before = line
            .trim_end()
            .strip_suffix(": No such file or directory")?;
        let name = last_word(before)?;
        (super::tool_of(name) != super::Tool::Other).then_some(name)?
    };
    let looks_like_a_program =
        named.bytes().all(|b| b.is_ascii_graphic()) && !named.contains(['=', '<', '>']);
    looks_like_a_program.then(|| Message::ProgramMissing {
        program: named.to_owned(),
    })
}

fn fixed_text(line: &str) -> Option<Message> {
    const TEXTS: &[(&str, Message)] = &[
        (
            "no kernel image is available for execution",
            Message::NoKernelImage,
        ),
        (
            "compiled with an unsupported toolchain",
            Message::UnsupportedToolchain,
        ),
        ("device kernel image is invalid", Message::InvalidImage),
        ("CUDA driver is a stub library", Message::StubDriver),
        (
            "unsupported display driver / cuda driver combination",
            Message::DriverMismatch,
        ),
        (
            "forward compatibility was attempted on non supported HW",
            Message::ForwardCompatibility,
        ),
        ("GPUs with sm75 or higher", Message::NoArchs),
        ("No supported CUDA architectures", Message::NoArchs),
        ("Could not find nvcc", Message::ToolkitMissing),
        (
            "CUDA_HOME environment variable is not set",
            Message::ToolkitMissing,
        ),
        ("Could not find CUDA installation", Message::ToolkitMissing),
        (
            "CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH",
            Message::CudnnMismatch,
        ),
        ("cuDNN version incompatibility", Message::CudnnMismatch),
    ];
    TEXTS
        .iter()
        .find(|(text, _)| line.contains(text))
        .map(|(_, meaning)| meaning.clone())
}

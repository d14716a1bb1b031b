//! Words that several kinds use: paths, rules and quotations in sentences.

use crate::{
    event::{Candidate, Outcome, Rule},
    resolve::tool::{Found, OWN_COPY},
};

/// A message as it is quoted: one line, without the noise at its ends, at most 200 characters.
pub(crate) fn quoted(text: &str) -> String {
    let text = text.trim();
    let mut line: String = text.chars().take(200).collect();
    if line.len() < text.len() {
        line.push('…');
    }
    format!("\"{line}\"")
}

/// The rule that found a tool, as the end of a sentence: `through PATH entry 1: /x/bin, CUDA_HOME unset`.
pub(crate) fn tool_rule(found: &Found) -> String {
    let detail = found.detail.as_str();
    match found.rule {
        Rule::CudaHome | Rule::CudaPath | Rule::OverrideVariable => {
            format!("because {detail}")
        }
        Rule::Path => format!("as the first of that name on PATH ({detail})"),
        Rule::DefaultDirectory => format!("in the default directory {detail}"),
        Rule::Bundled if detail == OWN_COPY => "the copy that it brings along".to_owned(),
        Rule::Bundled => format!("bundled: {detail}"),
        Rule::Wheel => format!("from the wheel {detail}"),
        Rule::Conda => format!("from the conda environment {detail}"),
        Rule::BuildFile => format!("named by the build file {detail}"),
        Rule::ToolRelative => format!("found {detail}"),
        Rule::AbsolutePath => "asked for by its path".to_owned(),
        _ if detail.is_empty() => "by a rule that was not seen".to_owned(),
        _ => detail.to_owned(),
    }
}

/// The rule that found a library, as the end of a sentence.
pub(crate) fn library_rule(rule: Rule, detail: &str) -> String {
    let base = match rule {
        Rule::LdLibraryPath => "through LD_LIBRARY_PATH",
        Rule::Rpath => "through RPATH",
        Rule::Runpath => "through RUNPATH",
        Rule::LdSoCache => "through the loader cache (ld.so.cache)",
        Rule::LdDefaultDirectory => "in a default directory of the loader",
        Rule::AbsolutePath => "asked for by its path",
        Rule::AlreadyLoaded => "since it was loaded already",
        Rule::Preload => "through LD_PRELOAD",
        Rule::Unknown => "by a rule that was not seen",
        other => other.word(),
    };
    let names_itself = base
        .strip_prefix("through ")
        .is_some_and(|word| detail.starts_with(word));
    if detail.is_empty() || detail.starts_with(base) {
        base.to_owned()
    } else if names_itself {
        format!("through {detail}")
    } else {
        format!("{base} ({detail})")
    }
}

/// The places where a search looked in vain, shortened: `/a, /b and 3 more`.
pub(crate) fn places(candidates: &[Candidate]) -> String {
    let mut directories: Vec<&str> = Vec::new();
    for candidate in candidates {
        if matches!(candidate.outcome, Outcome::Chosen | Outcome::NotTried) {
            continue;
        }
        let directory = candidate
            .path
            .rsplit_once('/')
            .map_or(candidate.path.as_str(), |(directory, _)| directory);
        if !directories.contains(&directory) {
            directories.push(directory);
        }
    }
    few(&directories, 4)
}

/// The first `most` items and how many there are besides.
pub(crate) fn few<T: AsRef<str>>(items: &[T], most: usize) -> String {
    let mut text = items
        .iter()
        .take(most)
        .map(AsRef::as_ref)
        .collect::<Vec<_>>()
        .join(", ");
    if items.len() > most {
        text.push_str(&format!(" and {} more", items.len() - most));
    }
    text
}

/// `1 process`, `3 processes`.
pub(crate) fn count(n: usize, one: &str, many: &str) -> String {
    if n == 1 {
        format!("1 {one}")
    } else {
        format!("{n} {many}")
    }
}

/// A duration as people say it.
pub(crate) fn duration(ns: u64) -> String {
    let ms = ns / 1_000_000;
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..120_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        _ => format!("{} min", ms / 60_000),
    }
}

/// The directory of a path.
pub(crate) fn directory(path: &str) -> &str {
    path.rsplit_once('/')
        .map_or(".", |(directory, _)| directory)
}

/// The last component of a path.
pub(crate) fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Whether a line is the code that says something, as a traceback shows it above the sentence: `raise RuntimeError(…`.
pub(crate) fn is_source_line(text: &str) -> bool {
    const SAYING: &[&str] = &[
        "raise ",
        "warnings.warn(",
        "print(",
        "sys.exit(",
        "assert ",
        "logger.",
        "logging.",
        "throw ",
    ];
    let code = text.trim_start();
    // A server puts its log prefix before each line of a traceback.
    SAYING.iter().any(|word| code.starts_with(word))
        || text.contains("    raise ")
        || text.contains(": raise ")
}

/// An error number in words.
pub(crate) fn errno_words(errno: i32) -> &'static str {
    match errno {
        1 => "not permitted (EPERM)",
        2 => "no such file (ENOENT)",
        6 => "no such device (ENXIO)",
        8 => "not an executable (ENOEXEC)",
        11 => "try again (EAGAIN)",
        13 => "permission denied (EACCES)",
        16 => "busy (EBUSY)",
        17 => "it exists (EEXIST)",
        19 => "no such device (ENODEV)",
        20 => "not a directory (ENOTDIR)",
        21 => "is a directory (EISDIR)",
        26 => "being written (ETXTBSY)",
        28 => "no space left (ENOSPC)",
        30 => "read-only file system (EROFS)",
        39 => "directory not empty (ENOTEMPTY)",
        40 => "too many symbolic links (ELOOP)",
        116 => "stale file handle (ESTALE)",
        122 => "quota exceeded (EDQUOT)",
        _ => "an error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_told_from_what_it_says() {
        for (text, code) in [
            (
                r#"    raise RuntimeError("SM 12.x requires CUDA >= 12.9")"#,
                true,
            ),
            (
                r#"(EngineCore pid=1) ERROR 01-28 [core.py:9]     raise RuntimeError("requires CUDA >= 12.9")"#,
                true,
            ),
            ("RuntimeError: SM 12.x requires CUDA >= 12.9", false),
            (
                "nvcc fatal   : Unsupported gpu architecture 'compute_120f'",
                false,
            ),
        ] {
            assert_eq!(is_source_line(text), code, "{text}");
        }
    }
}

//! Loads that failed, taken apart: which object, what it missed, and which library should have had it.
//!
//! The words of the loader are the same in every glibc; they come with the failed request, or in what the program
//! printed of it.

use super::View;
use crate::{
    event::{Candidate, EventId, Frame, LibraryFailed, Message, Outcome},
    fold::{Loaded, ProcessIndex, Seen},
    report::Severity,
    resolve::asker,
    toolkit::Version,
};

/// Why a load failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reason {
    /// No file of that name was found.
    NoFile {
        /// The name.
        name: String,
    },
    /// A symbol was in none of the mapped libraries.
    NoSymbol {
        /// The symbol.
        symbol: String,
        /// Its symbol version, where one was wanted.
        version: Option<String>,
    },
    /// A library was mapped that lacks a whole symbol version.
    NoVersion {
        /// The library that lacks it.
        library: String,
        /// The version.
        version: String,
    },
    /// The file was found and could not be taken.
    Unusable {
        /// The file.
        file: String,
        /// What is the matter with it.
        defect: Defect,
    },
    /// Something else.
    Other,
}

/// What is the matter with a library that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Defect {
    /// Empty, or cut off.
    TooShort,
    /// No ELF object at all.
    NoElf,
    /// Of another class or machine.
    OtherMachine,
    /// Its segments could not be mapped.
    NotMapped,
    /// It asks for an executable stack, which was refused.
    ExecutableStack,
    /// No room is left for its thread-local storage.
    NoRoomForTls,
    /// It may not be read.
    Forbidden,
}

/// The loader's words after the name of the file (glibc, elf/dl-load.c), and what they say of it.
const DEFECTS: &[(&str, Defect)] = &[
    (": file too short", Defect::TooShort),
    (": cannot read file data", Defect::TooShort),
    (": invalid ELF header", Defect::NoElf),
    (": object file has no loadable segments", Defect::NoElf),
    (": wrong ELF class", Defect::OtherMachine),
    (": ELF file data encoding not", Defect::OtherMachine),
    (": ELF file OS ABI invalid", Defect::OtherMachine),
    (
        ": failed to map segment from shared object",
        Defect::NotMapped,
    ),
    (
        ": cannot enable executable stack as shared object requires",
        Defect::ExecutableStack,
    ),
    (
        ": cannot allocate memory in static TLS block",
        Defect::NoRoomForTls,
    ),
    (
        ": cannot open shared object file: Permission denied",
        Defect::Forbidden,
    ),
];

/// One load that failed.
#[derive(Debug, Clone)]
pub(super) struct Failure<'a> {
    /// The failed request, when there is an event of it.
    pub(super) seen: Option<&'a Seen<LibraryFailed>>,
    /// The event that tells it.
    pub(super) event: EventId,
    /// When.
    pub(super) t: u64,
    /// In which process.
    pub(super) pid: u32,
    /// In which process image.
    pub(super) process: Option<ProcessIndex>,
    /// The object that was to be loaded, or that needs what is missing.
    pub(super) object: String,
    /// Why.
    pub(super) reason: Reason,
    /// The loader's words.
    pub(super) text: String,
}

impl Failure<'_> {
    /// The Python code that asked.
    pub(super) fn python<'m>(&'m self, view: &View<'m>) -> &'m [Frame] {
        self.seen.map_or(&[], |s| {
            view.model.python_of(&s.what.python, s.what.request)
        })
    }

    /// Where the missing file was searched.
    pub(super) fn candidates(&self) -> &[Candidate] {
        self.seen.map_or(&[], |s| s.what.candidates.as_slice())
    }
}

/// All loads that failed, each once.
pub(super) fn failures<'a>(view: &View<'a>) -> Vec<Failure<'a>> {
    let mut failures: Vec<Failure<'a>> = Vec::new();
    for seen in view.model.library_failures() {
        let failed = &seen.what;
        let (object, mut reason) = parse(&failed.error);
        if let Some(missing) = &failed.missing
            && matches!(reason, Reason::Other | Reason::NoFile { .. })
        {
            reason = Reason::NoFile {
                name: missing.clone(),
            };
        }
        if reason == Reason::Other && failed.error.is_empty() {
            reason = Reason::NoFile {
                name: failed.requested.clone(),
            };
        }
        // Of all the files of that name that were found, none was for this machine.
        if matches!(reason, Reason::NoFile { .. } | Reason::Other)
            && let Some(other) = failed
                .candidates
                .iter()
                .find(|c| c.outcome == Outcome::WrongClass)
        {
            reason = Reason::Unusable {
                file: other.path.clone(),
                defect: Defect::OtherMachine,
            };
        }
        // Where the loader's words were not heard, its search still tells where it ended.
        if reason == Reason::Other
            && let Some((file, defect)) = defect_by_search(view, failed)
        {
            reason = Reason::Unusable { file, defect };
        }
        let object = failed
            .missing_for
            .clone()
            .or_else(|| object.filter(|o| o.contains('/')))
            .unwrap_or_else(|| failed.requested.clone());
        failures.push(Failure {
            seen: Some(seen),
            event: seen.id,
            t: seen.t,
            pid: seen.pid,
            process: seen.process,
            object,
            reason,
            text: failed.error.clone(),
        });
    }
    for message in view.said(&[
        "cannot-open-shared-object",
        "undefined-symbol",
        "symbol-version-missing",
        "library-unusable",
    ]) {
        let (object, reason) = parse(&message.what.text);
        let known = failures.iter().any(|f| {
            f.process.is_some_and(|p| view.concerns(message, p)) && same(&f.reason, &reason)
        });
        if known || reason == Reason::Other {
            continue;
        }
        failures.push(Failure {
            seen: None,
            event: message.id,
            t: message.t,
            pid: message.pid,
            process: message.process,
            object: object
                .or_else(|| unanswered(view, message))
                .unwrap_or_default(),
            reason,
            text: message.what.text.clone(),
        });
    }
    failures
}

/// The file that ended a search although it was found.
fn defect_by_search(view: &View<'_>, failed: &LibraryFailed) -> Option<(String, Defect)> {
    let ended = failed
        .candidates
        .iter()
        .find(|c| matches!(c.outcome, Outcome::Broken | Outcome::NotElf))?;
    let is_empty = view
        .model
        .file(&ended.path)
        .is_some_and(|f| f.what.size == 0);
    let defect = if is_empty {
        Defect::TooShort
    } else {
        Defect::NoElf
    };
    Some((ended.path.clone(), defect))
}

/// Whether a request failed over a file that was found.
pub(super) fn is_of_a_defect(failed: &LibraryFailed) -> bool {
    matches!(parse(&failed.error).1, Reason::Unusable { .. })
        || failed
            .candidates
            .iter()
            .any(|c| matches!(c.outcome, Outcome::WrongClass | Outcome::Broken))
}

/// The last request of a process for a file whose outcome was never told.
fn unanswered(view: &View<'_>, message: &Seen<Message>) -> Option<String> {
    let request =
        view.model.requests().iter().rfind(|r| {
            r.process == message.process && r.t <= message.t && r.what.name.contains('/')
        })?;
    let answered = view
        .model
        .libraries()
        .iter()
        .any(|l| l.what.request == Some(request.id))
        || view
            .model
            .library_failures()
            .iter()
            .any(|f| f.what.request == Some(request.id));
    (!answered).then(|| request.what.name.clone())
}

fn same(a: &Reason, b: &Reason) -> bool {
    match (a, b) {
        (Reason::NoFile { name: a }, Reason::NoFile { name: b }) => {
            super::words::name(a) == super::words::name(b)
        }
        (Reason::NoSymbol { symbol: a, .. }, Reason::NoSymbol { symbol: b, .. }) => a == b,
        (Reason::NoVersion { version: a, .. }, Reason::NoVersion { version: b, .. }) => a == b,
        (
            Reason::Unusable { file: a, .. },
            Reason::Unusable { file: b, .. } | Reason::NoFile { name: b },
        )
        | (Reason::NoFile { name: a }, Reason::Unusable { file: b, .. }) => {
            super::words::name(a) == super::words::name(b)
        }
        _ => false,
    }
}

/// How bad a failed load is: an error when the program said so or failed, nothing when it was tried again with success,
/// else a warning, as a fallback that nobody hears of.
pub(super) fn severity(view: &View<'_>, failure: &Failure<'_>) -> Option<Severity> {
    let process = failure.process?;
    if loaded_later(view, failure).is_some() {
        return None;
    }
    let said = said_so(view, failure);
    if said.is_some() || view.failed_line(process).is_some() {
        Some(Severity::Error)
    } else {
        Some(Severity::Warning)
    }
}

/// What the program printed of a failed load.
pub(super) fn said_so<'a>(
    view: &View<'a>,
    failure: &Failure<'_>,
) -> Option<&'a Seen<crate::event::Message>> {
    let process = failure.process?;
    let word = match &failure.reason {
        Reason::NoFile { name } => super::words::name(name).to_owned(),
        Reason::NoSymbol { symbol, .. } => symbol.clone(),
        Reason::NoVersion { version, .. } => version.clone(),
        Reason::Unusable { file, .. } => super::words::name(file).to_owned(),
        Reason::Other => return None,
    };
    view.messages()
        .find(|m| view.concerns(m, process) && m.what.text.contains(&word))
}

/// Whether a program that is no Python, whose words are not always heard, ended over a library: it failed, and the last
/// that it asked for was this one, under whatever name.
pub(super) fn ended_over(
    view: &View<'_>,
    process: Option<ProcessIndex>,
    t: u64,
    library: &str,
) -> bool {
    let Some(image) = process.and_then(|p| view.model.process(p)) else {
        return false;
    };
    let model = view.model;
    let went_on = view.loaded(process).any(|l| l.t > t)
        || model
            .calls()
            .iter()
            .any(|c| c.process == process && c.t > t && c.what.result == Some(0))
        || model
            .library_failures()
            .iter()
            .any(|f| f.process == process && f.t > t && stem(&f.what.requested) != stem(library))
        || model
            .processes()
            .iter()
            .any(|p| p.parent == process && p.start > t);
    !is_python(view, process) && !went_on && view.failed(image.index)
}

/// Whether a process is an interpreter of Python: what it prints is heard.
pub(super) fn is_python(view: &View<'_>, process: Option<ProcessIndex>) -> bool {
    process
        .and_then(|p| view.model.process(p))
        .is_some_and(|p| asker::is_python_itself(super::words::name(&p.what.exe)))
        || view
            .loaded(process)
            .any(|l| asker::is_python_itself(&l.what.path))
}

/// Whether a library asked for another by its bare name, did not get it, and that was the last of CUDA that its program
/// did before it failed. What a library itself prints is not heard.
pub(super) fn ended_over_a_plugin(view: &View<'_>, failure: &Failure<'_>) -> bool {
    let asked_by_a_library = failure
        .seen
        .and_then(|s| s.what.requested_by.as_deref())
        .is_some_and(|by| !asker::is_python_itself(by) && by.contains(".so"));
    let went_on =
        view.loaded(failure.process)
            .any(|l| l.t > failure.t && !view.part_of(&l.what.path).is_empty())
            || view.model.calls().iter().any(|c| {
                c.process == failure.process && c.t > failure.t && c.what.result == Some(0)
            });
    asked_by_a_library
        && !went_on
        && failure
            .process
            .is_some_and(|p| view.failed_line(p).is_some())
}

/// `libcudnn_ops` of `/x/libcudnn_ops.so.9.1`.
pub(super) fn stem(library: &str) -> &str {
    let file = super::words::name(library);
    file.split_once(".so").map_or(file, |(stem, _)| stem)
}

/// The object was mapped after all, by a later try in the same process.
pub(super) fn loaded_later<'a>(view: &View<'a>, failure: &Failure<'_>) -> Option<&'a Seen<Loaded>> {
    let wanted = match &failure.reason {
        Reason::NoFile { name } if failure.object.is_empty() => super::words::name(name),
        _ => super::words::name(&failure.object),
    };
    view.loaded(failure.process).find(|l| {
        l.t > failure.t
            && super::words::name(&l.what.path) == wanted
            && (l.what.request.is_none()
                || l.what.request != failure.seen.and_then(|s| s.what.request))
    })
}

/// The part whose library should define a symbol, by the symbol's name.
pub(super) fn part_of_symbol(symbol: &str) -> Option<&'static str> {
    let starts = |prefix: &str| {
        symbol
            .strip_prefix(prefix)
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase() || c == '_'))
    };
    if symbol.starts_with("__nvJitLink") || symbol.starts_with("nvJitLink") {
        Some("nvjitlink")
    } else if symbol.starts_with("cublasLt") {
        Some("cublas_lt")
    } else if starts("cublas") {
        Some("cublas")
    } else if symbol.starts_with("cudnn") {
        Some("cudnn")
    } else if starts("cusparse") {
        Some("cusparse")
    } else if starts("nvrtc") {
        Some("nvrtc")
    } else if starts("nccl") {
        Some("nccl")
    } else if starts("cuda") || symbol.starts_with("__cuda") {
        Some("cudart")
    } else if starts("cu") {
        Some("libcuda")
    } else {
        None
    }
}

/// 12.9 of `__nvJitLinkComplete_12_9`.
pub(super) fn release_of_symbol(symbol: &str) -> Option<Version> {
    let mut parts = symbol.rsplit('_');
    let minor = parts.next()?.parse().ok()?;
    let major = parts.next()?.parse().ok()?;
    Some(Version::release(major, minor))
}

/// The loader's words taken apart: the object they are about, and the reason.
fn parse(text: &str) -> (Option<String>, Reason) {
    // The loader's sentence begins with a file; an exception's name may stand before it.
    let word_before = |at: usize| -> Option<String> {
        let word = text.get(..at)?.trim_end_matches([':', ' ']);
        let word = word.rsplit([' ', '(', '\'', '"']).next()?;
        (!word.is_empty()).then(|| word.to_owned())
    };
    if let Some(at) = text.find(": undefined symbol: ") {
        let rest = text
            .get(at + ": undefined symbol: ".len()..)
            .unwrap_or_default();
        let symbol = first_word(rest);
        let version = rest
            .split_once("version ")
            .map(|(_, v)| first_word(v).to_owned());
        return (
            word_before(at),
            Reason::NoSymbol {
                symbol: symbol.to_owned(),
                version,
            },
        );
    }
    if let Some(at) = text.find(": version `") {
        let rest = text.get(at + ": version `".len()..).unwrap_or_default();
        let version = rest.split('\'').next().unwrap_or_default().to_owned();
        let needed_by = rest
            .split_once("required by ")
            .map(|(_, by)| by.trim_end_matches([')', ' ']).to_owned());
        return (
            needed_by,
            Reason::NoVersion {
                library: word_before(at).unwrap_or_default(),
                version,
            },
        );
    }
    let defect = DEFECTS
        .iter()
        .find_map(|(words, defect)| Some((text.find(words)?, *defect)));
    if let Some((at, defect)) = defect
        && let Some(file) = word_before(at)
    {
        return (Some(file.clone()), Reason::Unusable { file, defect });
    }
    if let Some(at) = text.find(": cannot open shared object file") {
        return match word_before(at) {
            // Some programs put the object that was to be loaded before the loader's words.
            Some(name) => (
                text.get(..at)
                    .unwrap_or_default()
                    .split([' ', '\'', '"', ','])
                    .rfind(|word| word.starts_with('/') && word.contains(".so") && *word != name)
                    .map(str::to_owned),
                Reason::NoFile { name },
            ),
            None => (None, Reason::Other),
        };
    }
    if let Some((_, rest)) = text.split_once(": symbol ") {
        let symbol = first_word(rest).to_owned();
        if rest.contains("not defined in file") {
            return (
                None,
                Reason::NoSymbol {
                    symbol,
                    version: None,
                },
            );
        }
    }
    (None, Reason::Other)
}

fn first_word(text: &str) -> &str {
    text.split([',', ' ', '\n', ')', '\'', '"'])
        .next()
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loaders_words_are_taken_apart() {
        assert_eq!(
            parse(
                "ImportError: libcudart.so.13: cannot open shared object file: No such file or directory"
            ),
            (
                None,
                Reason::NoFile {
                    name: "libcudart.so.13".into()
                }
            )
        );
        assert_eq!(
            parse(
                "/s/libcusparse.so.12: undefined symbol: __nvJitLinkComplete_12_4, version libnvJitLink.so.12"
            ),
            (
                Some("/s/libcusparse.so.12".into()),
                Reason::NoSymbol {
                    symbol: "__nvJitLinkComplete_12_4".into(),
                    version: Some("libnvJitLink.so.12".into())
                }
            )
        );
        assert_eq!(
            parse(
                "/c/libcublas.so.12: version `libcublas.so.12' not found (required by /t/libtorch_cuda.so)"
            ),
            (
                Some("/t/libtorch_cuda.so".into()),
                Reason::NoVersion {
                    library: "/c/libcublas.so.12".into(),
                    version: "libcublas.so.12".into()
                }
            )
        );
        assert_eq!(
            parse(
                "Failed to load dynamic shared library /c/page.so libcudart.so.12: cannot open shared object file"
            ),
            (
                Some("/c/page.so".into()),
                Reason::NoFile {
                    name: "libcudart.so.12".into()
                }
            )
        );
        assert_eq!(parse("file too short").1, Reason::Other);
        for (text, file, defect) in [
            (
                "ImportError: /l/libcuda.so.1: file too short",
                "/l/libcuda.so.1",
                Defect::TooShort,
            ),
            (
                "/c/k.so: failed to map segment from shared object",
                "/c/k.so",
                Defect::NotMapped,
            ),
            (
                "/a/libx.so: wrong ELF class: ELFCLASS32",
                "/a/libx.so",
                Defect::OtherMachine,
            ),
            (
                "/a/libx.so: cannot open shared object file: Permission denied",
                "/a/libx.so",
                Defect::Forbidden,
            ),
        ] {
            let file = file.to_owned();
            assert_eq!(parse(text).1, Reason::Unusable { file, defect }, "{text}");
        }
    }

    #[test]
    fn symbols_tell_the_library_that_should_have_them() {
        for (symbol, part) in [
            ("__nvJitLinkCreate_12_9", Some("nvjitlink")),
            ("cudaDeviceReset", Some("cudart")),
            ("cuInit", Some("libcuda")),
            ("cudnnCreate", Some("cudnn")),
            ("cublasLtMatmul", Some("cublas_lt")),
            ("cublasCreate_v2", Some("cublas")),
            ("_ZN3c10", None),
            ("current", None),
        ] {
            assert_eq!(part_of_symbol(symbol), part, "{symbol}");
        }
        assert_eq!(
            release_of_symbol("__nvJitLinkComplete_12_9"),
            Some(Version::release(12, 9))
        );
    }
}

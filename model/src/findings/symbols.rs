//! `library-shadowed-by-ld-library-path`, `nvjitlink-older-than-consumer`, `library-older-than-consumer`: an object
//! needs a symbol that the library which answered does not have.
//!
//! Proof: the loader's sentence with the symbol, the file that was mapped for the SONAME, the rule that chose it, and
//! the candidate that another rule would have given. When LD_LIBRARY_PATH chose it over a RUNPATH, that is the cause and
//! the old library its consequence. A shadowed library of another release without a failure is a note.

use super::{
    Draft, View,
    aftermath::Aftermath,
    provider::{self, Failure, Reason},
    words::{library_rule, name, quoted},
};
use crate::{
    event::{Candidate, Message, Outcome, Rule},
    fold::{Loaded, Seen},
    report::Severity,
    resolve::asker,
};

pub(super) fn find(view: &View<'_>) -> Vec<Draft> {
    let mut drafts: Vec<Draft> = provider::failures(view)
        .iter()
        .flat_map(|f| unsatisfied(view, f))
        .collect();
    for shadow in shadows(view) {
        // The same library is already accused of a failure.
        let accused = drafts.iter().any(|d| {
            d.finding.evidence.iter().any(|e| {
                shadow
                    .finding
                    .evidence
                    .first()
                    .is_some_and(|f| f.event == e.event)
            })
        });
        if !accused {
            drafts.push(shadow);
        }
    }
    drafts
}

/// The library that answered for what is missing.
struct Answered {
    path: String,
    rule: Rule,
    detail: String,
    event: u64,
    requested_by: Option<String>,
    candidates: Vec<Candidate>,
}

fn unsatisfied(view: &View<'_>, failure: &Failure<'_>) -> Vec<Draft> {
    let (wanted, symbol) = match &failure.reason {
        Reason::NoSymbol { symbol, .. } => match provider::part_of_symbol(symbol) {
            Some(part) => (Wanted::Part(part), symbol.as_str()),
            None => return Vec::new(),
        },
        Reason::NoVersion { library, version } => match view.part_of(library) {
            // libstdc++, libc: nothing of CUDA's, but what stops a program of its own accord.
            "" if came_to_nothing(view, failure) => (Wanted::Name(name(library)), version.as_str()),
            "" => return Vec::new(),
            part => (Wanted::Part(part), version.as_str()),
        },
        _ => return Vec::new(),
    };
    let part = wanted.part();
    // A stand-in for libcudart has a kind of its own.
    if name(&failure.object).contains("stub")
        || part == "cudart" && super::cudart_stub::is_stub_failure(failure)
    {
        return Vec::new();
    }
    let Some(severity) = provider::severity(view, failure) else {
        return Vec::new();
    };
    let Some(answered) = answered(view, failure, wanted) else {
        return Vec::new();
    };
    let needed = provider::release_of_symbol(symbol).filter(|_| part == "nvjitlink");
    let has = view.version_of(&answered.path);
    let has_words = has
        .as_ref()
        .map(|k| format!(" {}", k.version.without_patch()))
        .unwrap_or_default();
    let consumer = if failure.object.is_empty() {
        answered.requested_by.clone().unwrap_or_default()
    } else {
        failure.object.clone()
    };
    let python = failure.python(view).to_vec();
    let asker = asker::of_library(view.model, Some(&consumer), &python, failure.process);
    let other = answered
        .candidates
        .iter()
        .find(|c| {
            c.outcome == Outcome::NotTried
                && c.rule != answered.rule
                && c.path != answered.path
                && c.rule != Rule::LdDefaultDirectory
        })
        .cloned();
    let common = |draft: Draft| {
        draft
            .component(&asker.component)
            .evidence(
                failure.event,
                format!("the load failed: {}", quoted(&failure.text)),
            )
            .evidence(
                answered.event,
                format!(
                    "{} was loaded, {}",
                    answered.path,
                    library_rule(answered.rule, &answered.detail)
                ),
            )
            .evidence_of(has.as_ref().map(|k| {
                (
                    k.event,
                    format!("{} is {} ({})", answered.path, k.version, k.how()),
                )
            }))
            .evidence_of(provider::said_so(view, failure).map(|m| (m.id, view.said_by(m))))
            .in_process(failure.pid)
    };
    let lacks = format!(
        "it lacks {symbol}, so the load of {} failed.",
        name(&consumer)
    );
    if part == "libcuda" && other.is_none() {
        return vec![common(Draft::of("library-older-than-consumer", severity))
            .title(format!(
                "{} needs a newer driver: {} lacks {symbol}",
                name(&consumer),
                name(&answered.path)
            ))
            .cause(format!(
                "{consumer} needs {symbol}; {}{}, {}, does not have it, and functions of the driver come with the driver alone.",
                answered.path,
                super::libcuda_compat::release_of(view, &answered.path, "")
                    .map(|r| format!(" (driver {r})"))
                    .unwrap_or_default(),
                library_rule(answered.rule, &answered.detail)
            ))
            .remedy(format!(
                "Update the NVIDIA driver (nvidia-smi shows the one that is installed), or install a build of {} for this one.",
                name(&consumer)
            ))
            .proven()];
    }
    let mut drafts = Vec::new();
    if answered.rule == Rule::LdLibraryPath {
        let mut draft = common(Draft::of("library-shadowed-by-ld-library-path", severity))
            .title(format!(
                "LD_LIBRARY_PATH gave {} a {} without {symbol}",
                name(&consumer),
                name(&answered.path)
            ))
            .cause(format!(
                "{} needs {} and got {}{has_words}, {}; {lacks}",
                consumer,
                name(&answered.path),
                answered.path,
                library_rule(answered.rule, &answered.detail)
            ));
        if let Some(other) = &other {
            let there = view.model.file(&other.path);
            let version = view
                .version_of(&other.path)
                .map(|k| format!(" ({})", k.version))
                .unwrap_or_default();
            draft = draft
                .cause(format!(
                    "LD_LIBRARY_PATH comes before {}, which would have given {}{version}.",
                    rule_name(other.rule),
                    other.path
                ))
                .remedy(format!(
                    "Unset LD_LIBRARY_PATH for this process, or take {} out of it: {} is then found through {}.",
                    entry_words(&answered),
                    other.path,
                    rule_name(other.rule)
                ))
                .evidence_of(there.map(|f| (f.id, format!("{} exists", other.path))));
        } else {
            draft = draft.remedy(format!(
                "Take {} out of LD_LIBRARY_PATH for this process.",
                entry_words(&answered)
            ));
        }
        drafts.push(draft.proven_if(
            other.is_some(),
            "the file that would have been found without it",
        ));
    }
    let is_jitlink = part == "nvjitlink";
    let id = if is_jitlink {
        "nvjitlink-older-than-consumer"
    } else {
        "library-older-than-consumer"
    };
    let mut draft = common(Draft::of(id, severity))
        .title(format!(
            "{} needs a newer {} than the one that answered",
            name(&consumer),
            name(&answered.path)
        ))
        .cause(format!(
            "{consumer} needs {symbol}{}; {}{has_words}, {}, does not have it.",
            needed
                .map(|n| format!(" (release {n})"))
                .unwrap_or_default(),
            answered.path,
            library_rule(answered.rule, &answered.detail)
        ));
    if wanted == Wanted::Name("libc.so.6") {
        draft = draft.remedy(format!(
            "Install a build of {} for this distribution's C library, or use an image with a newer one: {} was compiled where glibc is newer, and libc.so.6 cannot be replaced by itself.",
            name(&consumer),
            name(&consumer)
        ));
        return vec![draft.proven()];
    }
    draft = match needed.and_then(|n| view.offer(part, &answered.path, |v| v.without_patch() >= n))
    {
        Some(offer) => draft
            .remedy(format!(
                "Let {} be found first: it is {}.",
                offer.path, offer.version
            ))
            .evidence(offer.event, format!("{} is {}", offer.path, offer.version)),
        None => draft.remedy(format!(
            "Let a {} that has {symbol} be found first; it belongs beside {}.",
            name(&answered.path),
            name(&consumer)
        )),
    };
    // Only worth its own line when nothing shadows.
    if drafts.is_empty() || is_jitlink {
        drafts.push(draft.proven());
    }
    drafts
}

/// The entry of LD_LIBRARY_PATH that led to a library.
fn entry_words(answered: &Answered) -> String {
    if answered.detail.contains("empty: current directory") {
        "the empty entry (a colon at an end, or two in a row, is the current directory)".to_owned()
    } else {
        super::words::directory(&answered.path).to_owned()
    }
}

fn rule_name(rule: Rule) -> &'static str {
    match rule {
        Rule::Runpath => "RUNPATH",
        Rule::LdSoCache => "the loader cache",
        Rule::LdDefaultDirectory => "the default directories",
        Rule::Rpath => "RPATH",
        other => other.word(),
    }
}

/// What should have had the symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted<'a> {
    /// A part of a toolkit.
    Part(&'a str),
    /// A library of this name.
    Name(&'a str),
}

impl Wanted<'_> {
    /// The part; empty for what is no toolkit's.
    fn part(&self) -> &str {
        match self {
            Wanted::Part(part) => part,
            Wanted::Name(_) => "",
        }
    }

    fn is(&self, view: &View<'_>, path: &str) -> bool {
        match self {
            Wanted::Part(part) => view.part_of(path) == *part,
            Wanted::Name(wanted) => name(path) == *wanted,
        }
    }
}

/// Whether the program failed and spoke of it.
fn came_to_nothing(view: &View<'_>, failure: &Failure<'_>) -> bool {
    Aftermath::of_process(view, failure.process) == Aftermath::Failed
        && provider::said_so(view, failure).is_some()
}

/// The library that was mapped when the load failed, or that its own search had chosen.
fn answered(view: &View<'_>, failure: &Failure<'_>, wanted: Wanted<'_>) -> Option<Answered> {
    let of = |l: &Seen<Loaded>| Answered {
        path: l.what.path.clone(),
        rule: l.what.rule,
        detail: l.what.rule_detail.clone(),
        event: l.id,
        requested_by: l.what.requested_by.clone(),
        candidates: l.what.candidates.clone(),
    };
    let request = failure.seen.and_then(|s| s.what.request);
    let loaded: Vec<_> = view
        .loaded(failure.process)
        .filter(|l| wanted.is(view, &l.what.path))
        .collect();
    // The reconstruction of a failed load may be told just after the failure itself.
    let by_request = loaded
        .iter()
        .find(|l| request.is_some() && l.what.request == request);
    let before = loaded
        .iter()
        .rev()
        .find(|l| l.t <= failure.t && l.what.rule != Rule::AlreadyLoaded);
    if let Some(found) = by_request.or(before) {
        return Some(of(found));
    }
    let chosen = failure
        .candidates()
        .iter()
        .find(|c| c.outcome == Outcome::Chosen && wanted.is(view, &c.path));
    let Some(chosen) = chosen else {
        // Nothing of its search is known, and the loader names the file.
        let Reason::NoVersion { library, .. } = &failure.reason else {
            return None;
        };
        return library.starts_with('/').then(|| Answered {
            path: library.clone(),
            rule: Rule::Unknown,
            detail: String::new(),
            event: failure.event,
            requested_by: None,
            candidates: Vec::new(),
        });
    };
    Some(Answered {
        path: chosen.path.clone(),
        rule: chosen.rule,
        detail: String::new(),
        event: failure.event,
        requested_by: None,
        candidates: failure.candidates().to_vec(),
    })
}

/// LD_LIBRARY_PATH gave a library of another release than RUNPATH would have; nothing failed of it.
/// The sentence of a program that failed over the release of a library.
fn refused_release<'a>(view: &View<'a>, library: &Seen<Loaded>) -> Option<&'a Seen<Message>> {
    const CONFLICT: &[&str] = &[
        "compiled with",
        "compiled against",
        "incompatib",
        "mismatch",
        "older than",
        "newer than",
        "at least",
    ];
    let process = library.process?;
    let part = view.part_of(&library.what.path).to_owned();
    view.messages().find(|m| {
        let text = m.what.text.to_ascii_lowercase();
        view.concerns(m, process)
            && text.contains(&part)
            && CONFLICT.iter().any(|word| text.contains(word))
    })
}

/// Libraries that LD_LIBRARY_PATH gave instead of others, where no symbol was missing.
fn shadows(view: &View<'_>) -> Vec<Draft> {
    let mut drafts: Vec<Draft> = Vec::new();
    for library in view.model.libraries() {
        let loaded = &library.what;
        if loaded.rule != Rule::LdLibraryPath || view.part_of(&loaded.path).is_empty() {
            continue;
        }
        let Some(other) = loaded.candidates.iter().find(|c| {
            c.outcome == Outcome::NotTried && matches!(c.rule, Rule::Runpath | Rule::Wheel)
        }) else {
            continue;
        };
        let (Some(has), Some(would)) =
            (view.version_of(&loaded.path), view.version_of(&other.path))
        else {
            continue;
        };
        if has.version.same_release(would.version) {
            continue;
        }
        let asker = asker::of_library(
            view.model,
            loaded.requested_by.as_deref(),
            view.python(loaded),
            library.process,
        );
        let said = refused_release(view, library);
        // That another copy would have come by RUNPATH agrees with the sentence.
        let severity = said.map_or(Severity::Note, |_| {
            Aftermath::of_process(view, library.process).of_a_sentence(true)
        });
        drafts.push(
            Draft::of("library-shadowed-by-ld-library-path", severity)
                .component(&asker.component)
                .title(format!(
                    "LD_LIBRARY_PATH gave {} {} instead of {}",
                    name(&loaded.path),
                    has.version.without_patch(),
                    would.version.without_patch()
                ))
                .cause(format!(
                    "{} ({}) was loaded through LD_LIBRARY_PATH; RUNPATH would have given {} ({}).",
                    loaded.path, has.version, other.path, would.version
                ))
                .cause(match said {
                    Some(message) => format!("{}.", view.said_by(message)),
                    None => "Nothing failed of it.".to_owned(),
                })
                .evidence_of(said.map(|m| (m.id, view.said_by(m))))
                .evidence(library.id, format!("{} was loaded", loaded.path))
                .evidence(would.event, format!("{} is {}", other.path, would.version))
                .remedy(format!(
                    "Take {} out of LD_LIBRARY_PATH if {} was meant.",
                    super::words::directory(&loaded.path),
                    other.path
                ))
                .in_process(library.pid)
                .proven(),
        );
    }
    drafts
}

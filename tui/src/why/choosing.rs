//! Why a file was chosen: the rule, and the places that lost.

use jittrace_model::event::{Body, Candidate, Explanation, Outcome, Rule};

use crate::{snapshot::LibraryRow, theme::Tone};

use super::*;

/// The rule that decided, in a sentence.
pub(super) fn rule(rule: Rule, detail: &str, explanation: Option<Explanation>) -> Link {
    let how = match explanation {
        Some(Explanation::Differs) => "; the replayed search chose another file",
        Some(Explanation::Reconstructed) => "; reconstructed after the fact",
        Some(Explanation::Confirmed) => "; the replayed search agrees",
        None => "",
    };
    let detail_text = if detail.is_empty() {
        String::new()
    } else {
        format!(": {detail}")
    };
    let link = Link::new(
        "chosen since",
        format!("{}{detail_text}{how}", rule_sentence(rule)),
    );
    if explanation == Some(Explanation::Differs) {
        link.tone(Tone::Warning)
    } else {
        link
    }
    .copies(detail)
}

/// The whole search; long runs of places that lost for one reason are left out until asked for.
pub(super) fn candidates(evidence: &Evidence<'_>, candidates: &[Candidate], links: &mut Vec<Link>) {
    if candidates.is_empty() {
        return;
    }
    links.push(Link::heading("the search, in order"));
    let mut rest = candidates;
    while let Some(first) = rest.first() {
        let alike = rest
            .iter()
            .take_while(|c| c.outcome == first.outcome)
            .count();
        let (same, after) = rest.split_at(alike);
        let fold = !evidence.expanded && alike > PLACES + 1 && first.outcome != Outcome::Chosen;
        let shown = if fold { PLACES } else { alike };
        for candidate in same.iter().take(shown) {
            let (word, tone) = outcome(candidate.outcome);
            let tone = match (
                candidate.outcome,
                evidence.snapshot.toolkit_of_file(&candidate.path),
            ) {
                (Outcome::Chosen, Some(toolkit)) => Tone::Toolkit(evidence.snapshot.rank(toolkit)),
                _ => tone,
            };
            links.push(
                Link::new(
                    word,
                    format!("{} ({})", candidate.path, candidate.rule.word()),
                )
                .deep(1)
                .tone(tone)
                .copies(candidate.path.clone()),
            );
        }
        if fold {
            let (word, _) = outcome(first.outcome);
            links.push(Link {
                target: Target::Expand,
                ..Link::new("", format!("{} more places: {word}", alike - shown))
                    .deep(1)
                    .tone(Tone::Accent)
            });
        }
        rest = after;
    }
}

pub(super) fn library(evidence: &Evidence<'_>, row: &LibraryRow, links: &mut Vec<Link>) {
    let toolkit = evidence.snapshot.toolkit_of_file(&row.path);
    let tone = toolkit.map_or(Tone::Plain, |t| Tone::Toolkit(evidence.snapshot.rank(t)));
    let label = match (&row.part, &row.version) {
        (Some(part), Some(version)) => format!("{part} {version}"),
        (Some(part), None) => part.clone(),
        _ => "library".to_owned(),
    };
    match &row.error {
        Some(error) => {
            links.push(
                Link::new("asked for", row.path.clone())
                    .event(row.event)
                    .copies(row.path.clone()),
            );
            links.push(Link::new("failed", error.clone()).tone(Tone::Error));
        }
        None => {
            links.push(
                Link::new(&label, row.path.clone())
                    .tone(tone)
                    .event(row.event)
                    .copies(row.path.clone()),
            );
            if row.realpath != row.path && !row.realpath.is_empty() {
                links.push(
                    Link::new("really", row.realpath.clone())
                        .deep(1)
                        .copies(row.realpath.clone()),
                );
            }
            if let Some(requested) = &row.requested {
                links.push(Link::new("asked for as", requested.clone()));
            }
            links.push(rule(row.rule, &row.rule_detail, Some(row.explanation)));
        }
    }
    asked(evidence, row.requested_by.as_deref(), &[row.event], links);
    match evidence.store.find(row.event).map(|event| event.body) {
        Some(Body::LibraryLoaded(loaded)) => candidates(evidence, &loaded.candidates, links),
        Some(Body::LibraryFailed(failed)) => candidates(evidence, &failed.candidates, links),
        _ => {}
    }
    if !row.again.is_empty() {
        links.push(Link::heading("asked for again, when it was there already"));
        told(evidence, row.again.iter().copied(), row.again.len(), links);
    }
}

//! The chain behind a finding and behind an event.

use jittrace_model::{EventId, event::Body, report::Finding};

use crate::{subject::Subject, summary, theme::Tone, view::findings};

use super::*;

pub(super) fn finding(evidence: &Evidence<'_>, finding: &Finding, links: &mut Vec<Link>) {
    let (tone, word) = findings::severity(finding.severity);
    links.push(Link::new(word, finding.title.clone()).tone(tone));
    if !finding.cause.is_empty() {
        links.push(Link::new("cause", finding.cause.clone()));
    }
    links.push(Link::new("how sure", findings::confidence(finding.confidence)).tone(Tone::Dim));
    if !finding.evidence.is_empty() {
        links.push(Link::heading("evidence"));
        for shown in &finding.evidence {
            links.push(
                Link::new(&format!("#{}", shown.event), shown.text.clone())
                    .deep(1)
                    .event(shown.event),
            );
        }
    }
    if !finding.remedy.is_empty() {
        links.push(Link::heading("what puts it right"));
        for remedy in &finding.remedy {
            links.push(
                Link::new("", remedy.clone())
                    .deep(1)
                    .tone(Tone::Good)
                    .copies(remedy.clone()),
            );
        }
    }
    let all = &evidence.snapshot.report.findings;
    let follow: Vec<&Finding> = all
        .iter()
        .filter(|f| f.consequence_of.as_deref() == Some(&finding.id))
        .collect();
    if !follow.is_empty() {
        links.push(Link::heading("what follows from it"));
        for found in follow {
            let (tone, word) = findings::severity(found.severity);
            links.push(
                Link::new(word, found.title.clone())
                    .tone(tone)
                    .deep(1)
                    .to(findings::key(found)),
            );
        }
    }
    if let Some(cause) = finding
        .consequence_of
        .as_ref()
        .and_then(|id| all.iter().find(|f| f.id == *id))
    {
        links.push(Link::new("follows from", cause.title.clone()).to(findings::key(cause)));
    }
    if let Some(component) = finding.component.as_ref().filter(|name| {
        evidence
            .snapshot
            .report
            .components
            .iter()
            .any(|c| c.name == **name)
    }) {
        links.push(Link::new("component", component.clone()).to(Subject::Cell {
            component: component.clone(),
            column: 0,
        }));
    }
}

pub(super) fn event(evidence: &Evidence<'_>, id: EventId, links: &mut Vec<Link>) {
    let Some(position) = evidence.store.position(id) else {
        return;
    };
    let Some(found) = evidence.store.event(position) else {
        return;
    };
    links.push(
        Link::new(found.body.kind(), summary::line(&found, 4000, "…"))
            .copies(evidence.store.line(position).unwrap_or_default())
            .tone(Tone::Heading),
    );
    links.push(Link::new(
        "at",
        format!(
            "{}, seen by {}, thread {}",
            evidence.moment(found.t),
            found.source.word(),
            found.tid
        ),
    ));
    if matches!(found.body, Body::Exec(_) | Body::ExecFailed(_))
        && let Some(process) = evidence.snapshot.process_at(found.pid, found.t)
        && let Some(row) = evidence.snapshot.processes.get(process)
        && !row.cwd.is_empty()
    {
        links.push(Link::new("in", row.cwd.clone()).copies(row.cwd.clone()));
    }
    if let Some(same) = found.same_as {
        links.push(Link::new("same as", format!("#{same}")).event(same));
    }
    let request = match &found.body {
        Body::LibraryLoaded(loaded) => loaded.request,
        Body::LibraryFailed(failed) => failed.request,
        Body::PythonStack(stack) => stack.of,
        _ => None,
    };
    if let Some(request) = request {
        links.push(Link::new("asked for in", format!("#{request}")).event(request));
    }
    let python = python_of(&found);
    if !python.is_empty() {
        links.push(Link::heading("Python, innermost first"));
        frames(python, id, evidence.expanded, links);
    }
    if let Body::LibraryLoaded(loaded) = &found.body {
        candidates(evidence, &loaded.candidates, links);
    } else if let Body::LibraryFailed(failed) = &found.body {
        candidates(evidence, &failed.candidates, links);
    }
    in_process(evidence, &found, links);
    let told: Vec<&Finding> = evidence
        .snapshot
        .report
        .findings
        .iter()
        .filter(|f| f.evidence.iter().any(|e| e.event == id))
        .collect();
    for found in told {
        let (tone, _) = findings::severity(found.severity);
        links.push(
            Link::new("evidence for", found.title.clone())
                .tone(tone)
                .to(findings::key(found)),
        );
    }
    links.push(Link::heading("all fields"));
    let line = evidence.store.line(position).unwrap_or_default();
    if let Ok(serde_json::Value::Object(fields)) = serde_json::from_str(&line) {
        for (name, value) in fields {
            if matches!(name.as_str(), "python" | "candidates") {
                continue;
            }
            field(&name, &value, 1, links);
        }
    }
}

/// A field and what is in it, one line for each value.
pub(super) fn field(name: &str, value: &serde_json::Value, depth: usize, links: &mut Vec<Link>) {
    use serde_json::Value;
    match value {
        Value::Object(fields) if depth < 4 && !fields.is_empty() => {
            links.push(Link::new(name, "").deep(depth));
            for (name, value) in fields {
                field(name, value, depth + 1, links);
            }
        }
        Value::Array(values) if values.iter().all(Value::is_string) => {
            let words: Vec<&str> = values.iter().filter_map(Value::as_str).collect();
            links.push(Link::new(name, words.join(" ")).deep(depth));
        }
        Value::String(text) => {
            links.push(
                Link::new(name, text.clone())
                    .deep(depth)
                    .copies(text.clone()),
            );
        }
        other => links.push(Link::new(name, other.to_string()).deep(depth)),
    }
}

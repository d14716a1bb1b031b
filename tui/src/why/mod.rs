//! Why: the chain behind anything on the screen, from the file back to the process, with the places that lost.
//!
//! file ← rule ← variable, search path or PATH entry ← asker ← process ← its parents. Every line that an event stands
//! behind leads to it. The chain is made from the snapshot and the stored events alone, so that it is the same for a
//! live trace and a recorded one.

use jittrace_model::{
    Event, EventId,
    event::{Body, Candidate, Explanation, Frame, Outcome, Rule},
    fold::ProcessIndex,
    report::{Finding, Resolved},
};

use crate::{
    snapshot::{LibraryRow, ProcessRow, Snapshot},
    store::Store,
    subject::Subject,
    summary, text,
    theme::Tone,
    view::{
        findings,
        resolution::{self, COLUMNS, Difference},
    },
};

/// What a line does when it is followed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Target {
    /// Nothing.
    #[default]
    None,
    /// Goes there.
    Go(Subject),
    /// Shows what was left out.
    Expand,
}

/// One line of a chain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Link {
    /// Steps from the left.
    pub depth: usize,
    /// What kind of link it is; empty when the text says it.
    pub label: String,
    /// The statement.
    pub text: String,
    /// How it is to be read.
    pub tone: Tone,
    /// Where it leads.
    pub target: Target,
    /// What is copied; the text when absent.
    pub copy: Option<String>,
}

impl Link {
    fn new(label: &str, text: impl Into<String>) -> Link {
        Link {
            label: label.to_owned(),
            text: text.into(),
            ..Link::default()
        }
    }

    fn heading(text: &str) -> Link {
        Link {
            label: text.to_owned(),
            tone: Tone::Heading,
            ..Link::default()
        }
    }

    fn tone(mut self, tone: Tone) -> Link {
        self.tone = tone;
        self
    }

    fn deep(mut self, depth: usize) -> Link {
        self.depth = depth;
        self
    }

    fn event(self, id: EventId) -> Link {
        self.to(Subject::Event(id))
    }

    fn to(mut self, subject: Subject) -> Link {
        self.target = Target::Go(subject);
        self
    }

    fn copies(mut self, text: impl Into<String>) -> Link {
        self.copy = Some(text.into());
        self
    }
}

/// Losing places of one kind that are shown before the rest is left out.
const PLACES: usize = 6;

/// What a chain is made from.
pub struct Evidence<'a> {
    /// The model.
    pub snapshot: &'a Snapshot,
    /// The events.
    pub store: &'a Store,
    /// One process, or all.
    pub process: Option<u32>,
    /// Nothing is left out.
    pub expanded: bool,
}

/// The title of a chain.
pub fn title(evidence: &Evidence<'_>, subject: &Subject) -> String {
    match subject {
        Subject::Cell { component, column } => {
            let column = COLUMNS.get(*column).map_or("", |c| c.title);
            format!("{component}: {column}")
        }
        Subject::Finding(id, _) => id.clone(),
        Subject::Process(at) => match evidence.snapshot.processes.get(*at) {
            Some(process) => format!("process {} {}", process.pid, text::base(&process.program)),
            None => "process".to_owned(),
        },
        Subject::Build(id) => match evidence.snapshot.report.builds.iter().find(|b| b.id == *id) {
            Some(build) => format!("build {id}: {}", build.tool),
            None => format!("build {id}"),
        },
        Subject::Cache(directory) => format!("cache {directory}"),
        Subject::Artifact(path) => text::base(path).to_owned(),
        Subject::Library(id) => match evidence.snapshot.libraries.iter().find(|l| l.event == *id) {
            Some(library) => text::base(&library.path).to_owned(),
            None => format!("event {id}"),
        },
        Subject::Event(id) => format!("event {id}"),
    }
}

/// The chain behind a subject.
pub fn chain(evidence: &Evidence<'_>, subject: &Subject) -> Vec<Link> {
    let mut links = Vec::new();
    match subject {
        Subject::Cell { component, column } => cell(evidence, component, *column, &mut links),
        Subject::Finding(id, title) => {
            if let Some(found) = findings::find(evidence.snapshot, id, title) {
                finding(evidence, found, &mut links);
            }
        }
        Subject::Process(at) => process(evidence, *at, &mut links),
        Subject::Build(id) => build(evidence, *id, &mut links),
        Subject::Cache(directory) => cache(evidence, directory, &mut links),
        Subject::Artifact(path) => artifact(evidence, path, &mut links),
        Subject::Library(id) => {
            if let Some(row) = evidence.snapshot.libraries.iter().find(|l| l.event == *id) {
                library(evidence, row, &mut links);
            }
        }
        Subject::Event(id) => event(evidence, *id, &mut links),
    }
    if links.is_empty() {
        links.push(Link::new("", "This is not part of the trace any more.").tone(Tone::Dim));
    }
    links
}

fn cell(evidence: &Evidence<'_>, name: &str, column: usize, links: &mut Vec<Link>) {
    let snapshot = evidence.snapshot;
    let report = &snapshot.report;
    let (Some(component), Some(column)) = (
        report.components.iter().find(|c| c.name == name),
        COLUMNS.get(column),
    ) else {
        return;
    };
    match column.key {
        "built-for" => {
            match (&component.built_for.cuda, &component.built_for.from) {
                (Some(cuda), from) => {
                    links.push(Link::new("built for", format!("CUDA {cuda}")));
                    if let Some(from) = from {
                        links.push(Link::new("as told by", from.clone()).deep(1));
                    }
                }
                (None, _) => links.push(
                    Link::new("built for", "nothing says for which CUDA it was built")
                        .tone(Tone::Dim),
                ),
            }
            for (label, value) in [
                ("distribution", &component.distribution),
                ("version", &component.version),
                ("lives in", &component.path),
            ] {
                if let Some(value) = value {
                    links.push(Link::new(label, value.clone()));
                }
            }
        }
        "archs" => {
            let archs = resolution::archs(snapshot, component);
            let text = if archs.is_empty() {
                "none were asked for".to_owned()
            } else {
                archs.join(" ")
            };
            links.push(Link::new("architectures", text));
            for build in report
                .builds
                .iter()
                .filter(|b| b.started_by.as_deref() == Some(name) && !b.archs.is_empty())
                .take(20)
            {
                links.push(
                    Link::new(
                        &build.tool,
                        format!(
                            "{} for {}",
                            build.archs.join(" "),
                            build.output.as_deref().unwrap_or("?")
                        ),
                    )
                    .deep(1)
                    .to(Subject::Build(build.id)),
                );
            }
        }
        "caches" => {
            for cache in report.caches.iter().filter(|c| c.owner == name) {
                links.push(
                    Link::new("cache", cache.directory.clone())
                        .to(Subject::Cache(cache.directory.clone())),
                );
                links.push(
                    Link::new(
                        "",
                        format!(
                            "{} hits, {} misses, {} built",
                            cache.hits, cache.misses, cache.builds
                        ),
                    )
                    .deep(1),
                );
            }
        }
        part => {
            let expected = component.built_for.cuda.as_deref();
            for (at, entry) in resolution::entries(component, part, evidence.process).enumerate() {
                if at > 0 {
                    links.push(Link::default());
                }
                resolved(evidence, column.title, entry, links);
                if let (Some(expected), Some(version), true) =
                    (expected, &entry.version, column.release)
                    && resolution::difference(version, expected) != Difference::None
                {
                    links.push(
                        Link::new(
                            "differs from",
                            format!(
                                "CUDA {expected}, which {name} was built for{}",
                                component
                                    .built_for
                                    .from
                                    .as_ref()
                                    .map(|f| format!(" ({f})"))
                                    .unwrap_or_default()
                            ),
                        )
                        .tone(Tone::Warning),
                    );
                } else if let (None, Some(version), true) =
                    (expected, &entry.version, column.release)
                    && let Some((other, cuda)) = resolution::neighbour(snapshot, component)
                    && resolution::difference(version, &cuda) != Difference::None
                {
                    let text =
                        format!("CUDA {cuda}, which {other} in the same processes was built for");
                    links.push(Link::new("differs from", text).tone(Tone::Warning));
                }
            }
        }
    }
    if links.is_empty() {
        links.push(Link::new(column.title, format!("{name} resolved none")).tone(Tone::Dim));
    }
    let about: Vec<&Finding> = report
        .findings
        .iter()
        .filter(|f| f.component.as_deref() == Some(name))
        .collect();
    if !about.is_empty() {
        links.push(Link::default());
        links.push(Link::heading("findings"));
        for found in about {
            let (tone, word) = findings::severity(found.severity);
            links.push(
                Link::new(word, found.title.clone())
                    .tone(tone)
                    .deep(1)
                    .to(findings::key(found)),
            );
        }
    }
}

/// The chain behind one resolved file.
fn resolved(evidence: &Evidence<'_>, part: &str, entry: &Resolved, links: &mut Vec<Link>) {
    let snapshot = evidence.snapshot;
    let toolkit = entry.toolkit.as_deref().and_then(|id| snapshot.toolkit(id));
    let tone = toolkit.map_or(Tone::Plain, |t| Tone::Toolkit(snapshot.rank(t)));
    let version = entry.version.as_deref().unwrap_or("of unknown version");
    let first = entry.events.first().copied();
    let mut link = Link::new(&format!("{part} {version}"), entry.path.clone())
        .tone(tone)
        .copies(entry.path.clone());
    if let Some(id) = first {
        link = link.event(id);
    }
    links.push(link);
    if !entry.realpath.is_empty() && entry.realpath != entry.path {
        links.push(
            Link::new("really", entry.realpath.clone())
                .deep(1)
                .copies(entry.realpath.clone()),
        );
    }
    if let Some(from) = &entry.version_from {
        links.push(
            Link::new("version by", from.clone())
                .deep(1)
                .tone(Tone::Dim),
        );
    }
    if let Some(toolkit) = toolkit.and_then(|t| snapshot.report.toolkits.get(t)) {
        links.push(
            Link::new(
                "toolkit",
                format!("{} ({}) {}", toolkit.id, toolkit.kind, toolkit.root),
            )
            .deep(1)
            .copies(toolkit.root.clone()),
        );
    }
    links.push(rule(entry.rule, &entry.rule_detail, entry.explanation));
    asked(
        evidence,
        entry.requested_by.as_deref(),
        &entry.events,
        links,
    );
    candidates(evidence, &entry.candidates, links);
    let more: Vec<String> = entry.pids.iter().map(u32::to_string).collect();
    if more.len() > 1 {
        links.push(Link::new(
            "seen in",
            format!("processes {}", more.join(", ")),
        ));
    }
    if entry.events.len() > 1 {
        links.push(Link::heading("seen as"));
        for id in &entry.events {
            if let Some(event) = evidence.store.find(*id) {
                links.push(
                    Link::new(
                        &format!("#{id}"),
                        format!("{} {}", event.body.kind(), summary::line(&event, 400, "…")),
                    )
                    .deep(1)
                    .tone(Tone::Dim)
                    .event(*id),
                );
            }
        }
    }
}

/// Who asked: the sentence, the frames of the first event that has any, and the process with its parents.
fn asked(evidence: &Evidence<'_>, by: Option<&str>, events: &[EventId], links: &mut Vec<Link>) {
    let found: Vec<Event> = events
        .iter()
        .take(4)
        .filter_map(|id| evidence.store.find(*id))
        .collect();
    if let Some(by) = by {
        let mut link = Link::new("asked by", by).copies(by);
        if let Some(first) = found.first() {
            link = link.event(first.id);
        }
        links.push(link);
    }
    for event in &found {
        // A load leads to the request, which may know more.
        let request = match &event.body {
            Body::LibraryLoaded(loaded) => loaded.request,
            Body::LibraryFailed(failed) => failed.request,
            _ => None,
        }
        .and_then(|id| evidence.store.find(id));
        let own = python_of(event);
        let (holder, python) = match &request {
            Some(request) if own.is_empty() => (request, python_of(request)),
            _ => (event, own),
        };
        if !python.is_empty() {
            frames(python, holder.id, evidence.expanded, links);
            break;
        }
    }
    if let Some(event) = found.first()
        && let Some(process) = evidence.snapshot.process_at(event.pid, event.t)
    {
        ancestry(evidence, process, links);
    }
}

fn python_of(event: &Event) -> &[Frame] {
    match &event.body {
        Body::Exec(b) => &b.python,
        Body::ExecFailed(b) => &b.python,
        Body::LibraryRequest(b) => &b.python,
        Body::LibraryLoaded(b) => &b.python,
        Body::LibraryFailed(b) => &b.python,
        Body::Call(b) => &b.python,
        Body::File(b) => &b.python,
        Body::PythonStack(b) => &b.python,
        _ => &[],
    }
}

/// Python frames, innermost first.
fn frames(python: &[Frame], event: EventId, expanded: bool, links: &mut Vec<Link>) {
    const FRAMES: usize = 8;
    let own = |frame: &&Frame| expanded || !of_python(&frame.file);
    let shown = if expanded { python.len() } else { FRAMES };
    let mut told = 0;
    for frame in python.iter().filter(own).take(shown) {
        told += 1;
        let sentence = jittrace_model::resolve::asker::frame_sentence(frame);
        let tone = if frame.distribution.is_some() {
            Tone::Plain
        } else {
            Tone::Dim
        };
        links.push(
            Link::new("", sentence)
                .deep(1)
                .tone(tone)
                .event(event)
                .copies(format!("{}:{}", frame.file, frame.line)),
        );
    }
    if python.len() > told {
        let rest = python.len() - told;
        let what = if rest == 1 {
            "1 more frame".to_owned()
        } else {
            format!("{rest} more frames")
        };
        links.push(Link {
            target: Target::Expand,
            ..Link::new("", what).deep(1).tone(Tone::Accent)
        });
    }
}

/// Whether a file is Python's own: its frames lie between those that tell something.
fn of_python(file: &str) -> bool {
    file.starts_with("<frozen")
        || (file.contains("/lib/python3")
            && !file.contains("/site-packages/")
            && !file.contains("/dist-packages/"))
}

/// A process and those that led to it.
fn ancestry(evidence: &Evidence<'_>, process: ProcessIndex, links: &mut Vec<Link>) {
    for (depth, at) in evidence.snapshot.ancestry(process).into_iter().enumerate() {
        let Some(row) = evidence.snapshot.processes.get(at) else {
            continue;
        };
        let label = if depth == 0 {
            "in process"
        } else {
            "started by"
        };
        links.push(
            Link::new(label, format!("{} {}", row.pid, command_line(row)))
                .deep(depth.min(4))
                .to(Subject::Process(at)),
        );
    }
}

fn command_line(row: &ProcessRow) -> String {
    let mut words = vec![text::base(&row.program).to_owned()];
    words.extend(row.argv.iter().skip(1).cloned());
    words.join(" ")
}

/// The rule that decided, in a sentence.
fn rule(rule: Rule, detail: &str, explanation: Option<Explanation>) -> Link {
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

/// The whole search; long runs of places that lost for one reason are left out until asked for.
fn candidates(evidence: &Evidence<'_>, candidates: &[Candidate], links: &mut Vec<Link>) {
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

fn finding(evidence: &Evidence<'_>, finding: &Finding, links: &mut Vec<Link>) {
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

fn process(evidence: &Evidence<'_>, at: ProcessIndex, links: &mut Vec<Link>) {
    let Some(row) = evidence.snapshot.processes.get(at) else {
        return;
    };
    let toolkit = evidence.snapshot.toolkit_of_file(&row.program);
    let tone = toolkit.map_or(Tone::Plain, |t| Tone::Toolkit(evidence.snapshot.rank(t)));
    links.push(
        Link::new("program", row.program.clone())
            .tone(tone)
            .event(row.event)
            .copies(row.program.clone()),
    );
    if row.exe != row.program && !row.exe.is_empty() {
        links.push(
            Link::new("run by", row.exe.clone())
                .deep(1)
                .copies(row.exe.clone()),
        );
    }
    links.push(
        Link::new("command", row.argv.join(" ")).copies(crate::copy::command(
            &row.program,
            &row.argv,
            &row.cwd,
            &row.env,
        )),
    );
    links.push(Link::new("in", row.cwd.clone()));
    let began = if row.found {
        "found running at"
    } else {
        "from"
    };
    let life = match row.end {
        Some(end) => format!(
            "{began} {} s, for {}",
            text::moment(row.start),
            text::duration(end.saturating_sub(row.start))
        ),
        None if row.replaced_by.is_some() => format!(
            "{began} {} s, then ran another program",
            text::moment(row.start)
        ),
        None => format!("{began} {} s, still running", text::moment(row.start)),
    };
    links.push(Link::new("life", life));
    if let Some(exit) = row.exit {
        let (word, tone) = crate::view::exit_word(exit);
        let mut link = Link::new("ended", word).tone(tone);
        if let Some(event) = row.exit_event {
            link = link.event(event);
        }
        links.push(link);
    }
    if let Some(reason) = &row.not_followed {
        links.push(
            Link::new("not followed", reason.clone())
                .tone(Tone::Warning)
                .event(row.event),
        );
    }
    if let Some(exec) = row.exec_event {
        let mut link = Link::new(
            "asked for by",
            if row.python.is_empty() {
                "an exec".to_owned()
            } else {
                summary::asker(&row.python)
            },
        );
        link = link.event(exec);
        links.push(link);
        frames(&row.python, exec, evidence.expanded, links);
    }
    for (depth, parent) in evidence
        .snapshot
        .ancestry(at)
        .into_iter()
        .skip(1)
        .enumerate()
    {
        if let Some(row) = evidence.snapshot.processes.get(parent) {
            links.push(
                Link::new("started by", format!("{} {}", row.pid, command_line(row)))
                    .deep(depth.min(4))
                    .to(Subject::Process(parent)),
            );
        }
    }
    if let Some(next) = row
        .replaced_by
        .and_then(|next| evidence.snapshot.processes.get(next).map(|r| (next, r)))
    {
        links.push(Link::new("then ran", command_line(next.1)).to(Subject::Process(next.0)));
    }
    let children: Vec<(usize, &ProcessRow)> = evidence
        .snapshot
        .processes
        .iter()
        .enumerate()
        .filter(|(_, p)| p.parent == Some(at))
        .collect();
    if !children.is_empty() {
        links.push(Link::heading(&format!("started ({})", children.len())));
        let shown = if evidence.expanded {
            children.len()
        } else {
            PLACES
        };
        for (index, child) in children.iter().take(shown) {
            links.push(
                Link::new(&child.pid.to_string(), command_line(child))
                    .deep(1)
                    .to(Subject::Process(*index)),
            );
        }
        if children.len() > shown {
            links.push(Link {
                target: Target::Expand,
                ..Link::new("", format!("{} more", children.len() - shown))
                    .deep(1)
                    .tone(Tone::Accent)
            });
        }
    }
    if !row.env.is_empty() {
        links.push(Link::heading("captured environment"));
        for (name, value) in &row.env {
            links.push(
                Link::new(name, value.clone())
                    .deep(1)
                    .event(row.event)
                    .copies(format!("{name}={value}")),
            );
        }
    }
}

fn build(evidence: &Evidence<'_>, id: u32, links: &mut Vec<Link>) {
    let builds = &evidence.snapshot.report.builds;
    let Some(build) = builds.iter().find(|b| b.id == id) else {
        return;
    };
    let toolkit = evidence.snapshot.toolkit_of_file(&build.path);
    let tone = toolkit.map_or(Tone::Plain, |t| Tone::Toolkit(evidence.snapshot.rank(t)));
    let mut link = Link::new(
        &format!("{} {}", build.tool, build.version.as_deref().unwrap_or("")),
        build.path.clone(),
    )
    .tone(tone)
    .copies(build.path.clone());
    if let Some(id) = build.events.first() {
        link = link.event(*id);
    }
    links.push(link);
    if let Some(message) = &build.message {
        links.push(Link::new("said", message.clone()).tone(Tone::Error));
    }
    match (build.exit, build.duration_ns) {
        (Some(exit), duration) => {
            let (word, tone) = crate::view::exit_word(exit);
            let after = duration
                .map(|d| format!(" after {}", text::duration(d)))
                .unwrap_or_default();
            links.push(Link::new("ended", format!("{word}{after}")).tone(tone));
        }
        (None, _) => links.push(Link::new("ended", "still running").tone(Tone::Accent)),
    }
    if let Some(output) = &build.output {
        links.push(Link::new("output", output.clone()).copies(output.clone()));
    }
    if !build.archs.is_empty() {
        links.push(Link::new("architectures", build.archs.join(" ")));
    }
    links.push(
        Link::new("command", build.argv.join(" ")).copies(crate::copy::command(
            &build.path,
            &build.argv,
            &build.cwd,
            &[],
        )),
    );
    links.push(Link::new("in", build.cwd.clone()));
    if let Some(by) = &build.started_by {
        links.push(Link::new("for", by.clone()));
    }
    let mut parent = build.parent;
    let mut depth = 0;
    while let Some(above) = parent.and_then(|id| builds.iter().find(|b| b.id == id)) {
        depth += 1;
        links.push(
            Link::new(
                "run by",
                format!("{} {}", above.tool, above.output.as_deref().unwrap_or("")),
            )
            .deep(depth)
            .to(Subject::Build(above.id)),
        );
        // A parent always has the smaller number.
        parent = above.parent.filter(|id| *id < above.id);
    }
    if let Some(process) = evidence.snapshot.process_at(build.pid, build.start_ns) {
        if let Some(row) = evidence.snapshot.processes.get(process)
            && let Some(exec) = row.exec_event
            && !row.python.is_empty()
        {
            links.push(Link::new("asked for by", summary::asker(&row.python)).event(exec));
            frames(&row.python, exec, evidence.expanded, links);
        }
        ancestry(evidence, process, links);
    }
    for id in build.events.iter().skip(1) {
        links.push(
            Link::new("seen as", format!("#{id}"))
                .tone(Tone::Dim)
                .event(*id),
        );
    }
}

fn cache(evidence: &Evidence<'_>, directory: &str, links: &mut Vec<Link>) {
    let report = &evidence.snapshot.report;
    let Some(cache) = report.caches.iter().find(|c| c.directory == directory) else {
        return;
    };
    links.push(Link::new("directory", directory).copies(directory));
    links.push(Link::new("owner", cache.owner.clone()).to(Subject::Cell {
        component: cache.owner.clone(),
        column: 8,
    }));
    links.push(Link::new(
        "used",
        format!(
            "{} hits, {} misses, {} built",
            cache.hits, cache.misses, cache.builds
        ),
    ));
    if let Some(filesystem) = &cache.filesystem {
        links.push(Link::new("on", filesystem.clone()));
    }
    for artifact in &cache.artifacts {
        links.push(
            Link::new(
                artifact.built_with.as_deref().unwrap_or("?"),
                artifact.path.clone(),
            )
            .deep(1)
            .to(Subject::Artifact(artifact.path.clone())),
        );
    }
}

fn artifact(evidence: &Evidence<'_>, path: &str, links: &mut Vec<Link>) {
    let report = &evidence.snapshot.report;
    let Some((cache, artifact)) = report
        .caches
        .iter()
        .find_map(|c| c.artifacts.iter().find(|a| a.path == path).map(|a| (c, a)))
    else {
        return;
    };
    links.push(Link::new("artefact", path).copies(path));
    let with = match (&artifact.built_with, &artifact.built_with_from) {
        (Some(with), Some(from)) => format!("CUDA {with} (by {from})"),
        (Some(with), None) => format!("CUDA {with}"),
        _ => "not known".to_owned(),
    };
    links.push(Link::new("built with", with));
    let when = match (artifact.built, artifact.loaded) {
        (true, true) => "built and loaded in this run",
        (true, false) => "built in this run",
        (false, true) => "found in the cache and loaded",
        (false, false) => "seen",
    };
    links.push(Link::new("use", when));
    if !artifact.archs.is_empty() {
        links.push(Link::new("architectures", artifact.archs.join(" ")));
    }
    if !artifact.needed.is_empty() {
        links.push(Link::new("needs", artifact.needed.join(" ")));
    }
    links.push(
        Link::new("in cache", cache.directory.clone()).to(Subject::Cache(cache.directory.clone())),
    );
    for build in report
        .builds
        .iter()
        .filter(|b| b.output.as_deref().is_some_and(|o| path.ends_with(o)))
        .take(PLACES)
    {
        links.push(
            Link::new(
                "built by",
                format!("{} {}", build.tool, build.version.as_deref().unwrap_or("")),
            )
            .to(Subject::Build(build.id)),
        );
    }
    for id in &artifact.events {
        if let Some(event) = evidence.store.find(*id) {
            links.push(
                Link::new(
                    &format!("#{id}"),
                    format!("{} {}", event.body.kind(), summary::line(&event, 400, "…")),
                )
                .tone(Tone::Dim)
                .event(*id),
            );
        }
    }
}

fn library(evidence: &Evidence<'_>, row: &LibraryRow, links: &mut Vec<Link>) {
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
    candidates(evidence, &row.candidates, links);
}

fn event(evidence: &Evidence<'_>, id: EventId, links: &mut Vec<Link>) {
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
            "{} s, seen by {}, thread {}",
            text::moment(found.t),
            found.source.word(),
            found.tid
        ),
    ));
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
    if let Some(process) = evidence.snapshot.process_at(found.pid, found.t) {
        ancestry(evidence, process, links);
    }
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
fn field(name: &str, value: &serde_json::Value, depth: usize, links: &mut Vec<Link>) {
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

/// A chain as Markdown.
pub fn markdown(title: &str, links: &[Link]) -> String {
    let mut out = format!("### {title}\n\n");
    for link in links {
        if link.label.is_empty() && link.text.is_empty() {
            out.push('\n');
            continue;
        }
        let indent = "  ".repeat(link.depth);
        let event = match &link.target {
            Target::Go(Subject::Event(id)) => format!(" (event {id})"),
            _ => String::new(),
        };
        let label = if link.label.is_empty() {
            String::new()
        } else {
            format!("**{}** ", link.label)
        };
        out.push_str(&format!("{indent}- {label}{}{event}\n", link.text));
    }
    out
}

//! Why: the chain behind anything on the screen, from the file back to the process, with the places that lost.
//!
//! file ← rule ← variable, search path or PATH entry ← asker ← process ← its parents. Every line that an event stands
//! behind leads to it. The chain is made from the snapshot and the stored events alone, so that it is the same for a
//! live trace and a recorded one.

mod asking;
mod caching;
mod choosing;
mod resolving;
mod running;
mod telling;
mod words;

pub use jittrace_model::report::phrase::version_from;
pub use words::{outcome, rule_long, rule_sentence, rule_short};

use asking::*;
use caching::*;
use choosing::*;
use jittrace_model::EventId;
pub(crate) use resolving::more;
use resolving::*;
use running::*;
use telling::*;

use crate::{
    clock::Clock,
    snapshot::Snapshot,
    store::Store,
    subject::Subject,
    text,
    theme::Tone,
    view::{findings, resolution::COLUMNS},
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
    pub(super) fn new(label: &str, text: impl Into<String>) -> Link {
        Link {
            label: label.to_owned(),
            text: text.into(),
            ..Link::default()
        }
    }

    pub(super) fn heading(text: &str) -> Link {
        Link {
            label: text.to_owned(),
            tone: Tone::Heading,
            ..Link::default()
        }
    }

    pub(super) fn tone(mut self, tone: Tone) -> Link {
        self.tone = tone;
        self
    }

    pub(super) fn deep(mut self, depth: usize) -> Link {
        self.depth = depth;
        self
    }

    pub(super) fn event(self, id: EventId) -> Link {
        self.to(Subject::Event(id))
    }

    pub(super) fn to(mut self, subject: Subject) -> Link {
        self.target = Target::Go(subject);
        self
    }

    pub(super) fn copies(mut self, text: impl Into<String>) -> Link {
        self.copy = Some(text.into());
        self
    }
}

/// Losing places of one kind that are shown before the rest is left out.
pub(super) const PLACES: usize = 6;

/// Events that are shown of one thing when nothing is to be left out; a list of more is for the Events view.
pub(crate) const ALL: usize = 1000;

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
    /// By which moments are times of day.
    pub clock: Option<Clock>,
    /// There will be more events: what has no end may still run.
    pub live: bool,
}

impl Evidence<'_> {
    /// A moment, since the trace began and by the clock.
    pub(super) fn moment(&self, t: u64) -> String {
        match self.clock {
            Some(clock) => format!("{} s ({})", text::moment(t), clock.date_time(t)),
            None => format!("{} s", text::moment(t)),
        }
    }
}

/// The title of a chain.
pub fn title(evidence: &Evidence<'_>, subject: &Subject) -> String {
    match subject {
        Subject::Cell { component, column } => {
            let column = COLUMNS.get(*column).map_or("", |c| c.title);
            let component = match component.as_str() {
                "" => "(asker not seen)",
                name => name,
            };
            format!("{component}: {column}")
        }
        Subject::Finding(id, _) => id.clone(),
        Subject::Process(id) => match evidence.snapshot.process(*id) {
            Some(process) => format!("process {} {}", process.pid, text::base(&process.program)),
            None => "process".to_owned(),
        },
        Subject::Build(id) => match evidence.snapshot.build(*id) {
            Some(build) => format!("build {}: {}", build.id, build.tool),
            None => "build".to_owned(),
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
        Subject::Process(id) => process(evidence, *id, &mut links),
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

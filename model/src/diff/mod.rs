//! It worked before: what changed, and does it matter?
//!
//! Two reports are aligned by component and role, never by process id, time, temporary name or address. Every change
//! that is found is weighed: a *cause* lies upstream of what went wrong, a *consequence* follows from one, and what
//! cannot have mattered (a path spelled another way that leads to the same file, a duration) is counted and set aside.
//! A look-up that failed is no fault by itself, and one that succeeded no proof of innocence: only what was resolved,
//! and what came of it, is compared.

mod caches;
mod environment;
mod findings;
mod markdown;
mod rank;
mod resolution;
mod surroundings;
mod text;

use serde::{Deserialize, Serialize};

use crate::{
    event::EventId,
    report::{Exit, Report, phrase},
};

pub use markdown::render as markdown;
pub use text::render as text;

/// The schema's name.
pub const SCHEMA: &str = "jittrace.diff/1";

/// The JSON Schema of [`Diff`].
pub const JSON_SCHEMA: &str = include_str!("../../schema/diff-1.schema.json");

/// What the first line says when there is nothing to say.
pub const NOTHING: &str = "no difference that matters";

/// What differs between two runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Diff {
    /// [`SCHEMA`].
    pub schema: String,
    /// Whether nothing that matters differs.
    pub same: bool,
    /// The likely cause in one sentence, or [`NOTHING`].
    pub headline: String,
    /// The run that worked.
    pub good: Side,
    /// The run that did not.
    pub bad: Side,
    /// What differs, the likely cause first.
    pub changes: Vec<Change>,
}

/// One of the two runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Side {
    /// The traced command.
    pub command: Vec<String>,
    /// Host name.
    pub host: String,
    /// How it ended.
    pub exit: Option<Exit>,
    /// How long it took.
    pub duration_ns: u64,
    /// What its own report says.
    pub verdict: String,
}

/// What kind of thing changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A variable.
    Environment,
    /// A component resolved another file for a part.
    Resolution,
    /// The same file under another name.
    Spelling,
    /// A component's version, or what it was built for.
    Component,
    /// The driver or the GPUs.
    Driver,
    /// The command's arguments.
    Command,
    /// What a cache held or was built with.
    Cache,
    /// Compilations.
    Build,
    /// Something wrong that was not wrong before, or no longer is.
    Finding,
    /// How the command ended.
    Exit,
    /// Toolkits that are present.
    Toolkit,
    /// The machine.
    Host,
    /// How long it took.
    Duration,
}

impl Kind {
    /// The word that reports use.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Environment => "environment",
            Kind::Resolution => "resolved",
            Kind::Spelling => "spelling",
            Kind::Component => "component",
            Kind::Driver => "driver",
            Kind::Command => "command",
            Kind::Cache => "cache",
            Kind::Build => "builds",
            Kind::Finding => "finding",
            Kind::Exit => "exit",
            Kind::Toolkit => "toolkit",
            Kind::Host => "host",
            Kind::Duration => "duration",
        }
    }
}

/// Whether a change matters.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Weight {
    /// It may have caused what differs in the outcome.
    Cause,
    /// It follows from a cause, or is the outcome itself.
    Consequence,
    /// It cannot have mattered.
    #[default]
    None,
}

/// What one run has.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Facet {
    /// What it is.
    pub text: String,
    /// What was seen of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<EventId>,
}

impl Facet {
    fn new(text: impl Into<String>, events: &[EventId]) -> Option<Self> {
        Some(Facet {
            text: text.into(),
            events: events.iter().take(8).copied().collect(),
        })
    }
}

/// One thing that differs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// What kind of thing.
    pub kind: Kind,
    /// Whether it matters.
    pub weight: Weight,
    /// Whom it concerns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub component: Option<String>,
    /// The part, variable, artefact or finding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// One sentence.
    pub title: String,
    /// Why it matters, or why not.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// What the good run has; absent when it has nothing.
    pub good: Option<Facet>,
    /// What the bad run has.
    pub bad: Option<Facet>,
    /// Changes that this one brought about, told with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub led_to: Vec<Change>,
    /// Position among the causes; decided by [`rank`].
    #[serde(skip)]
    score: i32,
}

impl Change {
    fn new(kind: Kind, weight: Weight, title: impl Into<String>) -> Self {
        Change {
            kind,
            weight,
            component: None,
            role: None,
            title: title.into(),
            why: String::new(),
            good: None,
            bad: None,
            led_to: Vec::new(),
            score: 0,
        }
    }

    fn of(mut self, component: Option<&str>, role: Option<&str>) -> Self {
        self.component = component.map(str::to_owned);
        self.role = role.map(str::to_owned);
        self
    }

    fn sides(mut self, good: Option<Facet>, bad: Option<Facet>) -> Self {
        self.good = good;
        self.bad = bad;
        self
    }

    fn because(mut self, why: impl Into<String>) -> Self {
        self.why = why.into();
        self
    }
}

/// Compares two runs.
pub fn compare(good: &Report, bad: &Report) -> Diff {
    let mut changes = Vec::new();
    resolution::compare(good, bad, &mut changes);
    surroundings::compare(good, bad, &mut changes);
    caches::compare(good, bad, &mut changes);
    findings::compare(good, bad, &mut changes);
    let changes = rank::order(good, bad, environment::explain(good, bad, changes));
    let first = changes
        .first()
        .filter(|change| change.weight != Weight::None);
    Diff {
        schema: SCHEMA.to_owned(),
        same: first.is_none(),
        headline: first.map_or_else(|| NOTHING.to_owned(), |change| change.title.clone()),
        good: side(good),
        bad: side(bad),
        changes,
    }
}

fn side(report: &Report) -> Side {
    Side {
        command: report.command.clone(),
        host: report.host.name.clone(),
        exit: report.exit,
        duration_ns: report.duration_ns,
        verdict: phrase::verdict(report),
    }
}

/// Whether the traces were taken on different machines, so that paths say little.
fn other_host(good: &Report, bad: &Report) -> bool {
    let namespace = |report: &Report| report.host.namespaces.get("mnt").cloned();
    good.host.name != bad.host.name
        || match (namespace(good), namespace(bad)) {
            (Some(one), Some(other)) => one != other && good.host.container != bad.host.container,
            _ => false,
        }
}

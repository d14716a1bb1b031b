//! The answer, as data: the JSON report of design section 6.
//!
//! Everything a person is shown (text, Markdown, HTML, the screen) is drawn from this structure or from the model that
//! it was made from, and the JSON form is a contract: names are only ever added.

mod build;
pub mod html;
pub mod markdown;
pub mod phrase;
pub mod text;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::{
    event::EventId,
    log::{Host, SourceStatus},
};
pub use crate::{
    event::{Candidate, Explanation, Outcome, Rule},
    fold::Condensed,
};

/// The schema's name.
pub const SCHEMA: &str = "jittrace.report/1";

/// The JSON Schema of the report.
pub const JSON_SCHEMA: &str = include_str!("../../schema/report-1.schema.json");

/// The whole answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: String,
    /// Version of the jittrace that made the report.
    #[serde(default)]
    pub version: String,
    /// Where the traces were taken; the first one's.
    pub host: Host,
    /// The traced command.
    pub command: Vec<String>,
    /// The process that was attached to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attached: Option<u32>,
    /// How the command ended; absent while it runs.
    pub exit: Option<Exit>,
    /// Nanoseconds from the first to the last event.
    pub duration_ns: u64,
    /// What was watched, and what was not and why.
    pub sources: Vec<SourceStatus>,
    /// What could not be captured.
    pub lost: Vec<LostEntry>,
    /// GPUs of the host.
    pub gpus: Vec<Gpu>,
    /// The driver.
    pub driver: Driver,
    /// Toolkits that were used or are present.
    pub toolkits: Vec<Toolkit>,
    /// Who resolved what.
    pub components: Vec<Component>,
    /// JIT caches that were used.
    pub caches: Vec<Cache>,
    /// Compilations, outermost tools first.
    pub builds: Vec<Build>,
    /// What is wrong, the primary cause first.
    pub findings: Vec<Finding>,
    /// Everything that ran.
    pub processes: Vec<ProcessEntry>,
    /// Environment of the traced command, names of the allow-list only.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub environment: IndexMap<String, String>,
    /// What a reader should know about the trace itself: cut off, still growing, of a newer format, truncated fields.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// What of a long trace is counted and not listed: further runs that were like others beside them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condensed: Option<Condensed>,
    /// Trace files that were joined, when there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub traces: Vec<String>,
}

/// How something ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    /// Exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// Signal number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
}

impl Exit {
    /// Whether it ended with code 0.
    pub fn is_success(self) -> bool {
        self.code == Some(0)
    }
}

/// Something that could not be captured.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostEntry {
    /// What.
    pub what: String,
    /// How many.
    pub count: u64,
    /// Why.
    #[serde(default)]
    pub reason: String,
}

/// A GPU.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gpu {
    /// Index.
    pub index: u32,
    /// Name.
    #[serde(default)]
    pub name: String,
    /// Compute capability, e.g. `12.0`.
    pub compute_capability: Option<String>,
    /// How it is known: `nvml`, `call`.
    #[serde(default)]
    pub from: String,
}

/// The driver.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Driver {
    /// Release, e.g. `580.159.04`.
    pub version: Option<String>,
    /// Newest CUDA it supports.
    pub cuda: Option<String>,
}

/// A toolkit.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Toolkit {
    /// Short name within the report: `cuda-12.4`, `wheel-13.0` …
    pub id: String,
    /// Root directory.
    pub root: String,
    /// Release, e.g. `13.0`.
    pub version: Option<String>,
    /// `system`, `wheel`, `conda`, `bundled`, `compat` or `stub`.
    pub kind: String,
    /// Whether any component used it in this run.
    #[serde(default)]
    pub used: bool,
    /// Its parts.
    pub parts: IndexMap<String, ToolkitPart>,
}

/// One part of a toolkit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolkitPart {
    /// The file.
    pub path: String,
    /// Its version.
    pub version: Option<String>,
    /// How that is known.
    pub version_from: Option<String>,
}

/// A component of the stack and what it resolved.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Component {
    /// `torch`, `flashinfer`, `triton` …, a distribution's name, or a script's path.
    pub name: String,
    /// Version of the distribution.
    pub version: Option<String>,
    /// The distribution's name.
    pub distribution: Option<String>,
    /// Where it lives.
    pub path: Option<String>,
    /// The CUDA release it says it was built for.
    pub built_for: BuiltFor,
    /// Part → every file that was resolved for it.
    pub resolved: IndexMap<String, Vec<Resolved>>,
    /// Directories of its caches.
    pub caches: Vec<String>,
}

/// The CUDA release something was built for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuiltFor {
    /// Release, e.g. `13.0`.
    pub cuda: Option<String>,
    /// How that is known.
    pub from: Option<String>,
}

/// One file that a component resolved.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Resolved {
    /// The file.
    pub path: String,
    /// The same without symbolic links.
    pub realpath: String,
    /// Its version.
    pub version: Option<String>,
    /// How that is known.
    pub version_from: Option<String>,
    /// Id of its toolkit.
    pub toolkit: Option<String>,
    /// The rule that chose it.
    pub rule: Rule,
    /// The variable, PATH entry or object that decided.
    pub rule_detail: String,
    /// The whole search.
    pub candidates: Vec<Candidate>,
    /// Who asked: `function in file:line` of the nearest Python frame that is no plumbing, or an object's path.
    pub requested_by: Option<String>,
    /// How the rule is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explanation: Option<Explanation>,
    /// What was seen, at most the first twenty.
    pub events: Vec<EventId>,
    /// Processes in which it was seen.
    #[serde(default)]
    pub pids: Vec<u32>,
}

/// A JIT cache.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Cache {
    /// Its root.
    pub directory: String,
    /// The component that owns it.
    pub owner: String,
    /// Artefacts that were there and were used.
    pub hits: u64,
    /// Look-ups that found nothing.
    pub misses: u64,
    /// Artefacts that were built in this run.
    pub builds: u64,
    /// The artefacts.
    pub artifacts: Vec<Artifact>,
    /// File system type, when it matters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filesystem: Option<String>,
}

/// A file in a JIT cache.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Artifact {
    /// The file.
    pub path: String,
    /// Toolkit release it was built with.
    pub built_with: Option<String>,
    /// How that is known.
    #[serde(default)]
    pub built_with_from: Option<String>,
    /// Architectures inside.
    pub archs: Vec<String>,
    /// DT_NEEDED.
    pub needed: Vec<String>,
    /// It was loaded (or read) in this run.
    pub loaded: bool,
    /// It was built in this run.
    #[serde(default)]
    pub built: bool,
    /// What was seen of it.
    #[serde(default)]
    pub events: Vec<EventId>,
}

/// One run of a build tool.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Build {
    /// Number within the report.
    pub id: u32,
    /// The build that started it.
    pub parent: Option<u32>,
    /// `ninja`, `nvcc`, `cicc`, `ptxas`, `c++` …
    pub tool: String,
    /// Path of the tool.
    #[serde(default)]
    pub path: String,
    /// Its version.
    pub version: Option<String>,
    /// Arguments.
    pub argv: Vec<String>,
    /// Working directory.
    pub cwd: String,
    /// Main output.
    pub output: Option<String>,
    /// Architectures asked for.
    pub archs: Vec<String>,
    /// The component that started the tree.
    pub started_by: Option<String>,
    /// Process id.
    #[serde(default)]
    pub pid: u32,
    /// Nanoseconds since the trace began.
    #[serde(default)]
    pub start_ns: u64,
    /// How it ended; absent while it runs.
    pub exit: Option<Exit>,
    /// How long it took.
    pub duration_ns: Option<u64>,
    /// What it said last, when it failed.
    pub message: Option<String>,
    /// Why it ran again, where that was seen: `rebuilt since /s/page.cu is newer than /c/page.cuda.o`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// What was seen of it.
    pub events: Vec<EventId>,
}

/// How bad a finding is.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Something failed, or will.
    Error,
    /// Something is likely to go wrong.
    Warning,
    /// Worth knowing, harmless as it is.
    #[default]
    Note,
}

/// How sure a finding is.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// Every link of the chain is an event.
    Proven,
    /// One link is known from the package, not seen.
    Likely,
    /// More than one link is missing.
    #[default]
    Possible,
}

/// A sentence backed by an event.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// The event.
    pub event: EventId,
    /// What it shows.
    pub text: String,
}

/// Something that is wrong, or worth knowing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Kebab-case, stable (design section 7).
    pub id: String,
    /// How bad.
    pub severity: Severity,
    /// Whom it befalls.
    pub component: Option<String>,
    /// One line.
    pub title: String,
    /// What happened, by which rule, who asked, what it disagrees with.
    pub cause: String,
    /// What was seen.
    pub evidence: Vec<Evidence>,
    /// What puts it right: each a sentence that names a path or variable that exists on the machine.
    pub remedy: Vec<String>,
    /// How sure.
    pub confidence: Confidence,
    /// Ids of findings that follow from this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub consequences: Vec<String>,
    /// The finding that this one follows from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consequence_of: Option<String>,
    /// What would have to be seen to be sure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}

/// Something that ran.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessEntry {
    /// Process id.
    pub pid: u32,
    /// Parent process id.
    pub ppid: u32,
    /// Arguments.
    pub argv: Vec<String>,
    /// Executable.
    pub exe: String,
    /// Nanoseconds since the trace began.
    pub start: u64,
    /// The same, for its end.
    pub end: Option<u64>,
    /// How it ended.
    pub exit: Option<Exit>,
    /// Whether its inside was seen.
    pub followed: Followed,
    /// The process image it became by a further exec ended here.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replaced: bool,
}

/// Whether a process was followed: `true`, or an object with the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Followed {
    /// `true` when its inside was seen.
    Yes(bool),
    /// Why not.
    No {
        /// The reason.
        reason: String,
    },
}

impl Default for Followed {
    fn default() -> Self {
        Followed::Yes(true)
    }
}

//! One thing that was seen: the unit that every part of jittrace shares.
//!
//! Sources produce events, the log stores them one to a line, [`crate::Model`] folds them, and the screen, the
//! reports and the diff are drawn from the fold. An event never holds a conclusion: it says what happened, who did it
//! and when, and which of its fields could not be read.
//!
//! The JSON form is a contract (design section 5): `id`, `t`, `pid`, `tid`, `source` and `kind` come first, the fields
//! of the kind follow at the same level. Kinds and fields that this version does not know are kept as they are.

mod fact;
mod file;
mod json;
mod library;
mod process;

pub use fact::{
    CacheFact, DirectoryFact, DistributionFact, DriverFact, Fact, FileFact, GpuFact, Reading,
    ToolOutputFact, ToolkitFact,
};
pub use file::{FileAccess, FileOp};
pub use json::{EventError, KINDS};
pub use library::{
    Candidate, Claimed, Explanation, LibraryFailed, LibraryLoaded, LibraryRequest, LibraryUnloaded,
    Outcome, Rule,
};
pub use process::{Exec, ExecFailed, ProcessExit, ProcessStart};

use serde::{Deserialize, Serialize};

/// The number of an event within its trace; counts from 1 in order of arrival.
pub type EventId = u64;

/// One thing that was seen.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Number within the trace.
    pub id: EventId,
    /// Nanoseconds since the trace began, on CLOCK_MONOTONIC. Readers order by `(t, id)`.
    pub t: u64,
    /// The process it happened in: the shim says its own number, the other sources jittrace's. Where namespaces differ a
    /// process's start tells the others. 0: none (the collector itself).
    pub pid: u32,
    /// The thread it happened in; equal to `pid` for the first thread.
    pub tid: u32,
    /// Who saw it.
    pub source: Source,
    /// The event of another source that reports the same fact; both witnesses are one fact in the model.
    pub same_as: Option<EventId>,
    /// What was seen.
    pub body: Body,
}

/// Who saw an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// The shim inside the process.
    Preload,
    /// The kernel, through BPF programs.
    Ebpf,
    /// `/proc`, read or polled from outside.
    Procfs,
    /// jittrace itself: facts looked up, searches replayed, results reconstructed.
    Collector,
    /// A source of a newer version.
    #[serde(other)]
    Other,
}

impl Source {
    /// The word used in the trace.
    pub fn word(self) -> &'static str {
        match self {
            Source::Preload => "preload",
            Source::Ebpf => "ebpf",
            Source::Procfs => "procfs",
            Source::Collector => "collector",
            Source::Other => "other",
        }
    }
}

/// What was seen, by kind.
#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    /// A program image began to run in a process.
    ProcessStart(Box<ProcessStart>),
    /// A process ended.
    ProcessExit(ProcessExit),
    /// A process asked for another program image.
    Exec(Box<Exec>),
    /// An exec that did not succeed.
    ExecFailed(Box<ExecFailed>),
    /// A library was asked for at run time.
    LibraryRequest(Box<LibraryRequest>),
    /// A library was mapped, or found to be mapped already.
    LibraryLoaded(Box<LibraryLoaded>),
    /// A library could not be loaded.
    LibraryFailed(Box<LibraryFailed>),
    /// A library was unmapped again.
    LibraryUnloaded(LibraryUnloaded),
    /// A watched function was called.
    Call(Box<Call>),
    /// A program said something about toolkits.
    Message(Box<Message>),
    /// A file of a toolkit or of a JIT cache was used.
    File(Box<FileAccess>),
    /// Python frames that belong to an event which could not carry them.
    PythonStack(Box<PythonStack>),
    /// Something looked up about the host, a file, a distribution.
    Fact(Box<Fact>),
    /// Something could not be captured.
    Lost(Lost),
    /// Anything a reader should know about the trace itself.
    Note(Note),
    /// A kind of a newer version, kept as it came.
    Other(Box<OtherKind>),
}

/// A kind that this version does not know.
#[derive(Debug, Clone, PartialEq)]
pub struct OtherKind {
    /// The kind's name.
    pub kind: String,
    /// All fields of the line.
    pub fields: serde_json::Map<String, serde_json::Value>,
}

/// One Python frame, innermost first in every list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Frame {
    /// The code object's `co_filename`.
    pub file: String,
    /// Line in the file, from 1; 0 when unknown.
    #[serde(default)]
    pub line: u32,
    /// The code object's `co_name`.
    pub function: String,
    /// The distribution whose RECORD owns `file`, if one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distribution: Option<String>,
}

/// The native code that made a call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Caller {
    /// Path of the object that holds the return address.
    pub object: String,
    /// Offset of the return address from the object's load address, in bytes.
    #[serde(default)]
    pub offset: u64,
    /// The distribution that owns `object`, if one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distribution: Option<String>,
}

/// A call of a watched function.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Call {
    /// The function's name, e.g. `cudaRuntimeGetVersion`.
    pub function: String,
    /// Path of the object that defines it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// The return value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<i64>,
    /// What it answered, as text: `13000`, `12.9`, `9.0`, a name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Native code that called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<Caller>,
    /// Nanoseconds between entry and return.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ns: Option<u64>,
    /// Python frames, innermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub python: Vec<Frame>,
    /// The frames were taken when the symbol was looked up, not at the call (the GIL was released).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub python_at_lookup: bool,
    /// Arguments worth keeping, e.g. compile options of `nvrtcCompileProgram`, an attribute number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// First facts of a module image that was handed over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<Image>,
    /// The compile log of a call that failed, cut to its beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
    /// How many calls this event stands for, when the rate guard had closed (1 otherwise).
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub count: u64,
}

/// First facts of a module image: what it is and what it can run on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Image {
    /// `ptx`, `cubin`, `fatbin` or `unknown`.
    pub kind: String,
    /// PTX ISA version, e.g. `8.7`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ptx_version: Option<String>,
    /// `.target` of PTX text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Architectures in a cubin or fatbin: `sm_90a`, `compute_120`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub archs: Vec<String>,
    /// The file it came from, when it was loaded by path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

/// What a program said about toolkits.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// `stdout`, `stderr`, or `pipe` for what a followed tool wrote and this process read.
    pub stream: String,
    /// The line, at most 300 bytes, masked.
    pub text: String,
    /// The pattern of the message table that matched.
    #[serde(default)]
    pub pattern: String,
}

/// Python frames of an event that could not carry them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PythonStack {
    /// The event they belong to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<EventId>,
    /// The frames, innermost first.
    pub python: Vec<Frame>,
    /// Nanoseconds between the event and the sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_ns: Option<u64>,
    /// Read from outside while the process ran on: the frames of that moment, not of the event's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inexact: bool,
}

/// Something could not be captured.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Lost {
    /// What: `records`, `calls`, `fields`, `bytes` …
    pub what: String,
    /// How many.
    pub count: u64,
    /// Why.
    #[serde(default)]
    pub reason: String,
}

/// Anything a reader should know about the trace itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Note {
    /// A stable kebab-case word for what the note is about, e.g. `truncated-argv`.
    #[serde(default)]
    pub about: String,
    /// The sentence.
    pub text: String,
}

fn one() -> u64 {
    1
}

fn is_one(n: &u64) -> bool {
    *n == 1
}

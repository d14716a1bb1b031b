//! What the kernel programs tell, as Rust types.
//!
//! Nothing is interpreted here: texts are as the program gave them (arguments are **not** masked yet), and every field
//! that could not be read says so.

use std::{ffi::OsString, path::PathBuf, sync::Arc};

pub use jittrace_ebpf::{TaskId, TaskViews};
use jittrace_wire::functions::Capture;

use super::{
    objects::FileId,
    watched::{CAPABILITY_ATTRIBUTES, Function},
};

/// One thing that happened.
#[derive(Debug, Clone)]
pub struct Observation {
    /// CLOCK_MONOTONIC, ns: the shim's clock.
    pub time_ns: u64,
    /// Who did it, in the three pid views (`own` is the tracer's, `initial` the kernel's).
    pub task: TaskViews,
    /// What.
    pub event: KernelEvent,
}

/// Why a field is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Missing {
    /// The memory was not there to be read (an absent page, a null pointer).
    #[error("the program's memory could not be read (errno {0})")]
    Fault(i32),
    /// It lies behind what the record has room for, and the process was gone before the rest could be read.
    #[error(
        "longer than the kernel program may copy, and the process ended before the rest could be read"
    )]
    Cut,
    /// Its record found no room in the ring, and the process ended before it could be read otherwise.
    #[error("lost: the ring was full")]
    Lost,
}

/// A field, or why it is missing.
pub type Field<T> = Result<T, Missing>;

/// See [`Observation`].
#[derive(Debug, Clone)]
pub enum KernelEvent {
    /// A followed process started another, which is followed from now on.
    Fork {
        /// The child.
        child: TaskViews,
    },
    /// A followed process became another program.
    Exec(Box<Exec>),
    /// An execve or execveat failed.
    ExecFailed(Box<ExecFailed>),
    /// A followed process ended.
    Exit(Exit),
    /// A system call on a path that is of interest.
    File(Box<FileCall>),
    /// A watched function was entered. Told for dlopen, dlmopen and dlclose, and for a function of which not every way
    /// out could be probed: a [`KernelEvent::Returned`] with the same `begin_ns` and thread may follow. A text that was
    /// not paged in yet is missing here (unless the process could still be asked) and comes with the return.
    Entered(Box<Call>),
    /// A watched function returned.
    Returned(Box<Call>),
    /// Probes were placed in an object, or could not be.
    Watching(Arc<WatchedObject>),
    /// Things that could not be told since the last such event, by [`jittrace_ebpf::lost`] reason.
    Lost {
        /// Name of the reason.
        reason: &'static str,
        /// How many.
        count: u64,
    },
}

/// A process became another program.
#[derive(Debug, Clone)]
pub struct Exec {
    /// The parent.
    pub parent: TaskViews,
    /// The thread that called, initial view.
    pub caller_tid: u32,
    /// User, in the initial user namespace.
    pub uid: u32,
    /// The program's file. For a script this is its interpreter.
    pub exe: FileId,
    /// As given to execve: absolute, or relative to `cwd`.
    pub filename: OsString,
    /// Working directory from the root of its mount namespace.
    pub cwd: Field<PathBuf>,
    /// Arguments, unmasked.
    pub argv: Field<Vec<OsString>>,
    /// Environment, names of the allow-list only.
    pub env: Field<Vec<(OsString, OsString)>>,
}

/// An exec that failed.
#[derive(Debug, Clone)]
pub struct ExecFailed {
    /// Error number.
    pub errno: i32,
    /// As given.
    pub filename: Field<OsString>,
    /// Directory descriptor that it is relative to (AT_FDCWD: the working directory).
    pub directory: i32,
    /// The first arguments, unmasked.
    pub argv: Vec<OsString>,
    /// There were more arguments, or longer ones, than are told.
    pub argv_cut: bool,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// By exit, with this code.
    Code(i32),
    /// By a signal.
    Signal {
        /// Its number.
        signal: i32,
        /// A core was dumped.
        core: bool,
    },
}

impl Exit {
    /// From a status as waitpid(2) gives it.
    pub(crate) fn from_status(status: u32) -> Self {
        match status & 0x7f {
            0 => Self::Code(i32::from((status >> 8) as u8)),
            signal => Self::Signal {
                signal: signal as i32,
                core: status & 0x80 != 0,
            },
        }
    }
}

/// What a system call does to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileOperation {
    /// open, openat, openat2, creat; with the flags as given.
    Open {
        /// `O_*`
        flags: u64,
    },
    /// rename, renameat, renameat2; the second path is the new name.
    Rename,
    /// unlink, unlinkat, rmdir.
    Unlink,
    /// mkdir, mkdirat.
    Mkdir,
}

/// A system call on a path.
#[derive(Debug, Clone)]
pub struct FileCall {
    /// What was asked.
    pub operation: FileOperation,
    /// The path: absolute where the call's directory could still be resolved, else as given.
    pub path: Field<PathBuf>,
    /// The second path of a rename.
    pub to: Option<Field<PathBuf>>,
    /// What the call returned (a descriptor, or 0), or the error number.
    pub outcome: Result<i64, i32>,
    /// When the call began.
    pub begin_ns: u64,
    /// `begin_ns` of the dlopen that the thread is inside of: the path is a candidate of that search.
    pub loading: Option<u64>,
}

/// An object whose functions are probed.
#[derive(Debug, Clone)]
pub struct WatchedObject {
    /// Its path as the process named it that led to it.
    pub path: PathBuf,
    /// Its identity: probes belong to the inode, whatever its name and namespace.
    pub id: FileId,
    /// When the probes were in place, CLOCK_MONOTONIC ns. Earlier calls were not seen.
    pub since_ns: u64,
    /// Its watched functions.
    pub functions: Vec<WatchedFunction>,
    /// Why nothing could be probed.
    pub refused: Option<String>,
}

/// A probed function.
#[derive(Debug, Clone)]
pub struct WatchedFunction {
    /// The line of the table.
    pub function: Function,
    /// Its exact name.
    pub name: String,
    /// A static copy, found in the symbol table of another object.
    pub is_static: bool,
    /// How its return is seen.
    pub returns: ReturnProbes,
    /// Offset of its entry in the file.
    pub offset: u64,
}

/// How the return of a function is seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReturnProbes {
    /// Each `ret` instruction is probed: this many.
    EveryRet(usize),
    /// By a return probe of the kernel's (plain C functions only).
    Uretprobe,
    /// Some ways out are not seen.
    Partial {
        /// `ret` instructions that are probed.
        rets: usize,
        /// Why there may be others.
        why: String,
    },
    /// Only the entry is of interest.
    NotNeeded,
}

/// What was captured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Captured {
    /// Nothing was to be captured here, or not at this moment.
    Nothing,
    /// An integer.
    Number(i64),
    /// A text, its address, and whether it was longer.
    Text {
        /// Its bytes.
        text: OsString,
        /// It was longer than the record has room for.
        cut: bool,
    },
    /// Raw bytes, from this address.
    Bytes {
        /// Where they begin in the process.
        address: u64,
        /// What could be read.
        bytes: Vec<u8>,
    },
    /// It could not be read.
    Missing(Missing),
}

/// A call of a watched function.
#[derive(Debug, Clone)]
pub struct Call {
    /// The line of the table.
    pub function: Function,
    /// The object that holds it. `None` on kernels without attach cookies (before 5.15): look [`Call::instruction`] up
    /// in the process's maps.
    pub object: Option<Arc<WatchedObject>>,
    /// When the call began, CLOCK_MONOTONIC ns.
    pub begin_ns: u64,
    /// Address behind the call instruction, in the caller. Look it up in the process's maps.
    pub return_address: u64,
    /// Address of the probed instruction.
    pub instruction: u64,
    /// The arguments in registers.
    pub args: [u64; 6],
    /// The returned register; `None` at the entry.
    pub result: Option<u64>,
    /// What the table asks for.
    pub captured: [Captured; jittrace_ebpf::CAPTURES],
}

impl Call {
    /// The function's exact name, or its name in the table where the object is not known.
    #[must_use]
    pub fn name(&self) -> &str {
        self.object
            .as_ref()
            .and_then(|object| {
                object
                    .functions
                    .iter()
                    .find(|one| one.function == self.function)
            })
            .map_or(self.function.name(), |one| &one.name)
    }

    /// The status that a CUDA function returned (an `int`).
    #[must_use]
    pub fn status(&self) -> Option<i32> {
        self.result.map(|result| result as i32)
    }

    /// The number it answered: a version as 1000 * major + 10 * minor, a count, a capability as 10 * major + minor (for
    /// `cuDeviceGetAttribute`, the one number asked for: see [`Call::capability_part`]).
    #[must_use]
    pub fn number(&self) -> Option<i64> {
        let Function::Cuda(watched) = self.function else {
            return None;
        };
        let number = |at: usize| match self.captured.get(at) {
            Some(Captured::Number(number)) => Some(*number),
            _ => None,
        };
        match watched.capture {
            Capture::Int(_) | Capture::CapabilityAttribute => number(0),
            Capture::Release(..) => Some(1000 * number(0)? + 10 * number(1)?),
            Capture::DeviceProperties => Some(10 * number(0)? + number(1)?),
            Capture::Archs => match self.captured.first() {
                Some(Captured::Bytes { bytes, .. }) => highest_arch(bytes),
                _ => None,
            },
            _ => None,
        }
    }

    /// For `cuDeviceGetAttribute`: whether it asked for the capability's major (`true`) or minor number.
    #[must_use]
    pub fn capability_part(&self) -> Option<bool> {
        let Function::Cuda(watched) = self.function else {
            return None;
        };
        let [_, attribute, ..] = self.args;
        (watched.capture == Capture::CapabilityAttribute)
            .then_some(attribute as u32 == CAPABILITY_ATTRIBUTES[0])
    }

    /// The texts: a file or symbol name, what the loader named the object, compile options.
    pub fn texts(&self) -> impl Iterator<Item = &OsString> {
        // Options beyond the counted ones are whatever lies behind the array.
        let [_, count, ..] = self.args;
        let limit = match self.function {
            Function::Cuda(watched)
                if matches!(watched.capture, Capture::NvrtcCompile | Capture::Options) =>
            {
                usize::try_from(count as u32).unwrap_or(usize::MAX)
            }
            _ => usize::MAX,
        };
        self.captured
            .iter()
            .take(limit)
            .filter_map(|captured| match captured {
                Captured::Text { text, .. } => Some(text),
                _ => None,
            })
    }

    /// The first bytes of the module image and its address.
    #[must_use]
    pub fn image(&self) -> Option<(u64, &[u8])> {
        let Function::Cuda(watched) = self.function else {
            return None;
        };
        match (watched.capture, self.captured.first()) {
            (Capture::Image(_) | Capture::LinkInput, Some(Captured::Bytes { address, bytes })) => {
                Some((*address, bytes))
            }
            _ => None,
        }
    }
}

/// The highest of the ascending architecture numbers that the array begins with; behind them lies other memory.
fn highest_arch(bytes: &[u8]) -> Option<i64> {
    let mut highest = None;
    for word in bytes.chunks_exact(4) {
        let number = i64::from(i32::from_ne_bytes(word.try_into().ok()?));
        if !(20..=999).contains(&number) || highest.is_some_and(|highest| number <= highest) {
            break;
        }
        highest = Some(number);
    }
    highest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses() {
        let cases = [
            (0x0000, Exit::Code(0)),
            (0x0500, Exit::Code(5)),
            (0xff00, Exit::Code(255)),
            (
                0x000b,
                Exit::Signal {
                    signal: 11,
                    core: false,
                },
            ),
            (
                0x008b,
                Exit::Signal {
                    signal: 11,
                    core: true,
                },
            ),
            (
                0x0009,
                Exit::Signal {
                    signal: 9,
                    core: false,
                },
            ),
        ];
        for (status, exit) in cases {
            assert_eq!(Exit::from_status(status), exit, "{status:#x}");
        }
    }

    #[test]
    fn archs_end_where_they_stop_rising() {
        let bytes = |numbers: &[i32]| {
            numbers
                .iter()
                .flat_map(|number| number.to_ne_bytes())
                .collect::<Vec<u8>>()
        };
        assert_eq!(highest_arch(&bytes(&[75, 80, 90, 120, 0, 500])), Some(120));
        assert_eq!(highest_arch(&bytes(&[75, 80, 80])), Some(80));
        assert_eq!(highest_arch(&bytes(&[0])), None);
        assert_eq!(highest_arch(&[]), None);
    }
}

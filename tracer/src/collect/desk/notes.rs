//! What a reader should know beside what was seen: work that leaves the tree, why a compile runs again, files without
//! probes, a command that no shim is in.

use jittrace_model::{
    commandline::{self, HANDED_OVER, REBUILT_SINCE, Tool, handed_over, made_of},
    event::{Body, Note, ProcessStart, Source},
    report::phrase,
};

use super::Desk;
use crate::collect::{
    draft::{Draft, Sink},
    kernel::Unprobed,
    procfs,
};

impl Desk {
    /// Files without probes: what is called in them is not seen.
    pub(in crate::collect) fn unprobed(&mut self, time: u64, files: &[Unprobed]) {
        for file in files {
            self.write(
                Draft {
                    time,
                    pid: file.pid,
                    tid: file.pid,
                    body: Body::Note(Note {
                        about: "unprobed".to_owned(),
                        text: format!(
                            "calls in {} are not seen: {}",
                            file.path.display(),
                            file.reason
                        ),
                    }),
                },
                Source::Collector,
            );
        }
    }

    /// A command that the shim cannot reach says nothing itself.
    pub(in crate::collect) fn unreached(&mut self, time: u64, pid: u32, exe: &str, reason: String) {
        let argv = self.model.header().command.clone();
        self.put_from(
            Draft {
                time,
                pid,
                tid: pid,
                body: Body::ProcessStart(Box::new(ProcessStart {
                    exe: exe.to_owned(),
                    argv,
                    not_followed: Some(reason),
                    ..ProcessStart::default()
                })),
            },
            Source::Collector,
        );
    }

    /// The process to which a client hands its work: the oldest that has the server's name and was there before it.
    pub(super) fn handed_over(&self, pid: u32) -> Option<Note> {
        let process = self.model.process(self.model.current_process(pid)?)?;
        let handed = handed_over(process.name(), process.arguments())?;
        let server = procfs::oldest_named(handed.servers, pid)?;
        Some(Note {
            about: HANDED_OVER.to_owned(),
            text: format!(
                "{} runs as process {server}, which this trace does not follow",
                handed.servers.first().copied().unwrap_or("its server")
            ),
        })
    }

    /// Why a compile runs again: a source that is newer than what was made of it the last time, by ninja's rule. Asked
    /// when the compiler has just begun; if it was faster than this look, its output is newer and nothing is said.
    pub(super) fn rebuilt_since(&self, pid: u32) -> Option<Note> {
        let process = self.model.process(self.model.current_process(pid)?)?;
        let mut command = vec![process.program.as_str()];
        command.extend(process.arguments().iter().map(String::as_str));
        let (output, sources) = made_of(&commandline::parse(&command), &process.what.cwd)?;
        // What nvcc hands to the host compiler is made in this run.
        let above = std::iter::successors(process.parent, |p| self.model.process(*p)?.parent);
        let is_inner = above
            .filter_map(|p| self.model.process(p))
            .any(|p| commandline::tool_of(p.name()) == Tool::Nvcc);
        if is_inner {
            return None;
        }
        let modified = |path: &str| std::fs::metadata(path).ok()?.modified().ok();
        let made = modified(&output)?;
        let (source, newer) = sources.into_iter().find_map(|source| {
            let newer = modified(&source)?.duration_since(made).ok()?;
            (!newer.is_zero()).then_some((source, newer))
        })?;
        let by = phrase::duration(u64::try_from(newer.as_nanos()).unwrap_or(u64::MAX));
        Some(Note {
            about: REBUILT_SINCE.to_owned(),
            text: format!("rebuilt since {source} is newer than {output}, by {by}"),
        })
    }
}

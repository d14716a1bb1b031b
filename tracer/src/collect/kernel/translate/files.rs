//! Files of caches and toolkits, and what the loader opens.

use jittrace_model::event::{Body, FileAccess, FileOp, Source};
use jittrace_wire::{
    functions::family_of,
    paths::{self, Interest},
};

use super::{At, Translate, absolute_of, identity, text};
use crate::{
    collect::draft::Sink,
    ebpf::{FileCall, FileOperation},
};

impl Translate {
    pub(super) fn file(&mut self, at: At, file: &FileCall, covered: bool, sink: &mut impl Sink) {
        let Ok(path) = &file.path else { return };
        let process = self.process(at.pid);
        let path = absolute_of(&process.cwd, &text(path));
        if let Some(begin) = file.loading {
            // A place that the loader tries. Those it opens are what it maps, if the request succeeds.
            if let Some(open) = process.open.get_mut(&(at.tid, begin))
                && file.outcome.is_ok()
                && is_object(&path)
                && !open.opened.contains(&path)
            {
                open.opened.push(path);
            }
            return;
        }
        let to = match &file.to {
            Some(Ok(to)) => Some(absolute_of(&process.cwd, &text(to))),
            _ => None,
        };
        let (op, interest) = match file.operation {
            FileOperation::Open { flags } => {
                let interest = paths::interest(path.as_bytes());
                let reads_only = flags & (libc::O_ACCMODE | libc::O_CREAT) as u64 == 0;
                if interest == Some(Interest::Library) && reads_only {
                    // The loader at a program's start, or somebody who reads the file: its load tells more.
                    if is_watched(&path)
                        && let Some(file) = identity(at.pid, &path)
                    {
                        self.process(at.pid).opened.insert(file, at.time);
                    }
                    return;
                }
                if reads_only && file.outcome.is_err() && is_place_of_the_loader(&path) {
                    return;
                }
                if covered && reads_only && interest == Some(Interest::Tool) {
                    // The shim looks at what is about to be executed; of what the program reads it tells itself.
                    return;
                }
                let op = if flags & libc::O_CREAT as u64 != 0 {
                    FileOp::Create
                } else {
                    FileOp::Open
                };
                (op, interest)
            }
            FileOperation::Rename => (
                FileOp::Rename,
                paths::interest(path.as_bytes())
                    .or_else(|| paths::interest(to.as_deref()?.as_bytes())),
            ),
            FileOperation::Unlink => (FileOp::Unlink, paths::interest(path.as_bytes())),
            FileOperation::Mkdir => (FileOp::Mkdir, paths::directory_interest(path.as_bytes())),
        };
        if interest.is_none() {
            return;
        }
        self.tell_fork(at.pid, sink);
        sink.put_from(
            at.draft(Body::File(Box::new(FileAccess {
                op,
                path,
                errno: file.outcome.err().unwrap_or(0),
                to,
                ..FileAccess::default()
            }))),
            Source::Ebpf,
        );
    }
}

/// Whether a file that the loader opened is an object: not its cache.
fn is_object(path: &str) -> bool {
    !path.ends_with("/ld.so.cache") && !path.starts_with("/proc/") && !path.starts_with("/sys/")
}

/// Whether only the loader opens such a file without asking before whether it is there. It does so below every directory
/// of LD_LIBRARY_PATH; nvcc's ends in an empty one, the current directory, which is often that of a JIT cache.
fn is_place_of_the_loader(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    name.contains(".so.") || (name.starts_with("lib") && name.ends_with(".so"))
}

/// Whether a library has functions that are watched.
fn is_watched(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    family_of(name.as_bytes()).is_some()
}

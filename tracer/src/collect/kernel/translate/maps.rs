//! Memory maps: what a process has mapped compared with what was told of it.

use std::collections::HashSet;

use jittrace_model::event::{Body, LibraryLoaded, LibraryUnloaded, Source};

use super::{At, LOOKS, SWEEP, Translate, identity};
use crate::collect::{draft::Sink, replay::Mapped};

impl Translate {
    pub(super) fn compare_all(&mut self, pid: u32, covered: bool, sink: &mut impl Sink) {
        let looked = match self.processes.get_mut(&pid) {
            Some(process) => std::mem::take(&mut process.looked),
            None => return,
        };
        self.compare(pid, looked, covered, sink);
    }

    /// Compares looks at a process's memory map with what was told of it. Where the shim tells, it is only remembered what
    /// is there.
    pub(super) fn compare(
        &mut self,
        pid: u32,
        looks: Vec<(u64, Vec<Mapped>)>,
        covered: bool,
        sink: &mut impl Sink,
    ) {
        for (time, mapped) in looks {
            let Some(process) = self.processes.get_mut(&pid) else {
                return;
            };
            let program = process.program;
            let at = At {
                time,
                pid,
                tid: pid,
            };
            let opening: HashSet<(u64, u64)> = process
                .open
                .values()
                .flat_map(|open| &open.opened)
                .filter_map(|path| identity(pid, path))
                .collect();
            process.mapped.retain(|file, path| {
                let stays = mapped.iter().any(|m| (m.dev, m.ino) == *file);
                // What was told after the look may not be in it yet.
                let told_since = process.told.get(file).is_some_and(|told| *told >= time);
                if !stays && !told_since && !covered {
                    sink.put_from(
                        at.draft(Body::LibraryUnloaded(LibraryUnloaded {
                            path: path.clone(),
                        })),
                        Source::Procfs,
                    );
                }
                stays || told_since
            });
            let at_start = process.seen_starting
                && time <= process.began + LOOKS.iter().max().copied().unwrap_or(0) + SWEEP;
            let mut late = Vec::new();
            for object in mapped {
                let file = (object.dev, object.ino);
                if Some(file) == program
                    || process.mapped.contains_key(&file)
                    || opening.contains(&file)
                    || is_loader(&object.path)
                {
                    continue;
                }
                process.mapped.insert(file, object.path.clone());
                if covered {
                    continue;
                }
                if at_start {
                    sink.put_from(
                        at.draft(Body::LibraryLoaded(Box::new(LibraryLoaded {
                            path: object.path,
                            dev: Some(object.dev),
                            ino: Some(object.ino),
                            at_start: true,
                            ..LibraryLoaded::default()
                        }))),
                        Source::Ebpf,
                    );
                } else {
                    late.push(object);
                }
            }
            if !late.is_empty() {
                sink.mapped(pid, late);
            }
        }
    }
}

fn is_loader(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    name.starts_with("ld-linux") || name.starts_with("ld-2.")
}

//! What could not be seen: probes that came late or could not be placed, records without room.

use jittrace_model::event::Lost;

use super::{Translate, note, text};
use crate::{
    collect::draft::Sink,
    ebpf::{ReturnProbes, WatchedObject},
};

/// What the loader needs at least, in ns, between opening a library at a program's start and the program's first call.
const AT_LEAST_LOADING: u64 = 200_000;

impl Translate {
    pub(super) fn watching(
        &mut self,
        time: u64,
        object: &WatchedObject,
        in_shim: impl Fn(u32) -> bool,
        sink: &mut impl Sink,
    ) {
        self.probed(object, in_shim, sink);
        let mut texts: Vec<String> = object
            .refused
            .iter()
            .map(|why| format!("{}: {why}", object.path.display()))
            .collect();
        for function in &object.functions {
            if let ReturnProbes::Partial { why, .. } = &function.returns {
                texts.push(format!(
                    "{}: not every return of {} is seen: {why}",
                    object.path.display(),
                    function.name
                ));
            }
        }
        for text in texts {
            if !self.told_partial.insert(text.clone()) {
                continue;
            }
            note(time, 0, "probe", text, sink);
        }
    }

    /// Probes were placed in an object that a process has opened already: what it called before was not seen.
    fn probed(
        &mut self,
        object: &WatchedObject,
        in_shim: impl Fn(u32) -> bool,
        sink: &mut impl Sink,
    ) {
        let path = text(&object.path);
        let id = (
            libc::makedev(object.id.major, object.id.minor),
            object.id.inode,
        );
        for (pid, process) in self.processes.iter().filter(|(pid, _)| !in_shim(**pid)) {
            let (from, what) = match (process.told.get(&id), process.opened.get(&id)) {
                (Some(loaded), _) => (*loaded, "loaded"),
                // The loader has to be through with all objects before the program itself calls.
                (None, Some(opened)) => (opened.saturating_add(AT_LEAST_LOADING), "opened"),
                (None, None) => continue,
            };
            if from < object.since_ns && !object.functions.is_empty() {
                let text = format!(
                    "calls in {path} during the first {:.1} ms after it was {what} were not seen",
                    (object.since_ns - from) as f64 / 1e6
                );
                note(object.since_ns, *pid, "probed-late", text, sink);
            }
        }
    }
}

/// What the kernel source could not tell, in words. `reason` is one of [`lost::NAMES`] or of the reader's own.
pub(super) fn loss(reason: &str, count: u64) -> Lost {
    let (what, reason) = match reason {
        "unpaired-return" => (
            "calls",
            "they were under way when their probe was placed, or too many were under way"
                .to_owned(),
        ),
        "follow" => ("processes", "too many were followed at one time".to_owned()),
        "object-not-probed" => (
            "objects",
            "too many appeared at one time to place probes in each".to_owned(),
        ),
        "undecodable-record" => (
            "records",
            "the kernel programs wrote what is not known here".to_owned(),
        ),
        kind => (
            "records",
            format!("of kind {kind}: the kernel's buffer was full"),
        ),
    };
    Lost {
        what: what.to_owned(),
        count,
        reason,
    }
}

//! When two things that were seen are alike: equal in all that a report could say of them.
//!
//! What is new in every run (process ids, temporary names, addresses, how long it took) is left out; everything else
//! counts, the Python code that asked included.

use std::hash::{BuildHasher, Hash, Hasher};

use super::Process;
use crate::{
    event::{
        Call, Exec, ExecFailed, FileAccess, Frame, LibraryFailed, LibraryLoaded, LibraryRequest,
        Message,
    },
    lasting::{lasting, may_be_made_up},
};

/// Alike things have the same one.
pub(super) type Likeness = u64;

/// Something that may be alike to another.
pub(super) trait Alike {
    /// Feeds all that counts.
    fn feed(&self, into: &mut impl Hasher);
}

/// The likeness of a thing.
pub(super) fn of(what: &impl Alike) -> Likeness {
    fed(|into| what.feed(into))
}

/// The likeness of what is fed.
pub(super) fn fed(feed: impl FnOnce(&mut foldhash::quality::FoldHasher<'static>)) -> Likeness {
    let mut hasher = foldhash::quality::FixedState::default().build_hasher();
    feed(&mut hasher);
    hasher.finish()
}

fn path(path: &str, into: &mut impl Hasher) {
    lasting(path).hash(into);
}

fn optional(text: Option<&String>, into: &mut impl Hasher) {
    text.map(|text| lasting(text)).hash(into);
}

/// Arguments; where something in one is new in every run, each of its words on its own: a shell's command holds temporary
/// names between others.
fn arguments(argv: &[String], into: &mut impl Hasher) {
    argv.len().hash(into);
    for argument in argv {
        if may_be_made_up(argument) {
            argument
                .split([' ', '\n'])
                .for_each(|word| path(word, into));
        } else {
            argument.hash(into);
        }
    }
}

impl Alike for FileAccess {
    fn feed(&self, into: &mut impl Hasher) {
        /// Waits for a lock that are shorter are alike, in nanoseconds; of longer ones those of the same magnitude.
        const SHORT_NS: u64 = 1_000_000_000;
        path(&self.path, into);
        optional(self.to.as_ref(), into);
        let wait = self.wait_ns.map(|wait| wait.max(SHORT_NS).ilog2());
        (self.op, self.errno, &self.old_text, wait, &self.python).hash(into);
    }
}

impl Alike for LibraryLoaded {
    fn feed(&self, into: &mut impl Hasher) {
        path(&self.path, into);
        path(&self.realpath, into);
        optional(self.requested.as_ref(), into);
        optional(self.requested_by.as_ref(), into);
        (&self.rule_detail, &self.candidates, &self.python).hash(into);
        (self.rule, self.explanation, self.dev, self.at_start).hash(into);
    }
}

impl Alike for LibraryRequest {
    fn feed(&self, into: &mut impl Hasher) {
        self.hash(into);
    }
}

impl Alike for LibraryFailed {
    fn feed(&self, into: &mut impl Hasher) {
        path(&self.requested, into);
        optional(self.requested_by.as_ref(), into);
        (&self.error, &self.candidates, &self.python).hash(into);
        (&self.missing, &self.missing_for, &self.claimed).hash(into);
    }
}

impl Alike for Call {
    fn feed(&self, into: &mut impl Hasher) {
        self.hash(into);
    }
}

impl Alike for Message {
    fn feed(&self, into: &mut impl Hasher) {
        self.stream.hash(into);
        self.pattern.hash(into);
        self.text.split(' ').for_each(|word| path(word, into));
    }
}

impl Alike for Exec {
    fn feed(&self, into: &mut impl Hasher) {
        path(&self.path, into);
        arguments(&self.argv, into);
        (&self.call, &self.python, &self.caller, &self.not_followed).hash(into);
    }
}

impl Alike for ExecFailed {
    fn feed(&self, into: &mut impl Hasher) {
        path(&self.path, into);
        arguments(&self.argv, into);
        (self.errno, &self.python).hash(into);
    }
}

/// A process image by itself: what ran, where, with which environment, and how it ended; not what it did.
impl Alike for Process {
    fn feed(&self, into: &mut impl Hasher) {
        path(&self.program, into);
        path(&self.what.exe, into);
        path(&self.what.cwd, into);
        arguments(&self.what.argv, into);
        for (name, value) in self.env.iter() {
            name.hash(into);
            path(value, into);
        }
        let exit = self.exit.map(|exit| (exit.code, exit.signal));
        let frames: &[Frame] = &self.asked_by;
        (exit, self.what.found, self.what.forked).hash(into);
        (&self.what.not_followed, frames, &self.doing).hash(into);
        self.replaced_by.is_some().hash(into);
    }
}

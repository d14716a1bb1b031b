//! One stream from two sources: the shim's records and the kernel's sights in the order of their times.
//!
//! Both count on the same clock, and both arrive late by some milliseconds, so everything is kept for a moment and then
//! let go in order. In a process that the shim is in, the shim goes first: it knows more of a call than the kernel does
//! (Python frames, the loader's words), and the first witness is the one whose words count.

use std::collections::BTreeMap;

use super::kernel::Sight;

/// How long things are kept, in ns: longer than either source takes to tell.
const KEPT: u64 = 120_000_000;

/// How long the kernel waits for the shim in a process that both see, in ns.
const POLITENESS: u64 = 60_000_000;

/// What is let go.
#[derive(Debug)]
pub(super) enum Item {
    /// A record of the shim, as it was written.
    Record(Vec<u8>),
    /// What the kernel saw.
    Sight(Box<Sight>),
    /// The same, after it has waited for the shim.
    Waited(Box<Sight>),
}

/// Things that are kept, by time and order of arrival.
#[derive(Debug, Default)]
pub(super) struct Merge {
    kept: BTreeMap<(u64, u64), Item>,
    arrived: u64,
    /// Time of the shim's latest record: its records stay in the order in which they were written.
    last_record: u64,
}

impl Merge {
    /// A record of the shim.
    pub(super) fn record(&mut self, time: u64, bytes: &[u8]) {
        self.last_record = self.last_record.max(time);
        self.keep(self.last_record, Item::Record(bytes.to_vec()));
    }

    /// What the kernel saw.
    pub(super) fn sight(&mut self, sight: Sight) {
        let time = sight.observation.time_ns;
        self.keep(time, Item::Sight(Box::new(sight)));
    }

    /// What the kernel saw in a process that the shim is in: let go a little later, unless all is over.
    pub(super) fn wait(&mut self, sight: Box<Sight>) {
        let time = sight.observation.time_ns.saturating_add(POLITENESS);
        self.keep(time, Item::Waited(sight));
    }

    /// The first thing that has been kept long enough.
    pub(super) fn next(&mut self, now: u64) -> Option<Item> {
        let entry = self.kept.first_entry()?;
        (entry.key().0.saturating_add(KEPT) <= now).then(|| entry.remove())
    }

    fn keep(&mut self, time: u64, item: Item) {
        self.arrived += 1;
        self.kept.insert((time, self.arrived), item);
    }
}

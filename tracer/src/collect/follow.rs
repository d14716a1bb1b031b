//! Following processes through the kernel, alone or beside the shim: sights and records become events in the order of
//! their times.

use std::collections::HashMap;

use jittrace_wire::{Record, decode, record::Header};

use super::{
    desk::Desk,
    kernel::{self, Kernel, Sight},
    merge::{Item, Merge},
    shim::Translate,
    stillborn,
    watch::Watch,
};
use crate::ebpf::{Detaching, Exit, KernelEvent};

/// The kernel source, and what is remembered of the processes that it follows.
pub(super) struct Following {
    kernel: Option<Kernel>,
    translate: kernel::Translate,
    merge: Merge,
    /// The command, whose end its own parent tells.
    root: Option<u32>,
    /// Processes that the shim is in, and since when.
    covered: HashMap<u32, u64>,
    /// The shim's side.
    shim: Translate,
}

impl Following {
    /// Follows with the kernel alone or, for a launch of `launching`, beside the shim.
    pub(super) fn new(kernel: Kernel, launching: Option<u32>) -> Following {
        Following {
            kernel: Some(kernel),
            root: launching,
            translate: kernel::Translate::new(launching),
            merge: Merge::default(),
            covered: HashMap::new(),
            shim: Translate::new(launching),
        }
    }

    /// What processes that were found running are known to have.
    pub(super) fn kernel(&mut self) -> &mut kernel::Translate {
        &mut self.translate
    }

    /// A record of the shim.
    pub(super) fn record(&mut self, header: Header, bytes: &[u8]) {
        self.merge.record(header.time, bytes);
    }

    /// Takes in what has come, and tells what is old enough to be told in order.
    pub(super) fn look(&mut self, now: u64, watch: &mut Watch, desk: &mut Desk) {
        if let Some(kernel) = &self.kernel {
            for sight in kernel.sights() {
                begin_watching(watch, &sight);
                self.merge.sight(sight);
            }
        }
        self.tell(now, desk);
        let covered = &self.covered;
        self.translate
            .due(now, |pid| covered.contains_key(&pid), desk);
        // Processes tell their ends through the kernel.
        watch.ended();
    }

    /// Stops, and tells everything that is left.
    pub(super) fn stop(&mut self, now: u64, desk: &mut Desk) -> Option<Detaching> {
        let (sights, detaching) = self.kernel.take()?.stop();
        for sight in sights {
            self.merge.sight(sight);
        }
        self.tell(u64::MAX, desk);
        let covered = &self.covered;
        self.translate
            .finish(|pid| covered.contains_key(&pid), desk);
        self.shim.finish(now, desk);
        Some(detaching)
    }

    fn tell(&mut self, until: u64, desk: &mut Desk) {
        while let Some(item) = self.merge.next(until) {
            match item {
                Item::Record(bytes) => self.tell_record(&bytes, desk),
                Item::Sight(sight) if self.waits(&sight) => self.merge.wait(sight),
                Item::Sight(sight) | Item::Waited(sight) => self.tell_sight(&sight, desk),
            }
        }
    }

    fn tell_record(&mut self, bytes: &[u8], desk: &mut Desk) {
        // It was whole when it was kept.
        let Ok((header, record, _)) = decode(bytes) else {
            return;
        };
        match record {
            Record::Start(_) => {
                self.covered.insert(header.pid, header.time);
            }
            // The kernel does follow it, and tells its start itself.
            Record::NotFollowed(_) => return,
            _ => {}
        }
        self.shim.record(header, &record, desk);
    }

    /// Whether the shim may have more to say of this. A child that is about to run a program speaks through its
    /// parent's image, and so through its parent's shim.
    fn waits(&mut self, sight: &Sight) -> bool {
        let pid = sight.observation.task.own.tgid;
        let covered = self.covered.contains_key(&pid);
        if let KernelEvent::Fork { child } = &sight.observation.event
            && covered
        {
            self.covered
                .entry(child.own.tgid)
                .or_insert(sight.observation.time_ns);
        }
        covered
    }

    fn tell_sight(&mut self, sight: &Sight, desk: &mut Desk) {
        let pid = sight.observation.task.own.tgid;
        let time = sight.observation.time_ns;
        if matches!(sight.observation.event, KernelEvent::Exec(_))
            && self.covered.get(&pid).is_some_and(|since| *since < time)
        {
            // Another program now, and the shim has not spoken from it.
            self.covered.remove(&pid);
        }
        let covered = self.covered.contains_key(&pid);
        if let KernelEvent::Exit(Exit::Code(stillborn::LOADER_STATUS)) = sight.observation.event
            && self.root != Some(pid)
            && (!covered || self.shim.living().any(|living| living == pid))
        {
            desk.ended_by_loader(None, pid, time);
        }
        let covered = &self.covered;
        self.translate
            .sight(sight, |pid| covered.contains_key(&pid), desk);
        if matches!(sight.observation.event, KernelEvent::Exit(_)) {
            self.covered.remove(&pid);
            self.shim.gone(pid);
        }
    }
}

fn begin_watching(watch: &mut Watch, sight: &Sight) {
    match &sight.observation.event {
        KernelEvent::Fork { child } if child.own.tgid != 0 => watch.begin(child.own.tgid),
        KernelEvent::Exec(_) if sight.observation.task.own.tgid != 0 => {
            watch.begin(sight.observation.task.own.tgid);
        }
        _ => {}
    }
}

//! Several traces as one: ranks of a job, a server and the client that was traced beside it, two hosts.
//!
//! Each trace counts its own events and clocks its own time, and process ids repeat between hosts. A [`Join`] rewrites
//! the events of each further trace so that none of it collides: numbers continue behind those of the trace before,
//! times count from the earliest start, and pids are moved by [`crate::report::phrase::PID_STRIDE`] a trace.

use crate::{
    event::{Body, Event, EventId},
    log::Header,
    report::phrase::PID_STRIDE,
};

/// Rewrites the events of one trace after another.
#[derive(Debug, Clone, Default)]
pub struct Join {
    /// The earliest start of all traces, nanoseconds since 1970.
    start: u64,
    /// Number of the trace at work, from 0.
    trace: u32,
    begun: bool,
    /// What is added to event numbers.
    id_base: EventId,
    /// The highest number given so far.
    last_id: EventId,
    /// What is added to times.
    delay: u64,
}

impl Join {
    /// Prepares to join traces with these headers, in this order.
    pub fn new<'a>(headers: impl IntoIterator<Item = &'a Header>) -> Self {
        let start = headers
            .into_iter()
            .map(|header| header.started_unix_ns)
            .min()
            .unwrap_or(0);
        Join {
            start,
            ..Join::default()
        }
    }

    /// Begins the next trace.
    pub fn begin(&mut self, header: &Header) {
        if self.begun {
            self.trace += 1;
            self.id_base = self.last_id;
        }
        self.begun = true;
        self.delay = header.started_unix_ns.saturating_sub(self.start);
    }

    /// Moves one event of the trace that was begun to its place in the whole.
    pub fn place(&mut self, event: &mut Event) {
        let (base, trace) = (self.id_base, self.trace);
        let id = |id: &mut EventId| *id += base;
        let pid = |pid: &mut u32| {
            // 0 is no process: the collector, an unknown parent.
            if *pid != 0 {
                *pid = pid.saturating_add(trace.saturating_mul(PID_STRIDE));
            }
        };
        id(&mut event.id);
        self.last_id = self.last_id.max(event.id);
        event.t = event.t.saturating_add(self.delay);
        event.same_as.iter_mut().for_each(id);
        pid(&mut event.pid);
        pid(&mut event.tid);
        match &mut event.body {
            Body::ProcessStart(start) => pid(&mut start.ppid),
            Body::Exec(exec) => exec.child.iter_mut().chain(&mut exec.ppid).for_each(pid),
            Body::ExecFailed(failed) => failed.ppid.iter_mut().for_each(pid),
            Body::LibraryLoaded(loaded) => loaded.request.iter_mut().for_each(id),
            Body::LibraryFailed(failed) => failed.request.iter_mut().for_each(id),
            Body::PythonStack(stack) => stack.of.iter_mut().for_each(id),
            Body::ProcessExit(_)
            | Body::LibraryRequest(_)
            | Body::LibraryUnloaded(_)
            | Body::Call(_)
            | Body::Message(_)
            | Body::File(_)
            | Body::Fact(_)
            | Body::Lost(_)
            | Body::Note(_)
            | Body::Other(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Exec, LibraryLoaded, ProcessStart, Source};

    fn event(id: EventId, pid: u32, body: Body) -> Event {
        Event {
            id,
            t: 5,
            pid,
            tid: pid,
            source: Source::Preload,
            same_as: Some(id),
            body,
        }
    }

    #[test]
    fn the_second_trace_collides_with_nothing_of_the_first() {
        let first = Header {
            started_unix_ns: 1000,
            ..Header::default()
        };
        let second = Header {
            started_unix_ns: 1700,
            ..Header::default()
        };
        let mut join = Join::new([&first, &second]);
        join.begin(&first);
        let mut one = event(9, 42, Body::ProcessStart(Box::default()));
        let before = one.clone();
        join.place(&mut one);
        assert_eq!(one, before);
        join.begin(&second);
        let start = ProcessStart {
            ppid: 41,
            ..ProcessStart::default()
        };
        let mut two = event(1, 42, Body::ProcessStart(Box::new(start)));
        join.place(&mut two);
        assert_eq!((two.id, two.same_as, two.t), (10, Some(10), 705));
        assert_eq!((two.pid, two.tid), (10_000_042, 10_000_042));
        assert!(matches!(&two.body, Body::ProcessStart(start) if start.ppid == 10_000_041));
        let loaded = LibraryLoaded {
            request: Some(1),
            ..LibraryLoaded::default()
        };
        let forked = || Exec {
            ppid: Some(41),
            child: Some(43),
            ..Exec::default()
        };
        let mut exec = event(2, 42, Body::Exec(Box::new(forked())));
        join.place(&mut exec);
        assert!(matches!(
            &exec.body,
            Body::Exec(exec) if exec.ppid == Some(10_000_041) && exec.child == Some(10_000_043)
        ));
        let mut three = event(2, 0, Body::LibraryLoaded(Box::new(loaded)));
        join.place(&mut three);
        assert_eq!(three.pid, 0);
        assert!(matches!(&three.body, Body::LibraryLoaded(loaded) if loaded.request == Some(10)));
    }
}

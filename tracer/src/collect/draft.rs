//! What the translations of both sources have in common: a draft of an event, who takes it, and the words for what both
//! tell.

use jittrace_model::event::{Body, EventId, Source};

use super::replay::Mapped;

/// A body together with where and when; the collector gives it its number.
#[derive(Debug, Clone)]
pub(super) struct Draft {
    /// CLOCK_MONOTONIC, nanoseconds.
    pub time: u64,
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// What was seen.
    pub body: Body,
}

/// Gives a draft its number and writes it down.
pub(super) trait Sink {
    /// Takes a draft that the shim told; gives the event's number.
    fn put(&mut self, draft: Draft) -> EventId {
        self.put_from(draft, Source::Preload)
    }
    /// Takes a draft of any source; gives the event's number, 0 when it is not worth an event.
    fn put_from(&mut self, draft: Draft, source: Source) -> EventId;
    /// A process was forked.
    fn forked(&mut self, child: u32, parent: u32);
    /// Objects that were found mapped in a process.
    fn mapped(&mut self, pid: u32, objects: Vec<Mapped>);
}

/// A variable as the user set it: without the shim in LD_PRELOAD and without the session's own variables.
pub(super) fn without_ours(name: &str, value: &str, shim: &str) -> Option<(String, String)> {
    if name.starts_with("JITTRACE_") {
        return None;
    }
    if name != "LD_PRELOAD" || shim.is_empty() {
        return Some((name.to_owned(), value.to_owned()));
    }
    let others: Vec<&str> = value
        .split([':', ' '])
        .filter(|e| !e.is_empty() && *e != shim)
        .collect();
    (!others.is_empty()).then(|| (name.to_owned(), others.join(":")))
}

/// A number in the words of its function: releases as `12.9`, capabilities as `9.0`, versions as they came.
pub(super) fn answer(function: &str, value: i64) -> String {
    match function {
        "nvrtcVersion" | "nvJitLinkVersion" => format!("{}.{}", value / 1000, value % 1000 / 10),
        f if f.starts_with("cudaGetDeviceProperties") => format!("{}.{}", value / 10, value % 10),
        _ => value.to_string(),
    }
}

/// A path made absolute against a directory, without `.` components.
pub(super) fn absolute(base: &str, path: &str) -> String {
    let joined = if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("{base}/{path}")
    };
    let mut out = String::with_capacity(joined.len());
    for part in joined.split('/').filter(|p| !p.is_empty() && *p != ".") {
        out.push('/');
        out.push_str(part);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_worded_by_their_function() {
        assert_eq!(answer("cudaRuntimeGetVersion", 13000), "13000");
        assert_eq!(answer("nvrtcVersion", 12090), "12.9");
        assert_eq!(answer("cudaGetDeviceProperties_v2", 120), "12.0");
    }
}

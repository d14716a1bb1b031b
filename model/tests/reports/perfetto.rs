//! The Perfetto export, parsed back with Perfetto's own definitions (the PyPI package `perfetto`).
//!
//! `JITTRACE_PERFETTO_PYTHON` names a Python that has the package; without one the test is skipped, and says so.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::Command;

use jittrace_model::{Event, export::perfetto::Exporter, report::Report};
use serde_json::Value;

use crate::{skipping, stories};

fn export(report: &Report, events: &[Event]) -> Vec<u8> {
    let mut exporter = Exporter::new(Vec::new());
    for event in events {
        exporter.event(event).unwrap();
    }
    exporter.finish(report).unwrap()
}

fn checked(trace: &[u8]) -> Option<Value> {
    let python = std::env::var("JITTRACE_PERFETTO_PYTHON").unwrap_or_else(|_| "python3".into());
    let has = Command::new(&python)
        .args([
            "-c",
            "import perfetto.protos.perfetto.trace.perfetto_trace_pb2",
        ])
        .output();
    if !has.is_ok_and(|output| output.status.success()) {
        skipping::skip(
            "export_perfetto",
            &format!(
                "{python} has no package perfetto; pip install it, or set JITTRACE_PERFETTO_PYTHON"
            ),
        );
        return None;
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), trace).unwrap();
    let script = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/reports/perfetto_check.py"
    );
    let output = Command::new(&python)
        .arg(script)
        .arg(file.path())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

#[test]
fn perfetto_reads_what_was_written() {
    let mut report = stories::founding();
    report.builds = stories::healthy().builds;
    // Ends and beginnings that meet, a build that still runs, one that outlives its parent, an exec in one pid.
    let mut more = report.builds[1].clone();
    (
        more.id,
        more.parent,
        more.start_ns,
        more.duration_ns,
        more.exit,
    ) = (90, Some(1), report.builds[1].start_ns, None, None);
    report.builds.push(more);
    let mut empty = report.builds[1].clone();
    (empty.id, empty.start_ns, empty.duration_ns) = (91, 0, Some(0));
    report.builds.push(empty);
    let mut image = report.processes[0].clone();
    (image.start, image.end) = (image.end.unwrap(), None);
    report.processes.push(image);
    let mut events = stories::events();
    events.swap(10, 400);
    let Some(result) = checked(&export(&report, &events)) else {
        return;
    };
    assert_eq!(result["faults"], serde_json::json!([]));
    let counts = &result["counts"];
    assert_eq!(
        counts["slices"],
        report.builds.len() + report.processes.len()
    );
    assert_eq!(counts["instants"], events.len() - 1 + report.findings.len());
    assert_eq!(
        (&counts["processes"], &counts["threads"]),
        (&3.into(), &1.into())
    );
    assert_eq!(counts["deepest"], 3);
}

#[test]
fn every_story_can_be_exported() {
    for (name, report) in stories::all() {
        let trace = export(&report, &stories::events());
        // Without Perfetto's definitions: the trace is packets under field 1, each as long as it says.
        let (mut rest, mut packets) = (trace.as_slice(), 0);
        while let Some((key, tail)) = rest.split_first() {
            assert_eq!(*key, 0x0a, "{name}");
            let mut tail = tail;
            let length = prost::decode_length_delimiter(&mut tail).unwrap();
            rest = &tail[length..];
            packets += 1;
        }
        assert!(packets > 900, "{name}");
    }
}

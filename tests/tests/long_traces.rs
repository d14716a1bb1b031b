//! Recorded server starts, again and again in one trace: what each says of itself stays, and only that.

use std::{
    collections::BTreeSet,
    io::{BufReader, Read},
    path::Path,
};

use jittrace_model::{
    Body, Event, Model,
    event::ProcessExit,
    log::{Header, Reader},
    report::Severity,
};

fn recorded(name: &str) -> (Header, Vec<Event>) {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("fixtures/gpu/{name}.jtrace.zst"));
    let mut text = Vec::new();
    zstd::Decoder::new(std::fs::File::open(path).unwrap())
        .unwrap()
        .read_to_end(&mut text)
        .unwrap();
    let mut reader = Reader::new(BufReader::new(text.as_slice())).unwrap();
    let header = reader.header().clone();
    let mut events = Vec::new();
    while let Some(event) = reader.next_event().unwrap() {
        events.push(event);
    }
    (header, events)
}

/// The event as it would be in a run that began later, with other numbers.
fn later(event: &Event, ids: u64, time: u64, pids: u32) -> Event {
    let mut event = event.clone();
    let of = |pid: u32| if pid == 0 { 0 } else { pid + pids };
    event.id += ids;
    event.t += time;
    event.pid = of(event.pid);
    event.tid = of(event.tid);
    event.same_as = event.same_as.map(|id| id + ids);
    match &mut event.body {
        Body::ProcessStart(start) => start.ppid = of(start.ppid),
        Body::Exec(exec) => {
            exec.child = exec.child.map(of);
            exec.ppid = exec.ppid.map(of);
        }
        Body::ExecFailed(failed) => failed.ppid = failed.ppid.map(of),
        Body::LibraryLoaded(loaded) => loaded.request = loaded.request.map(|id| id + ids),
        Body::LibraryFailed(failed) => failed.request = failed.request.map(|id| id + ids),
        Body::PythonStack(stack) => stack.of = stack.of.map(|id| id + ids),
        _ => {}
    }
    event
}

/// The fold of so many runs, one after the other.
fn runs(name: &str, count: u32, keeping: usize) -> Model {
    let (header, mut events) = recorded(name);
    // What still lived when the recording ended is told to stop, before the next run begins.
    let mut living = BTreeSet::new();
    for event in &events {
        match &event.body {
            Body::ProcessStart(_) => living.insert(event.pid),
            Body::ProcessExit(_) => living.remove(&event.pid),
            _ => false,
        };
    }
    let last = events.iter().max_by_key(|e| e.id).unwrap().clone();
    let latest = events.iter().map(|e| e.t).max().unwrap();
    for (pid, id) in living.into_iter().zip(last.id + 1..) {
        events.push(Event {
            id,
            t: latest + 1,
            pid,
            tid: pid,
            same_as: None,
            body: Body::ProcessExit(ProcessExit {
                signal: Some(15),
                ..ProcessExit::default()
            }),
            ..last.clone()
        });
    }
    let ids = events.iter().map(|e| e.id).max().unwrap();
    let time = events.iter().map(|e| e.t).max().unwrap();
    let mut model = Model::new(header).keeping(keeping);
    for run in 0..count {
        let number = u64::from(run);
        for event in &events {
            // What a file is, is told once in a trace.
            if run > 0 && matches!(event.body, Body::Fact(_)) {
                continue;
            }
            model.apply(later(event, number * ids, number * time, run * 10_000));
        }
    }
    model
}

/// Findings above a note: id and component.
fn accused(model: &Model) -> BTreeSet<(String, Severity, Option<String>)> {
    model
        .report()
        .findings
        .into_iter()
        .filter(|f| f.severity != Severity::Note)
        .map(|f| (f.id, f.severity, f.component))
        .collect()
}

#[test]
fn a_run_that_comes_again_says_what_it_said_once() {
    for name in [
        "healthy",
        "mixed",
        "sm120",
        "twomajors",
        "ptx222",
        "nokernel-cubin",
        "triton",
        "attach",
        "serve-beside",
        "serve-frames",
    ] {
        let once = runs(name, 1, usize::MAX);
        let length = once.entries();
        let again = runs(name, 30, 4 * length);
        assert!(
            again.condensed().entries as usize > 10 * length,
            "{name}: {:?} of {length}",
            again.condensed()
        );
        assert_eq!(accused(&again), accused(&once), "{name}");
        let components = |model: &Model| -> Vec<(String, Vec<String>)> {
            let resolved = |c: &jittrace_model::report::Component| {
                let files = c.resolved.values().flatten();
                files.map(|r| format!("{} {:?}", r.path, r.rule)).collect()
            };
            let report = model.report();
            report
                .components
                .iter()
                .map(|c| (c.name.clone(), resolved(c)))
                .collect()
        };
        assert_eq!(components(&again), components(&once), "{name}");
        let built = |model: &Model| -> BTreeSet<String> {
            model.report().builds.into_iter().map(|b| b.tool).collect()
        };
        assert_eq!(built(&again), built(&once), "{name}");
    }
}

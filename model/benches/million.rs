//! A trace of a million events: read, folded and reported in less than 5 seconds and 500 MB; two of them compared in
//! less than 15 seconds.
//!
//! The events are those of a long server run: a thousand processes, builds in a hundred of them, library loads with
//! their searches, calls, cache files, messages.

use std::{
    fs::File,
    hint::black_box,
    io::{BufReader, BufWriter},
    path::Path,
    sync::OnceLock,
    time::{Duration, Instant},
};

use divan::Bencher;
use jittrace_model::{
    Model, diff,
    event::*,
    export::perfetto::Exporter,
    log::{Header, Reader, Writer},
    redact::{Options, Redactor},
    report::{self, Report, html::EventSample},
};

const EVENTS: u64 = 1_000_000;

fn body(n: u64, pid: u32) -> Body {
    let site = "/srv/venv/lib/python3.12/site-packages";
    let python = || {
        vec![
            Frame {
                file: format!("{site}/flashinfer/jit/cpp_ext.py"),
                line: 78,
                function: "get_cuda_version".into(),
                distribution: Some("flashinfer-python".into()),
            },
            Frame {
                file: "/srv/app/serve.py".into(),
                line: 12,
                function: "main".into(),
                distribution: None,
            },
        ]
    };
    match n % 1000 {
        0 => Body::ProcessStart(Box::new(ProcessStart {
            ppid: if n == 0 { 1 } else { 1000 },
            exe: if n.is_multiple_of(10_000) {
                "/opt/cuda-13.0/bin/nvcc".into()
            } else {
                "/usr/bin/python3.12".into()
            },
            argv: vec!["python".into(), "-m".into(), "sglang.launch_server".into()],
            cwd: "/srv/app".into(),
            env: [
                ("CUDA_HOME".to_owned(), "/opt/cuda-13.0".to_owned()),
                ("PATH".to_owned(), "/usr/bin:/bin".to_owned()),
            ]
            .into(),
            ..ProcessStart::default()
        })),
        999 => Body::ProcessExit(ProcessExit {
            code: Some(0),
            ..ProcessExit::default()
        }),
        1..=20 => Body::LibraryLoaded(Box::new(LibraryLoaded {
            path: format!(
                "{site}/nvidia/cu13/lib/lib{}.so.13",
                ["cudart", "nvrtc", "cublas", "nvJitLink"][(n % 4) as usize]
            ),
            realpath: format!(
                "{site}/nvidia/cu13/lib/lib{}.so.13",
                ["cudart", "nvrtc", "cublas", "nvJitLink"][(n % 4) as usize]
            ),
            requested_by: Some(format!("{site}/torch/lib/libtorch_cuda.so")),
            rule: Rule::Rpath,
            rule_detail: "$ORIGIN/../../nvidia/cu13/lib".into(),
            explanation: Explanation::Confirmed,
            candidates: (0..4)
                .map(|at| Candidate {
                    path: format!("{site}/nvidia/{at}/lib/libcudart.so.13"),
                    rule: Rule::Rpath,
                    outcome: Outcome::Missing,
                })
                .collect(),
            python: python(),
            ..LibraryLoaded::default()
        })),
        21 => Body::Exec(Box::new(Exec {
            call: "posix_spawn".into(),
            path: "/opt/cuda-13.0/bin/nvcc".into(),
            argv: vec!["nvcc".into(), "--version".into()],
            python: python(),
            child: Some(pid + 1),
            ..Exec::default()
        })),
        22..=30 => Body::Message(Box::new(Message {
            stream: "stderr".into(),
            text: format!("warning {n}: requires CUDA"),
            pattern: "requires-cuda".into(),
        })),
        31..=500 => Body::Call(Box::new(Call {
            function: "cudaRuntimeGetVersion".into(),
            object: Some(format!("{site}/nvidia/cu13/lib/libcudart.so.13")),
            result: Some(0),
            value: Some("13000".into()),
            python: python(),
            count: 1,
            ..Call::default()
        })),
        _ => Body::File(Box::new(FileAccess {
            path: format!(
                "/home/u/.cache/flashinfer/0.6.8/120f/cached_ops/op{}/build.ninja",
                n % 4096
            ),
            errno: if n.is_multiple_of(3) { 2 } else { 0 },
            ..FileAccess::default()
        })),
    }
}

fn event(n: u64) -> Event {
    let pid = 1000 + u32::try_from(n / 1000).unwrap_or(0);
    Event {
        id: n + 1,
        t: n * 60_000,
        pid,
        tid: pid,
        source: Source::Preload,
        same_as: None,
        body: body(n, pid),
    }
}

/// The trace, written once.
fn trace() -> &'static Path {
    static TRACE: OnceLock<tempfile::TempPath> = OnceLock::new();
    TRACE.get_or_init(|| {
        let file = tempfile::NamedTempFile::new().unwrap_or_else(|error| panic!("{error}"));
        let (file, path) = file.into_parts();
        let header = Header {
            jittrace: 1,
            command: vec!["python".into()],
            ..Header::default()
        };
        let write = || -> std::io::Result<()> {
            let mut writer = Writer::new(BufWriter::new(file), &header)?;
            for n in 0..EVENTS {
                writer.write(&event(n))?;
            }
            writer.flush()
        };
        write().unwrap_or_else(|error| panic!("{error}"));
        path
    })
}

fn read(mut each: impl FnMut(&Event)) -> Model {
    let mut open = || -> Result<Model, Box<dyn std::error::Error>> {
        let mut reader = Reader::new(BufReader::with_capacity(1 << 18, File::open(trace())?))?;
        let mut model = Model::new(reader.header().clone());
        while let Some(event) = reader.next_event()? {
            each(&event);
            model.apply(event);
        }
        Ok(model)
    };
    open().unwrap_or_else(|error| panic!("{error}"))
}

fn folded() -> Report {
    read(|_| {}).report()
}

/// Most memory this process ever had, in megabytes.
fn peak_memory() -> u64 {
    std::fs::read_to_string("/proc/self/status")
        .unwrap_or_default()
        .lines()
        .find_map(|line| {
            line.strip_prefix("VmHWM:")?
                .split_whitespace()
                .next()?
                .parse::<u64>()
                .ok()
        })
        .unwrap_or(0)
        / 1024
}

#[divan::bench(sample_count = 3, sample_size = 1)]
fn report_text() -> String {
    report::text::render(&folded(), report::text::Style::default())
}

#[divan::bench(sample_count = 3, sample_size = 1)]
fn report_html() -> String {
    let mut sample = EventSample::default();
    let report = read(|event| sample.add(event)).report();
    report::html::render(&report, &sample)
}

#[divan::bench(sample_count = 3, sample_size = 1)]
fn diff_of_two() -> String {
    let (good, bad) = (folded(), folded());
    diff::text(&diff::compare(&good, &bad), report::text::Style::default())
}

#[divan::bench(sample_count = 3, sample_size = 1)]
fn export_perfetto() {
    let mut exporter = Exporter::new(std::io::sink());
    let report = read(|event| {
        exporter
            .event(event)
            .unwrap_or_else(|error| panic!("{error}"))
    })
    .report();
    let _ = black_box(exporter.finish(&report));
}

#[divan::bench(sample_count = 3, sample_size = 1)]
fn redact(bencher: Bencher) {
    let events: Vec<Event> = (0..100_000).map(event).collect();
    bencher
        .with_inputs(|| (Redactor::new(Options::default()), events.clone()))
        .bench_values(|(mut redactor, mut events)| {
            events.iter_mut().for_each(|event| redactor.event(event));
            (redactor.masked(), events.len())
        });
}

fn main() {
    // The limits first, in a process that has done nothing else.
    trace();
    let begun = Instant::now();
    black_box(report_text());
    let (took, peak) = (begun.elapsed(), peak_memory());
    println!("report of {EVENTS} events: {took:.2?}, at most {peak} MB");
    let begun = Instant::now();
    black_box(diff_of_two());
    let both = begun.elapsed();
    println!("diff of two such traces: {both:.2?}");
    divan::main();
    assert!(took < Duration::from_secs(5), "the report took {took:?}");
    assert!(peak < 500, "the report took {peak} MB");
    assert!(both < Duration::from_secs(15), "the diff took {both:?}");
}

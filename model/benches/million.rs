//! A trace of a million events: read, folded and reported in less than 5 seconds and 500 MB; two of them compared in
//! less than 15 seconds.

mod server_run;

use std::{
    fs::File,
    hint::black_box,
    io::BufReader,
    path::Path,
    sync::OnceLock,
    time::{Duration, Instant},
};

use divan::Bencher;
use jittrace_model::{
    Event, Model, diff,
    export::perfetto::Exporter,
    log::Reader,
    redact::{Options, Redactor},
    report::{self, Report, html::EventSample},
};
use server_run::{EVENTS, event};

/// The trace, written once.
fn trace() -> &'static Path {
    static TRACE: OnceLock<tempfile::TempPath> = OnceLock::new();
    TRACE.get_or_init(|| {
        let file = tempfile::NamedTempFile::new().unwrap_or_else(|error| panic!("{error}"));
        let (file, path) = file.into_parts();
        server_run::write(file).unwrap_or_else(|error| panic!("{error}"));
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

//! How the view's work grows with the number of events: packing and folding them, filtering them, drawing a frame.
//! The first two may grow with them; a frame must not.

use std::sync::Arc;

use divan::{Bencher, black_box};
use jittrace_model::{Event, Model, log::Header};
use jittrace_tui::{
    App, Setup,
    app::Msg,
    draw, filter,
    snapshot::Snapshot,
    store::{CHUNK, Chunk, Store},
    view::View,
    worker::Published,
};
use ratatui::{Terminal, backend::TestBackend};

fn main() {
    divan::main();
}

const SIZES: [u64; 3] = [10_000, 100_000, 1_000_000];

/// Events as a build storm makes them: mostly files and libraries, some calls, few processes.
fn events(count: u64) -> impl Iterator<Item = Event> {
    (1..=count).map(|id| {
        let (t, pid) = (id * 1000, 100 + id % 16);
        let fields = match id % 50 {
            _ if id <= 16 => r#""kind":"process-start","ppid":1,"exe":"/usr/bin/python3","argv":["python3","-m","server"],"cwd":"/""#.to_owned(),
            0 => format!(r#""kind":"call","function":"cuModuleLoadData","object":"/usr/lib/libcuda.so.1","result":0,"value":"{id}""#),
            1..5 => format!(r#""kind":"library-loaded","path":"/opt/v/lib/python3.12/site-packages/p/lib{id}.so","realpath":"/opt/v/lib/python3.12/site-packages/p/lib{id}.so","rule":"runpath","rule_detail":"$ORIGIN""#),
            5..20 => format!(r#""kind":"file","op":"stat","path":"/opt/cuda-13.0/include/h{}.h","errno":2"#, id % 997),
            _ => format!(r#""kind":"file","op":"open","path":"/home/user/.cache/flashinfer/k{}/generated/kernel_{id}.cu","errno":0"#, id % 97),
        };
        let line = format!(r#"{{"id":{id},"t":{t},"pid":{pid},"tid":{pid},"source":"preload",{fields}}}"#);
        Event::from_line(&line).unwrap_or_else(|error| panic!("{line}: {error}"))
    })
}

fn store(count: u64) -> Store {
    let mut store = Store::default();
    let mut part = Vec::with_capacity(CHUNK);
    for event in events(count) {
        part.push(event);
        if part.len() == CHUNK {
            store.push(Chunk::of(&part));
            part.clear();
        }
    }
    store.push(Chunk::of(&part));
    store
}

fn app(count: u64) -> App {
    let mut app = App::new(Header::default(), Setup::default());
    let mut model = Model::new(Header::default());
    let mut part = Vec::with_capacity(CHUNK);
    for event in events(count) {
        part.push(event.clone());
        model.apply(event);
        if part.len() == CHUNK {
            app.update(Msg::Published(Published::Chunk(Chunk::of(&part))));
            part.clear();
        }
    }
    app.update(Msg::Published(Published::Chunk(Chunk::of(&part))));
    app.update(Msg::Published(Published::Snapshot(Arc::new(Snapshot::of(
        &model,
    )))));
    app.update(Msg::Resize(120, 40));
    app.update(Msg::Work);
    app
}

#[divan::bench(args = SIZES, sample_count = 3, sample_size = 1)]
fn fold(bencher: Bencher<'_, '_>, count: u64) {
    bencher
        .with_inputs(|| events(count).collect::<Vec<_>>())
        .bench_values(|events| {
            let mut model = Model::new(Header::default());
            let mut store = Store::default();
            for part in events.chunks(CHUNK) {
                store.push(Chunk::of(part));
            }
            for event in events {
                model.apply(event);
            }
            (model, store)
        });
}

#[divan::bench(args = SIZES, sample_count = 3, sample_size = 1)]
fn filter_text(bencher: Bencher<'_, '_>, count: u64) {
    let store = store(count);
    let filter = filter::parse("kernel_77 -is:failed").unwrap_or_else(|error| panic!("{error}"));
    bencher.bench_local(|| {
        let mut passed = 0;
        store.for_each(0..store.len(), |_, mark, line| {
            passed += usize::from(filter.holds(mark, line))
        });
        passed
    });
}

#[divan::bench(args = SIZES, sample_count = 20)]
fn frame_of_events(bencher: Bencher<'_, '_>, count: u64) {
    frame(bencher, count, View::Events);
}

#[divan::bench(args = SIZES, sample_count = 20)]
fn frame_of_resolution(bencher: Bencher<'_, '_>, count: u64) {
    frame(bencher, count, View::Resolution);
}

fn frame(bencher: Bencher<'_, '_>, count: u64, view: View) {
    let mut app = app(count);
    app.view = view;
    let Ok(mut terminal) = Terminal::new(TestBackend::new(120, 40));
    bencher.bench_local(|| {
        let Ok(_) = terminal.draw(|frame| draw::draw(&app, frame));
        black_box(&terminal);
    });
}

//! A trace of which the model keeps only what is different: the list of events has all of it, what is only counted is
//! said, and what a person looks at is found again whatever is forgotten around it.

#![allow(clippy::unwrap_used, reason = "tests may fail by panicking")]

mod common;

use std::sync::Arc;

use common::{finish, press, text, type_in};
use jittrace_model::{
    Event, Model,
    log::{Header, Reader},
};
use jittrace_tui::{
    App, Setup,
    app::Msg,
    snapshot::Snapshot,
    store::Chunk,
    subject::Subject,
    view::{self, View},
    worker::Published,
};

/// Entries from which the model is condensed here.
const LONG: usize = 400;

/// What a server does all day: the same compiler, again and again; only the one in the middle fails.
fn day(runs: u64) -> Vec<Event> {
    let mut lines = String::from("{\"jittrace\":1,\"command\":[\"python\",\"serve.py\"]}\n");
    let mut id = 0;
    let mut tell = |pid: u64, t: u64, fields: &str| {
        id += 1;
        lines.push_str(&format!(
            "{{\"id\":{id},\"t\":{t},\"pid\":{pid},\"tid\":{pid},\"source\":\"preload\",{fields}}}\n"
        ));
    };
    let start = |exe: &str, ppid: u64| {
        format!(
            r#""kind":"process-start","ppid":{ppid},"exe":"{exe}","argv":["{exe}","-c","k.cu"],"cwd":"/srv","env":{{"A":"1"}}"#
        )
    };
    tell(10, 0, &start("/usr/bin/python3", 1));
    for run in 0..runs {
        let (pid, t) = (1000 + run, 20_000_000_000 * (run + 1));
        let code = i32::from(run == runs / 2);
        tell(pid, t, &start("/opt/cuda/bin/nvcc", 10));
        let open = r#""kind":"file","op":"open","path":"/srv/k.cu","errno":0"#;
        tell(pid, t + 1_000_000, open);
        let exit = format!(r#""kind":"process-exit","code":{code}"#);
        tell(pid, t + 2_000_000, &exit);
    }
    let mut reader = Reader::new(lines.as_bytes()).unwrap();
    std::iter::from_fn(|| reader.next_event().unwrap()).collect()
}

struct Long {
    app: App,
    model: Model,
}

impl Long {
    fn begin() -> Long {
        let header = Header::default();
        let mut app = App::new(header.clone(), Setup::default());
        app.update(Msg::Resize(120, 40));
        Long {
            app,
            model: Model::new(header).keeping(LONG),
        }
    }

    fn take(&mut self, events: &[Event]) {
        self.app
            .update(Msg::Published(Published::Chunk(Chunk::of(events))));
        for event in events {
            self.model.apply(event.clone());
        }
        let snapshot = Arc::new(Snapshot::of(&self.model));
        self.app
            .update(Msg::Published(Published::Snapshot(snapshot)));
        finish(&mut self.app);
    }
}

#[test]
fn the_list_has_every_event_and_says_what_ran_where_the_processes_are_only_counted() {
    let mut long = Long::begin();
    long.take(&day(300));
    let app = &mut long.app;
    press(app, "3");
    let shown = text(app);
    assert!(
        shown.contains("more that were like others beside them are only counted: "),
        "{shown}"
    );
    assert!(view::count(app, View::Processes) < LONG, "{shown}");
    // The one that failed is there; one of those that were like it is not.
    let listed = |app: &App, pid: u32| app.snapshot.processes.iter().any(|p| p.pid == pid);
    assert!(listed(app, 1150) && !listed(app, 1100), "{shown}");
    press(app, "f");
    type_in(app, "pid:1100");
    press(app, "Enter g");
    let shown = text(app);
    assert_eq!(view::count(app, View::Events), 3, "{shown}");
    assert_eq!(shown.matches("1100 nvcc ").count(), 3, "{shown}");
    // From what it did the way leads to its start, and from there to the process that is listed.
    press(app, "j u");
    assert!(text(app).contains("why event 302"), "{}", text(app));
    press(app, "Esc Y");
    assert!(text(app).contains("copied the command: cd -- /srv && A=1 /opt/cuda/bin/nvcc"));
    press(app, "x u");
    assert!(text(app).contains("why event 1 "), "{}", text(app));
}

#[test]
fn what_is_selected_stays_selected_while_what_stood_above_it_is_forgotten() {
    let mut long = Long::begin();
    let events = day(300);
    // Up to the one that fails.
    let (first, rest) = events.split_at(1 + 151 * 3);
    long.take(first);
    press(&mut long.app, "3 G");
    let chosen = |app: &App| match app.selected() {
        Some(Subject::Process(start)) => app.snapshot.process(start).map(|p| p.pid),
        other => panic!("{other:?}"),
    };
    let row = long.app.list().selected;
    assert_eq!(chosen(&long.app), Some(1150));
    press(&mut long.app, "Enter Tab");
    for some in rest.chunks(60) {
        long.take(some);
        assert_eq!(chosen(&long.app), Some(1150));
        assert!(text(&long.app).contains("why process 1150 nvcc"));
    }
    assert!(long.app.snapshot.condensed_processes() > 100);
    assert!(long.app.list().selected < row);
}

#[test]
fn a_search_through_many_events_says_how_far_it_is() {
    let mut long = Long::begin();
    long.take(&day(2000));
    let app = &mut long.app;
    // A sentence stands at the bottom, for there is no failure after the last event.
    press(app, "7 g } }");
    assert!(text(app).contains("no failure further on"), "{}", text(app));
    press(app, "/");
    type_in(app, "nowhere");
    app.update(Msg::Key(common::key("Enter")));
    assert!(app.has_work());
    assert!(text(app).contains(" searching 35%"), "{}", text(app));
    finish(app);
    assert!(text(app).contains("nowhere is not here"), "{}", text(app));
}

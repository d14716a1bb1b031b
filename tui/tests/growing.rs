//! What a trace that is still being written does to the screen: rows come, time goes on, and what a person chose stays.

#![allow(clippy::unwrap_used, reason = "tests may fail by panicking")]

mod common;

use std::sync::Arc;

use common::{finish, press, read, text, type_in};
use jittrace_model::{Event, Model, log::Header};
use jittrace_tui::{
    App, Mode, Setup,
    app::Msg,
    snapshot::Snapshot,
    store::Chunk,
    view::{self, View},
    worker::{Input, Published},
};

/// A launch of which only the first events are there.
struct Growing {
    app: App,
    model: Model,
    events: std::vec::IntoIter<Event>,
}

impl Growing {
    fn begin(trace: &str) -> Growing {
        let (header, events): (Header, Vec<Event>) = read(trace);
        let setup = Setup {
            mode: Mode::Launch,
            ..Setup::default()
        };
        let mut app = App::new(header.clone(), setup);
        app.update(Msg::Resize(120, 40));
        Growing {
            app,
            model: Model::new(header),
            events: events.into_iter(),
        }
    }

    /// The events up to the first that holds, that one among them; whether there was one.
    fn until(&mut self, holds: impl Fn(&Event) -> bool) -> bool {
        let mut found = false;
        let mut piece = Vec::new();
        for event in self.events.by_ref() {
            found = holds(&event);
            piece.push(event);
            if found {
                break;
            }
        }
        self.take(piece);
        found
    }

    fn take(&mut self, piece: Vec<Event>) {
        self.app
            .update(Msg::Published(Published::Chunk(Chunk::of(&piece))));
        for event in piece {
            self.model.apply(event);
        }
        let snapshot = Arc::new(Snapshot::of(&self.model));
        self.app
            .update(Msg::Published(Published::Snapshot(snapshot)));
        finish(&mut self.app);
    }

    /// Everything else, a few events at a time.
    fn rest(&mut self) {
        loop {
            let piece: Vec<Event> = self.events.by_ref().take(10).collect();
            if piece.is_empty() {
                return;
            }
            self.take(piece);
        }
    }
}

#[test]
fn a_view_stays_at_its_first_row_until_someone_chooses_another() {
    for keys in ["", "2", "2 3 1", "6 2", "2 ? Esc"] {
        let mut growing = Growing::begin("sm120");
        press(&mut growing.app, keys);
        growing.rest();
        let app = &mut growing.app;
        for view in View::ALL.into_iter().filter(|v| *v != View::Events) {
            press(app, &(view.index() + 1).to_string());
            assert_eq!(app.list().selected, 0, "{view:?} after {keys:?}");
        }
        press(app, "1");
        // Of the first row the first part that it resolved is looked at.
        assert!(text(app).contains("why flashinfer: nvcc"), "{}", text(app));
        press(app, "2");
        let first = view::row_text(app, View::Findings, 0);
        assert!(first.contains("error"), "{first}");
    }
}

#[test]
fn what_a_person_chose_stays_chosen() {
    let mut growing = Growing::begin("sm120");
    let torch = |app: &App| {
        let row = view::row_text(app, View::Resolution, app.list().selected);
        row.starts_with("torch")
    };
    growing.until(|event| event.body.kind() == "library-loaded" && event.id > 40);
    assert!(torch(&growing.app));
    press(&mut growing.app, "Right Enter Esc");
    growing.rest();
    // flashinfer came to stand above it.
    assert!(torch(&growing.app), "{}", text(&growing.app));
    assert_ne!(growing.app.list().selected, 0);
}

#[test]
fn a_build_that_runs_grows_while_nothing_happens() {
    let mut growing = Growing::begin("healthy");
    let cicc = |event: &Event| matches!(&event.body, jittrace_model::Body::ProcessStart(start) if start.exe.ends_with("/cicc"));
    assert!(growing.until(cicc), "the trace has a compilation");
    press(&mut growing.app, "4 G");
    let time = |app: &App| {
        let row = view::row_text(app, View::Builds, app.list().selected);
        assert!(row.contains("running"), "{row}");
        let mut words = row.split_whitespace();
        words
            .find_map(|word| word.parse::<f64>().ok().filter(|n| *n != 13.0))
            .unwrap()
    };
    let before = time(&growing.app);
    growing.app.update(Msg::Tick(5_000_000_000));
    assert_eq!(time(&growing.app), before + 5.0);
    press(&mut growing.app, "Enter");
    let screen = text(&growing.app);
    assert!(screen.contains("still running"), "{screen}");
    // When all is over nothing runs any more, whatever the clock says.
    growing
        .app
        .update(Msg::Published(Published::Other(Input::Complete)));
    let row = view::row_text(&growing.app, View::Builds, growing.app.list().selected);
    assert!(!row.contains("running"), "{row}");
    let screen = text(&growing.app);
    assert!(screen.contains("no end seen"), "{screen}");
}

#[test]
fn what_a_program_printed_is_searched_from_its_end() {
    let mut growing = Growing::begin("sm120");
    let app = &mut growing.app;
    let mut lines = String::new();
    for at in 0..500 {
        let word = if at % 100 == 7 { "Error" } else { "fine" };
        lines.push_str(&format!("{word} {at}\r\n"));
    }
    app.update(Msg::Published(Published::Other(Input::Output(
        lines.into_bytes(),
    ))));
    press(app, "8 /");
    type_in(app, "error");
    press(app, "Enter");
    for (keys, wanted) in [
        ("", "Error 407"),
        ("n", "Error 307"),
        ("N", "Error 407"),
        // Past the end it goes on at the beginning.
        ("N", "Error 7"),
    ] {
        press(app, keys);
        assert!(text(app).contains(wanted), "{wanted} in\n{}", text(app));
    }
    let found = app.theme.found();
    let marked: String = common::frame(app)
        .content
        .iter()
        .filter(|cell| Some(cell.bg) == found.bg)
        .map(|cell| cell.symbol())
        .collect();
    assert!(marked.ends_with("Error"), "{marked}");
    press(app, "/");
    type_in(app, "nowhere at all");
    press(app, "Enter");
    assert!(text(app).contains("is not here"));
}

#[test]
fn the_list_shrinks_while_a_filter_is_typed() {
    let mut growing = Growing::begin("sm120");
    growing.rest();
    let app = &mut growing.app;
    press(app, "1 f");
    assert_eq!(app.view, View::Events);
    let all = app.events.rows.len();
    type_in(app, "kind:exec");
    finish(app);
    let some = app.events.rows.len();
    assert!(some > 0 && some < all, "{some} of {all}");
    press(app, "Esc");
    assert_eq!(app.events.rows.len(), all);
}

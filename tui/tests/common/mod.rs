//! A screen that is fed with a recorded trace and driven by keys, without a terminal.

#![allow(dead_code, reason = "each test uses a part of it")]
#![allow(clippy::unwrap_used, reason = "tests may fail by panicking")]

use std::{fs::File, io::BufReader, path::Path, sync::Arc};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use jittrace_model::{
    Event, Model,
    log::{Header, Reader},
};
use jittrace_tui::{
    App, Mode, Setup,
    app::{Effect, Msg},
    draw,
    snapshot::Snapshot,
    store::{CHUNK, Chunk},
    worker::{Input, Published},
};
use ratatui::{Terminal, backend::TestBackend, buffer::Buffer};

/// The recorded traces.
pub(crate) const TRACES: [&str; 5] = ["sm120", "healthy", "two-majors", "storm", "attach"];

/// The events of a recorded trace.
pub(crate) fn read(name: &str) -> (Header, Vec<Event>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/traces/{name}.jtrace.gz"));
    let file = File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut reader = Reader::new(BufReader::new(flate2::read::MultiGzDecoder::new(file))).unwrap();
    let mut events = Vec::new();
    while let Some(event) = reader.next_event().unwrap() {
        events.push(event);
    }
    assert_eq!(reader.skipped(), [], "{name} reads whole");
    (reader.header().clone(), events)
}

/// A screen that shows all of some events.
pub(crate) fn show(header: Header, events: Vec<Event>, setup: Setup) -> App {
    let mut app = App::new(header.clone(), setup);
    feed(&mut app, header, events);
    app.update(Msg::Published(Published::Other(Input::Complete)));
    app
}

/// Gives a screen all of some events, and the model that they make.
pub(crate) fn feed(app: &mut App, header: Header, events: Vec<Event>) {
    let mut model = Model::new(header);
    for part in events.chunks(CHUNK) {
        app.update(Msg::Published(Published::Chunk(Chunk::of(part))));
    }
    for event in events {
        model.apply(event);
    }
    app.update(Msg::Published(Published::Snapshot(Arc::new(Snapshot::of(
        &model,
    )))));
    finish(app);
}

/// Lets the screen do all that it does when there is time.
pub(crate) fn finish(app: &mut App) {
    while app.has_work() {
        app.update(Msg::Work);
    }
}

/// A screen that shows a recorded trace.
pub(crate) fn open(name: &str, columns: u16, rows: u16) -> App {
    let (header, events) = read(name);
    let setup = Setup {
        mode: Mode::Replay,
        trace: format!("{name}.jtrace"),
        ..Setup::default()
    };
    let mut app = show(header, events, setup);
    app.update(Msg::Resize(columns, rows));
    app
}

/// Presses keys as they are written in the key map, separated by spaces.
pub(crate) fn press(app: &mut App, keys: &str) -> Vec<Effect> {
    let mut effects = Vec::new();
    for name in keys.split(' ').filter(|k| !k.is_empty()) {
        effects.extend(app.update(Msg::Key(key(name))));
        finish(app);
    }
    effects
}

/// Types a text.
pub(crate) fn type_in(app: &mut App, text: &str) {
    for c in text.chars() {
        app.update(Msg::Key(KeyEvent::new(
            KeyCode::Char(c),
            KeyModifiers::NONE,
        )));
    }
}

/// A key by its name.
pub(crate) fn key(name: &str) -> KeyEvent {
    let (modifiers, bare) = match name.split_once('-') {
        Some(("Ctrl", rest)) => (KeyModifiers::CONTROL, rest),
        Some(("Alt", rest)) => (KeyModifiers::ALT, rest),
        _ => (KeyModifiers::NONE, name),
    };
    let code = match bare {
        "Enter" => KeyCode::Enter,
        "Esc" => KeyCode::Esc,
        "Tab" => KeyCode::Tab,
        "BackTab" => KeyCode::BackTab,
        "Backspace" => KeyCode::Backspace,
        "Space" => KeyCode::Char(' '),
        "Up" => KeyCode::Up,
        "Down" => KeyCode::Down,
        "Left" => KeyCode::Left,
        "Right" => KeyCode::Right,
        "PageUp" => KeyCode::PageUp,
        "PageDown" => KeyCode::PageDown,
        "Home" => KeyCode::Home,
        "End" => KeyCode::End,
        "F1" => KeyCode::F(1),
        "F2" => KeyCode::F(2),
        "F12" => KeyCode::F(12),
        one => KeyCode::Char(one.chars().next().unwrap_or(' ')),
    };
    KeyEvent::new(code, modifiers)
}

/// One frame.
pub(crate) fn frame(app: &App) -> Buffer {
    let (columns, rows) = app.size;
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
    terminal.draw(|frame| draw::draw(app, frame)).unwrap();
    terminal.backend().buffer().clone()
}

/// One frame as text, without spaces at the ends of lines.
pub(crate) fn text(app: &App) -> String {
    let buffer = frame(app);
    let mut out = String::new();
    for row in 0..buffer.area.height {
        let mut line = String::new();
        for column in 0..buffer.area.width {
            line.push_str(buffer[(column, row)].symbol());
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

//! Whatever is pressed, at whatever size, on any of the traces: nothing panics and the screen stays whole.

mod common;

use common::{TRACES, frame, key, open};
use crossterm::event::{KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use jittrace_tui::{App, app::Msg, view};
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Step {
    Key(&'static str),
    Text(String),
    Resize(u16, u16),
    Click(u16, u16),
    Wheel(u16, u16, bool),
    Tick(u64),
}

const KEYS: &[&str] = &[
    "Up",
    "Down",
    "Left",
    "Right",
    "PageUp",
    "PageDown",
    "Home",
    "End",
    "Enter",
    "Esc",
    "Tab",
    "BackTab",
    "Backspace",
    "Space",
    "Ctrl-u",
    "Ctrl-d",
    "Ctrl-c",
    "Alt-Left",
    "Alt-Right",
    "1",
    "2",
    "3",
    "4",
    "5",
    "6",
    "7",
    "8",
    "/",
    "n",
    "N",
    "f",
    "x",
    "F",
    "v",
    "s",
    "p",
    "y",
    "Y",
    "M",
    "e",
    "t",
    "T",
    "z",
    "Z",
    ":",
    "?",
    "q",
    "[",
    "]",
    "g",
    "G",
    "H",
    "L",
    "i",
    "w",
    "u",
    "<",
    ">",
    "{",
    "}",
];

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        12 => prop::sample::select(KEYS).prop_map(Step::Key),
        1 => "[a-z:/ (|\"-]{1,8}".prop_map(Step::Text),
        1 => (1_u16..220, 1_u16..70).prop_map(|(c, r)| Step::Resize(c, r)),
        1 => (0_u16..220, 0_u16..70).prop_map(|(c, r)| Step::Click(c, r)),
        1 => (0_u16..220, 0_u16..70, any::<bool>()).prop_map(|(c, r, down)| Step::Wheel(c, r, down)),
        1 => (0_u64..10_000_000_000).prop_map(Step::Tick),
    ];
    prop::collection::vec(step, 1..60)
}

fn take(app: &mut App, step: &Step, now: &mut u64) {
    let mouse = |kind, column, row| {
        Msg::Mouse(MouseEvent {
            kind,
            column,
            row,
            modifiers: KeyModifiers::NONE,
        })
    };
    let msg = match step {
        Step::Key(name) => Msg::Key(key(name)),
        Step::Text(text) => Msg::Paste(text.clone()),
        Step::Resize(columns, rows) => Msg::Resize(*columns, *rows),
        Step::Click(column, row) => mouse(MouseEventKind::Down(MouseButton::Left), *column, *row),
        Step::Wheel(column, row, true) => mouse(MouseEventKind::ScrollDown, *column, *row),
        Step::Wheel(column, row, false) => mouse(MouseEventKind::ScrollUp, *column, *row),
        Step::Tick(by) => {
            *now += by;
            Msg::Tick(*now)
        }
    };
    app.update(msg);
    if app.has_work() {
        app.update(Msg::Work);
    }
}

fn whole(app: &App) -> Result<(), TestCaseError> {
    let buffer = frame(app);
    prop_assert_eq!((buffer.area.width, buffer.area.height), app.size);
    let areas = app.areas();
    let count = view::count(app, app.view);
    let list = app.list();
    if count > 0 && areas.rows.height > 0 {
        prop_assert!(list.selected < count);
        prop_assert!(
            list.window(count, areas.rows.height as usize)
                .contains(&list.selected)
        );
    }
    for area in [
        areas.header,
        areas.tabs,
        areas.head,
        areas.rows,
        areas.below,
        areas.footer,
    ] {
        prop_assert!(
            area.right() <= app.size.0 && area.bottom() <= app.size.1,
            "{:?} in {:?}",
            area,
            app.size
        );
    }
    if app.size.0 >= 40 && app.size.1 >= 8 && app.overlay.is_none() {
        let first: String = (0..10)
            .map(|c| buffer[(c, 0)].symbol().to_owned())
            .collect();
        prop_assert_eq!(first, " jittrace ");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn any_keys(trace in prop::sample::select(&TRACES), steps in steps()) {
        let mut app = open(trace, 80, 24);
        let mut now = 0;
        for step in &steps {
            take(&mut app, step, &mut now);
            whole(&app)?;
        }
    }
}

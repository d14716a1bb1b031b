//! Two hundred planted credentials and the clipboard: whatever is copied from whichever row, none of them goes along.

mod common;
#[path = "../../model/tests/secrets/mod.rs"]
mod secrets;

use common::{press, show};
use jittrace_model::{
    event::{Event, Source},
    log::Header,
    redact::{Options, Redactor},
};
use jittrace_tui::{Mode, Setup, app::Effect};

const PLANTED: u64 = 200;

/// The events that hold the credentials; `mask` is what the collector does to each before it is written.
fn events(mut mask: impl FnMut(&mut Event)) -> Vec<Event> {
    let mut events: Vec<Event> = (0..PLANTED)
        .flat_map(|number| {
            let (secret, by_shape) = secrets::planted(number);
            secrets::plant(number, &secret, by_shape)
        })
        .zip(1..)
        .map(|(body, id)| Event {
            id,
            t: id,
            // Each is a process of its own, so that none takes the place of the one before.
            pid: u32::try_from(id).unwrap_or(0),
            tid: u32::try_from(id).unwrap_or(0),
            source: Source::Preload,
            same_as: None,
            body,
        })
        .collect();
    events.iter_mut().for_each(&mut mask);
    events
}

/// Everything that can be copied from every row of some views, and from the first lines of its explanation.
fn copied(events: Vec<Event>, views: &[&str]) -> Vec<String> {
    let setup = Setup {
        mode: Mode::Replay,
        trace: "secrets.jtrace".into(),
        ..Setup::default()
    };
    let mut app = show(Header::default(), events, setup);
    let mut texts = Vec::new();
    let mut take = |effects: Vec<Effect>| {
        texts.extend(effects.into_iter().filter_map(|effect| match effect {
            Effect::Copy(text) => Some(text),
            _ => None,
        }));
    };
    for view in views {
        press(&mut app, &format!("{view} Home"));
        loop {
            let row = app.list().selected;
            take(press(&mut app, "y Y M"));
            press(&mut app, "Enter");
            for _ in 0..2 {
                take(press(&mut app, "y Y M Down"));
            }
            press(&mut app, &format!("Esc {view}"));
            assert_eq!(app.list().selected, row, "{view}: back where it was");
            press(&mut app, "Down");
            if app.list().selected == row {
                break;
            }
        }
    }
    texts
}

/// The planted credentials that a text holds.
fn survivors(texts: &[String]) -> usize {
    (0..PLANTED)
        .map(|number| secrets::planted(number).0)
        .filter(|secret| texts.iter().any(|text| text.contains(secret)))
        .count()
}

#[test]
fn no_planted_credential_reaches_the_clipboard() {
    let mut redactor = Redactor::new(Options {
        key: b"clipboard".to_vec(),
        places: None,
    });
    let masked = copied(
        events(|event| redactor.event(event)),
        &["1", "2", "3", "4", "5", "6", "7"],
    );
    assert_eq!(survivors(&masked), 0);
    // What was masked is copied as its placeholder, so the texts are those that held it.
    let placeholders = masked.iter().filter(|text| text.contains("<secret:"));
    assert!(placeholders.count() > 500, "{}", masked.len());
    // The test can fail: unmasked, the same keys copy them.
    let bare = copied(events(|_| {}), &["7"]);
    assert!(survivors(&bare) > 190, "{}", survivors(&bare));
}

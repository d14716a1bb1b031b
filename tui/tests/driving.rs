//! What keys do, on recorded traces: moving, evidence, search, filter, copying, leaving.

#![allow(clippy::unwrap_used, reason = "tests may fail by panicking")]

mod common;

use common::{finish, frame, open, press, read, show, text, type_in};
use crossterm::event::{KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use jittrace_model::report::Exit;
use jittrace_tui::{
    App, Mode, Outcome, Settings, Setup,
    app::{Effect, Focus, Msg},
    theme::{Theme, Tone},
    view::{self, View},
    worker::{Input, Published},
};

/// The text of the selected row.
fn selected(app: &App) -> String {
    view::row_text(app, app.view, app.list().selected)
}

#[test]
fn the_older_toolkit_stands_out_and_its_evidence_is_one_key_away() {
    let mut app = open("sm120", 120, 40);
    let screen = text(&app);
    assert!(screen.contains("12.4B≠"), "{screen}");
    // The stranger has another colour than the toolkit that most use.
    let buffer = frame(&app);
    let colour_of = |what: &str| {
        (0..buffer.area.height)
            .flat_map(|row| (0..buffer.area.width).map(move |column| (column, row)))
            .find(|&(column, row)| {
                what.chars().zip(column..).all(|(c, at)| {
                    at < buffer.area.width && buffer[(at, row)].symbol() == c.to_string()
                })
            })
            .map(|at| buffer[at].fg)
    };
    assert_eq!(colour_of("12.4B"), app.theme.style(Tone::Toolkit(1)).fg);
    assert_eq!(colour_of("13.0A"), app.theme.style(Tone::Toolkit(0)).fg);
    press(&mut app, "Enter");
    let screen = text(&app);
    for told in [
        "nvcc 12.4.131",
        "it is the first on PATH",
        "get_cuda_version",
        "in process",
        "differs from",
    ] {
        assert!(screen.contains(told), "{told} in\n{screen}");
    }
}

#[test]
fn every_link_of_the_evidence_leads_somewhere() {
    for trace in common::TRACES {
        for place in ["1", "3", "4", "5", "6", "7 g"] {
            let mut app = open(trace, 120, 40);
            press(&mut app, place);
            press(&mut app, "Enter");
            let links = app.why.as_ref().map_or(0, |w| w.links.len());
            for at in 0..links.min(16) {
                press(&mut app, "1");
                press(&mut app, place);
                press(&mut app, "Enter");
                for _ in 0..at {
                    press(&mut app, "Down");
                }
                let Some(why) = app.why.clone() else { continue };
                let Some(jittrace_tui::why::Target::Go(subject)) =
                    why.links.get(why.selected).map(|l| l.target.clone())
                else {
                    continue;
                };
                press(&mut app, "Enter");
                assert_eq!(app.view, subject.view(), "{trace} {place} {at}");
                let shown = app.why.as_ref().map(|w| w.subject.clone());
                assert_eq!(shown.as_ref(), Some(&subject), "{trace} {place} {at}");
                assert_ne!(
                    app.why
                        .as_ref()
                        .and_then(|w| w.links.first())
                        .map(|l| l.text.as_str()),
                    Some("This is not part of the trace any more.")
                );
                // And back again.
                press(&mut app, "H");
                assert_eq!(
                    app.why.clone().map(|w| w.subject),
                    Some(why.subject),
                    "{trace} {place} {at}"
                );
                press(&mut app, "Esc");
            }
        }
    }
}

#[test]
fn a_filter_shrinks_the_list_and_its_error_points_at_the_column() {
    let mut app = open("sm120", 100, 30);
    press(&mut app, "7");
    let all = app.events.rows.len();
    press(&mut app, "f");
    type_in(&mut app, "kind:exec nvcc");
    press(&mut app, "Enter");
    finish(&mut app);
    let some = app.events.rows.len();
    assert!(some > 0 && some < all, "{some} of {all}");
    for at in 0..some {
        assert!(view::row_text(&app, View::Events, at).contains("nvcc"));
    }
    press(&mut app, "f");
    type_in(&mut app, " (");
    press(&mut app, "Enter");
    let screen = text(&app);
    assert!(
        screen.contains("▲ this parenthesis is not closed"),
        "{screen}"
    );
    let caret = screen
        .lines()
        .find_map(|l| l.find('▲').map(|at| l[..at].chars().count()));
    let typed = screen
        .lines()
        .last()
        .and_then(|l| l.find('(').map(|at| l[..at].chars().count()));
    assert_eq!(caret, typed);
    // Leaving the line keeps the filter that was there; x shows everything.
    press(&mut app, "Esc");
    assert_eq!(app.events.rows.len(), some);
    press(&mut app, "x");
    assert_eq!(app.events.rows.len(), all);
}

#[test]
fn a_paste_with_newlines_starts_nothing() {
    let mut app = open("sm120", 100, 30);
    press(&mut app, "7 f");
    app.update(Msg::Paste("kind:exec\nq\nnvcc\n".to_owned()));
    let screen = text(&app);
    assert!(screen.contains("filter kind:exec q nvcc"), "{screen}");
    // And without a line to type in, a paste presses no keys.
    press(&mut app, "Esc");
    let effects = app.update(Msg::Paste("q".to_owned()));
    assert_eq!(effects, []);
}

#[test]
fn a_search_goes_on_and_back_and_is_highlighted() {
    let mut app = open("healthy", 120, 40);
    press(&mut app, "4 /");
    type_in(&mut app, "cicc");
    press(&mut app, "Enter");
    let first = app.list().selected;
    assert!(selected(&app).contains("cicc"), "{}", selected(&app));
    press(&mut app, "n");
    let second = app.list().selected;
    assert_ne!(first, second);
    press(&mut app, "N");
    assert_eq!(app.list().selected, first);
    let buffer = frame(&app);
    let found = app.theme.found();
    assert!(buffer.content.iter().any(|cell| Some(cell.bg) == found.bg));
}

#[test]
fn following_lets_go_when_one_goes_up() {
    let mut app = open("healthy", 100, 30);
    press(&mut app, "7");
    let last = app.events.rows.len() - 1;
    assert!(app.events.follow);
    assert_eq!(app.list().selected, last);
    press(&mut app, "Up");
    assert!(!app.events.follow);
    press(&mut app, "G");
    assert!(app.events.follow);
}

#[test]
fn what_is_copied_is_said_and_is_right() {
    let mut app = open("sm120", 120, 40);
    let effects = press(&mut app, "y");
    let [Effect::Copy(path)] = effects.as_slice() else {
        panic!("{effects:?}")
    };
    assert!(path.ends_with("/cuda-12.4/bin/nvcc"), "{path}");
    assert!(text(&app).contains("copied"));
    let mut app = open("healthy", 120, 40);
    press(&mut app, "4 Down");
    let effects = press(&mut app, "Y");
    let [Effect::Copy(command)] = effects.as_slice() else {
        panic!("{effects:?}")
    };
    assert!(command.starts_with("cd -- "), "{command}");
    assert!(!command.contains("LD_PRELOAD"), "{command}");
}

fn launched() -> App {
    let (header, events) = read("sm120");
    let setup = Setup {
        mode: Mode::Launch,
        trace: "x.jtrace".into(),
        ..Setup::default()
    };
    let mut app = App::new(header.clone(), setup);
    app.update(Msg::Resize(100, 30));
    common::feed(&mut app, header, events);
    app
}

#[test]
fn leaving_a_running_program_asks() {
    let mut app = launched();
    assert_eq!(press(&mut app, "q"), []);
    assert!(text(&app).contains("still running"));
    assert_eq!(press(&mut app, "Esc"), []);
    assert_eq!(press(&mut app, "q l"), [Effect::End(Outcome::Leave)]);
    assert_eq!(press(&mut app, "q s"), [Effect::End(Outcome::Stop)]);
    app.update(Msg::Published(Published::Other(Input::Ended(Exit {
        code: Some(0),
        signal: None,
    }))));
    assert_eq!(press(&mut app, "q"), [Effect::End(Outcome::Quit)]);
}

#[test]
fn keys_reach_the_program_only_while_it_has_them() {
    let mut app = launched();
    app.update(Msg::Published(Published::Other(Input::Output(
        b"\x1b[1;32mready\x1b[0m> ".to_vec(),
    ))));
    press(&mut app, "8");
    assert!(text(&app).contains("ready>"));
    press(&mut app, "i");
    assert_eq!(app.focus, Focus::Program);
    assert_eq!(press(&mut app, "q"), [Effect::Send(b"q".to_vec())]);
    assert_eq!(press(&mut app, "Ctrl-c"), [Effect::Send(vec![3])]);
    let effects = app.update(Msg::Paste("a\nb".into()));
    assert_eq!(effects, [Effect::Send(b"a\rb".to_vec())]);
    press(&mut app, "Ctrl-5");
    assert_eq!(app.focus, Focus::List);
    // A smaller window is a smaller terminal for the program too.
    let effects = app.update(Msg::Resize(60, 20));
    assert!(
        matches!(effects.as_slice(), [Effect::ResizeTerminal(60, _)]),
        "{effects:?}"
    );
}

#[test]
fn nothing_but_ascii_is_drawn_where_asked() {
    for trace in common::TRACES {
        let (header, events) = read(trace);
        let theme = Theme {
            unicode: false,
            ..Theme::default()
        };
        let mut app = show(
            header,
            events,
            Setup {
                theme,
                ..Setup::default()
            },
        );
        app.update(Msg::Resize(120, 40));
        for keys in [
            "1", "Enter", "2", "3", "4", "t", "5", "6", "Enter", "7", "Enter", "?", "Esc", ":",
            "Esc", "e", "Esc", "f",
        ] {
            press(&mut app, keys);
            let screen = text(&app);
            assert!(
                screen.is_ascii(),
                "{trace} {keys}\n{}",
                screen.chars().filter(|c| !c.is_ascii()).collect::<String>()
            );
        }
    }
}

#[test]
fn help_lists_the_keys_of_the_view_in_front_and_can_be_searched() {
    let mut app = open("sm120", 100, 40);
    press(&mut app, "4 ?");
    let screen = text(&app);
    assert!(screen.contains("bars over time"), "{screen}");
    assert!(
        !screen.contains("show only what passes a filter"),
        "{screen}"
    );
    press(&mut app, "/");
    type_in(&mut app, "report");
    let screen = text(&app);
    assert!(screen.contains("write the report"), "{screen}");
    assert!(!screen.contains("bars over time"), "{screen}");
}

#[test]
fn a_click_on_the_bottom_line_does_what_its_key_does() {
    let mut app = open("sm120", 120, 40);
    let screen = text(&app);
    let line = screen.lines().last().unwrap_or_default();
    let column = line.find("help").map(|at| line[..at].chars().count());
    let click = |column: usize| MouseEvent {
        kind: MouseEventKind::Down(MouseButton::Left),
        column: u16::try_from(column).unwrap(),
        row: 39,
        modifiers: KeyModifiers::NONE,
    };
    app.update(Msg::Mouse(click(column.unwrap())));
    assert!(text(&app).contains("searches here"), "{}", text(&app));
}

#[test]
fn failures_are_one_key_apart() {
    let mut app = open("sm120", 120, 40);
    press(&mut app, "7 g }");
    let first = app.list().selected;
    assert!(first > 0);
    press(&mut app, "}");
    assert!(app.list().selected > first);
    press(&mut app, "{");
    assert_eq!(app.list().selected, first);
    press(&mut app, "g {");
    assert!(text(&app).contains("no failure further on"));
}

#[test]
fn the_variables_that_a_process_has_otherwise_stand_first() {
    let start = |id: u64, ppid: u32, env: &str| {
        let line = format!(
            r#"{{"id":{id},"t":{id},"pid":{},"tid":{id},"source":"preload","kind":"process-start","ppid":{ppid},"exe":"/bin/p{id}","argv":["p"],"cwd":"/","env":{env}}}"#,
            id + 100
        );
        jittrace_model::Event::from_line(&line).unwrap()
    };
    let events = vec![
        start(
            1,
            1,
            r#"{"CUDA_HOME":"/a","PATH":"/bin","LD_LIBRARY_PATH":"/l"}"#,
        ),
        start(
            2,
            101,
            r#"{"CUDA_HOME":"/b","PATH":"/bin","CUDA_PATH":"/c"}"#,
        ),
    ];
    let mut app = show(Default::default(), events, Setup::default());
    app.update(Msg::Resize(120, 40));
    press(&mut app, "3 Down Enter");
    let screen = text(&app);
    let mut from = 0;
    for told in [
        "environment that its parent had otherwise",
        "CUDA_HOME /b, was /a",
        "CUDA_PATH /c, was not set",
        "LD_LIBRARY_PATH not set any more, was /l",
        "captured environment",
        "PATH /bin",
    ] {
        let at = screen[from..].find(told);
        assert!(at.is_some(), "{told} in\n{screen}");
        from += at.unwrap_or(0);
    }
}

#[test]
fn the_pane_of_evidence_takes_as_much_as_one_gives_it() {
    let mut app = open("sm120", 120, 40);
    press(&mut app, "Enter");
    let width = |app: &App| app.areas().why.map_or(0, |area| area.width);
    let before = width(&app);
    press(&mut app, "<");
    assert!(width(&app) > before);
    press(&mut app, "> >");
    assert!(width(&app) < before);
}

#[test]
fn a_refused_source_is_red_and_says_why() {
    let app = open("attach", 120, 40);
    let screen = text(&app);
    let line = screen.lines().nth(1).unwrap_or_default();
    assert!(line.contains("ebpf refused: this runs as user"), "{screen}");
    let red = app.theme.style(Tone::Error).fg;
    assert_eq!(red, Some(frame(&app)[(2, 1)].fg));
}

/// A recorded trace, for whom a file of settings says something.
fn with_settings(trace: &str, file: &str, size: (u16, u16)) -> App {
    let (header, events) = read(trace);
    let setup = Setup {
        settings: Settings::parse(file).unwrap(),
        ..Setup::default()
    };
    let mut app = show(header, events, setup);
    app.update(Msg::Resize(size.0, size.1));
    app
}

#[test]
fn keys_of_a_file_are_those_that_count_and_that_are_told() {
    let file = "[keys.everywhere]\nhelp = \"F2\"\npalette = [\"Ctrl-p\", \";\"]\nzoom = []\n\
                [keys.resolution]\nopen = \"o\"\n[keys.events]\nclear-filter = \"c\"\n";
    let mut app = with_settings("sm120", file, (120, 40));
    let last = |app: &App| text(app).lines().last().unwrap_or_default().to_owned();
    assert!(last(&app).contains(" o why "), "{}", last(&app));
    assert!(last(&app).contains("F2 help"), "{}", last(&app));
    // The chain below the table says how to see more of it.
    press(&mut app, "Enter");
    assert!(app.why.is_none());
    assert!(
        last(&app).contains("Enter has no meaning here; F2 lists the keys"),
        "{}",
        last(&app)
    );
    press(&mut app, "o");
    assert!(app.why.is_some());
    press(&mut app, "Esc z");
    assert!(!app.zoomed);
    press(&mut app, "F2");
    let screen = text(&app);
    assert!(screen.contains("  o      "), "{screen}");
    press(&mut app, "/");
    type_in(&mut app, "ctrl");
    let screen = text(&app);
    assert!(screen.contains("Ctrl-p ;"), "{screen}");
    press(&mut app, "Esc /");
    type_in(&mut app, "fill the screen");
    let screen = text(&app);
    assert!(screen.contains("no key does that"), "{screen}");
    press(&mut app, "Esc Esc ;");
    let screen = text(&app);
    assert!(screen.contains("What is to be done?"), "{screen}");
    // An action without a key is still there, by its name.
    type_in(&mut app, "zoom");
    assert!(text(&app).contains("fill the screen"), "{}", text(&app));
    press(&mut app, "Enter");
    assert!(app.zoomed);
    press(&mut app, "7 f");
    type_in(&mut app, "nothing-is-called-so");
    press(&mut app, "Enter");
    assert!(
        text(&app).contains("c shows everything again"),
        "{}",
        text(&app)
    );
    press(&mut app, "c");
    assert!(app.events.filter.is_empty());
}

#[test]
fn a_file_that_is_not_heeded_says_so_first() {
    let (header, events) = read("sm120");
    let settings = Settings {
        problem: Some(
            "/home/user/.config/jittrace/view.toml, line 3: no action is called hlep.".into(),
        ),
        ..Settings::default()
    };
    let mut app = show(
        header,
        events,
        Setup {
            settings,
            ..Setup::default()
        },
    );
    app.update(Msg::Resize(60, 20));
    let screen = text(&app);
    assert!(screen.contains("is called hlep"), "{screen}");
    assert_eq!(press(&mut app, "q"), []);
    assert!(!text(&app).contains("hlep"), "{}", text(&app));
    assert_eq!(press(&mut app, "q"), [Effect::End(Outcome::Quit)]);
}

#[test]
fn keys_are_taken_back_from_the_program_by_the_key_of_the_file() {
    let (header, _) = read("sm120");
    let setup = Setup {
        mode: Mode::Launch,
        settings: Settings::parse("[keys.program]\nrelease-keys = \"F12\"\n").unwrap(),
        ..Setup::default()
    };
    let mut app = App::new(header, setup);
    app.update(Msg::Resize(80, 24));
    press(&mut app, "8 i");
    assert!(text(&app).contains("F12 takes them back"), "{}", text(&app));
    assert_eq!(press(&mut app, "Ctrl-]"), [Effect::Send(vec![0x1d])]);
    app.update(Msg::Key(common::key("F12")));
    assert_eq!(app.focus, Focus::List);
}

#[test]
fn the_evidence_stands_where_one_puts_it() {
    let (wide, narrow) = ((120, 40), (80, 24));
    for (layout, size, beside, below) in [
        ("auto", wide, true, false),
        ("auto", narrow, false, true),
        ("beside", narrow, true, false),
        ("below", wide, false, true),
        ("whole", wide, false, false),
    ] {
        let file = format!("layout = \"{layout}\"\nshare = 40\n");
        let mut app = with_settings("sm120", &file, size);
        assert_eq!(app.areas().why, None);
        press(&mut app, "Enter");
        let areas = app.areas();
        let why = areas.why.unwrap();
        assert_eq!(areas.divider.is_some(), beside, "{layout} {size:?}");
        assert_eq!(
            areas.rows.height > 0 && areas.rows.bottom() <= why.y,
            below,
            "{layout} {size:?}"
        );
        assert_eq!(why.width < size.0, beside);
        // From the whole screen, the other pane is one key away and back.
        if layout == "whole" {
            assert_eq!(areas.rows.height, 0);
            press(&mut app, "Tab");
            assert_eq!(app.areas().why, None);
            assert_eq!(app.areas().rows.width, size.0);
            press(&mut app, "Tab");
            assert_eq!(app.areas(), areas);
            press(&mut app, "Esc");
            assert_eq!(app.areas().rows.width, size.0);
        }
    }
}

#[test]
fn one_key_goes_through_the_layouts_and_the_choice_stays() {
    let mut app = open("sm120", 120, 40);
    press(&mut app, "Enter");
    let mut seen = Vec::new();
    for _ in 0..4 {
        press(&mut app, "w");
        seen.push(app.layout.name());
        let told = format!("evidence {}", app.layout.about());
        assert!(text(&app).contains(&told), "{}", text(&app));
    }
    assert_eq!(seen, ["beside", "below", "whole", "auto"]);
    press(&mut app, "w w");
    let areas = app.areas();
    assert!(areas.divider.is_none());
    press(&mut app, "Esc 2 1 Enter");
    assert_eq!(app.areas(), areas);
}

#[test]
fn nothing_of_the_help_is_cut_and_its_end_can_be_reached() {
    for (columns, rows) in [(80, 24), (60, 16)] {
        for view in View::ALL {
            let mut app = open("sm120", columns, rows);
            press(&mut app, &format!("{} ?", view.index() + 1));
            let mut told = text(&app);
            for _ in 0..20 {
                press(&mut app, "PageDown");
                told.push_str(&text(&app));
            }
            for line in told.lines().filter(|line| line.contains('│')) {
                // The fields of the filter go on in the book.
                assert!(!line.replace("env.NAME …", "").contains('…'), "{line}");
            }
            let end = text(&app);
            assert!(end.contains("--defaults` prints"), "{view:?}\n{end}");
            // The way up begins at once.
            press(&mut app, "Up");
            assert_ne!(text(&app), end);
        }
    }
}

#[test]
fn where_there_is_nothing_no_key_for_it_is_told() {
    let mut app = open("sm120", 120, 40);
    press(&mut app, "4");
    let screen = text(&app);
    assert!(screen.contains("No compiler"), "{screen}");
    let last = screen.lines().last().unwrap_or_default();
    assert!(
        !last.contains("timeline") && last.contains("help"),
        "{last}"
    );
    // A filter that lets nothing pass can be taken away.
    press(&mut app, "7 f");
    type_in(&mut app, "nothing-is-called-so");
    press(&mut app, "Enter");
    let screen = text(&app);
    let last = screen.lines().last().unwrap_or_default();
    assert!(last.contains("x clear"), "{last}");
}

#[test]
fn every_tab_has_its_place_in_a_narrow_window() {
    for columns in [60, 79, 80, 99, 100] {
        let app = open("sm120", columns, 24);
        let screen = text(&app);
        let tabs = screen.lines().nth(1).unwrap_or_default();
        assert!(tabs.contains('1') && tabs.contains('8'), "{columns} {tabs}");
    }
}

#[test]
fn from_anything_its_process_and_the_parents_are_one_key_away() {
    let mut app = open("healthy", 120, 40);
    for place in ["7 G", "4 G", "6 G"] {
        press(&mut app, &format!("{place} u"));
        assert_eq!(app.view, View::Processes, "{place}");
        // Up to the process that began it all, and no further.
        let mut ancestors = vec![app.list().selected];
        loop {
            press(&mut app, "u");
            let at = app.list().selected;
            if ancestors.last() == Some(&at) {
                break;
            }
            ancestors.push(at);
        }
        assert!(ancestors.is_sorted_by(|child, parent| child > parent));
        assert_eq!(ancestors.last(), Some(&0), "{place}");
        assert!(text(&app).contains("no process of this trace"));
        // And back where it began.
        for _ in &ancestors {
            press(&mut app, "H");
        }
        assert_ne!(app.view, View::Processes, "{place}");
    }
}

#[test]
fn moments_are_seconds_or_times_of_day() {
    let (mut header, events) = read("sm120");
    // 2024-02-29 23:59:58 UTC
    header.started_unix_ns = 1_709_251_198_000_000_000;
    let setup = Setup {
        ahead_of_utc: 7200,
        ..Setup::default()
    };
    let mut app = show(header.clone(), events.clone(), setup.clone());
    app.update(Msg::Resize(120, 40));
    press(&mut app, "7 g");
    let relative = text(&app);
    press(&mut app, "c");
    let clock = text(&app);
    assert!(
        relative.contains(" time ") && !relative.contains("01:59:58."),
        "{relative}"
    );
    assert!(
        clock.contains("+02:00") && clock.contains(" 01:59:58."),
        "{clock}"
    );
    press(&mut app, "3");
    assert!(text(&app).contains(" 01:59:58."), "{}", text(&app));
    press(&mut app, "7 Enter");
    assert!(text(&app).contains("(2024-03-01 01:59:58."));
    press(&mut app, "Esc c g");
    assert_eq!(text(&app).lines().nth(3), relative.lines().nth(3));
    // As a file of settings says it; a trace that does not tell when it began has no times of day.
    let settings = Settings::parse("times = \"clock\"").unwrap();
    let setup = Setup { settings, ..setup };
    for (began, told) in [(header.started_unix_ns, "01:59:58."), (0, " 0.0")] {
        header.started_unix_ns = began;
        let mut app = show(header.clone(), events.clone(), setup.clone());
        app.update(Msg::Resize(120, 40));
        press(&mut app, "7 g");
        assert!(text(&app).contains(told), "{}", text(&app));
    }
}

#[test]
fn the_programs_terminal_stands_beside_the_view_where_there_is_room_or_where_one_wants_it() {
    let mut app = launched();
    app.update(Msg::Published(Published::Other(Input::Output(
        b"serving on port 30000".to_vec(),
    ))));
    let both = |app: &App| {
        let screen = text(app);
        screen.contains("component") && screen.contains("serving on port 30000")
    };
    assert!(!both(&app));
    // Its terminal gets the size of its pane, and the whole of the body back.
    let effects = press(&mut app, "o");
    let [Effect::ResizeTerminal(columns, _)] = effects.as_slice() else {
        panic!("{effects:?}")
    };
    assert!(both(&app) && (40..60).contains(columns), "{}", text(&app));
    press(&mut app, "i");
    assert_eq!(app.focus, Focus::Program);
    assert_eq!(press(&mut app, "q"), [Effect::Send(b"q".to_vec())]);
    assert!(both(&app), "{}", text(&app));
    press(&mut app, "Ctrl-5");
    let effects = press(&mut app, "o");
    assert!(
        matches!(effects.as_slice(), [Effect::ResizeTerminal(100, _)]),
        "{effects:?}"
    );
    assert!(!both(&app));
    // Wide enough, but asked for alone.
    app.update(Msg::Resize(200, 60));
    assert!(!both(&app));
    let mut app = launched();
    app.update(Msg::Published(Published::Other(Input::Output(
        b"serving on port 30000".to_vec(),
    ))));
    app.update(Msg::Resize(200, 60));
    assert!(both(&app), "{}", text(&app));
    // The evidence has its place beside both.
    press(&mut app, "Enter");
    assert!(both(&app) && text(&app).contains("why "), "{}", text(&app));
}

#[test]
fn a_sentence_that_is_too_long_for_the_bottom_line_is_shown_whole() {
    let mut app = open("sm120", 60, 20);
    let told = "sm120.jtrace: the last line was cut off after 382 bytes; it is still being written, or its writer was killed: all before was read";
    app.update(Msg::Published(Published::Other(Input::Notice(told.into()))));
    let screen = text(&app);
    let last: Vec<&str> = screen.lines().skip(17).map(str::trim).collect();
    assert_eq!(last.join(" "), told, "{screen}");
    press(&mut app, "Esc");
    assert!(!text(&app).contains("cut off"));
}

#[test]
fn what_a_command_without_toolkits_printed_is_told_of() {
    let mut app = App::new(
        read("sm120").0,
        Setup {
            mode: Mode::Launch,
            ..Setup::default()
        },
    );
    app.update(Msg::Resize(80, 24));
    app.update(Msg::Published(Published::Other(Input::Output(
        b"no such file\r\n".to_vec(),
    ))));
    let hint = "What the command printed: 8; o puts it beside.";
    assert!(text(&app).contains(hint), "{}", text(&app));
    press(&mut app, "o");
    let screen = text(&app);
    assert!(
        screen.contains("no such file") && !screen.contains(hint),
        "{screen}"
    );
}

#[test]
fn an_attach_says_whom_it_looks_at_before_anything_is_known() {
    let (header, events) = read("attach");
    let pid = header.attached.unwrap();
    let setup = Setup {
        mode: Mode::Attach,
        ..Setup::default()
    };
    let mut app = App::new(header.clone(), setup);
    app.update(Msg::Resize(80, 24));
    for view in ["1", "2", "3", "7"] {
        press(&mut app, view);
        let told = format!("Looking at process {pid}.");
        assert!(text(&app).contains(&told), "{}", text(&app));
    }
    common::feed(&mut app, header, events);
    press(&mut app, "1");
    assert!(!text(&app).contains("Looking at"), "{}", text(&app));
}

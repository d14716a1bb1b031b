//! What every key does: one table, from which keys are looked up, help is drawn and the palette is filled.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::view::View;

/// Something a person can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// Move by rows.
    Up,
    /// Move by rows.
    Down,
    /// Move by columns, fold, or scroll sideways.
    Left,
    /// Move by columns, unfold, or scroll sideways.
    Right,
    /// Move by half a page.
    HalfUp,
    /// Move by half a page.
    HalfDown,
    /// Move by a page.
    PageUp,
    /// Move by a page.
    PageDown,
    /// To the first row.
    First,
    /// To the last row.
    Last,
    /// Open the evidence of what is selected, or follow a link.
    Open,
    /// Close what is in front.
    Close,
    /// Move the focus to the other pane.
    Switch,
    /// Fill the screen with the pane in focus.
    Zoom,
    /// More room for the evidence.
    Widen,
    /// Less room for the evidence.
    Narrow,
    /// To the next event that tells of a failure.
    NextFailure,
    /// To the one before.
    PreviousFailure,
    /// Fold or unfold a row.
    Fold,
    /// Fold or unfold everything.
    FoldAll,
    /// Bring a view to the front.
    Show(View),
    /// The view to the right.
    NextView,
    /// The view to the left.
    PreviousView,
    /// The place before.
    Back,
    /// The place after.
    Forward,
    /// Search in the view in front.
    Search,
    /// The next place that the search finds.
    Next,
    /// The one before.
    Previous,
    /// Narrow the list of events.
    Filter,
    /// Show everything again.
    ClearFilter,
    /// Stay at the end as events come.
    Follow,
    /// Show failed look-ups one by one, or folded.
    Probes,
    /// Sort by the next column.
    Sort,
    /// Choose a process, or all of them.
    Process,
    /// Copy what is selected: a path, or the cell's value.
    Copy,
    /// Copy a command line that runs the same again.
    CopyCommand,
    /// Copy as Markdown.
    CopyMarkdown,
    /// Write the report or the bundle.
    Export,
    /// Switch between bars and list.
    Timeline,
    /// Give keys to the launched program.
    Type,
    /// Another look.
    Theme,
    /// All actions by name.
    Palette,
    /// The keys of the view in front.
    Help,
    /// Leave.
    Quit,
}

/// Where a key has its meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Everywhere.
    Everywhere,
    /// Moving within any list or pane.
    Moving,
    /// One view.
    In(View),
    /// The pane of evidence.
    Why,
}

/// One line of the table.
#[derive(Debug, Clone, Copy)]
pub struct Binding {
    /// Where.
    pub scope: Scope,
    /// Keys, separated by spaces, as they are shown: `Enter`, `Ctrl-d`, `j`.
    pub keys: &'static str,
    /// What they do.
    pub action: Action,
    /// The same in words.
    pub about: &'static str,
    /// A short word for the bottom line; empty when it is not shown there.
    pub hint: &'static str,
}

const fn bind(
    scope: Scope,
    keys: &'static str,
    action: Action,
    hint: &'static str,
    about: &'static str,
) -> Binding {
    Binding {
        scope,
        keys,
        action,
        about,
        hint,
    }
}

use Action as A;
use Scope::{Everywhere, In, Moving, Why};

/// Every key.
pub const BINDINGS: &[Binding] = &[
    bind(
        In(View::Resolution),
        "Enter",
        A::Open,
        "why",
        "why this cell has this value",
    ),
    bind(
        In(View::Resolution),
        "p",
        A::Process,
        "process",
        "choose one process, or all merged",
    ),
    bind(
        In(View::Resolution),
        "s",
        A::Sort,
        "sort",
        "sort: as resolved, by name, disagreeing first",
    ),
    bind(
        In(View::Resolution),
        "y",
        A::Copy,
        "copy",
        "copy the path in this cell",
    ),
    bind(
        In(View::Findings),
        "Enter",
        A::Open,
        "why",
        "the evidence behind a finding",
    ),
    bind(
        In(View::Findings),
        "Space",
        A::Fold,
        "fold",
        "show or hide what follows from it",
    ),
    bind(
        In(View::Findings),
        "y",
        A::CopyMarkdown,
        "copy",
        "copy the finding as Markdown",
    ),
    bind(
        In(View::Processes),
        "Enter",
        A::Open,
        "why",
        "who started it, with what, and how it ended",
    ),
    bind(
        In(View::Processes),
        "Space",
        A::Fold,
        "fold",
        "show or hide its children",
    ),
    bind(
        In(View::Processes),
        "s",
        A::Sort,
        "sort",
        "sort: as a tree, by start, by duration",
    ),
    bind(
        In(View::Processes),
        "y",
        A::Copy,
        "copy",
        "copy the path of the executable",
    ),
    bind(
        In(View::Processes),
        "Y",
        A::CopyCommand,
        "command",
        "copy a command line that runs it again",
    ),
    bind(
        In(View::Builds),
        "Enter",
        A::Open,
        "why",
        "who started it, with what, what it said",
    ),
    bind(
        In(View::Builds),
        "t",
        A::Timeline,
        "timeline",
        "bars over time, or columns",
    ),
    bind(
        In(View::Builds),
        "Space",
        A::Fold,
        "fold",
        "show or hide what it ran",
    ),
    bind(
        In(View::Builds),
        "s",
        A::Sort,
        "sort",
        "sort: as a tree, slowest first, by tool",
    ),
    bind(
        In(View::Builds),
        "y",
        A::Copy,
        "copy",
        "copy the path of its output",
    ),
    bind(
        In(View::Builds),
        "Y",
        A::CopyCommand,
        "command",
        "copy a command line that runs it again",
    ),
    bind(
        In(View::Caches),
        "Enter",
        A::Open,
        "why",
        "what the artefact was built with, and who used it",
    ),
    bind(
        In(View::Caches),
        "Space",
        A::Fold,
        "fold",
        "show or hide the artefacts of a cache",
    ),
    bind(In(View::Caches), "y", A::Copy, "copy", "copy the path"),
    bind(
        In(View::Libraries),
        "Enter",
        A::Open,
        "why",
        "the whole search, with each place and what became of it",
    ),
    bind(
        In(View::Libraries),
        "p",
        A::Process,
        "process",
        "choose one process, or all",
    ),
    bind(
        In(View::Libraries),
        "s",
        A::Sort,
        "sort",
        "sort: by time, by part, by path",
    ),
    bind(In(View::Libraries), "y", A::Copy, "copy", "copy the path"),
    bind(
        In(View::Events),
        "Enter",
        A::Open,
        "details",
        "all fields, and what led to it",
    ),
    bind(
        In(View::Events),
        "f &",
        A::Filter,
        "filter",
        "show only what passes a filter",
    ),
    bind(
        In(View::Events),
        "}",
        A::NextFailure,
        "",
        "to the next event that tells of a failure",
    ),
    bind(
        In(View::Events),
        "{",
        A::PreviousFailure,
        "",
        "to the failure before",
    ),
    bind(
        In(View::Events),
        "x",
        A::ClearFilter,
        "clear",
        "show everything again",
    ),
    bind(
        In(View::Events),
        "F",
        A::Follow,
        "follow",
        "stay at the end as events come",
    ),
    bind(
        In(View::Events),
        "v",
        A::Probes,
        "probes",
        "failed look-ups one by one, or folded",
    ),
    bind(
        In(View::Events),
        "y",
        A::Copy,
        "copy",
        "copy the event as its line of the trace",
    ),
    bind(
        In(View::Events),
        "Y",
        A::CopyCommand,
        "command",
        "copy a command line that runs an exec again",
    ),
    bind(
        Everywhere,
        "f &",
        A::Filter,
        "",
        "show only the events that pass a filter",
    ),
    bind(
        In(View::Output),
        "Enter i",
        A::Type,
        "type into it",
        "give keys to the program; Ctrl-] takes them back",
    ),
    bind(
        Why,
        "Enter",
        A::Open,
        "go there",
        "go to the event or row that a line names",
    ),
    bind(Why, "y", A::Copy, "copy", "copy the line"),
    bind(
        Why,
        "Y",
        A::CopyCommand,
        "command",
        "copy a command line that runs it again",
    ),
    bind(
        Why,
        "M",
        A::CopyMarkdown,
        "",
        "copy everything in the pane as Markdown",
    ),
    bind(Moving, "Up k", A::Up, "", "one row up"),
    bind(Moving, "Down j", A::Down, "", "one row down"),
    bind(Moving, "Left h", A::Left, "", "one column left; fold"),
    bind(Moving, "Right l", A::Right, "", "one column right; unfold"),
    bind(Moving, "PageUp Ctrl-b", A::PageUp, "", "one page up"),
    bind(Moving, "PageDown Ctrl-f", A::PageDown, "", "one page down"),
    bind(Moving, "Ctrl-u", A::HalfUp, "", "half a page up"),
    bind(Moving, "Ctrl-d", A::HalfDown, "", "half a page down"),
    bind(Moving, "Home g", A::First, "", "to the first row"),
    bind(Moving, "End G", A::Last, "", "to the last row"),
    bind(Moving, "Z", A::FoldAll, "", "fold or unfold everything"),
    bind(
        Everywhere,
        "/",
        A::Search,
        "search",
        "search in the view in front",
    ),
    bind(Everywhere, "n", A::Next, "", "the next place found"),
    bind(Everywhere, "N", A::Previous, "", "the place found before"),
    bind(
        Everywhere,
        "Tab",
        A::Switch,
        "",
        "to the other pane; to the next view when there is one pane",
    ),
    bind(
        Everywhere,
        "z",
        A::Zoom,
        "",
        "fill the screen with the pane in focus",
    ),
    bind(Everywhere, "<", A::Widen, "", "more room for the evidence"),
    bind(Everywhere, ">", A::Narrow, "", "less room for the evidence"),
    bind(
        Everywhere,
        "Esc",
        A::Close,
        "",
        "close the pane in front, end the search",
    ),
    bind(
        Everywhere,
        "1",
        A::Show(View::Resolution),
        "",
        "Resolution: who got which toolkit",
    ),
    bind(
        Everywhere,
        "2",
        A::Show(View::Findings),
        "",
        "Findings: what is wrong, and what puts it right",
    ),
    bind(Everywhere, "3", A::Show(View::Processes), "", "Processes"),
    bind(
        Everywhere,
        "4",
        A::Show(View::Builds),
        "",
        "Builds: compilations as a tree and over time",
    ),
    bind(Everywhere, "5", A::Show(View::Caches), "", "Caches"),
    bind(
        Everywhere,
        "6",
        A::Show(View::Libraries),
        "",
        "Libraries: mapped files and why each won",
    ),
    bind(
        Everywhere,
        "7",
        A::Show(View::Events),
        "",
        "Events: everything, raw",
    ),
    bind(
        Everywhere,
        "8",
        A::Show(View::Output),
        "",
        "Output of the launched program",
    ),
    bind(Everywhere, "]", A::NextView, "", "the view to the right"),
    bind(
        Everywhere,
        "[ BackTab",
        A::PreviousView,
        "",
        "the view to the left",
    ),
    bind(
        Everywhere,
        "Backspace Alt-Left H",
        A::Back,
        "",
        "back to the place before",
    ),
    bind(Everywhere, "Alt-Right L", A::Forward, "", "forward again"),
    bind(
        Everywhere,
        "e",
        A::Export,
        "write",
        "write the report, or a bundle for a bug report",
    ),
    bind(
        Everywhere,
        "T",
        A::Theme,
        "",
        "another look: dark, light, 16 colours, none",
    ),
    bind(Everywhere, ":", A::Palette, "", "all actions by name"),
    bind(
        Everywhere,
        "? F1",
        A::Help,
        "help",
        "the keys of the view in front",
    ),
    bind(Everywhere, "q Ctrl-c", A::Quit, "quit", "leave"),
];

/// The binding of a key: the pane in front first, then moving, then everywhere.
pub fn find(key: KeyEvent, view: View, in_why: bool) -> Option<&'static Binding> {
    let scopes = if in_why {
        [Why, Moving, Everywhere]
    } else {
        [In(view), Moving, Everywhere]
    };
    let name = name(key)?;
    scopes.iter().find_map(|scope| {
        BINDINGS
            .iter()
            .find(|b| b.scope == *scope && b.keys.split(' ').any(|k| k == name))
    })
}

/// The bindings that count in a place, the nearest first.
pub fn applicable(view: View, in_why: bool) -> impl Iterator<Item = &'static Binding> {
    let front = if in_why { Why } else { In(view) };
    [front, Moving, Everywhere]
        .into_iter()
        .flat_map(|scope| BINDINGS.iter().filter(move |b| b.scope == scope))
}

/// How a key is written in the table.
pub fn name(key: KeyEvent) -> Option<String> {
    let bare = match key.code {
        KeyCode::Char(' ') => "Space".to_owned(),
        KeyCode::Char(c) => c.to_string(),
        KeyCode::Enter => "Enter".to_owned(),
        KeyCode::Esc => "Esc".to_owned(),
        KeyCode::Tab => "Tab".to_owned(),
        KeyCode::BackTab => "BackTab".to_owned(),
        KeyCode::Backspace => "Backspace".to_owned(),
        KeyCode::Delete => "Delete".to_owned(),
        KeyCode::Up => "Up".to_owned(),
        KeyCode::Down => "Down".to_owned(),
        KeyCode::Left => "Left".to_owned(),
        KeyCode::Right => "Right".to_owned(),
        KeyCode::PageUp => "PageUp".to_owned(),
        KeyCode::PageDown => "PageDown".to_owned(),
        KeyCode::Home => "Home".to_owned(),
        KeyCode::End => "End".to_owned(),
        KeyCode::F(n) => format!("F{n}"),
        _ => return None,
    };
    let mut out = String::new();
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        out.push_str("Ctrl-");
    }
    if key.modifiers.contains(KeyModifiers::ALT) {
        out.push_str("Alt-");
    }
    out.push_str(&bare);
    Some(out)
}

/// The bytes that a terminal sends for a key.
pub fn encode(key: KeyEvent, application_cursor: bool) -> Vec<u8> {
    let mut out = Vec::new();
    if key.modifiers.contains(KeyModifiers::ALT) {
        out.push(0x1b);
    }
    let modifier = 1
        + u8::from(key.modifiers.contains(KeyModifiers::SHIFT))
        + 4 * u8::from(key.modifiers.contains(KeyModifiers::CONTROL));
    let mut cursor = |letter: char| match (modifier, application_cursor) {
        (1, true) => out.extend_from_slice(format!("\x1bO{letter}").as_bytes()),
        (1, false) => out.extend_from_slice(format!("\x1b[{letter}").as_bytes()),
        _ => out.extend_from_slice(format!("\x1b[1;{modifier}{letter}").as_bytes()),
    };
    match key.code {
        KeyCode::Up => cursor('A'),
        KeyCode::Down => cursor('B'),
        KeyCode::Right => cursor('C'),
        KeyCode::Left => cursor('D'),
        KeyCode::Home => cursor('H'),
        KeyCode::End => cursor('F'),
        KeyCode::Char(c) if key.modifiers.contains(KeyModifiers::CONTROL) => {
            match c.to_ascii_lowercase() {
                c @ 'a'..='z' => out.push(c as u8 - b'a' + 1),
                ' ' | '2' | '@' => out.push(0),
                '[' | '3' => out.push(0x1b),
                '\\' | '4' => out.push(0x1c),
                ']' | '5' => out.push(0x1d),
                '^' | '6' => out.push(0x1e),
                '_' | '7' | '/' => out.push(0x1f),
                '?' | '8' => out.push(0x7f),
                _ => {}
            }
        }
        KeyCode::Char(c) => {
            let mut buffer = [0; 4];
            out.extend_from_slice(c.encode_utf8(&mut buffer).as_bytes());
        }
        KeyCode::Enter => out.push(b'\r'),
        KeyCode::Tab => out.push(b'\t'),
        KeyCode::BackTab => out.extend_from_slice(b"\x1b[Z"),
        KeyCode::Backspace => out.push(0x7f),
        KeyCode::Esc => out.push(0x1b),
        KeyCode::Insert => out.extend_from_slice(b"\x1b[2~"),
        KeyCode::Delete => out.extend_from_slice(b"\x1b[3~"),
        KeyCode::PageUp => out.extend_from_slice(b"\x1b[5~"),
        KeyCode::PageDown => out.extend_from_slice(b"\x1b[6~"),
        KeyCode::F(n @ 1..=4) => out.extend_from_slice(&[0x1b, b'O', b'P' + n - 1]),
        KeyCode::F(n @ 5..=12) => {
            let code = [15, 17, 18, 19, 20, 21, 23, 24]
                .get(usize::from(n) - 5)
                .copied()
                .unwrap_or(24);
            out.extend_from_slice(format!("\x1b[{code}~").as_bytes());
        }
        _ => out.clear(),
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_key_means_two_things_in_one_place() {
        let mut seen = HashSet::new();
        for binding in BINDINGS {
            for key in binding.keys.split(' ') {
                assert!(
                    seen.insert((binding.scope, key)),
                    "{key} is bound twice in {:?}",
                    binding.scope
                );
            }
        }
    }

    #[test]
    fn the_nearest_meaning_wins() {
        let key = KeyEvent::new(KeyCode::Char('y'), KeyModifiers::NONE);
        let action = |view, why| find(key, view, why).map(|b| b.action);
        assert_eq!(action(View::Findings, false), Some(A::CopyMarkdown));
        assert_eq!(action(View::Findings, true), Some(A::Copy));
        assert_eq!(action(View::Output, false), None);
    }

    #[test]
    fn keys_reach_the_program_as_a_terminal_sends_them() {
        for (code, modifiers, bytes) in [
            (KeyCode::Char('c'), KeyModifiers::CONTROL, &b"\x03"[..]),
            (KeyCode::Char('x'), KeyModifiers::ALT, b"\x1bx"),
            (KeyCode::Up, KeyModifiers::NONE, b"\x1b[A"),
            (KeyCode::Right, KeyModifiers::CONTROL, b"\x1b[1;5C"),
            (KeyCode::F(5), KeyModifiers::NONE, b"\x1b[15~"),
            (KeyCode::Char('é'), KeyModifiers::NONE, "é".as_bytes()),
        ] {
            assert_eq!(encode(KeyEvent::new(code, modifiers), false), bytes);
        }
        let up = KeyEvent::new(KeyCode::Up, KeyModifiers::NONE);
        assert_eq!(encode(up, true), b"\x1bOA");
    }
}

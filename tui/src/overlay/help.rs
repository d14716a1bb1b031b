//! The keys of the view in front, by section, with a search in them.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::{
    app::{App, Focus},
    keys::{Bound, Scope},
    text,
    view::View,
};

/// The state of the help.
#[derive(Debug, Clone, Default)]
pub struct Help {
    /// The first line shown.
    pub offset: usize,
    /// What is searched for in it.
    pub typed: String,
    /// Keys are being typed into the search.
    pub typing: bool,
}

impl Help {
    /// Takes a key; whether the help is to be closed. `last` is how far it can be scrolled.
    pub fn key(&mut self, key: KeyEvent, last: usize) -> bool {
        self.offset = self.offset.min(last);
        if key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL) {
            return true;
        }
        if self.typing {
            match key.code {
                KeyCode::Esc => {
                    self.typing = false;
                    self.typed.clear();
                }
                KeyCode::Enter => self.typing = false,
                KeyCode::Backspace => {
                    self.typed.pop();
                }
                KeyCode::Char(c) => {
                    self.typed.push(c);
                    self.offset = 0;
                }
                _ => {}
            }
            return false;
        }
        match key.code {
            KeyCode::Char('/') => {
                self.typing = true;
                self.typed.clear();
            }
            KeyCode::Down | KeyCode::Char('j') => self.offset = (self.offset + 1).min(last),
            KeyCode::Up | KeyCode::Char('k') => self.offset = self.offset.saturating_sub(1),
            KeyCode::PageDown | KeyCode::Char(' ') => self.offset = (self.offset + 10).min(last),
            KeyCode::PageUp => self.offset = self.offset.saturating_sub(10),
            KeyCode::Home | KeyCode::Char('g') => self.offset = 0,
            KeyCode::End | KeyCode::Char('G') => self.offset = last,
            KeyCode::Esc if !self.typed.is_empty() => self.typed.clear(),
            KeyCode::Esc | KeyCode::Char('q' | '?') | KeyCode::F(1) | KeyCode::Enter => {
                return true;
            }
            _ => {}
        }
        false
    }
}

/// One line of the help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HelpLine {
    /// The name of a section.
    Section(String),
    /// Keys and what they do.
    Key(String, String),
    /// Ordinary text.
    Text(String),
    /// Nothing.
    Gap,
}

/// What the marks of a view mean.
fn marks(view: View) -> &'static [&'static str] {
    match view {
        View::Resolution => &[
            "A version has the colour and the letter of its toolkit; the letters are explained below the table.",
            "≠ stands beside a release that differs from the one the component was built for (strong: another major).",
            "+1 means that a second file was resolved for the same part.",
            "? stands for a file that tells no version; its letter tells the toolkit.",
        ],
        View::Findings => &["A finding that follows from another one is folded below it."],
        View::Builds => &[
            "again: the same tool wrote the same output before in this run.",
            "A dotted bar is still growing.",
        ],
        View::Events => &[
            "Filter: words all hold; \"two words\"; /regex/; field:text; field=exact; t>1.5s; -not; a or b; ( ).",
            "Fields: kind pid t is path argv function component rule errno op source requested_by env.NAME …",
            "The inherited environment is only searched by env.NAME:text.",
            "Failed look-ups of one process in a row are folded into one line.",
        ],
        _ => &[],
    }
}

/// Columns of the help, with its frame.
pub(super) const HELP_WIDTH: u16 = 92;

/// The first line that is shown when so many are scrolled to their end.
pub fn last_offset(app: &App, lines: usize) -> usize {
    // The frame, and a line above and below it.
    lines.saturating_sub(usize::from(app.size.1.saturating_sub(4)))
}

/// Columns of a line of the help without its frame and the scroll bar.
fn room(app: &App) -> usize {
    usize::from(app.size.0.min(HELP_WIDTH).saturating_sub(3))
}

/// Columns for keys.
pub(super) const KEYS: usize = 22;

/// Keys and what they do, broken at words.
fn explained(app: &App, bound: &Bound) -> impl Iterator<Item = HelpLine> {
    let keys = bound.keys.join(" ");
    // Its other lines stand two columns further in.
    let room = room(app).saturating_sub(KEYS + 3).max(20);
    let parts = text::wrap(bound.about, room).into_iter().enumerate();
    parts.map(move |(at, part)| match at {
        0 => HelpLine::Key(keys.clone(), part),
        _ => HelpLine::Key(String::new(), format!("  {part}")),
    })
}

/// A text of the help, broken at words.
fn wrapped(app: &App, text: &str) -> impl Iterator<Item = HelpLine> {
    // It stands two columns in, and its other lines two more.
    let room = room(app).saturating_sub(4).max(20);
    let parts = text::wrap(text, room).into_iter().enumerate();
    parts.map(|(at, part)| match at {
        0 => HelpLine::Text(part),
        _ => HelpLine::Text(format!("  {part}")),
    })
}

/// The lines of the help, narrowed by what is searched for.
pub fn help_lines(app: &App, help: &Help) -> Vec<HelpLine> {
    let in_why = app.focus == Focus::Why;
    let front = if in_why {
        "Evidence".to_owned()
    } else {
        app.view.title().to_owned()
    };
    let wanted = help.typed.to_lowercase();
    let mut lines = Vec::new();
    let front_scope = if in_why {
        Scope::Why
    } else {
        Scope::In(app.view)
    };
    for (title, scope) in [
        (front, front_scope),
        ("While the program has the keys".to_owned(), Scope::Program),
        ("Moving".to_owned(), Scope::Moving),
        ("Everywhere".to_owned(), Scope::Everywhere),
    ] {
        if scope == Scope::Program && app.view != View::Output {
            continue;
        }
        let mut section: Vec<HelpLine> = app
            .setup
            .settings
            .keys
            .all()
            .filter(|b| b.scope == scope && !b.keys.is_empty())
            .filter(|b| {
                wanted.is_empty()
                    || b.about.to_lowercase().contains(&wanted)
                    || b.action.name().contains(&wanted)
                    || b.keys.iter().any(|k| k.to_lowercase().contains(&wanted))
            })
            .flat_map(|b| explained(app, b))
            .collect();
        if scope == front_scope && !in_why {
            section.extend(
                marks(app.view)
                    .iter()
                    .filter(|m| m.to_lowercase().contains(&wanted))
                    .flat_map(|m| wrapped(app, m)),
            );
        }
        if !section.is_empty() {
            if !lines.is_empty() {
                lines.push(HelpLine::Gap);
            }
            lines.push(HelpLine::Section(title));
            lines.append(&mut section);
        }
    }
    if wanted.is_empty() {
        lines.push(HelpLine::Gap);
        let file =
            "Other keys, another layout: `jittrace view --defaults` prints the file that says so.";
        lines.extend(wrapped(app, file));
    }
    if lines.is_empty() {
        lines.push(HelpLine::Text("no key does that".to_owned()));
    }
    lines
}

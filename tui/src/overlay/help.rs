//! The keys of the view in front, by section, with a search in them.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::{
    app::{App, Focus},
    keys::Scope,
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
    /// Takes a key; whether the help is to be closed.
    pub fn key(&mut self, key: KeyEvent, lines: usize) -> bool {
        let last = lines.saturating_sub(1);
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
    Key(String, &'static str),
    /// Ordinary text.
    Text(&'static str),
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
            .map(|b| HelpLine::Key(b.keys.join(" "), b.about))
            .collect();
        if scope == front_scope && !in_why {
            section.extend(
                marks(app.view)
                    .iter()
                    .filter(|m| m.to_lowercase().contains(&wanted))
                    .map(|m| HelpLine::Text(m)),
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
        lines.push(HelpLine::Text(
            "Other keys, another layout: `jittrace view --defaults` prints the file that says so.",
        ));
    }
    if lines.is_empty() {
        lines.push(HelpLine::Text("no key does that"));
    }
    lines
}

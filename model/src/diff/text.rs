//! The diff for a terminal: the cause in the first line, both sides of it below.

use std::fmt::Write as _;

use super::{Change, Diff, Facet, Side, Weight};
use crate::report::{phrase, text::Style};

/// Draws the diff.
pub fn render(diff: &Diff, style: Style) -> String {
    let mut page = Page {
        out: String::new(),
        style,
    };
    page.head(diff);
    page.group(diff, Weight::Cause, "likely cause", "also changed", 8);
    page.group(diff, Weight::Consequence, "what followed", "", 10);
    page.harmless(diff);
    page.out
}

struct Page {
    out: String,
    style: Style,
}

impl Page {
    fn ink(&self, code: &str, text: &str) -> String {
        if self.style.colour {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    fn line(&mut self, text: &str) {
        let _ = writeln!(self.out, "{}", text.trim_end());
    }

    fn head(&mut self, diff: &Diff) {
        // The first line is the cause, however long it is: scripts and people read it.
        let headline = phrase::one_line(&diff.headline);
        let headline = self.ink(if diff.same { "1;32" } else { "1;31" }, &headline);
        self.line(&headline);
        self.side("good", &diff.good);
        self.side("bad", &diff.bad);
    }

    fn side(&mut self, label: &str, side: &Side) {
        let command = phrase::clipped(
            &phrase::one_line(&phrase::command(&side.command)),
            self.style.width.saturating_sub(50).max(20),
        );
        let text = format!(
            "  {label:<5} {command}  {} after {}",
            phrase::exit(side.exit),
            phrase::duration(side.duration_ns)
        );
        let text = self.ink("2", &phrase::clipped(&text, self.style.width));
        self.line(&text);
    }

    fn group(&mut self, diff: &Diff, weight: Weight, first: &str, rest: &str, most: usize) {
        let changes: Vec<&Change> = diff
            .changes
            .iter()
            .filter(|change| change.weight == weight)
            .collect();
        for (number, change) in changes.iter().take(most).enumerate() {
            let title = match number {
                0 => first,
                1 => rest,
                _ => "",
            };
            if !title.is_empty() {
                self.line("");
                let title = self.ink("1", title);
                self.line(&title);
            }
            self.change(change, 2);
        }
        if changes.len() > most {
            let line = format!(
                "  … and {}; --format json has all",
                phrase::counted(changes.len() - most, "more change")
            );
            self.line(&line);
        }
    }

    fn change(&mut self, change: &Change, indent: usize) {
        let pad = " ".repeat(indent);
        let head = format!("{pad}{:<11} ", change.kind.word());
        let room = self
            .style
            .width
            .saturating_sub(head.chars().count())
            .max(30);
        // A cause is told by its two sides, and the first line has told it in words.
        let title = match &change.role {
            Some(variable) if !change.led_to.is_empty() => variable.clone(),
            _ => phrase::one_line(&change.title),
        };
        let events = match change.weight {
            Weight::Consequence => sides_events(change),
            _ => String::new(),
        };
        let title = phrase::clipped(&title, room.saturating_sub(events.chars().count()));
        let line = format!("{}{title}{}", self.ink("2", &head), self.ink("2", &events));
        self.line(&line);
        if change.weight != Weight::Consequence {
            for (label, facet) in [("good", &change.good), ("bad", &change.bad)] {
                let line = format!(
                    "{pad}            {label:<4} {}",
                    self.facet(facet, indent + 17)
                );
                self.line(&line);
            }
        }
        for inner in change.led_to.iter().take(4) {
            self.change(inner, indent + 2);
        }
    }

    fn facet(&self, facet: &Option<Facet>, indent: usize) -> String {
        let Some(facet) = facet else {
            return phrase::UNKNOWN.to_owned();
        };
        let events = match numbers(facet) {
            events if events.is_empty() => String::new(),
            events => format!(" (event {events})"),
        };
        let room = self
            .style
            .width
            .saturating_sub(indent + events.chars().count())
            .max(20);
        let text = phrase::one_line(&facet.text);
        format!("{}{}", phrase::clipped(&text, room), self.ink("2", &events))
    }

    fn harmless(&mut self, diff: &Diff) {
        let changes: Vec<&Change> = diff
            .changes
            .iter()
            .filter(|change| change.weight == Weight::None)
            .collect();
        if changes.is_empty() {
            return;
        }
        self.line("");
        let title = self.ink("1", "does not matter");
        self.line(&title);
        for change in changes.iter().take(6) {
            let mut text = format!(
                "  {:<11} {}",
                change.kind.word(),
                phrase::one_line(&change.title)
            );
            if !change.why.is_empty() {
                let _ = write!(text, " ({})", change.why);
            }
            let text = self.ink("2", &phrase::clipped(&text, self.style.width));
            self.line(&text);
        }
        if changes.len() > 6 {
            let line = format!("  … and {}", phrase::counted(changes.len() - 6, "more"));
            self.line(&line);
        }
    }
}

/// The first events of a side: `412, 413`.
fn numbers(facet: &Facet) -> String {
    let numbers: Vec<String> = facet
        .events
        .iter()
        .take(2)
        .map(ToString::to_string)
        .collect();
    numbers.join(", ")
}

/// The events of both sides, for a change that is told in one line.
fn sides_events(change: &Change) -> String {
    let of = |facet: &Option<Facet>| {
        facet
            .as_ref()
            .map(numbers)
            .filter(|numbers| !numbers.is_empty())
    };
    match (of(&change.good), of(&change.bad)) {
        (Some(good), Some(bad)) => format!(" (good {good}; bad {bad})"),
        (Some(good), None) => format!(" (good {good})"),
        (None, Some(bad)) => format!(" (bad {bad})"),
        (None, None) => String::new(),
    }
}

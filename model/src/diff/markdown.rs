//! The diff for an issue.

use std::fmt::Write as _;

use super::{Change, Diff, Facet, Side, Weight};
use crate::report::{
    markdown::{code, escaped},
    phrase,
};

/// Draws the diff.
pub fn render(diff: &Diff) -> String {
    let mut out = String::new();
    let mark = if diff.same { "✅" } else { "🔀" };
    let _ = writeln!(out, "### {mark} {}\n", escaped(&diff.headline));
    let _ = writeln!(out, "| run | command | end | verdict |\n|---|---|---|---|");
    side(&mut out, "good", &diff.good);
    side(&mut out, "bad", &diff.bad);
    out.push('\n');
    group(
        &mut out,
        diff,
        Weight::Cause,
        "What may be the cause, the most likely first",
        10,
    );
    group(&mut out, diff, Weight::Consequence, "What followed", 20);
    let harmless: Vec<&Change> = diff
        .changes
        .iter()
        .filter(|change| change.weight == Weight::None)
        .collect();
    if !harmless.is_empty() {
        let _ = writeln!(
            out,
            "<details>\n<summary>What differs and does not matter ({})</summary>\n",
            harmless.len()
        );
        for change in harmless.iter().take(50) {
            let why = if change.why.is_empty() {
                String::new()
            } else {
                format!(" ({})", escaped(&change.why))
            };
            let _ = writeln!(
                out,
                "- {}: {}{why}",
                change.kind.word(),
                escaped(&phrase::clipped(&change.title, 400))
            );
        }
        let _ = writeln!(out, "\n</details>");
    }
    out
}

fn side(out: &mut String, label: &str, side: &Side) {
    let command = phrase::clipped(&phrase::command(&side.command), 160);
    let _ = writeln!(
        out,
        "| {label} | {} | {} after {} | {} |",
        escaped(&command),
        phrase::exit(side.exit),
        phrase::duration(side.duration_ns),
        escaped(&phrase::clipped(&side.verdict, 300))
    );
}

fn group(out: &mut String, diff: &Diff, weight: Weight, title: &str, most: usize) {
    let changes: Vec<&Change> = diff
        .changes
        .iter()
        .filter(|change| change.weight == weight)
        .collect();
    if changes.is_empty() {
        return;
    }
    let _ = writeln!(out, "**{title}**\n");
    for change in changes.iter().take(most) {
        one(out, change, 0);
    }
    if changes.len() > most {
        let _ = writeln!(
            out,
            "- … and {} more; `--format json` has all",
            changes.len() - most
        );
    }
    out.push('\n');
}

fn one(out: &mut String, change: &Change, depth: usize) {
    let pad = "  ".repeat(depth);
    let _ = writeln!(
        out,
        "{pad}- **{}** {}",
        change.kind.word(),
        escaped(&phrase::clipped(&change.title, 500))
    );
    if change.weight != Weight::Consequence {
        for (label, facet) in [("good", &change.good), ("bad", &change.bad)] {
            if let Some(facet) = facet {
                let _ = writeln!(
                    out,
                    "{pad}  - {label}: {}{}",
                    code(&phrase::clipped(&facet.text, 400)),
                    events(facet)
                );
            }
        }
    }
    for inner in change.led_to.iter().take(8) {
        one(out, inner, depth + 1);
    }
}

fn events(facet: &Facet) -> String {
    let events: Vec<String> = facet
        .events
        .iter()
        .take(4)
        .map(ToString::to_string)
        .collect();
    match events.len() {
        0 => String::new(),
        1 => format!(" (event {})", events.join(", ")),
        _ => format!(" (events {})", events.join(", ")),
    }
}

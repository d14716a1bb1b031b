//! Writes the screens of the book's page on the live view anew: `cargo run -p jittrace-tui --example screens`.

#[path = "../tests/common/mod.rs"]
mod common;

use std::{fs, path::Path};

/// Each screen: its name, the trace, the size, the keys that lead there.
const SCREENS: [(&str, &str, (u16, u16), &str); 7] = [
    ("resolution", "sm120", (110, 36), ""),
    ("why", "sm120", (110, 34), "Enter"),
    ("findings", "sm120", (110, 30), "2"),
    ("builds", "healthy", (110, 37), "4"),
    ("caches", "two-majors", (110, 8), "5"),
    ("libraries", "two-majors", (110, 24), "6"),
    ("events", "sm120", (110, 20), "7"),
];

fn main() -> std::io::Result<()> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/live-view.md");
    let mut book = fs::read_to_string(&page)?;
    for (name, trace, size, keys) in SCREENS {
        let mut app = common::open(trace, size.0, size.1);
        common::press(&mut app, keys);
        let begin = format!("<!-- screen: {name} -->\n```text\n");
        let Some(start) = book.find(&begin).map(|at| at + begin.len()) else {
            eprintln!("{} has no place for the screen {name}", page.display());
            continue;
        };
        let end = book
            .get(start..)
            .and_then(|rest| rest.find("```"))
            .map_or(start, |at| start + at);
        book.replace_range(start..end, &common::text(&app));
    }
    fs::write(&page, book)
}

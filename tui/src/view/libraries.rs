//! Libraries: the CUDA files that were mapped, the rule that chose each, and who asked; failed loads among them.

use ratatui::text::Line;

use super::{Columns, widest};
use crate::{
    app::App,
    snapshot::{LibraryRow, Snapshot},
    subject::Subject,
    text,
    theme::Tone,
};

/// The orders in which libraries can stand.
pub const SORTS: [&str; 3] = ["by time", "by part", "by path"];

/// The rows: positions in the snapshot's list.
pub fn rows(snapshot: &Snapshot, process: Option<u32>, sort: usize) -> Vec<usize> {
    let libraries = &snapshot.libraries;
    let mut rows: Vec<usize> = (0..libraries.len())
        .filter(|&at| {
            libraries
                .get(at)
                .is_some_and(|l| process.is_none_or(|pid| l.pid == pid))
        })
        .collect();
    match sort {
        1 => rows.sort_by(|a, b| {
            let part = |at: &usize| libraries.get(*at).map(|l| (&l.part, &l.path));
            part(a).cmp(&part(b))
        }),
        2 => rows.sort_by(|a, b| {
            let path = |at: &usize| libraries.get(*at).map(|l| &l.path);
            path(a).cmp(&path(b))
        }),
        _ => {}
    }
    rows
}

/// How wide the columns of some rows are.
pub fn widths(snapshot: &Snapshot, process: Option<u32>, rows: &[usize]) -> Widths {
    match process {
        None => snapshot.library_widths,
        Some(_) => Widths::of(rows.iter().filter_map(|at| snapshot.libraries.get(*at))),
    }
}

/// What a row is about.
pub fn subject(app: &App, at: usize) -> Option<Subject> {
    let row = app.rows.libraries.get(at)?;
    app.snapshot
        .libraries
        .get(*row)
        .map(|l| Subject::Library(l.event))
}

/// How wide the columns are: as wide as what stands in them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Widths {
    /// The process; none when all belong to one.
    pid: Option<usize>,
    part: usize,
    version: usize,
    rule: usize,
    asker: usize,
}

impl Widths {
    /// The widths for some libraries.
    pub fn of<'a>(libraries: impl IntoIterator<Item = &'a LibraryRow, IntoIter: Clone>) -> Widths {
        let libraries = libraries.into_iter();
        let all = || libraries.clone();
        let first = all().next().map(|library| library.pid);
        let largest = all().map(|library| library.pid).max();
        Widths {
            pid: largest
                .filter(|_| all().any(|library| Some(library.pid) != first))
                .map(|pid| pid.to_string().len().max(4)),
            part: widest("part", all().map(|l| l.part.as_deref().unwrap_or("")), 14),
            version: widest(
                "version",
                all().map(|l| l.version.as_deref().unwrap_or("")),
                12,
            ),
            rule: widest("rule", all().map(rule), 15),
            asker: widest("asked by", all().map(asker), 44),
        }
    }
}

/// The rule, in a word.
fn rule(library: &LibraryRow) -> &str {
    match library.error {
        Some(_) => "failed",
        None => library.rule.word(),
    }
}

/// Who asked: an object, or the Python code that it did it for.
fn asker(library: &LibraryRow) -> &str {
    match &library.requested_by {
        Some(object) if !is_pythons(object) || library.asker.is_empty() => text::base(object),
        _ => &library.asker,
    }
}

/// The titles.
pub fn head(app: &App, width: usize) -> Line<'static> {
    let widths = app.rows.library_widths;
    let mut out = Columns::new(app, width);
    out.push(" ".to_owned(), Tone::Plain);
    if let Some(pid) = widths.pid {
        out.right("pid", pid, Tone::Dim);
    }
    out.cell("part", widths.part, Tone::Dim);
    out.cell("version", widths.version, Tone::Dim);
    out.cell("rule", widths.rule, Tone::Dim);
    if let Some(by) = asker_width(width, widths) {
        out.cell("asked by", by, Tone::Dim);
    }
    out.rest("file", Tone::Dim);
    out.line()
}

/// Columns for who asked, where the file has enough of them.
fn asker_width(width: usize, widths: Widths) -> Option<usize> {
    match width {
        0..110 => None,
        110..150 => Some(widths.asker.min(26)),
        _ => Some(widths.asker),
    }
}

/// Whether an object only does for Python what Python code asked for: that code tells more.
fn is_pythons(object: &str) -> bool {
    let name = text::base(object);
    ["_ctypes.", "python3", "libpython3"]
        .iter()
        .any(|start| name.starts_with(start))
}

/// What the loader said, without the name that stands before it already.
fn why_failed<'a>(library: &LibraryRow, error: &'a str) -> &'a str {
    let mut rest = error;
    for name in [library.path.as_str(), text::base(&library.path)] {
        rest = rest
            .strip_prefix(name)
            .map_or(rest, |rest| rest.trim_start_matches([':', ' ']));
    }
    rest
}

/// A row.
pub fn line(app: &App, at: usize, width: usize) -> Option<Line<'static>> {
    let row = app.rows.libraries.get(at)?;
    let library = app.snapshot.libraries.get(*row)?;
    let toolkit = app.snapshot.toolkit_of_file(&library.path);
    let tone = toolkit.map_or(Tone::Plain, |t| Tone::Toolkit(app.snapshot.rank(t)));
    let mut out = Columns::new(app, width);
    let widths = app.rows.library_widths;
    out.push(" ".to_owned(), Tone::Plain);
    if let Some(pid) = widths.pid {
        out.right(&library.pid.to_string(), pid, Tone::Dim);
    }
    let part = library.part.as_deref().unwrap_or("");
    out.cell(part, widths.part, Tone::Plain);
    let version = library.version.as_deref().unwrap_or("");
    out.cell(version, widths.version, tone);
    match &library.error {
        Some(_) => out.cell(rule(library), widths.rule, Tone::Error),
        None => {
            let rule_tone = match library.explanation {
                jittrace_model::event::Explanation::Differs => Tone::Warning,
                _ => Tone::Plain,
            };
            out.cell(rule(library), widths.rule, rule_tone)
        }
    };
    if let Some(room) = asker_width(width, widths) {
        out.cell(asker(library), room, Tone::Dim);
    }
    match &library.error {
        Some(error) => {
            let name = text::base(&library.path);
            out.rest(
                &format!("{name}: {}", why_failed(library, error)),
                Tone::Error,
            );
        }
        None => {
            let again = match library.again.len() {
                0 => String::new(),
                1 => "  asked for again".to_owned(),
                times => format!("  asked for {times} times more"),
            };
            let path = text::straight(&library.path, &library.realpath);
            // Where both have no room the file tells more.
            let name = text::width(text::base(path)) + "/home/…/".chars().count();
            let again = match again.len() + name <= out.room() {
                true => again.as_str(),
                false => "",
            };
            let room = out.room().saturating_sub(again.len());
            let path = text::fit_path(path, room, app.theme.ellipsis()).into_owned();
            out.rest(&path, tone);
            out.rest(again, Tone::Dim);
        }
    }
    Some(out.line())
}

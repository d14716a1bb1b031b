//! Processes: the tree of what ran, how each ended, and what could not be looked into.

use std::collections::HashSet;

use jittrace_model::EventId;
use ratatui::text::Line;

use super::{Columns, tree::TreeRow};
use crate::{app::App, snapshot::Snapshot, subject::Subject, text, theme::Tone};

/// The orders in which processes can stand.
pub const SORTS: [&str; 3] = ["as a tree", "latest first", "longest first"];

/// The rows.
pub fn rows(snapshot: &Snapshot, folded: &HashSet<EventId>, sort: usize) -> Vec<TreeRow> {
    let processes = &snapshot.processes;
    if sort == 0 {
        let parents: Vec<Option<usize>> = processes.iter().map(|p| p.parent).collect();
        let key = |at: usize| processes.get(at).map_or(0, |p| p.event);
        return super::tree::rows(&parents, key, folded);
    }
    let mut order: Vec<usize> = (0..processes.len()).collect();
    order.sort_by_key(|&at| {
        std::cmp::Reverse(processes.get(at).map(|p| match sort {
            1 => p.start,
            _ => p.end.unwrap_or(snapshot.last_t).saturating_sub(p.start),
        }))
    });
    order
        .into_iter()
        .map(|at| TreeRow {
            at,
            depth: 0,
            below: 0,
            folded: false,
        })
        .collect()
}

/// What a row is about.
pub fn subject(app: &App, at: usize) -> Option<Subject> {
    let row = app.rows.processes.get(at)?;
    let process = app.snapshot.processes.get(row.at)?;
    Some(Subject::Process(process.event))
}

/// The titles.
pub fn head(app: &App, width: usize) -> Line<'static> {
    let mut out = Columns::new(app, width);
    let (pid, moment, title) = app.widths("start");
    out.right("pid", pid + 1, Tone::Dim);
    out.right(&title, moment + 1, Tone::Dim);
    out.right("time", 8, Tone::Dim);
    out.cell("state", 10, Tone::Dim);
    if width >= 100 {
        out.cell("toolkit", 16, Tone::Dim);
    }
    out.rest("program", Tone::Dim);
    out.line()
}

/// What of a long trace is counted and not listed.
pub fn footer(app: &App, width: usize) -> Option<Line<'static>> {
    let condensed = app.snapshot.report.condensed.as_ref()?;
    let mut programs: Vec<(&str, u64)> = condensed
        .processes
        .iter()
        .map(|(program, count)| (program.as_str(), *count))
        .collect();
    programs.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let mut out = Columns::new(app, width);
    let count = text::count(condensed.process_count());
    out.rest(
        &format!("{count} more that were like others beside them are only counted"),
        Tone::Heading,
    );
    let mut before = ": ";
    for (program, count) in programs {
        let told = format!("{before}{} {program}", text::count(count));
        if text::width(&told) > out.room() {
            break;
        }
        out.rest(&told, Tone::Dim);
        before = ", ";
    }
    Some(out.line())
}

/// A row.
pub fn line(app: &App, at: usize, width: usize) -> Option<Line<'static>> {
    let row = app.rows.processes.get(at)?;
    let process = app.snapshot.processes.get(row.at)?;
    let mut out = Columns::new(app, width);
    let (pid, moment, _) = app.widths("");
    out.right(&process.pid.to_string(), pid + 1, Tone::Plain);
    out.right(&app.moment_text(process.start), moment + 1, Tone::Dim);
    // The end of a process that was not followed may not have been seen: then its time says nothing.
    let unseen = process.end.is_none() && process.not_followed.is_some();
    let end = process.end.unwrap_or(app.moment());
    let time = if unseen {
        app.theme.nothing().to_owned()
    } else {
        text::duration(end.saturating_sub(process.start))
    };
    out.right(&time, 8, Tone::Dim);
    let (state, tone) = match (process.exit, process.replaced_by) {
        (_, Some(_)) => ("became".to_owned(), Tone::Dim),
        (Some(exit), None) => super::exit_word(exit),
        (None, None) if process.end.is_some() => ("ended".to_owned(), Tone::Dim),
        (None, None) if unseen => ("not seen".to_owned(), Tone::Dim),
        (None, None) if app.progress.complete => ("no end".to_owned(), Tone::Dim),
        (None, None) => ("running".to_owned(), Tone::Accent),
    };
    out.cell(&state, 10, tone);
    let toolkit = app.snapshot.toolkit_of_file(&process.program);
    let tone = toolkit.map_or(Tone::Plain, |t| Tone::Toolkit(app.snapshot.rank(t)));
    if width >= 100 {
        let id = toolkit
            .and_then(|t| app.snapshot.report.toolkits.get(t))
            .map_or("", |t| t.id.as_str());
        out.cell(id, 16, tone);
    }
    let tail = if row.folded {
        format!(" +{}", row.below)
    } else {
        String::new()
    };
    out.rest(
        &format!(
            "{}{} ",
            "  ".repeat(row.depth.min(10)),
            app.theme.fold(row.below > 0, row.folded)
        ),
        Tone::Dim,
    );
    out.rest(&format!("{}{tail}", text::base(&process.program)), tone);
    if let Some(reason) = &process.not_followed {
        out.rest(&format!("  not followed: {reason}"), Tone::Warning);
    }
    out.rest(&format!(" {}", text::arguments(&process.argv)), Tone::Dim);
    Some(out.line())
}

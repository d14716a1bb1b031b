//! Builds: what compiled what, as a tree, and as bars over time.
//!
//! The bars show where the time went and how much ran at once; a build that was done before, with the same tool and
//! the same output, is marked as a duplicate, since many ranks that compile the same kernel cost a start its minutes.

use std::collections::HashSet;

use jittrace_model::{EventId, report::Build};
use ratatui::text::Line;

use super::{Columns, tree::TreeRow};
use crate::{app::App, clock::Times, snapshot::Snapshot, subject::Subject, text, theme::Tone};

/// The orders in which builds can stand.
pub const SORTS: [&str; 3] = ["as a tree", "slowest first", "by tool"];

/// What is known of all builds together.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Facts {
    /// Builds that repeat an earlier one, by position; what such a build ran in its turn is not counted again.
    pub duplicates: HashSet<usize>,
    /// Builds that have not ended.
    pub running: usize,
    /// Builds that failed.
    pub failed: usize,
    /// Most compilers that ran at one time.
    pub parallel: usize,
    /// When the first began.
    pub start: u64,
    /// When the last ended, or now.
    pub end: u64,
    /// The slowest build that runs no other, by position.
    pub slowest: Option<usize>,
    /// Columns of each build's name, by position.
    names: Vec<usize>,
}

/// The name of a build that stays while the model grows: the event that began it.
pub fn key(build: &Build) -> EventId {
    build.events.first().copied().unwrap_or_default()
}

impl Facts {
    /// The end of the time that is shown: what runs goes on to the present.
    fn until(&self, app: &App) -> u64 {
        if self.running > 0 {
            self.end.max(app.moment())
        } else {
            self.end
        }
    }
}

/// Columns that the names of some rows take, with their indents.
pub fn names(snapshot: &Snapshot, rows: &[TreeRow]) -> usize {
    let width = |row: &TreeRow| Some(indent(row.depth) + 2 + snapshot.builds.names.get(row.at)?);
    rows.iter().filter_map(width).max().unwrap_or(0)
}

/// The tool, and the release of the toolkit that it belongs to.
fn name(snapshot: &Snapshot, build: &Build) -> String {
    match (&build.version, snapshot.toolkit_of_file(&build.path)) {
        (Some(version), Some(_)) => {
            format!("{} {}", build.tool, super::resolution::release(version))
        }
        _ => build.tool.clone(),
    }
}

/// Columns before a name, by its steps from the root.
fn indent(depth: usize) -> usize {
    2 * depth.min(6)
}

/// The rows.
pub fn rows(snapshot: &Snapshot, folded: &HashSet<EventId>, sort: usize) -> Vec<TreeRow> {
    let builds = &snapshot.report.builds;
    if sort > 0 {
        let mut order: Vec<usize> = (0..builds.len()).collect();
        match sort {
            1 => order.sort_by_key(|&at| {
                std::cmp::Reverse(builds.get(at).map(|b| length(b, snapshot.last_t)))
            }),
            _ => order.sort_by(|&a, &b| {
                let tool = |at: usize| builds.get(at).map(|b| (b.tool.as_str(), b.start_ns));
                tool(a).cmp(&tool(b))
            }),
        }
        return order
            .into_iter()
            .map(|at| TreeRow {
                at,
                depth: 0,
                below: 0,
                folded: false,
            })
            .collect();
    }
    let parents: Vec<Option<usize>> = builds
        .iter()
        .map(|build| snapshot.build_position(build.parent?))
        .collect();
    super::tree::rows(&parents, |at| builds.get(at).map_or(0, key), folded)
}

/// What the builds say together.
pub fn facts(snapshot: &Snapshot) -> Facts {
    let builds = &snapshot.report.builds;
    let mut facts = Facts {
        start: builds.iter().map(|b| b.start_ns).min().unwrap_or(0),
        names: builds
            .iter()
            .map(|build| text::width(&name(snapshot, build)))
            .collect(),
        ..Facts::default()
    };
    let parents: HashSet<u32> = builds.iter().filter_map(|b| b.parent).collect();
    let mut seen: HashSet<(&str, &str, &str)> = HashSet::new();
    // A parent's work is its child's too: nvcc runs itself again, gcc hands on to cc1plus.
    let mut inner: HashSet<u32> = HashSet::new();
    // Ends sort before starts of the same moment, so that a chain of builds is not two at once.
    let mut moments: Vec<(u64, i32)> = Vec::new();
    for (at, build) in builds.iter().enumerate() {
        let end = build.start_ns + length(build, snapshot.last_t);
        facts.end = facts.end.max(end);
        match build.exit {
            None if build.duration_ns.is_none() => facts.running += 1,
            Some(exit) if !exit.is_success() => facts.failed += 1,
            _ => {}
        }
        if !parents.contains(&build.id) {
            moments.push((build.start_ns, 1));
            moments.push((end, -1));
            let slower = facts
                .slowest
                .and_then(|s| builds.get(s))
                .is_none_or(|s| length(s, snapshot.last_t) < length(build, snapshot.last_t));
            if slower {
                facts.slowest = Some(at);
            }
        }
        let parent = snapshot.build_above(build);
        let same_as_parent =
            parent.is_some_and(|p| p.tool == build.tool && p.output == build.output);
        let within = build.parent.is_some_and(|id| inner.contains(&id));
        let mut again = false;
        if let Some(output) = &build.output
            && build.exit.is_none_or(|e| e.is_success())
            && !output.starts_with("/tmp/")
            && !same_as_parent
        {
            again = !seen.insert((build.tool.as_str(), output.as_str(), directory(build)));
        }
        if again && !within {
            facts.duplicates.insert(at);
        }
        if again || within {
            inner.insert(build.id);
        }
    }
    moments.sort_unstable();
    let mut now = 0;
    for (_, step) in moments {
        now += step;
        facts.parallel = facts.parallel.max(usize::try_from(now).unwrap_or(0));
    }
    facts
}

/// The directory in which a relative output lies; absolute outputs need none.
fn directory(build: &Build) -> &str {
    match build.output.as_deref() {
        Some(output) if output.starts_with('/') => "",
        _ => &build.cwd,
    }
}

fn length(build: &Build, now: u64) -> u64 {
    build
        .duration_ns
        .unwrap_or_else(|| now.saturating_sub(build.start_ns))
}

/// What a row is about.
pub fn subject(app: &App, at: usize) -> Option<Subject> {
    let row = app.rows.builds.get(at)?;
    app.snapshot
        .report
        .builds
        .get(row.at)
        .map(|b| Subject::Build(key(b)))
}

/// Columns of the names: as many as they need, up to a third of the width.
fn tool_width(app: &App, width: usize) -> usize {
    let most = (width / 3).clamp(16, 44);
    app.rows.build_names.clamp(12, most)
}

/// Columns for the output beside the bars, where there are enough; else it stands beside its bar.
fn output_width(width: usize) -> Option<usize> {
    (width >= 100).then(|| (width / 6).min(36))
}

/// The marks of the time axis: each a column and a label, the first at the start, the last at the end.
fn axis(first: String, span: u64, room: usize) -> Vec<(usize, String)> {
    const APART: usize = 14;
    const SECOND: u64 = 1_000_000_000;
    let last = format!("+{}", text::duration(span));
    let last_at = room.saturating_sub(text::width(&last));
    let marks = (room / APART).max(1) as u64;
    // The smallest round step that leaves the labels apart.
    let step = (0..10)
        .flat_map(|power| [1, 2, 5].map(|n| n * 10_u64.pow(power)))
        .chain([10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200].map(|s| s * SECOND))
        .find(|step| span / step <= marks)
        .unwrap_or(span.max(1));
    let mut out = vec![(0, first)];
    let mut end: usize = out.iter().map(|(_, label)| text::width(label)).sum();
    for at in (1..=marks).map(|n| n * step).take_while(|at| *at < span) {
        let column = u128::from(at) * room as u128 / u128::from(span.max(1));
        let column = usize::try_from(column).unwrap_or(room);
        let label = format!("+{}", text::round_duration(at));
        if column > end + 1 && column + text::width(&label) + 2 <= last_at {
            end = column + text::width(&label);
            out.push((column, label));
        }
    }
    if last_at > end + 1 {
        out.push((last_at, last));
    }
    out
}

/// The titles.
pub fn head(app: &App, width: usize) -> Line<'static> {
    let mut out = Columns::new(app, width);
    out.cell("tool", tool_width(app, width), Tone::Dim);
    if app.timeline {
        out.right("time", 8, Tone::Dim);
        if let Some(room) = output_width(width) {
            out.cell("output", room, Tone::Dim);
        }
        let facts = &app.snapshot.builds;
        let span = facts.until(app).saturating_sub(facts.start);
        let mut used = 0;
        let first = match app.times {
            Times::Clock => app.moment_text(facts.start),
            Times::SinceStart => format!("{} s", text::moment(facts.start)),
        };
        for (column, label) in axis(first, span, out.room()) {
            out.push(" ".repeat(column.saturating_sub(used)), Tone::Plain);
            used = column + text::width(&label);
            out.rest(&label, Tone::Dim);
        }
    } else {
        out.cell("version", 10, Tone::Dim);
        out.right("time", 8, Tone::Dim);
        out.cell("state", 9, Tone::Dim);
        if width >= 100 {
            out.cell("archs", 18, Tone::Dim);
            out.cell("for", 14, Tone::Dim);
        }
        out.rest("output", Tone::Dim);
    }
    out.line()
}

/// A row.
pub fn line(app: &App, at: usize, width: usize) -> Option<Line<'static>> {
    let row = app.rows.builds.get(at)?;
    let build = app.snapshot.report.builds.get(row.at)?;
    let now = app.moment();
    let toolkit = app.snapshot.toolkit_of_file(&build.path);
    let tone = toolkit.map_or(Tone::Plain, |t| Tone::Toolkit(app.snapshot.rank(t)));
    let mut out = Columns::new(app, width);
    let indent = " ".repeat(indent(row.depth));
    let duplicate = app.snapshot.builds.duplicates.contains(&row.at);
    let mut tail = if row.folded {
        format!(" +{}", row.below)
    } else {
        String::new()
    };
    if duplicate && app.timeline {
        tail.push_str(" again");
    }
    let name = format!(
        "{indent}{} {}{tail}",
        app.theme.fold(row.below > 0, row.folded),
        name(&app.snapshot, build)
    );
    out.cell(&name, tool_width(app, width), tone);
    let time = text::duration(length(build, now));
    let running = build.exit.is_none() && build.duration_ns.is_none();
    let (state, state_tone) = match build.exit {
        Some(exit) if exit.is_success() && duplicate => ("again".to_owned(), Tone::Warning),
        Some(exit) => super::exit_word(exit),
        None if running && app.progress.complete => ("no end".to_owned(), Tone::Dim),
        None if running => ("running".to_owned(), Tone::Accent),
        None => ("ended".to_owned(), Tone::Dim),
    };
    if app.timeline {
        out.right(&time, 8, Tone::Plain);
        let mut label = match state.as_str() {
            "ok" | "ended" => String::new(),
            state => state.to_owned(),
        };
        let output = build.output.as_deref().map(told_name);
        match (output_width(width), output) {
            (Some(room), output) => {
                let output = output.unwrap_or_default();
                let output = text::fit_middle(output, room, app.theme.ellipsis());
                out.cell(&output, room, Tone::Plain);
            }
            (None, Some(output)) if label.is_empty() => label.push_str(output),
            (None, Some(output)) => label.push_str(&format!(" {output}")),
            (None, None) => {}
        }
        let bar_tone = match state_tone {
            Tone::Error | Tone::Warning => state_tone,
            _ if running => Tone::Accent,
            _ => tone,
        };
        bar(app, build, &label, running, bar_tone, &mut out);
        return Some(out.line());
    }
    out.cell(build.version.as_deref().unwrap_or(""), 10, tone);
    out.right(&time, 8, Tone::Plain);
    out.cell(&state, 9, state_tone);
    if width >= 100 {
        out.cell(&build.archs.join(" "), 18, Tone::Plain);
        out.cell(build.started_by.as_deref().unwrap_or(""), 14, Tone::Dim);
    }
    let room = out.room();
    match &build.message {
        Some(message) => out.rest(message, Tone::Error),
        None => out.path(
            build.output.as_deref().unwrap_or(&build.path),
            room,
            Tone::Dim,
        ),
    };
    Some(out.line())
}

/// What tells an output apart: its file name, without what nvcc puts before the names of its temporary files.
fn told_name(output: &str) -> &str {
    let name = text::base(output);
    // `tmpxft_000024a1_00000000-7_page.cpp1.ii`
    match name.strip_prefix("tmpxft_").map(|rest| rest.splitn(3, '_')) {
        Some(mut parts) => parts.nth(2).unwrap_or(name),
        None => name,
    }
}

/// The bar of one build; what is to be said of it stands beside it where there is room.
fn bar(
    app: &App,
    build: &Build,
    label: &str,
    running: bool,
    bar_tone: Tone,
    out: &mut Columns<'_>,
) {
    let facts = &app.snapshot.builds;
    let room = out.room();
    if room == 0 {
        return;
    }
    let span = facts.until(app).saturating_sub(facts.start).max(1);
    let place = |t: u64| {
        let part = u128::from(t.saturating_sub(facts.start)) * room as u128 / u128::from(span);
        usize::try_from(part).unwrap_or(room).min(room)
    };
    let start = place(build.start_ns).min(room - 1);
    let end = place(build.start_ns + length(build, app.moment())).clamp(start + 1, room);
    let [full, growing, failed] = app.theme.bar();
    let glyph = if running {
        growing
    } else if build.exit.is_some_and(|e| !e.is_success()) {
        failed
    } else {
        full
    };
    let label = app.theme.glyphs(&text::clean(label)).into_owned();
    let bar = glyph.repeat(end - start);
    // Reversed, as a selected row is where there are few colours, a full block would be a hole.
    let bar_style = app
        .theme
        .style(bar_tone)
        .remove_modifier(ratatui::style::Modifier::REVERSED);
    let wanted = text::width(&label) + 1;
    if label.is_empty() {
        out.push(" ".repeat(start), Tone::Plain);
        out.styled(bar, bar_style);
    } else if room - end >= wanted {
        out.push(" ".repeat(start), Tone::Plain);
        out.styled(bar, bar_style);
        out.push(format!(" {label}"), Tone::Dim);
    } else if start > wanted {
        out.push(text::pad_left(&format!("{label} "), start), Tone::Dim);
        out.styled(bar, bar_style);
    } else if start > (room - end).max(8) {
        let label = text::fit(&label, start - 1, app.theme.ellipsis());
        out.push(text::pad_left(&format!("{label} "), start), Tone::Dim);
        out.styled(bar, bar_style);
    } else {
        out.push(" ".repeat(start), Tone::Plain);
        out.styled(bar, bar_style);
        if room - end > 8 {
            out.rest(&format!(" {label}"), Tone::Dim);
        }
    }
}

/// All builds in one line.
pub fn footer(app: &App, width: usize) -> Line<'static> {
    let facts = &app.snapshot.builds;
    let builds = &app.snapshot.report.builds;
    let mut out = Columns::new(app, width);
    let separator = app.theme.separator();
    out.rest(
        &format!("{} runs", text::count(builds.len() as u64)),
        Tone::Heading,
    );
    if facts.running > 0 && !app.progress.complete {
        out.rest(
            &format!("{separator}{} running now", facts.running),
            Tone::Accent,
        );
    }
    if facts.failed > 0 {
        out.rest(&format!("{separator}{} failed", facts.failed), Tone::Error);
    }
    if !facts.duplicates.is_empty() {
        out.rest(
            &format!("{separator}{} built again", facts.duplicates.len()),
            Tone::Warning,
        );
    }
    out.rest(
        &format!("{separator}at most {} at once", facts.parallel),
        Tone::Dim,
    );
    if app.snapshot.condensed_processes() > 0 {
        let text = format!("{separator}runs that were like others beside them are not listed");
        out.rest(&text, Tone::Dim);
    }
    if let Some(slowest) = facts.slowest.and_then(|at| builds.get(at)) {
        let what = slowest
            .output
            .as_deref()
            .map(told_name)
            .unwrap_or(&slowest.tool);
        let time = text::duration(length(slowest, app.moment()));
        out.rest(
            &format!("{separator}slowest: {} {what} {time}", slowest.tool),
            Tone::Dim,
        );
    }
    out.line()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporary_files_are_told_by_what_they_are_made_from() {
        for (output, told) in [
            (
                "/tmp/tmpxft_000024a1_00000000-7_page.cpp1.ii",
                "page.cpp1.ii",
            ),
            ("csrc/page_binding.cuda.o", "page_binding.cuda.o"),
            ("/tmp/tmpxft_odd", "tmpxft_odd"),
        ] {
            assert_eq!(told_name(output), told);
        }
    }

    #[test]
    fn marks_of_the_axis_are_round_and_never_overlap() {
        const SECOND: u64 = 1_000_000_000;
        let labels = |span: u64, room: usize| {
            axis("3.000 s".to_owned(), span, room)
                .into_iter()
                .map(|(_, label)| label)
                .collect::<Vec<_>>()
                .join(" | ")
        };
        assert_eq!(
            labels(38 * SECOND, 80),
            "3.000 s | +10 s | +20 s | +30 s | +38.00 s"
        );
        assert_eq!(labels(38 * SECOND, 20), "3.000 s | +38.00 s");
        assert_eq!(labels(0, 80), "3.000 s | +0 ns");
        for span in [1, 999, 7_000_000, 3 * SECOND, 500 * SECOND, 90_000 * SECOND] {
            for room in 0..200 {
                let mut end = 0;
                for (at, label) in axis("0.000 s".to_owned(), span, room) {
                    assert!(at >= end, "{span} in {room}");
                    end = at + text::width(&label) + 1;
                }
            }
        }
    }
}

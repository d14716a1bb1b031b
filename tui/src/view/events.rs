//! Events: everything that was seen, raw, narrowed by a filter; steps of a search that found nothing are folded.
//!
//! The list of rows grows with the events and is scanned in slices, so that a filter over a million events never
//! keeps a key waiting.

use std::collections::HashMap;

use ratatui::text::Line;

use super::Columns;
use crate::{
    app::App,
    filter::Filter,
    keys::Action,
    list::List,
    store::{Mark, Store},
    subject::Subject,
    summary, text,
    theme::Tone,
};

/// A row: an event, or several failed look-ups of one process in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// Position of the first event in the store.
    pub first: u32,
    /// How many events.
    pub count: u32,
}

/// The list of events.
#[derive(Debug)]
pub struct Events {
    /// What is shown.
    pub rows: Vec<Row>,
    /// What passes.
    pub filter: Filter,
    /// The filter as it was typed.
    pub filter_text: String,
    /// Failed look-ups are shown one by one.
    pub probes: bool,
    /// The list stays at its end.
    pub follow: bool,
    /// How many events are in the rows.
    pub passed: u64,
    /// Rows of events that tell of something that did not work, steps of a search left out.
    failures: Vec<usize>,
    /// Events that were looked at.
    scanned: usize,
    /// The row of failed look-ups that a process goes on with.
    open: HashMap<u32, usize>,
    /// The row of an exec whose outcome is not known yet, by process.
    attempts: HashMap<u32, usize>,
    /// The event to keep selected while the list is made anew.
    anchor: Option<usize>,
}

impl Default for Events {
    fn default() -> Self {
        Events {
            rows: Vec::new(),
            filter: Filter::All(Vec::new()),
            filter_text: String::new(),
            probes: false,
            follow: true,
            passed: 0,
            failures: Vec::new(),
            scanned: 0,
            open: HashMap::new(),
            attempts: HashMap::new(),
            anchor: None,
        }
    }
}

/// Events that a filter looks at in one slice.
const SLICE: usize = 2048;

/// Events of which only the marks are looked at in one slice: some milliseconds even on a busy machine.
const MARKS: usize = 1 << 16;

impl Events {
    /// Whether there are events that the filter has not seen.
    pub fn pending(&self, store: &Store) -> bool {
        self.scanned < store.len()
    }

    /// How much of the trace the filter has seen, in percent.
    pub fn percent(&self, store: &Store) -> usize {
        match store.len() {
            0 => 100,
            all => self.scanned * 100 / all,
        }
    }

    /// Makes the list anew, keeping the selected event in sight.
    pub fn restart(&mut self, list: &List) {
        self.anchor = self.rows.get(list.selected).map(|r| r.first as usize);
        self.rows.clear();
        self.failures.clear();
        self.passed = 0;
        self.open.clear();
        self.attempts.clear();
        self.scanned = 0;
    }

    /// Looks at the next events.
    pub fn scan(&mut self, store: &Store, list: &mut List) {
        if !self.pending(store) {
            return;
        }
        // Without a filter the marks are enough.
        if self.filter.is_empty() {
            let end = (self.scanned + MARKS).min(store.len());
            for at in self.scanned..end {
                if let Some(mark) = store.mark(at) {
                    self.take(at, mark);
                }
            }
            self.scanned = end;
        } else {
            let end = (self.scanned + SLICE).min(store.len());
            let mut passed = Vec::new();
            store.for_each(self.scanned..end, |at, mark, line| {
                if self.filter.holds(mark, line) {
                    passed.push((at, *mark));
                }
            });
            for (at, mark) in passed {
                self.take(at, &mark);
            }
            self.scanned = end;
        }
        if let Some(anchor) = self.anchor {
            let row = self.row_of(anchor);
            list.selected = row;
            if self.scanned > anchor {
                self.anchor = None;
            }
        } else if self.follow {
            list.selected = self.rows.len().saturating_sub(1);
        }
    }

    fn take(&mut self, at: usize, mark: &Mark) {
        let Ok(first) = u32::try_from(at) else { return };
        self.passed += 1;
        let pid = mark.pid;
        if mark.failed && !mark.probe {
            self.failures.push(self.rows.len());
        }
        let row = Row { first, count: 1 };
        let attempt = self.attempts.remove(&pid);
        if self.probes {
            self.rows.push(row);
            return;
        }
        if mark.kind_name() == "exec" {
            // A walk over PATH tries one place after the other: whether this one is a step of it, the next event tells.
            self.attempts.insert(pid, self.rows.len());
            self.rows.push(row);
            return;
        }
        if !mark.probe {
            self.open.remove(&pid);
            self.rows.push(row);
            return;
        }
        let mut steps = 1;
        if let Some(attempt) = attempt {
            if !self.open.contains_key(&pid) {
                self.open.insert(pid, attempt);
            } else if attempt + 1 == self.rows.len() {
                self.rows.pop();
                steps = 2;
            } else {
                // Rows of other processes stand behind it: the look-ups go on from there.
                self.open.insert(pid, attempt);
            }
        }
        match self.open.get(&pid).and_then(|&row| self.rows.get_mut(row)) {
            Some(open) => open.count += steps,
            None => {
                self.open.insert(pid, self.rows.len());
                self.rows.push(row);
            }
        }
    }

    /// The next row that tells of something that did not work, or the one before.
    pub fn failure(&self, from: usize, forward: bool) -> Option<usize> {
        if forward {
            let next = self.failures.partition_point(|row| *row <= from);
            return self.failures.get(next).copied();
        }
        let before = self.failures.partition_point(|row| *row < from);
        self.failures.get(before.checked_sub(1)?).copied()
    }

    /// The last row that begins at or before an event.
    pub fn row_of(&self, position: usize) -> usize {
        self.rows
            .partition_point(|r| r.first as usize <= position)
            .saturating_sub(1)
    }

    /// The events of a row, by position in the store: as many of its process as it counts.
    pub fn members(&self, store: &Store, row: Row) -> Vec<usize> {
        let first = row.first as usize;
        if row.count == 1 {
            return vec![first];
        }
        let Some(pid) = store.mark(first).map(|m| m.pid) else {
            return Vec::new();
        };
        let filtered = !self.filter.is_empty();
        (first..store.len())
            .filter(|&at| store.mark(at).is_some_and(|m| m.pid == pid))
            .filter(|&at| !filtered || self.passes(store, at))
            .take(row.count as usize)
            .collect()
    }

    fn passes(&self, store: &Store, at: usize) -> bool {
        let mut passes = false;
        store.for_each(at..at + 1, |_, mark, line| {
            passes = self.filter.holds(mark, line)
        });
        passes
    }
}

/// What a row is about.
pub fn subject(app: &App, at: usize) -> Option<Subject> {
    let row = app.events.rows.get(at)?;
    app.store
        .mark(row.first as usize)
        .map(|m| Subject::Event(m.id))
}

/// The titles.
pub fn head(app: &App, width: usize) -> Line<'static> {
    let mut out = Columns::new(app, width);
    let (pid, moment, title) = app.widths("time");
    out.right(&title, moment + 1, Tone::Dim);
    out.right("pid", pid, Tone::Dim);
    if width >= 110 {
        out.cell("program", 12, Tone::Dim);
    }
    out.cell("kind", kind_width(width), Tone::Dim);
    out.cell("toolkit", toolkit_width(width), Tone::Dim);
    out.rest("event", Tone::Dim);
    // While events come it matters whether the list goes with them.
    if !app.progress.complete {
        let (state, tone) = match app.events.follow {
            true => ("following".to_owned(), Tone::Dim),
            false => {
                let below = app
                    .events
                    .rows
                    .len()
                    .saturating_sub(app.list().selected + 1);
                let below = text::count(below as u64);
                let key = app.key_for(Action::Follow);
                (format!("{below} below, {key} follows"), Tone::Accent)
            }
        };
        if out.room() > text::width(&state) {
            let gap = out.room() - text::width(&state);
            out.push(" ".repeat(gap), Tone::Plain);
            out.push(state, tone);
        }
    }
    out.line()
}

/// Columns from which kinds are written in full.
const WHOLE_KINDS: usize = 90;

fn kind_width(width: usize) -> usize {
    if width >= WHOLE_KINDS { 15 } else { 11 }
}

/// A kind as it is told where there is little room: what is left is still found by `kind:`.
fn short_kind(kind: &str, width: usize) -> &str {
    if width >= WHOLE_KINDS {
        return kind;
    }
    ["process-", "library-"]
        .iter()
        .find_map(|start| kind.strip_prefix(start))
        .unwrap_or(kind)
}

fn toolkit_width(width: usize) -> usize {
    match width {
        100.. => 12,
        64.. => 10,
        _ => 7,
    }
}

/// A row.
pub fn line(app: &App, at: usize, width: usize) -> Option<Line<'static>> {
    let row = app.events.rows.get(at)?;
    let mark = app.store.mark(row.first as usize)?;
    let event = app.store.event(row.first as usize);
    let mut out = Columns::new(app, width);
    let (pid_width, moment, _) = app.widths("");
    out.right(&app.moment_text(mark.t), moment + 1, Tone::Dim);
    // Facts belong to no process.
    let pid = match mark.pid {
        0 => String::new(),
        pid => pid.to_string(),
    };
    out.right(&pid, pid_width, Tone::Dim);
    if width >= 110 {
        out.cell(text::base(&app.program_at(mark.pid, mark.t)), 12, Tone::Dim);
    }
    let kind_tone = match (mark.probe, mark.failed) {
        (true, _) => Tone::Dim,
        (false, true) => Tone::Error,
        (false, false) => Tone::Plain,
    };
    let kind = event
        .as_ref()
        .map_or(mark.kind_name(), |e| e.body.kind())
        .to_owned();
    out.cell(short_kind(&kind, width), kind_width(width), kind_tone);
    let toolkit = event
        .as_ref()
        .and_then(summary::file)
        .and_then(|path| app.snapshot.toolkit_of_file(path));
    let tone = toolkit.map_or(Tone::Dim, |t| Tone::Toolkit(app.snapshot.rank(t)));
    let name = toolkit
        .and_then(|t| app.snapshot.report.toolkits.get(t))
        .map_or("", |t| t.id.as_str());
    let room = toolkit_width(width);
    out.cell(
        &text::fit_middle(name, room, app.theme.ellipsis()),
        room,
        tone,
    );
    let room = out.room();
    let Some(event) = event else {
        out.rest("this line of the trace does not read", Tone::Warning);
        return Some(out.line());
    };
    if row.count > 1 {
        let tail = match (kind.as_str(), row.count - 1) {
            ("exec" | "exec-failed", more) => format!("and {more} more along PATH"),
            (_, 1) => "and 1 look-up more".to_owned(),
            (_, more) => format!("and {more} look-ups more"),
        };
        let lead = summary::line(
            &event,
            room.saturating_sub(tail.len() + 3),
            app.theme.ellipsis(),
        );
        out.rest(&lead, Tone::Dim);
        out.rest(&format!("  {tail}"), Tone::Dim);
        return Some(out.line());
    }
    let line = summary::line(&event, room, app.theme.ellipsis());
    let tone = match (mark.probe, mark.failed, toolkit) {
        (true, ..) => Tone::Dim,
        (false, true, _) => Tone::Error,
        (false, false, Some(t)) => Tone::Toolkit(app.snapshot.rank(t)),
        (false, false, None) => Tone::Plain,
    };
    out.rest(&line, tone);
    Some(out.line())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Chunk;
    use jittrace_model::Event;

    fn store(lines: &[(u32, &str)]) -> Store {
        let events: Vec<Event> = (1_u64..)
            .zip(lines)
            .map(|(id, (pid, kind))| {
                let fields = match *kind {
                    "exec" => r#""kind":"exec","path":"/a/nvcc""#,
                    "fails" => r#""kind":"exec-failed","path":"/a/nvcc","errno":2"#,
                    "stat" => r#""kind":"file","op":"stat","path":"/a/nvcc","errno":2"#,
                    _ => r#""kind":"note","text":"x""#,
                };
                let line = format!(
                    r#"{{"id":{id},"t":{id},"pid":{pid},"tid":{pid},"source":"preload",{fields}}}"#
                );
                Event::from_line(&line).unwrap()
            })
            .collect();
        let mut store = Store::default();
        store.push(Chunk::of(&events));
        store
    }

    fn rows(lines: &[(u32, &str)]) -> Vec<(u32, u32)> {
        let store = store(lines);
        let mut events = Events::default();
        events.scan(&store, &mut List::default());
        for row in &events.rows {
            assert_eq!(events.members(&store, *row).len(), row.count as usize);
        }
        events.rows.iter().map(|r| (r.first, r.count)).collect()
    }

    #[test]
    fn a_walk_over_path_is_one_row_and_its_success_another() {
        let walk = [
            (1, "exec"),
            (1, "fails"),
            (1, "exec"),
            (1, "fails"),
            (1, "exec"),
            (1, "note"),
        ];
        assert_eq!(rows(&walk), [(0, 4), (4, 1), (5, 1)]);
    }

    #[test]
    fn look_ups_of_processes_that_lie_across_each_other_fold_apart() {
        let across = [
            (1, "stat"),
            (2, "stat"),
            (1, "stat"),
            (2, "note"),
            (1, "stat"),
            (2, "stat"),
        ];
        assert_eq!(rows(&across), [(0, 3), (1, 1), (3, 1), (5, 1)]);
    }

    #[test]
    fn every_event_is_in_one_row() {
        let lines = [
            (1, "exec"),
            (2, "exec"),
            (1, "fails"),
            (2, "fails"),
            (1, "exec"),
            (2, "exec"),
            (1, "fails"),
            (2, "note"),
        ];
        let all: u32 = rows(&lines).iter().map(|(_, count)| count).sum();
        assert_eq!(all, 8);
    }
}

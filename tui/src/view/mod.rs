//! The views: one module for each, all drawn from the same snapshot and the same store of events.
//!
//! A view is a list of rows. Each module says how many rows there are, what a row is about and what it looks like;
//! selection, search, mouse and evidence are the same for all of them and live outside.

pub mod builds;
pub mod caches;
pub mod events;
pub mod findings;
pub mod libraries;
pub mod output;
pub mod processes;
pub mod resolution;
pub mod tree;

use jittrace_model::{log::SourceState, report::phrase};
use ratatui::text::{Line, Span};

use crate::{app::App, keys::Action, layout, subject::Subject, text, theme::Tone};

/// A view.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum View {
    /// Who got which toolkit.
    #[default]
    Resolution,
    /// What is wrong.
    Findings,
    /// What ran.
    Processes,
    /// Compilations.
    Builds,
    /// JIT caches.
    Caches,
    /// Mapped files.
    Libraries,
    /// Everything.
    Events,
    /// What the launched program printed.
    Output,
}

impl View {
    /// All views, in the order of their keys.
    pub const ALL: [View; 8] = [
        View::Resolution,
        View::Findings,
        View::Processes,
        View::Builds,
        View::Caches,
        View::Libraries,
        View::Events,
        View::Output,
    ];

    /// Its position, from 0.
    pub fn index(self) -> usize {
        View::ALL.iter().position(|v| *v == self).unwrap_or(0)
    }

    /// What it is called.
    pub fn title(self) -> &'static str {
        match self {
            View::Resolution => "Resolution",
            View::Findings => "Findings",
            View::Processes => "Processes",
            View::Builds => "Builds",
            View::Caches => "Caches",
            View::Libraries => "Libraries",
            View::Events => "Events",
            View::Output => "Output",
        }
    }
}

impl View {
    /// The view so many places to the right; after the last comes the first.
    pub fn beside(self, places: usize) -> View {
        let mut views = View::ALL.iter().cycle().skip(self.index() + places);
        views.next().copied().unwrap_or(self)
    }
}

/// Something of each view's own.
#[derive(Debug, Clone, Copy, Default)]
pub struct PerView<T> {
    resolution: T,
    findings: T,
    processes: T,
    builds: T,
    caches: T,
    libraries: T,
    events: T,
    output: T,
}

impl<T> std::ops::Index<View> for PerView<T> {
    type Output = T;

    fn index(&self, view: View) -> &T {
        match view {
            View::Resolution => &self.resolution,
            View::Findings => &self.findings,
            View::Processes => &self.processes,
            View::Builds => &self.builds,
            View::Caches => &self.caches,
            View::Libraries => &self.libraries,
            View::Events => &self.events,
            View::Output => &self.output,
        }
    }
}

impl<T> std::ops::IndexMut<View> for PerView<T> {
    fn index_mut(&mut self, view: View) -> &mut T {
        match view {
            View::Resolution => &mut self.resolution,
            View::Findings => &mut self.findings,
            View::Processes => &mut self.processes,
            View::Builds => &mut self.builds,
            View::Caches => &mut self.caches,
            View::Libraries => &mut self.libraries,
            View::Events => &mut self.events,
            View::Output => &mut self.output,
        }
    }
}

/// How many rows a view has.
pub fn count(app: &App, view: View) -> usize {
    match view {
        View::Resolution => app.rows.resolution.len(),
        View::Findings => app.rows.findings.len(),
        View::Processes => app.rows.processes.len(),
        View::Builds => app.rows.builds.len(),
        View::Caches => app.rows.caches.len(),
        View::Libraries => app.rows.libraries.len(),
        View::Events => app.events.rows.len(),
        View::Output => 0,
    }
}

/// What a row is about.
pub fn subject(app: &App, view: View, at: usize) -> Option<Subject> {
    match view {
        View::Resolution => resolution::subject(app, at),
        View::Findings => findings::subject(app, at),
        View::Processes => processes::subject(app, at),
        View::Builds => builds::subject(app, at),
        View::Caches => caches::subject(app, at),
        View::Libraries => libraries::subject(app, at),
        View::Events => events::subject(app, at),
        View::Output => None,
    }
}

/// A row, at a width.
pub fn line(app: &App, view: View, at: usize, width: usize) -> Line<'static> {
    match view {
        View::Resolution => resolution::line(app, at, width),
        View::Findings => findings::line(app, at, width),
        View::Processes => processes::line(app, at, width),
        View::Builds => builds::line(app, at, width),
        View::Caches => caches::line(app, at, width),
        View::Libraries => libraries::line(app, at, width),
        View::Events => events::line(app, at, width),
        View::Output => None,
    }
    .unwrap_or_default()
}

/// The titles of the columns.
pub fn head(app: &App, view: View, width: usize) -> Option<Line<'static>> {
    match view {
        View::Resolution => Some(resolution::head(app, width)),
        View::Processes => Some(processes::head(app, width)),
        View::Builds => Some(builds::head(app, width)),
        View::Caches => Some(caches::head(app, width)),
        View::Libraries => Some(libraries::head(app, width)),
        View::Events => Some(events::head(app, width)),
        View::Findings | View::Output => None,
    }
}

/// What is said when a view has nothing to show.
pub fn nothing(app: &App, view: View) -> Vec<String> {
    let waiting = !app.progress.complete && app.progress.ended.is_none();
    // What a process has done before the attach is looked for first.
    if let Some(pid) = app
        .header
        .attached
        .filter(|_| waiting && app.store.is_empty())
    {
        return vec![format!("Looking at process {pid}.")];
    }
    let lines: &[&str] = match view {
        View::Resolution if waiting => &[
            "Nothing has resolved a toolkit yet.",
            "Each component appears here as soon as it runs a tool or loads a CUDA library.",
        ],
        View::Resolution => &[
            "Nothing resolved a toolkit in this trace.",
            "No tool of a CUDA toolkit ran and no CUDA library was loaded.",
        ],
        View::Findings if waiting => &["No toolkit fault was found so far."],
        View::Findings if app.snapshot.report.exit.is_some_and(|e| !e.is_success()) => &[
            "No toolkit fault was found, though the command failed.",
            "In Events, the filter is:failed shows what did not work, kind:message what was said about it.",
        ],
        View::Findings => &["No toolkit fault was found."],
        View::Processes if waiting => &["No process has started yet."],
        View::Processes => &["The trace tells of no process."],
        View::Builds => &["No compiler, linker or build tool was seen."],
        View::Caches => &["No JIT cache was used."],
        View::Libraries => &["No CUDA library was loaded or asked for."],
        View::Events if !app.events.filter.is_empty() => &["No event passes the filter."],
        View::Events if waiting => &["No event yet."],
        View::Events => &["The trace has no event."],
        View::Output => &[],
    };
    let mut lines: Vec<String> = lines.iter().map(|l| (*l).to_owned()).collect();
    if view == View::Resolution && app.screen.used && layout::output_beside(app).is_none() {
        lines.push(format!(
            "What the command printed: {}; {} puts it beside.",
            app.key_for(Action::Show(View::Output)),
            app.key_for(Action::OutputBeside)
        ));
    }
    if view == View::Events && !app.events.filter.is_empty() {
        lines.push(format!(
            "{} shows everything again.",
            app.key_for(Action::ClearFilter)
        ));
    }
    if matches!(view, View::Processes | View::Builds) && looks_now_and_then(app) {
        lines.push(
            "This process was looked at now and then: what began and ended between two looks was not seen."
                .to_owned(),
        );
        lines.push(
            "The ebpf source sees all of it; `jittrace doctor` tells what it needs.".to_owned(),
        );
    }
    lines
}

/// Whether the trace is of a live process that no source watched all the time.
fn looks_now_and_then(app: &App) -> bool {
    let watched = app
        .header
        .sources
        .iter()
        .any(|s| s.name == "ebpf" && s.state == SourceState::Active);
    app.header.attached.is_some() && !watched
}

/// All of a row as text, for the search.
pub fn row_text(app: &App, view: View, at: usize) -> String {
    let line = line(app, view, at, 600);
    let mut out = String::new();
    for span in &line.spans {
        out.push_str(&span.content);
    }
    out
}

/// The widest of some texts, at least as wide as their title and at most so many columns.
pub(crate) fn widest<'a>(title: &str, texts: impl Iterator<Item = &'a str>, most: usize) -> usize {
    let widest = texts.map(text::width).max().unwrap_or_default();
    widest.clamp(text::width(title).min(most), most)
}

/// A line that is put together from pieces of fixed width.
pub(crate) struct Columns<'a> {
    app: &'a App,
    spans: Vec<Span<'static>>,
    used: usize,
    width: usize,
}

impl<'a> Columns<'a> {
    pub(crate) fn new(app: &'a App, width: usize) -> Self {
        Columns {
            app,
            spans: Vec::new(),
            used: 0,
            width,
        }
    }

    /// Columns that are left.
    pub(crate) fn room(&self) -> usize {
        self.width.saturating_sub(self.used)
    }

    /// A text in a column of this width, followed by one space.
    pub(crate) fn cell(&mut self, content: &str, width: usize, tone: Tone) -> &mut Self {
        let width = width.min(self.room());
        let content = text::clean(content);
        let content = self.app.theme.glyphs(&content);
        let content = text::fit(&content, width, self.app.theme.ellipsis()).into_owned();
        self.padded(content, width, tone)
    }

    /// A text and the spaces after it: these have no tone, so that nothing is underlined where nothing stands.
    fn padded(&mut self, content: String, width: usize, tone: Tone) -> &mut Self {
        let until = (self.used + width + 1).min(self.width);
        self.push(content, tone);
        let gap = until.saturating_sub(self.used);
        self.push(" ".repeat(gap), Tone::Plain)
    }

    /// The same with the text at the right.
    pub(crate) fn right(&mut self, content: &str, width: usize, tone: Tone) -> &mut Self {
        let width = width.min(self.room());
        let content = self.app.theme.glyphs(content);
        let content = text::fit(&content, width, self.app.theme.ellipsis());
        let padded = text::pad(
            &text::pad_left(&content, width),
            (width + 1).min(self.room()),
        );
        self.push(padded, tone)
    }

    /// A path in a column of this width; its middle gives way.
    pub(crate) fn path(&mut self, path: &str, width: usize, tone: Tone) -> &mut Self {
        let width = width.min(self.room());
        let path = text::clean(path);
        let path = self.app.theme.glyphs(&path);
        let fitted = text::fit_path(&path, width, self.app.theme.ellipsis()).into_owned();
        self.padded(fitted, width, tone)
    }

    /// A text that takes what it needs, up to what is left.
    pub(crate) fn rest(&mut self, content: &str, tone: Tone) -> &mut Self {
        let content = text::clean(content);
        let content = self.app.theme.glyphs(&content);
        let content = text::fit(&content, self.room(), self.app.theme.ellipsis()).into_owned();
        self.push(content, tone)
    }

    pub(crate) fn push(&mut self, content: String, tone: Tone) -> &mut Self {
        self.used += text::width(&content);
        self.spans
            .push(Span::styled(content, self.app.theme.style(tone)));
        self
    }

    pub(crate) fn styled(&mut self, content: String, style: ratatui::style::Style) -> &mut Self {
        self.used += text::width(&content);
        self.spans.push(Span::styled(content, style));
        self
    }

    pub(crate) fn line(&mut self) -> Line<'static> {
        Line::from(std::mem::take(&mut self.spans))
    }
}

/// How something ended, in a word.
pub(crate) fn exit_word(exit: jittrace_model::report::Exit) -> (String, Tone) {
    match (exit.code, exit.signal) {
        (Some(0), _) => ("ok".to_owned(), Tone::Good),
        (Some(code), _) => (format!("exit {code}"), Tone::Error),
        (None, Some(signal)) => (phrase::signal_name(signal), Tone::Error),
        (None, None) => ("ended".to_owned(), Tone::Dim),
    }
}

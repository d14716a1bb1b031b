//! The state of the screen, and what changes it: [`App::update`] takes one message and says what is to be done.
//!
//! Nothing here draws, reads or writes; so a test can press any keys and look at what comes of it.

mod acting;
mod asking;
mod copying;
mod mouse;
mod moving;
mod places;
mod searching;

use std::{borrow::Cow, collections::HashSet, sync::Arc};

use crossterm::event::{KeyEvent, KeyEventKind, MouseEvent};
use jittrace_model::{
    EventId,
    log::Header,
    report::{Exit, Report},
};

use crate::{
    clock::{self, Clock, Times},
    filter::Filter,
    keys::{Action, Front},
    layout::{self, Areas, Layout, OutputPlace},
    list::List,
    overlay::Overlay,
    settings::Settings,
    snapshot::Snapshot,
    store::Store,
    subject::Subject,
    theme::{Theme, Tone},
    view::{
        self, PerView, View, builds, caches, events::Events, findings, libraries, output::Screen,
        processes, resolution, tree::TreeRow,
    },
    why::Link,
    worker::{Input, Published},
};

/// Where the events come from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mode {
    /// A trace that is read from its beginning to its end.
    #[default]
    Replay,
    /// A trace that is being written.
    Follow,
    /// A command that was launched and runs in the Output view.
    Launch,
    /// A process that was attached to.
    Attach,
}

/// What can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Export {
    /// The report as text.
    Text,
    /// The report as Markdown.
    Markdown,
    /// The report as JSON.
    Json,
    /// The report as one HTML page.
    Html,
    /// Everything that a bug report needs.
    Bundle,
}

impl Export {
    /// All of them, with the key and the words of the menu.
    pub const ALL: [(Export, char, &'static str); 5] = [
        (Export::Text, 't', "report as text"),
        (Export::Markdown, 'm', "report as Markdown"),
        (Export::Json, 'j', "report as JSON"),
        (Export::Html, 'h', "report as HTML"),
        (Export::Bundle, 'b', "bundle for a bug report"),
    ];
}

/// How a view was left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing runs any more, or nothing was launched.
    Quit,
    /// The launched program goes on, and so does the recording, without the view.
    Leave,
    /// The launched program is to be stopped.
    Stop,
    /// The terminal is gone; program and recording go on.
    TerminalLost,
}

/// Something that happened.
#[derive(Debug)]
pub enum Msg {
    /// A key.
    Key(KeyEvent),
    /// The mouse.
    Mouse(MouseEvent),
    /// A pasted text.
    Paste(String),
    /// The terminal has another size.
    Resize(u16, u16),
    /// News of the trace.
    Published(Published),
    /// Time went on: nanoseconds since the view began.
    Tick(u64),
    /// There was nothing else to do: the list of events goes on.
    Work,
    /// Something was written, to this place; or it was not, for this reason.
    Exported(Result<String, String>),
    /// The terminal can no longer be read.
    TerminalLost,
}

/// Something to be done by whoever holds the terminal and the trace.
#[derive(Debug, PartialEq)]
pub enum Effect {
    /// The view ends.
    End(Outcome),
    /// A text goes to the clipboard.
    Copy(String),
    /// Something is to be written.
    Export(Export, Arc<Report>),
    /// Bytes go to the launched program.
    Send(Vec<u8>),
    /// The launched program's terminal has another size: columns, rows.
    ResizeTerminal(u16, u16),
}

/// Where keys go.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Focus {
    /// The view.
    #[default]
    List,
    /// The pane of evidence.
    Why,
    /// The launched program.
    Program,
}

/// The pane of evidence.
#[derive(Debug, Clone)]
pub struct Why {
    /// What it is about.
    pub subject: Subject,
    /// The chain.
    pub links: Vec<Link>,
    /// The selected link.
    pub selected: usize,
    /// The first line shown.
    pub offset: usize,
    /// Nothing is left out.
    pub expanded: bool,
}

/// A place that can be gone back to.
#[derive(Debug, Clone, PartialEq)]
pub struct Place {
    view: View,
    subject: Option<Subject>,
    why: Option<Subject>,
}

/// How far the trace is.
#[derive(Debug, Clone, Default)]
pub struct Progress {
    /// Bytes so far.
    pub bytes: u64,
    /// Bytes in all, where known.
    pub of: Option<u64>,
    /// There will be no more events.
    pub complete: bool,
    /// How the launched program ended.
    pub ended: Option<Exit>,
}

/// The rows of every view but the events. Those of a view are made when it comes to the front, or when something in it
/// is looked for; rows of the others may be older than the snapshot.
#[derive(Debug, Default)]
pub struct Rows {
    /// What was selected in a view whose rows are older than the snapshot.
    outdated: PerView<Option<Option<Subject>>>,
    /// Components.
    pub resolution: Vec<resolution::Row>,
    /// Findings.
    pub findings: Vec<findings::Row>,
    /// Processes.
    pub processes: Vec<TreeRow>,
    /// Builds.
    pub builds: Vec<TreeRow>,
    /// Columns that their names take.
    pub build_names: usize,
    /// Caches and their artefacts.
    pub caches: Vec<caches::Row>,
    /// Libraries, by position in the snapshot.
    pub libraries: Vec<usize>,
    /// How wide their columns are.
    pub library_widths: libraries::Widths,
}

/// What a screen is begun with.
#[derive(Debug, Clone, Default)]
pub struct Setup {
    /// Where the events come from.
    pub mode: Mode,
    /// The look.
    pub theme: Theme,
    /// Path of the trace, as it is shown.
    pub trace: String,
    /// Keys and layout.
    pub settings: Settings,
    /// Seconds that the clock of whoever looks is ahead of UTC.
    pub ahead_of_utc: i32,
}

/// The state of the screen.
#[derive(Debug)]
pub struct App {
    /// What it was begun with.
    pub setup: Setup,
    /// The look.
    pub theme: Theme,
    /// The trace's header.
    pub header: Header,
    /// The model at the latest moment.
    pub snapshot: Arc<Snapshot>,
    /// Every event.
    pub store: Store,
    /// Columns and rows of the terminal.
    pub size: (u16, u16),
    /// The view in front.
    pub view: View,
    lists: PerView<List>,
    /// Someone chose the selected row; until then a view stays at its first one, whatever comes.
    row_chosen: PerView<bool>,
    sorts: PerView<usize>,
    /// The selected column of the Resolution view.
    pub column: usize,
    /// Someone chose that column.
    column_chosen: bool,
    /// One process, or all.
    pub process: Option<u32>,
    /// Builds are shown as bars.
    pub timeline: bool,
    /// Rows of the views.
    pub rows: Rows,
    /// The list of events.
    pub events: Events,
    folded_processes: HashSet<EventId>,
    folded_builds: HashSet<EventId>,
    folded_caches: HashSet<String>,
    open_findings: HashSet<Subject>,
    /// The launched program's terminal.
    pub screen: Screen,
    /// The pane of evidence.
    pub why: Option<Why>,
    /// Where keys go.
    pub focus: Focus,
    /// The pane in focus fills the screen.
    pub zoomed: bool,
    /// Where the evidence stands.
    pub layout: Layout,
    /// What lies over the view.
    pub overlay: Option<Overlay>,
    /// What is searched for, in lower case.
    pub search: String,
    search_job: Option<SearchJob>,
    searches: Vec<String>,
    filters: Vec<String>,
    /// Percent of the screen that the pane of evidence takes.
    pub share: u16,
    /// Where the launched program's terminal stands.
    pub output: OutputPlace,
    /// How moments are told.
    pub times: Times,
    /// A sentence for the bottom line, and when it goes away.
    pub notice: Option<(String, Tone, u64)>,
    /// How far the trace is.
    pub progress: Progress,
    /// Nanoseconds since the view began.
    pub now: u64,
    /// How far the trace's time is ahead of the view's, where the trace is being written.
    ahead: Option<i64>,
    /// Events in a second, lately.
    pub rate: u64,
    rate_mark: (u64, usize),
    past: Vec<Place>,
    future: Vec<Place>,
    last_click: Option<(u16, u16, u64)>,
    previous_filter: Option<(Filter, String)>,
}

/// A search through the events that is under way.
#[derive(Debug, Clone, Copy)]
struct SearchJob {
    next: usize,
    forward: bool,
    left: usize,
}

/// Nanoseconds that a notice stays.
const NOTICE: u64 = 6_000_000_000;

/// Events that a search looks at in one slice.
const SEARCH_SLICE: usize = 2048;

impl App {
    /// A screen without any event yet.
    pub fn new(header: Header, setup: Setup) -> App {
        App {
            theme: setup.theme,
            layout: setup.settings.layout,
            share: setup.settings.share,
            output: setup.settings.output,
            times: setup.settings.times,
            overlay: setup.settings.problem.clone().map(Overlay::Told),
            setup,
            header,
            snapshot: Arc::default(),
            store: Store::default(),
            size: (80, 24),
            view: View::Resolution,
            lists: PerView::default(),
            row_chosen: PerView::default(),
            sorts: PerView::default(),
            column: 1,
            column_chosen: false,
            process: None,
            timeline: true,
            rows: Rows::default(),
            events: Events::default(),
            folded_processes: HashSet::new(),
            folded_builds: HashSet::new(),
            folded_caches: HashSet::new(),
            open_findings: HashSet::new(),
            screen: Screen::default(),
            why: None,
            focus: Focus::List,
            zoomed: false,
            search: String::new(),
            search_job: None,
            searches: Vec::new(),
            filters: Vec::new(),
            notice: None,
            progress: Progress::default(),
            now: 0,
            ahead: None,
            rate: 0,
            rate_mark: (0, 0),
            past: Vec::new(),
            future: Vec::new(),
            last_click: None,
            previous_filter: None,
        }
    }

    /// The selection of the view in front.
    pub fn list(&self) -> List {
        self.lists[self.view]
    }

    /// The same, for a person who moves it.
    fn list_mut(&mut self) -> &mut List {
        self.row_chosen[self.view] = true;
        &mut self.lists[self.view]
    }

    /// The order of a view, by its position among the view's orders.
    pub fn sort(&self, view: View) -> usize {
        self.sorts[view]
    }

    /// Where keys go, as the key map calls it.
    pub fn front(&self) -> Front {
        match self.focus {
            Focus::List => Front::View(self.view),
            Focus::Why => Front::Why,
            Focus::Program => Front::Program,
        }
    }

    /// The first key that does something where keys go now.
    pub fn key_for(&self, action: Action) -> &str {
        self.setup.settings.keys.key(self.front(), action)
    }

    /// The clock of the trace, where it is known.
    pub fn clock(&self) -> Option<Clock> {
        Clock::of(self.header.started_unix_ns, self.setup.ahead_of_utc)
    }

    /// A moment of the trace as lists tell it.
    pub fn moment_text(&self, t: u64) -> String {
        clock::moment(t, self.clock().filter(|_| self.times == Times::Clock))
    }

    /// The columns that every process id fits in, and every moment, and what is said above the moments: `since_start`,
    /// unless they are times of day.
    pub(crate) fn widths<'a>(&self, since_start: &'a str) -> (usize, usize, Cow<'a, str>) {
        let (pid, moment) = self.store.widths();
        match self.clock().filter(|_| self.times == Times::Clock) {
            Some(clock) => (pid, clock::TIME, Cow::Owned(clock.zone())),
            None => (pid, moment, Cow::Borrowed(since_start)),
        }
    }

    /// Where everything is on the screen.
    pub fn areas(&self) -> Areas {
        layout::areas(self)
    }

    /// The moment up to which the trace is known, in its own time: while something runs, time goes on between events.
    pub fn moment(&self) -> u64 {
        let last = self.snapshot.last_t;
        let ended = self.progress.ended.or(self.snapshot.report.exit).is_some();
        match self.ahead {
            Some(ahead) if !self.progress.complete && !ended => {
                last.max(self.now.saturating_add_signed(ahead))
            }
            _ => last,
        }
    }

    /// An event that has just come tells how far the trace is. Those that come late say too little: the largest counts.
    fn set_clock(&mut self) {
        if self.setup.mode == Mode::Replay {
            return;
        }
        let Some(mark) = self.store.mark(self.store.len().saturating_sub(1)) else {
            return;
        };
        let signed = |t: u64| i64::try_from(t).unwrap_or(i64::MAX);
        let ahead = signed(mark.t) - signed(self.now);
        self.ahead = Some(self.ahead.map_or(ahead, |known| known.max(ahead)));
    }

    /// Whether keys would reach a program.
    pub fn has_program(&self) -> bool {
        self.setup.mode == Mode::Launch && self.progress.ended.is_none()
    }

    /// Whether something is still to be looked at when there is time.
    pub fn has_work(&self) -> bool {
        self.search_job.is_some() || self.events.pending(&self.store)
    }

    /// Takes one message.
    pub fn update(&mut self, msg: Msg) -> Vec<Effect> {
        let mut effects = Vec::new();
        // What comes by the thousand while a trace is read moves nothing on the screen.
        let moves = !matches!(
            msg,
            Msg::Tick(_)
                | Msg::Published(Published::Chunk(_) | Published::Other(Input::Size { .. }))
        );
        match msg {
            Msg::Key(key) if key.kind != KeyEventKind::Release => self.key(key, &mut effects),
            Msg::Key(_) => {}
            Msg::Mouse(mouse) => self.mouse(mouse, &mut effects),
            Msg::Paste(text) => self.paste(&text, &mut effects),
            Msg::Resize(columns, rows) => {
                self.size = (columns, rows);
            }
            Msg::Published(published) => effects.extend(self.published(published)),
            Msg::Tick(now) => self.tick(now),
            Msg::Work => self.work(),
            Msg::Exported(Ok(place)) => self.say(format!("written to {place}"), Tone::Good),
            Msg::Exported(Err(reason)) => self.say(reason, Tone::Error),
            Msg::TerminalLost => effects.push(Effect::End(Outcome::TerminalLost)),
        }
        if moves {
            self.resize_program(&mut effects);
            self.settle();
        }
        effects
    }

    fn say(&mut self, text: impl Into<String>, tone: Tone) {
        self.notice = Some((text.into(), tone, self.now + NOTICE));
    }

    fn settle(&mut self) {
        self.freshen(self.view);
        let (count, height) = (
            view::count(self, self.view),
            self.areas().rows.height as usize,
        );
        self.lists[self.view].settle(count, height);
        let height = self.areas().why.map_or(0, |a| a.height as usize);
        let width = self.areas().why.map_or(0, |a| a.width as usize);
        if let Some(mut why) = self.why.take() {
            why.selected = why.selected.min(why.links.len().saturating_sub(1));
            let lines = crate::draw::why_lines(self, &why, width);
            let first = lines
                .iter()
                .position(|(link, _)| *link == why.selected)
                .unwrap_or(0);
            let last = lines
                .iter()
                .rposition(|(link, _)| *link == why.selected)
                .unwrap_or(first);
            if last >= why.offset + height {
                why.offset = (last + 1).saturating_sub(height);
            }
            if first < why.offset {
                why.offset = first;
            }
            why.offset = why.offset.min(lines.len().saturating_sub(height));
            self.why = Some(why);
        }
    }

    fn tick(&mut self, now: u64) {
        self.now = now;
        if self
            .notice
            .as_ref()
            .is_some_and(|(_, _, until)| *until <= now)
        {
            self.notice = None;
        }
        let (since, events) = self.rate_mark;
        let passed = now.saturating_sub(since);
        if passed >= 1_000_000_000 {
            let more = self.store.len().saturating_sub(events) as u64;
            self.rate = more * 1_000_000_000 / passed;
            self.rate_mark = (now, self.store.len());
        }
    }

    fn work(&mut self) {
        let mut list = self.lists[View::Events];
        self.events.scan(&self.store, &mut list);
        self.lists[View::Events] = list;
        self.search_on();
    }

    fn published(&mut self, published: Published) -> Option<Effect> {
        match published {
            Published::Chunk(chunk) => {
                self.store.push(chunk);
                self.set_clock();
            }
            Published::Snapshot(snapshot) => {
                for view in View::ALL {
                    self.outdate(view);
                }
                self.snapshot = snapshot;
                self.freshen(self.view);
                self.refresh_why();
            }
            Published::Broken(reason) => self.say(reason, Tone::Error),
            Published::Other(Input::Size { bytes, of }) => {
                self.progress.bytes = bytes;
                self.progress.of = of;
            }
            Published::Other(Input::Output(bytes)) => {
                self.screen.write(&bytes);
            }
            Published::Other(Input::Ended(exit)) => {
                self.progress.ended = Some(exit);
                if self.focus == Focus::Program {
                    self.focus = Focus::List;
                }
                let (word, _) = view::exit_word(exit);
                let tone = if exit.is_success() {
                    Tone::Good
                } else {
                    Tone::Error
                };
                self.say(format!("the program ended: {word}"), tone);
            }
            Published::Other(Input::Notice(text)) => self.say(text, Tone::Warning),
            Published::Other(Input::Complete) => {
                self.progress.complete = true;
                // What was still running has no end.
                self.refresh_why();
            }
            Published::Other(Input::End(outcome)) => return Some(Effect::End(outcome)),
            Published::Other(Input::Events(_)) => {}
        }
        None
    }

    /// The rows of a view are to be made anew; what is selected in it stays so.
    fn outdate(&mut self, view: View) {
        if self.rows.outdated[view].is_none() && view != View::Events {
            self.rows.outdated[view] = Some(self.selected_in(view));
        }
    }

    /// Makes the rows of a view anew, if they are older than what they show.
    fn freshen(&mut self, view: View) {
        let Some(selected) = self.rows.outdated[view].take() else {
            return;
        };
        let snapshot = &self.snapshot;
        let (sort, rows) = (self.sorts[view], &mut self.rows);
        match view {
            View::Resolution => rows.resolution = resolution::rows(snapshot, self.process, sort),
            View::Findings => {
                rows.findings = findings::rows(snapshot, |s| self.open_findings.contains(s));
            }
            View::Processes => {
                rows.processes = processes::rows(snapshot, &self.folded_processes, sort);
            }
            View::Builds => {
                rows.builds = builds::rows(snapshot, &self.folded_builds, sort);
                rows.build_names = builds::names(snapshot, &rows.builds);
            }
            View::Caches => rows.caches = caches::rows(snapshot, &self.folded_caches),
            View::Libraries => {
                rows.libraries = libraries::rows(snapshot, self.process, sort);
                rows.library_widths = libraries::widths(snapshot, self.process, &rows.libraries);
            }
            View::Events | View::Output => {}
        }
        if view == View::Resolution
            && !self.column_chosen
            && let Some(column) = resolution::first_column(self)
        {
            self.column = column;
        }
        // Who stands at the first finding wants to see the worst one, which may just have come.
        let first = view == View::Findings && self.lists[view].selected == 0;
        if !first
            && self.row_chosen[view]
            && let Some(at) = selected.and_then(|subject| self.row_of(view, &subject))
        {
            self.lists[view].selected = at;
        }
    }

    /// Makes the rows of a view anew, after what they depend on has changed.
    fn rebuild(&mut self, view: View) {
        self.outdate(view);
        self.freshen(view);
    }

    fn resize_program(&mut self, effects: &mut Vec<Effect>) {
        let area = layout::output_area(self);
        if area.width > 0 && area.height > 0 && self.screen.size() != (area.width, area.height) {
            self.screen.resize(area.width, area.height);
            if self.setup.mode == Mode::Launch {
                effects.push(Effect::ResizeTerminal(area.width, area.height));
            }
        }
    }
}

//! The state of the screen, and what changes it: [`App::update`] takes one message and says what is to be done.
//!
//! Nothing here draws, reads or writes; so a test can press any keys and look at what comes of it.

use std::{collections::HashSet, sync::Arc};

use crossterm::event::{
    KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};
use jittrace_model::{
    Body,
    log::Header,
    report::{Exit, Report},
};

use crate::{
    copy,
    filter::{self, Filter},
    keys::{self, Action},
    layout::{self, Areas},
    list::List,
    overlay::{Overlay, Prompt, Purpose},
    snapshot::Snapshot,
    store::Store,
    subject::Subject,
    text,
    theme::{Theme, Tone},
    view::{
        self, PerView, View, builds, caches, events::Events, findings, libraries, output::Screen,
        processes, resolution, tree::TreeRow,
    },
    why::{self, Evidence, Link, Target},
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

/// The rows of every view but the events.
#[derive(Debug, Default)]
pub struct Rows {
    /// Components.
    pub resolution: Vec<resolution::Row>,
    /// Findings.
    pub findings: Vec<findings::Row>,
    /// Processes.
    pub processes: Vec<TreeRow>,
    /// Builds.
    pub builds: Vec<TreeRow>,
    /// What the builds say together.
    pub build_facts: builds::Facts,
    /// Caches and their artefacts.
    pub caches: Vec<caches::Row>,
    /// Libraries, by position in the snapshot.
    pub libraries: Vec<usize>,
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
    folded_processes: HashSet<usize>,
    folded_builds: HashSet<u32>,
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
    /// What lies over the view.
    pub overlay: Option<Overlay>,
    /// What is searched for, in lower case.
    pub search: String,
    search_job: Option<SearchJob>,
    /// A sentence for the bottom line, and when it goes away.
    pub notice: Option<(String, Tone, u64)>,
    /// How far the trace is.
    pub progress: Progress,
    /// Nanoseconds since the view began.
    pub now: u64,
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
            setup,
            header,
            snapshot: Arc::default(),
            store: Store::default(),
            size: (80, 24),
            view: View::Resolution,
            lists: PerView::default(),
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
            overlay: None,
            search: String::new(),
            search_job: None,
            notice: None,
            progress: Progress::default(),
            now: 0,
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

    fn list_mut(&mut self) -> &mut List {
        &mut self.lists[self.view]
    }

    /// The order of a view, by its position among the view's orders.
    pub fn sort(&self, view: View) -> usize {
        self.sorts[view]
    }

    /// Where everything is on the screen.
    pub fn areas(&self) -> Areas {
        layout::areas(self)
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
        self.resize_program(&mut effects);
        self.settle();
        effects
    }

    fn say(&mut self, text: impl Into<String>, tone: Tone) {
        self.notice = Some((text.into(), tone, self.now + NOTICE));
    }

    fn settle(&mut self) {
        let (count, height) = (
            view::count(self, self.view),
            self.areas().rows.height as usize,
        );
        let list = self.list_mut();
        list.settle(count, height);
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
            Published::Chunk(chunk) => self.store.push(chunk),
            Published::Snapshot(snapshot) => {
                let kept: Vec<(View, Option<Subject>)> = View::ALL
                    .iter()
                    .filter(|v| **v != View::Events)
                    .map(|&v| (v, self.selected_in(v)))
                    .collect();
                self.snapshot = snapshot;
                self.rebuild();
                if !self.column_chosen
                    && let Some(column) = resolution::first_column(self)
                {
                    self.column = column;
                }
                for (view, subject) in kept {
                    if let Some(at) = subject.and_then(|s| self.row_of(view, &s)) {
                        self.lists[view].selected = at;
                    }
                }
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
            Published::Other(Input::Complete) => self.progress.complete = true,
            Published::Other(Input::End(outcome)) => return Some(Effect::End(outcome)),
            Published::Other(Input::Events(_)) => {}
        }
        None
    }

    /// Makes the rows of all views anew.
    fn rebuild(&mut self) {
        let snapshot = Arc::clone(&self.snapshot);
        let sort = |view: View| self.sorts[view];
        self.rows = Rows {
            resolution: resolution::rows(&snapshot, self.process, sort(View::Resolution)),
            findings: findings::rows(&snapshot, |s| self.open_findings.contains(s)),
            processes: processes::rows(&snapshot, &self.folded_processes, sort(View::Processes)),
            builds: builds::rows(&snapshot, &self.folded_builds, sort(View::Builds)),
            build_facts: builds::facts(&snapshot),
            caches: caches::rows(&snapshot, &self.folded_caches),
            libraries: libraries::rows(&snapshot, self.process, sort(View::Libraries)),
        };
    }

    fn selected_in(&self, view: View) -> Option<Subject> {
        view::subject(self, view, self.lists[view].selected)
    }

    /// What the selected row of the view in front is about.
    pub fn selected(&self) -> Option<Subject> {
        self.selected_in(self.view)
    }

    /// The row of a view that is about something.
    fn row_of(&self, view: View, subject: &Subject) -> Option<usize> {
        if view == View::Events {
            let Subject::Event(id) = subject else {
                return None;
            };
            let position = self.store.position(*id)?;
            let row = self.events.row_of(position);
            let members = self
                .events
                .rows
                .get(row)
                .map(|r| self.events.members(&self.store, *r))?;
            if members.contains(&position) {
                return Some(row);
            }
            // Folded look-ups of several processes lie across each other: the event may be in an earlier row.
            let pid = self.store.mark(position)?.pid;
            return (0..row).rev().take(2000).find(|&at| {
                self.events.rows.get(at).is_some_and(|r| {
                    r.count > 1
                        && self
                            .store
                            .mark(r.first as usize)
                            .is_some_and(|m| m.pid == pid)
                        && self.events.members(&self.store, *r).contains(&position)
                })
            });
        }
        let same = |at: usize| match (view::subject(self, view, at), subject) {
            (Some(Subject::Cell { component: a, .. }), Subject::Cell { component: b, .. }) => {
                a == *b
            }
            (Some(here), wanted) => here == *wanted,
            (None, _) => false,
        };
        (0..view::count(self, view)).find(|&at| same(at))
    }

    fn evidence(&self, expanded: bool) -> Evidence<'_> {
        Evidence {
            snapshot: &self.snapshot,
            store: &self.store,
            process: self.process,
            expanded,
        }
    }

    fn chain(&self, subject: &Subject, expanded: bool) -> Vec<Link> {
        let evidence = self.evidence(expanded);
        // A row of folded look-ups shows each of them.
        if let Subject::Event(id) = subject
            && let Some(position) = self.store.position(*id)
            && let Some(row) = self.events.rows.get(self.events.row_of(position))
            && row.count > 1
            && row.first as usize == position
        {
            let mut links = vec![Link {
                label: format!("{} look-ups that found nothing", row.count),
                tone: Tone::Heading,
                ..Link::default()
            }];
            for at in self.events.members(&self.store, *row) {
                if let Some(event) = self.store.event(at) {
                    links.push(Link {
                        depth: 1,
                        label: format!("#{}", event.id),
                        text: crate::summary::line(&event, 400, "…"),
                        tone: Tone::Dim,
                        copy: crate::summary::file(&event).map(str::to_owned),
                        ..Link::default()
                    });
                }
            }
            links.push(Link::default());
            links.extend(why::chain(&evidence, subject));
            return links;
        }
        why::chain(&evidence, subject)
    }

    /// The title of the pane of evidence.
    pub fn why_title(&self, subject: &Subject) -> String {
        why::title(&self.evidence(false), subject)
    }

    fn refresh_why(&mut self) {
        if let Some(mut why) = self.why.take() {
            why.links = self.chain(&why.subject, why.expanded);
            self.why = Some(why);
        }
    }

    fn place(&self) -> Place {
        Place {
            view: self.view,
            subject: self.selected(),
            why: self.why.as_ref().map(|w| w.subject.clone()),
        }
    }

    fn remember(&mut self) {
        let place = self.place();
        if self.past.last() != Some(&place) {
            self.past.push(place);
            if self.past.len() > 200 {
                self.past.remove(0);
            }
        }
        self.future.clear();
    }

    fn travel(&mut self, back: bool) {
        let here = self.place();
        let place = if back {
            self.past.pop()
        } else {
            self.future.pop()
        };
        let Some(place) = place else {
            let text = if back {
                "this is where it began"
            } else {
                "there is no place further on"
            };
            self.say(text, Tone::Note);
            return;
        };
        if back {
            self.future.push(here);
        } else {
            self.past.push(here);
        }
        self.view = place.view;
        self.why = None;
        self.focus = Focus::List;
        self.zoomed = false;
        if let Some(at) = place.subject.and_then(|s| self.row_of(place.view, &s)) {
            self.list_mut().selected = at;
        }
        if let Some(subject) = place.why {
            self.open_why(subject);
        }
    }

    fn open_why(&mut self, subject: Subject) {
        let links = self.chain(&subject, false);
        self.why = Some(Why {
            subject,
            links,
            selected: 0,
            offset: 0,
            expanded: false,
        });
    }

    /// Goes to the row that is about something, and opens its evidence.
    fn go(&mut self, subject: Subject) {
        self.remember();
        let view = subject.view();
        if let Subject::Cell { column, .. } = &subject {
            self.column = *column;
        }
        self.view = view;
        self.zoomed = false;
        self.focus = Focus::List;
        self.unfold(&subject);
        if view == View::Events {
            self.events.follow = false;
            while self.events.pending(&self.store) && self.events.filter.is_empty() {
                self.work();
            }
        }
        match self.row_of(view, &subject) {
            Some(at) => self.list_mut().selected = at,
            None if view == View::Events && !self.events.filter.is_empty() => {
                self.say(
                    "the filter hides that event; x shows everything",
                    Tone::Warning,
                );
            }
            None => {}
        }
        self.open_why(subject);
    }

    /// Unfolds whatever hides a row.
    fn unfold(&mut self, subject: &Subject) {
        match subject {
            Subject::Process(at) => {
                for above in self.snapshot.ancestry(*at).into_iter().skip(1) {
                    self.folded_processes.remove(&above);
                }
            }
            Subject::Build(id) => {
                let mut above = Some(*id);
                while let Some(id) = above {
                    let build = self.snapshot.report.builds.iter().find(|b| b.id == id);
                    above = build.and_then(|b| b.parent).filter(|p| *p < id);
                    if let Some(above) = above {
                        self.folded_builds.remove(&above);
                    }
                }
            }
            Subject::Artifact(path) => {
                let cache = self
                    .snapshot
                    .report
                    .caches
                    .iter()
                    .find(|c| c.artifacts.iter().any(|a| a.path == *path));
                if let Some(directory) = cache.map(|c| c.directory.clone()) {
                    self.folded_caches.remove(&directory);
                }
            }
            Subject::Finding(id, title) => {
                let found = findings::find(&self.snapshot, id, title);
                let cause = found.and_then(|f| f.consequence_of.clone());
                let keys: Vec<Subject> = self
                    .snapshot
                    .report
                    .findings
                    .iter()
                    .filter(|f| Some(&f.id) == cause.as_ref())
                    .map(findings::key)
                    .collect();
                self.open_findings.extend(keys);
            }
            _ => return,
        }
        self.rebuild();
    }

    fn show(&mut self, view: View) {
        if self.view == view {
            return;
        }
        self.remember();
        self.view = view;
        self.why = None;
        self.zoomed = false;
        self.focus = Focus::List;
    }

    fn key(&mut self, key: KeyEvent, effects: &mut Vec<Effect>) {
        self.column_chosen = true;
        if self.overlay.is_some() {
            self.overlay_key(key, effects);
            return;
        }
        if self.focus == Focus::Program {
            let released = matches!(key.code, KeyCode::Char(']' | '5'))
                && key.modifiers.contains(KeyModifiers::CONTROL);
            if released {
                self.focus = Focus::List;
                self.say("keys are yours again", Tone::Note);
            } else {
                self.screen.scroll_to(true);
                let bytes = keys::encode(key, self.screen.application_cursor());
                if !bytes.is_empty() {
                    effects.push(Effect::Send(bytes));
                }
            }
            return;
        }
        let in_why = self.focus == Focus::Why;
        match keys::find(key, self.view, in_why) {
            Some(binding) => self.act(binding.action, effects),
            None => {
                if let Some(name) = keys::name(key) {
                    self.say(
                        format!("{name} has no meaning here; ? lists the keys"),
                        Tone::Dim,
                    );
                }
            }
        }
    }

    fn page(&self) -> isize {
        let areas = self.areas();
        let height = match (self.focus, areas.why) {
            (Focus::Why, Some(why)) => why.height,
            _ => areas.rows.height,
        };
        isize::try_from(height.saturating_sub(1).max(1)).unwrap_or(1)
    }

    fn act(&mut self, action: Action, effects: &mut Vec<Effect>) {
        match action {
            Action::Up => self.step(-1),
            Action::Down => self.step(1),
            Action::PageUp => self.step(-self.page()),
            Action::PageDown => self.step(self.page()),
            Action::HalfUp => self.step(-self.page() / 2),
            Action::HalfDown => self.step(self.page() / 2),
            Action::First => self.step(isize::MIN),
            Action::Last => self.step(isize::MAX),
            Action::Left | Action::Right => self.sideways(action == Action::Right),
            Action::Open => self.open(),
            Action::Close => self.close(),
            Action::Switch => match (self.focus, self.why.is_some()) {
                (Focus::List, true) => self.focus = Focus::Why,
                (Focus::Why, _) => self.focus = Focus::List,
                _ => self.act(Action::NextView, effects),
            },
            Action::Zoom => self.zoomed = !self.zoomed,
            Action::Fold => self.fold(),
            Action::FoldAll => self.fold_all(),
            Action::Show(view) => self.show(view),
            Action::NextView => self.show(self.view.beside(1)),
            Action::PreviousView => self.show(self.view.beside(View::ALL.len() - 1)),
            Action::Back => self.travel(true),
            Action::Forward => self.travel(false),
            Action::Search => self.prompt(Purpose::Search),
            Action::Next => self.find(true),
            Action::Previous => self.find(false),
            Action::Filter => {
                self.show(View::Events);
                self.previous_filter =
                    Some((self.events.filter.clone(), self.events.filter_text.clone()));
                self.prompt(Purpose::Filter);
            }
            Action::ClearFilter => self.set_filter(Filter::All(Vec::new()), String::new()),
            Action::Follow => {
                self.events.follow = !self.events.follow;
                if self.events.follow {
                    self.lists[View::Events].selected = self.events.rows.len().saturating_sub(1);
                }
                let text = if self.events.follow {
                    "following the end"
                } else {
                    "no longer following"
                };
                self.say(text, Tone::Note);
            }
            Action::Probes => {
                self.events.probes = !self.events.probes;
                let list = self.lists[View::Events];
                self.events.restart(&list);
                let text = if self.events.probes {
                    "failed look-ups one by one"
                } else {
                    "failed look-ups folded"
                };
                self.say(text, Tone::Note);
            }
            Action::Sort => self.next_sort(),
            Action::Process => self.overlay = Some(Overlay::processes(self)),
            Action::Copy => self.copy(effects),
            Action::CopyCommand => self.copy_command(effects),
            Action::CopyMarkdown => self.copy_markdown(effects),
            Action::Export => self.overlay = Some(Overlay::Export),
            Action::Timeline => {
                self.show(View::Builds);
                self.timeline = !self.timeline;
            }
            Action::Type => {
                self.show(View::Output);
                if self.has_program() {
                    self.focus = Focus::Program;
                    self.say("keys go to the program; Ctrl-] takes them back", Tone::Note);
                } else {
                    self.say("no program runs here", Tone::Note);
                }
            }
            Action::Theme => {
                self.theme = self.theme.next();
                self.say(format!("look: {}", self.theme.name()), Tone::Note);
            }
            Action::Palette => self.overlay = Some(Overlay::palette(self)),
            Action::Help => self.overlay = Some(Overlay::help()),
            Action::Quit => {
                if self.has_program() {
                    self.overlay = Some(Overlay::Quit);
                } else {
                    effects.push(Effect::End(Outcome::Quit));
                }
            }
        }
    }

    fn step(&mut self, by: isize) {
        if self.focus == Focus::Why {
            if let Some(why) = &mut self.why {
                let last = why.links.len().saturating_sub(1);
                let mut at = why.selected.saturating_add_signed(by).min(last);
                // Empty lines only set things apart.
                while at < last
                    && why
                        .links
                        .get(at)
                        .is_some_and(|l| l.label.is_empty() && l.text.is_empty())
                {
                    at = if by < 0 { at.saturating_sub(1) } else { at + 1 };
                }
                why.selected = at;
            }
            return;
        }
        if self.view == View::Output {
            match by {
                isize::MIN => self.screen.scroll_to(false),
                isize::MAX => self.screen.scroll_to(true),
                by => self.screen.scroll(-by),
            }
            return;
        }
        let count = view::count(self, self.view);
        self.list_mut().step(by, count);
        if self.view == View::Events {
            // Going up lets go of the end; reaching it takes hold again.
            let at_end = self.list().selected + 1 >= count;
            self.events.follow = at_end && (by > 0 || self.events.follow);
        }
        self.follow_selection();
    }

    /// The pane of evidence shows what is selected, as the selection moves.
    fn follow_selection(&mut self) {
        if self.why.is_some()
            && self.focus == Focus::List
            && let Some(subject) = self.selected()
        {
            self.open_why(subject);
        }
    }

    fn sideways(&mut self, right: bool) {
        if self.focus == Focus::Why {
            self.focus = Focus::List;
            return;
        }
        match self.view {
            View::Resolution => {
                let shown = resolution::shown(self);
                let at = shown.iter().position(|c| *c == self.column).unwrap_or(0);
                let next = if right { at + 1 } else { at.saturating_sub(1) };
                if let Some(&column) = shown.get(next.min(shown.len().saturating_sub(1))) {
                    self.column = column;
                }
                self.follow_selection();
            }
            View::Findings | View::Processes | View::Builds | View::Caches => {
                if self.is_folded() == Some(right) {
                    self.fold();
                } else if !right {
                    self.climb();
                }
            }
            _ => {}
        }
    }

    /// Whether the selected row hides rows below it; none when there are none.
    fn is_folded(&self) -> Option<bool> {
        let at = self.list().selected;
        match self.view {
            View::Findings => self
                .rows
                .findings
                .get(at)
                .filter(|r| r.below > 0)
                .map(|r| r.folded),
            View::Processes => self
                .rows
                .processes
                .get(at)
                .filter(|r| r.below > 0)
                .map(|r| r.folded),
            View::Builds => self
                .rows
                .builds
                .get(at)
                .filter(|r| r.below > 0)
                .map(|r| r.folded),
            View::Caches => self
                .rows
                .caches
                .get(at)
                .filter(|r| r.artifact.is_none())
                .map(|r| r.folded),
            _ => None,
        }
    }

    fn climb(&mut self) {
        let at = self.list().selected;
        let depth = |app: &App, at: usize| match app.view {
            View::Processes => app.rows.processes.get(at).map(|r| r.depth),
            View::Builds => app.rows.builds.get(at).map(|r| r.depth),
            View::Caches => app
                .rows
                .caches
                .get(at)
                .map(|r| usize::from(r.artifact.is_some())),
            View::Findings => app
                .rows
                .findings
                .get(at)
                .map(|r| usize::from(r.consequence)),
            _ => None,
        };
        let Some(own) = depth(self, at) else { return };
        if let Some(parent) = (0..at)
            .rev()
            .find(|&above| depth(self, above).is_some_and(|d| d < own))
        {
            self.list_mut().selected = parent;
            self.follow_selection();
        }
    }

    fn fold(&mut self) {
        let at = self.list().selected;
        let Some(subject) = self.selected() else {
            return;
        };
        fn toggle<T: std::hash::Hash + Eq>(set: &mut HashSet<T>, item: T) {
            if !set.remove(&item) {
                set.insert(item);
            }
        }
        let below = |row: Option<&TreeRow>| row.is_some_and(|r| r.below > 0);
        match (self.view, subject) {
            (View::Processes, Subject::Process(process)) if below(self.rows.processes.get(at)) => {
                toggle(&mut self.folded_processes, process);
            }
            (View::Builds, Subject::Build(id)) if below(self.rows.builds.get(at)) => {
                toggle(&mut self.folded_builds, id);
            }
            (View::Caches, Subject::Cache(directory)) => toggle(&mut self.folded_caches, directory),
            (View::Findings, subject) if self.is_folded().is_some() => {
                toggle(&mut self.open_findings, subject);
            }
            _ => {}
        }
        self.rebuild();
    }

    fn fold_all(&mut self) {
        let kept = self.selected();
        match self.view {
            View::Processes => {
                if self.folded_processes.is_empty() {
                    let parents = self.snapshot.processes.iter().filter_map(|p| p.parent);
                    self.folded_processes = parents.collect();
                } else {
                    self.folded_processes.clear();
                }
            }
            View::Builds => {
                if self.folded_builds.is_empty() {
                    let parents = self.snapshot.report.builds.iter().filter_map(|b| b.parent);
                    self.folded_builds = parents.collect();
                } else {
                    self.folded_builds.clear();
                }
            }
            View::Caches => {
                if self.folded_caches.is_empty() {
                    let all = self
                        .snapshot
                        .report
                        .caches
                        .iter()
                        .map(|c| c.directory.clone());
                    self.folded_caches = all.collect();
                } else {
                    self.folded_caches.clear();
                }
            }
            View::Findings => {
                if self.open_findings.is_empty() {
                    let all = self.snapshot.report.findings.iter().map(findings::key);
                    self.open_findings = all.collect();
                } else {
                    self.open_findings.clear();
                }
            }
            _ => return,
        }
        self.rebuild();
        if let Some(at) = kept.and_then(|s| self.row_of(self.view, &s)) {
            self.list_mut().selected = at;
        }
    }

    fn open(&mut self) {
        if self.focus == Focus::Why {
            let Some(why) = &self.why else { return };
            match why.links.get(why.selected).map(|l| l.target.clone()) {
                Some(Target::Go(subject)) => self.go(subject),
                Some(Target::Expand) => {
                    if let Some(why) = &mut self.why {
                        why.expanded = true;
                    }
                    self.refresh_why();
                }
                _ => self.say("this line leads nowhere further", Tone::Dim),
            }
            return;
        }
        let Some(subject) = self.selected() else {
            return;
        };
        let already = self.why.as_ref().is_some_and(|w| w.subject == subject);
        if already {
            self.focus = Focus::Why;
            return;
        }
        self.remember();
        self.open_why(subject);
        self.focus = Focus::Why;
    }

    fn close(&mut self) {
        if self.zoomed {
            self.zoomed = false;
        } else if self.why.is_some() {
            self.why = None;
            self.focus = Focus::List;
        } else if !self.search.is_empty() {
            self.search.clear();
            self.search_job = None;
        } else if self.view == View::Events && !self.events.filter.is_empty() {
            self.act(Action::ClearFilter, &mut Vec::new());
        }
        self.notice = None;
    }

    fn next_sort(&mut self) {
        let orders: &[&str] = match self.view {
            View::Resolution => &resolution::SORTS,
            View::Processes => &processes::SORTS,
            View::Builds => &builds::SORTS,
            View::Libraries => &libraries::SORTS,
            _ => return,
        };
        let kept = self.selected();
        let next = (self.sort(self.view) + 1) % orders.len();
        self.sorts[self.view] = next;
        self.rebuild();
        if let Some(at) = kept.and_then(|s| self.row_of(self.view, &s)) {
            self.list_mut().selected = at;
        }
        let order = orders.get(next).copied().unwrap_or_default();
        self.say(format!("sorted {order}"), Tone::Note);
    }

    fn set_filter(&mut self, filter: Filter, text: String) {
        if filter == self.events.filter && text == self.events.filter_text {
            return;
        }
        let list = self.lists[View::Events];
        self.events.restart(&list);
        self.events.filter = filter;
        self.events.filter_text = text;
        self.work();
    }

    fn copied(&mut self, text: String, what: &str, effects: &mut Vec<Effect>) {
        let shown = text::fit(
            text.lines().next().unwrap_or_default(),
            50,
            self.theme.ellipsis(),
        )
        .into_owned();
        self.say(format!("copied {what}: {shown}"), Tone::Good);
        effects.push(Effect::Copy(text));
    }

    fn copy(&mut self, effects: &mut Vec<Effect>) {
        if self.focus == Focus::Why {
            let link = self.why.as_ref().and_then(|w| w.links.get(w.selected));
            if let Some(link) = link {
                let text = link.copy.clone().unwrap_or_else(|| link.text.clone());
                let what = if link.label.is_empty() {
                    "the line".to_owned()
                } else {
                    link.label.clone()
                };
                self.copied(text, &what, effects);
            }
            return;
        }
        let report = &self.snapshot.report;
        let text = match self.selected() {
            Some(Subject::Cell { component, column }) => {
                let component = report.components.iter().find(|c| c.name == component);
                let key = resolution::COLUMNS.get(column).map_or("", |c| c.key);
                component
                    .and_then(|c| resolution::entries(c, key, self.process).next())
                    .map(|entry| entry.path.clone())
                    .or_else(|| {
                        let row = self.rows.resolution.get(self.list().selected)?;
                        row.cells
                            .get(column)
                            .map(|c| c.value.clone())
                            .filter(|v| !v.is_empty())
                    })
            }
            Some(Subject::Process(at)) => {
                self.snapshot.processes.get(at).map(|p| p.program.clone())
            }
            Some(Subject::Build(id)) => report
                .builds
                .iter()
                .find(|b| b.id == id)
                .map(|b| b.output.clone().unwrap_or_else(|| b.path.clone())),
            Some(Subject::Cache(path) | Subject::Artifact(path)) => Some(path),
            Some(Subject::Library(id)) => self
                .snapshot
                .libraries
                .iter()
                .find(|l| l.event == id)
                .map(|l| l.path.clone()),
            Some(Subject::Event(id)) => self.store.position(id).and_then(|at| self.store.line(at)),
            Some(Subject::Finding(..)) | None => None,
        };
        match text {
            Some(text) => self.copied(text, "", effects),
            None => self.say("there is nothing to copy here", Tone::Note),
        }
    }

    fn copy_command(&mut self, effects: &mut Vec<Effect>) {
        let subject = match (self.focus, &self.why) {
            (Focus::Why, Some(why)) => match why.links.get(why.selected).map(|l| &l.target) {
                Some(Target::Go(subject @ (Subject::Process(_) | Subject::Build(_)))) => {
                    Some(subject.clone())
                }
                _ => Some(why.subject.clone()),
            },
            _ => self.selected(),
        };
        let process = match subject {
            Some(Subject::Process(at)) => Some(at),
            Some(Subject::Build(id)) => self
                .snapshot
                .report
                .builds
                .iter()
                .find(|b| b.id == id)
                .and_then(|b| self.snapshot.process_at(b.pid, b.start_ns)),
            Some(Subject::Event(id)) => match self.store.find(id).map(|e| (e.pid, e.t, e.body)) {
                Some((pid, t, Body::ProcessStart(_))) => self.snapshot.process_at(pid, t),
                Some((_, _, Body::Exec(exec))) => {
                    let command = copy::command(&exec.path, &exec.argv, "", &[]);
                    return self.copied(command, "the command", effects);
                }
                Some((_, _, Body::ExecFailed(exec))) => {
                    let command = copy::command(&exec.path, &exec.argv, "", &[]);
                    return self.copied(command, "the command", effects);
                }
                _ => None,
            },
            _ => None,
        };
        match process.and_then(|at| self.snapshot.processes.get(at)) {
            Some(row) => {
                let command = copy::command(&row.program, &row.argv, &row.cwd, &row.env);
                self.copied(command, "the command", effects);
            }
            None => self.say("no command stands behind this", Tone::Note),
        }
    }

    fn copy_markdown(&mut self, effects: &mut Vec<Effect>) {
        let subject = match (self.focus, &self.why) {
            (Focus::Why, Some(why)) => Some(why.subject.clone()),
            _ => self.selected(),
        };
        let Some(subject) = subject else { return };
        let text = match &subject {
            Subject::Finding(id, title) => {
                findings::find(&self.snapshot, id, title).map(copy::finding)
            }
            subject => Some(why::markdown(
                &self.why_title(subject),
                &self.chain(subject, true),
            )),
        };
        if let Some(text) = text {
            self.copied(text, "as Markdown", effects);
        }
    }

    // Search.

    fn prompt(&mut self, purpose: Purpose) {
        let text = match purpose {
            Purpose::Search => String::new(),
            Purpose::Filter => self.events.filter_text.clone(),
        };
        self.overlay = Some(Overlay::Prompt(Prompt::new(purpose, text)));
    }

    fn find(&mut self, forward: bool) {
        if self.search.is_empty() {
            self.say("nothing is searched for; / begins", Tone::Note);
            return;
        }
        if self.focus == Focus::Why {
            let Some(why) = &mut self.why else { return };
            let count = why.links.len();
            let wanted = &self.search;
            let found = (1..=count)
                .map(|by| {
                    if forward {
                        (why.selected + by) % count
                    } else {
                        (why.selected + count - by) % count
                    }
                })
                .find(|&at| {
                    why.links.get(at).is_some_and(|l| {
                        l.text.to_lowercase().contains(wanted)
                            || l.label.to_lowercase().contains(wanted)
                    })
                });
            match found {
                Some(at) => why.selected = at,
                None => self.not_found(),
            }
            return;
        }
        let count = view::count(self, self.view);
        if count == 0 {
            self.not_found();
            return;
        }
        let from = self.list().selected;
        let step = |at: usize| {
            if forward {
                (at + 1) % count
            } else {
                (at + count - 1) % count
            }
        };
        if self.view == View::Events {
            self.search_job = Some(SearchJob {
                next: step(from),
                forward,
                left: count,
            });
            self.search_on();
            return;
        }
        let mut at = step(from);
        for _ in 0..count {
            if view::row_text(self, self.view, at)
                .to_lowercase()
                .contains(&self.search)
            {
                self.list_mut().selected = at;
                self.follow_selection();
                return;
            }
            at = step(at);
        }
        self.not_found();
    }

    fn not_found(&mut self) {
        let text = format!("{} is not here", self.search);
        self.say(text, Tone::Warning);
    }

    /// A slice of the search through the events.
    fn search_on(&mut self) {
        let Some(mut job) = self.search_job else {
            return;
        };
        let count = self.events.rows.len();
        if self.view != View::Events || count == 0 {
            self.search_job = None;
            return;
        }
        for _ in 0..SEARCH_SLICE.min(job.left) {
            let hit = self
                .events
                .rows
                .get(job.next)
                .is_some_and(|row| self.event_has(row.first as usize));
            if hit {
                self.events.follow = false;
                self.list_mut().selected = job.next;
                self.search_job = None;
                self.follow_selection();
                return;
            }
            job.next = if job.forward {
                (job.next + 1) % count
            } else {
                (job.next + count - 1) % count
            };
            job.left -= 1;
        }
        if job.left == 0 {
            self.search_job = None;
            self.not_found();
        } else {
            self.search_job = Some(job);
        }
    }

    fn event_has(&self, at: usize) -> bool {
        let test = Filter::Words(filter::Test::Contains(self.search.clone()));
        let mut found = false;
        self.store
            .for_each(at..at + 1, |_, mark, line| found = test.holds(mark, line));
        found
    }

    // What lies over the view.

    fn overlay_key(&mut self, key: KeyEvent, effects: &mut Vec<Effect>) {
        let Some(overlay) = self.overlay.take() else {
            return;
        };
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match overlay {
            Overlay::Quit => match key.code {
                KeyCode::Char('l') => effects.push(Effect::End(Outcome::Leave)),
                KeyCode::Char('s') => effects.push(Effect::End(Outcome::Stop)),
                KeyCode::Esc | KeyCode::Char('q' | 'n') => {}
                KeyCode::Char('c') if control => {}
                _ => self.overlay = Some(Overlay::Quit),
            },
            Overlay::Export => {
                let chosen = match key.code {
                    KeyCode::Char(c) => Export::ALL.iter().find(|(_, k, _)| *k == c),
                    KeyCode::Esc => return,
                    _ => None,
                };
                match chosen {
                    Some((export, ..)) => {
                        let report = Arc::new(self.snapshot.report.clone());
                        effects.push(Effect::Export(*export, report));
                        self.say("writing", Tone::Note);
                    }
                    None if matches!(key.code, KeyCode::Char('q')) => {}
                    None => self.overlay = Some(Overlay::Export),
                }
            }
            Overlay::Prompt(mut prompt) => match key.code {
                KeyCode::Esc => self.cancel_prompt(&prompt),
                KeyCode::Char('c') if control => self.cancel_prompt(&prompt),
                KeyCode::Enter => self.accept_prompt(prompt),
                _ => {
                    prompt.key(key);
                    self.prompt_changed(&mut prompt);
                    self.overlay = Some(Overlay::Prompt(prompt));
                }
            },
            Overlay::Menu(mut menu) => match key.code {
                KeyCode::Esc => {}
                KeyCode::Char('c') if control => {}
                KeyCode::Enter => {
                    if let Some(choice) = menu.chosen() {
                        self.choose(choice, effects);
                    }
                }
                _ => {
                    menu.key(key);
                    self.overlay = Some(Overlay::Menu(menu));
                }
            },
            Overlay::Help(mut help) => {
                let last = crate::overlay::help_lines(self, &help).len();
                if !help.key(key, last) {
                    self.overlay = Some(Overlay::Help(help));
                }
            }
        }
    }

    fn choose(&mut self, choice: crate::overlay::Choice, effects: &mut Vec<Effect>) {
        match choice {
            crate::overlay::Choice::Act(action) => self.act(action, effects),
            crate::overlay::Choice::Process(process) => {
                self.process = process;
                self.rebuild();
                self.refresh_why();
                let text = match process {
                    Some(pid) => format!("only process {pid}"),
                    None => "all processes merged".to_owned(),
                };
                self.say(text, Tone::Note);
            }
        }
    }

    fn prompt_changed(&mut self, prompt: &mut Prompt) {
        match prompt.purpose {
            Purpose::Search => {}
            Purpose::Filter => {
                prompt.error = filter::parse(&prompt.text).err();
            }
        }
    }

    fn cancel_prompt(&mut self, prompt: &Prompt) {
        if prompt.purpose == Purpose::Filter
            && let Some((filter, text)) = self.previous_filter.take()
        {
            self.set_filter(filter, text);
        }
    }

    fn accept_prompt(&mut self, mut prompt: Prompt) {
        match prompt.purpose {
            Purpose::Search => {
                self.search = prompt.text.to_lowercase();
                if !self.search.is_empty() {
                    self.find(true);
                }
            }
            Purpose::Filter => match filter::parse(&prompt.text) {
                Ok(filter) => self.set_filter(filter, prompt.text),
                Err(error) => {
                    prompt.error = Some(error);
                    self.overlay = Some(Overlay::Prompt(prompt));
                }
            },
        }
    }

    fn paste(&mut self, text: &str, effects: &mut Vec<Effect>) {
        if self.focus == Focus::Program {
            let bytes = if self.screen.bracketed_paste() {
                format!("\x1b[200~{}\x1b[201~", text.replace('\x1b', "")).into_bytes()
            } else {
                text.replace('\n', "\r").into_bytes()
            };
            effects.push(Effect::Send(bytes));
            return;
        }
        match self.overlay.take() {
            // A paste is text, never keys: its newlines are spaces and start nothing.
            Some(Overlay::Prompt(mut prompt)) => {
                prompt.insert(text);
                self.prompt_changed(&mut prompt);
                self.overlay = Some(Overlay::Prompt(prompt));
            }
            Some(Overlay::Menu(mut menu)) => {
                menu.insert(text);
                self.overlay = Some(Overlay::Menu(menu));
            }
            other => {
                self.overlay = other;
                self.say(
                    "a paste is only taken while something is being typed",
                    Tone::Note,
                );
            }
        }
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

    fn mouse(&mut self, mouse: MouseEvent, effects: &mut Vec<Effect>) {
        let (column, row) = (mouse.column, mouse.row);
        let areas = self.areas();
        let within = |area: ratatui::layout::Rect| area.contains((column, row).into());
        let wheel = match mouse.kind {
            MouseEventKind::ScrollUp => Some(-3),
            MouseEventKind::ScrollDown => Some(3),
            _ => None,
        };
        if self.overlay.is_some() {
            let code = match (wheel, mouse.kind) {
                (Some(by), _) if by < 0 => KeyCode::Up,
                (Some(_), _) => KeyCode::Down,
                (None, _) => return,
            };
            self.overlay_key(KeyEvent::new(code, KeyModifiers::NONE), effects);
            return;
        }
        if let Some(by) = wheel {
            if areas.why.is_some_and(within) {
                let focus = std::mem::replace(&mut self.focus, Focus::Why);
                self.step(by);
                self.focus = focus;
            } else if self.view == View::Output {
                self.screen.scroll(-by);
            } else {
                let (count, height) = (view::count(self, self.view), areas.rows.height as usize);
                self.list_mut().scroll(by, count, height);
                if self.view == View::Events {
                    self.events.follow = self.list().selected + 1 >= count && by > 0;
                }
            }
            return;
        }
        if mouse.kind != MouseEventKind::Down(MouseButton::Left) {
            return;
        }
        let again = self.last_click.is_some_and(|(c, r, at)| {
            c.abs_diff(column) <= 1 && r == row && self.now.saturating_sub(at) < 500_000_000
        });
        self.last_click = Some((column, row, self.now));
        if let Some(view) = layout::tab_at(self, column, row) {
            self.show(view);
            return;
        }
        if let Some(why) = areas.why.filter(|a| within(*a)) {
            self.focus = Focus::Why;
            if let Some(state) = &self.why {
                let line = state.offset + usize::from(row - why.y);
                let link = crate::draw::why_lines(self, state, why.width as usize)
                    .get(line)
                    .map(|(l, _)| *l);
                if let (Some(link), Some(why)) = (link, &mut self.why) {
                    why.selected = link;
                }
            }
            if again {
                self.open();
            }
            return;
        }
        if within(areas.rows) {
            if self.focus != Focus::Program || self.view != View::Output {
                self.focus = Focus::List;
            }
            if self.view == View::Output {
                self.act(Action::Type, effects);
                return;
            }
            let at = self.list().offset + usize::from(row - areas.rows.y);
            if at < view::count(self, self.view) {
                self.list_mut().selected = at;
                if self.view == View::Events {
                    self.events.follow = false;
                }
                if self.view == View::Resolution
                    && let Some(column) = resolution::column_at(
                        self,
                        usize::from(column - areas.rows.x),
                        usize::from(areas.rows.width),
                    )
                {
                    self.column = column;
                }
                if again {
                    self.open();
                } else {
                    self.follow_selection();
                }
            }
        }
    }
}

//! Places: what is selected, where its evidence lies, and the way there and back.

use jittrace_model::{Body, EventId};

use crate::{
    subject::Subject,
    summary,
    theme::Tone,
    view::{self, View, builds, findings},
    why::{self, Evidence, Link},
};

use super::*;

/// Rows of other processes that may stand between look-ups which are one row.
const ACROSS: usize = 20_000;

impl App {
    pub(super) fn selected_in(&self, view: View) -> Option<Subject> {
        view::subject(self, view, self.lists[view].selected)
    }

    /// What the selected row of the view in front is about.
    pub fn selected(&self) -> Option<Subject> {
        self.selected_in(self.view)
    }

    /// The row of a view that is about something.
    pub(super) fn row_of(&self, view: View, subject: &Subject) -> Option<usize> {
        if view == View::Events {
            let Subject::Event(id) = subject else {
                return None;
            };
            let position = self.store.position(*id)?;
            let row = self.events.row_of(position);
            // Folded look-ups of several processes lie across each other: the event may be in an earlier row, the last of
            // its process.
            let pid = self.store.mark(position)?.pid;
            let (row, last) = (0..=row).rev().take(ACROSS).find_map(|at| {
                let row = self.events.rows.get(at)?;
                (self.store.mark(row.first as usize)?.pid == pid).then_some((at, *row))
            })?;
            let members = self.events.members(&self.store, last);
            return members.contains(&position).then_some(row);
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

    /// The program that a pid ran at a moment. Of a long trace not every process is listed: then its start tells.
    pub(crate) fn program_at(&self, pid: u32, t: u64) -> String {
        let snapshot = &self.snapshot;
        let image = snapshot.process_at(pid, t);
        match image.and_then(|at| snapshot.processes.get(at)) {
            Some(process) => process.program.clone(),
            None if snapshot.condensed_processes() > 0 => self
                .store
                .start_of(pid, t)
                .as_ref()
                .and_then(summary::file)
                .unwrap_or_default()
                .to_owned(),
            None => String::new(),
        }
    }

    pub(super) fn evidence(&self, expanded: bool) -> Evidence<'_> {
        Evidence {
            snapshot: &self.snapshot,
            store: &self.store,
            process: self.process,
            expanded,
            clock: self.clock(),
            live: !self.progress.complete,
        }
    }

    pub(super) fn chain(&self, subject: &Subject, expanded: bool) -> Vec<Link> {
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
            let members = self.events.members(&self.store, *row);
            for at in members.iter().copied().take(why::ALL) {
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
            why::more(
                &evidence,
                members.len().saturating_sub(why::ALL),
                &mut links,
            );
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

    pub(super) fn refresh_why(&mut self) {
        if let Some(mut why) = self.why.take() {
            why.links = self.chain(&why.subject, why.expanded);
            self.why = Some(why);
        }
    }

    pub(super) fn place(&self) -> Place {
        Place {
            view: self.view,
            subject: self.selected(),
            why: self.why.as_ref().map(|w| w.subject.clone()),
        }
    }

    pub(super) fn remember(&mut self) {
        let place = self.place();
        if self.past.last() != Some(&place) {
            self.past.push(place);
            if self.past.len() > 200 {
                self.past.remove(0);
            }
        }
        self.future.clear();
    }

    pub(super) fn travel(&mut self, back: bool) {
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
        self.freshen(place.view);
        if let Some(at) = place.subject.and_then(|s| self.row_of(place.view, &s)) {
            self.list_mut().selected = at;
        }
        if let Some(subject) = place.why {
            self.open_why(subject);
        }
    }

    pub(super) fn open_why(&mut self, subject: Subject) {
        self.why = Some(self.glance(subject));
    }

    /// The evidence of something, from its beginning.
    pub fn glance(&self, subject: Subject) -> Why {
        Why {
            links: self.chain(&subject, false),
            subject,
            selected: 0,
            offset: 0,
            expanded: false,
        }
    }

    /// Goes to the row that is about something, and opens its evidence.
    pub(super) fn go(&mut self, subject: Subject) {
        self.remember();
        let view = subject.view();
        if let Subject::Cell { column, .. } = &subject {
            self.column = *column;
            self.column_chosen = true;
        }
        self.view = view;
        self.zoomed = false;
        self.focus = Focus::List;
        self.freshen(view);
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
                let clear = self.key_for(Action::ClearFilter);
                self.say(
                    format!("the filter hides that event; {clear} shows everything"),
                    Tone::Warning,
                );
            }
            None => {}
        }
        self.open_why(subject);
    }

    /// Goes to the process behind what is looked at; from a process to the one that started it.
    pub(super) fn go_to_parent(&mut self) {
        let looked_at = match (&self.why, self.focus) {
            (Some(why), Focus::Why) => Some(why.subject.clone()),
            _ => self.selected(),
        };
        let process_of = |id: EventId| {
            let mark = *self.store.mark(self.store.position(id)?)?;
            self.snapshot.process_at(mark.pid, mark.t)
        };
        let process = match looked_at {
            Some(Subject::Process(id)) => self.snapshot.process(id).and_then(|p| p.parent),
            Some(Subject::Event(id) | Subject::Library(id)) => process_of(id),
            Some(Subject::Build(id)) => self.snapshot.process_index(id),
            _ => None,
        };
        // Of a long trace not every process is listed: its start is an event all the same.
        let start = || self.start_behind(self.selected()?);
        match process.and_then(|at| self.snapshot.processes.get(at)) {
            Some(process) => self.go(Subject::Process(process.event)),
            None => match start() {
                Some(start) => self.go(Subject::Event(start)),
                None => self.say("no process of this trace stands behind it", Tone::Note),
            },
        }
    }

    /// The start of the process behind an event; behind a start that of the one that made it.
    fn start_behind(&self, subject: Subject) -> Option<EventId> {
        let Subject::Event(id) = subject else {
            return None;
        };
        let event = self.store.find(id)?;
        let pid = match &event.body {
            Body::ProcessStart(start) => start.ppid,
            _ => event.pid,
        };
        let start = self.store.start_of(pid, event.t)?.id;
        (start != id).then_some(start)
    }

    /// Unfolds whatever hides a row.
    pub(super) fn unfold(&mut self, subject: &Subject) {
        match subject {
            Subject::Process(id) => {
                let chain = self.snapshot.process_index(*id);
                let chain = chain.map(|at| self.snapshot.ancestry(at));
                for above in chain.into_iter().flatten().skip(1) {
                    if let Some(process) = self.snapshot.processes.get(above) {
                        self.folded_processes.remove(&process.event);
                    }
                }
            }
            Subject::Build(id) => {
                let mut above = self.snapshot.build(*id);
                while let Some(build) = above {
                    above = self.snapshot.build_above(build);
                    if let Some(above) = above {
                        self.folded_builds.remove(&builds::key(above));
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
        self.rebuild(subject.view());
    }

    pub(super) fn show(&mut self, view: View) {
        if self.view == view {
            return;
        }
        self.remember();
        self.view = view;
        self.why = None;
        self.zoomed = false;
        self.focus = Focus::List;
        self.freshen(view);
    }
}

//! Places: what is selected, where its evidence lies, and the way there and back.

use jittrace_model::EventId;

use crate::{
    subject::Subject,
    theme::Tone,
    view::{self, View, findings},
    why::{self, Evidence, Link},
};

use super::*;

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

    pub(super) fn evidence(&self, expanded: bool) -> Evidence<'_> {
        Evidence {
            snapshot: &self.snapshot,
            store: &self.store,
            process: self.process,
            expanded,
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
            Some(Subject::Process(at)) => self.snapshot.processes.get(at).and_then(|p| p.parent),
            Some(Subject::Event(id) | Subject::Library(id)) => process_of(id),
            Some(Subject::Build(id)) => {
                let mut builds = self.snapshot.report.builds.iter();
                let build = builds.find(|b| b.id == id);
                build
                    .and_then(|b| b.events.first())
                    .and_then(|id| process_of(*id))
            }
            _ => None,
        };
        match process {
            Some(at) => self.go(Subject::Process(at)),
            None => self.say("no process of this trace stands behind it", Tone::Note),
        }
    }

    /// Unfolds whatever hides a row.
    pub(super) fn unfold(&mut self, subject: &Subject) {
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

    pub(super) fn show(&mut self, view: View) {
        if self.view == view {
            return;
        }
        self.remember();
        self.view = view;
        self.why = None;
        self.zoomed = false;
        self.focus = Focus::List;
    }
}

//! Moving: rows, columns, folding.

use std::collections::HashSet;

use crate::{
    subject::Subject,
    view::{self, View, builds, findings, resolution, tree::TreeRow},
};

use super::*;

impl App {
    pub(super) fn page(&self) -> isize {
        let areas = self.areas();
        let height = match (self.focus, areas.why) {
            (Focus::Why, Some(why)) => why.height,
            _ => areas.rows.height,
        };
        isize::try_from(height.saturating_sub(1).max(1)).unwrap_or(1)
    }

    pub(super) fn step(&mut self, by: isize) {
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
        self.column_chosen |= self.view == View::Resolution;
        if self.view == View::Events {
            // Going up lets go of the end; reaching it takes hold again.
            let at_end = self.list().selected + 1 >= count;
            self.events.follow = at_end && (by > 0 || self.events.follow);
        }
        self.follow_selection();
    }

    /// The pane of evidence shows what is selected, as the selection moves.
    pub(super) fn follow_selection(&mut self) {
        if self.why.is_some()
            && self.focus == Focus::List
            && let Some(subject) = self.selected()
        {
            self.open_why(subject);
        }
    }

    pub(super) fn sideways(&mut self, right: bool) {
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
                    self.column_chosen = true;
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
    pub(super) fn is_folded(&self) -> Option<bool> {
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

    pub(super) fn climb(&mut self) {
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

    pub(super) fn fold(&mut self) {
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
        self.rebuild(self.view);
    }

    pub(super) fn fold_all(&mut self) {
        let kept = self.selected();
        match self.view {
            View::Processes => {
                if self.folded_processes.is_empty() {
                    let processes = &self.snapshot.processes;
                    let parents = processes.iter().filter_map(|p| processes.get(p.parent?));
                    self.folded_processes = parents.map(|p| p.event).collect();
                } else {
                    self.folded_processes.clear();
                }
            }
            View::Builds => {
                if self.folded_builds.is_empty() {
                    let builds = self.snapshot.report.builds.iter();
                    let parents = builds.filter_map(|b| self.snapshot.build_above(b));
                    self.folded_builds = parents.map(builds::key).collect();
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
        self.rebuild(self.view);
        if let Some(at) = kept.and_then(|s| self.row_of(self.view, &s)) {
            self.list_mut().selected = at;
        }
    }
}

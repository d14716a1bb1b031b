//! Searching: at once in a view of rows, slice by slice through the events.

use crate::{
    filter::{self, Filter},
    theme::Tone,
    view::{self, View},
};

use super::*;

impl App {
    pub(super) fn find(&mut self, forward: bool) {
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
        if self.view == View::Output {
            // One stands at the end of what was printed: the next place is the one above.
            if !self.screen.find(&self.search, !forward) {
                self.not_found();
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
            // How far it is stands where the last sentence stood.
            self.notice = None;
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

    /// Goes to the next event that tells of something that did not work; a step of a search is none.
    pub(super) fn find_failure(&mut self, forward: bool) {
        match self.events.failure(self.list().selected, forward) {
            Some(at) => {
                self.events.follow = false;
                self.list_mut().selected = at;
                self.follow_selection();
            }
            None => self.say("no failure further on", Tone::Note),
        }
    }

    pub(super) fn not_found(&mut self) {
        let text = format!("{} is not here", self.search);
        self.say(text, Tone::Warning);
    }

    /// How much of the events a search that is under way has looked at, in percent.
    pub fn searched(&self) -> Option<usize> {
        let all = self.events.rows.len().max(1);
        let job = self.search_job?;
        Some(100 - (job.left * 100 / all).min(100))
    }

    /// A slice of the search through the events.
    pub(super) fn search_on(&mut self) {
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

    pub(super) fn event_has(&self, at: usize) -> bool {
        let test = Filter::Words(filter::Test::Contains(self.search.clone()));
        let mut found = false;
        self.store
            .for_each(at..at + 1, |_, mark, line| found = test.holds(mark, line));
        found
    }
}

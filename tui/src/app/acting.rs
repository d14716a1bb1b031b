//! Acting: a key becomes an action, an action changes the state.

use crossterm::event::KeyEvent;

use crate::{
    clock::Times,
    filter::Filter,
    keys::{self, Action},
    overlay::{Overlay, Purpose},
    settings::SHARES,
    theme::Tone,
    view::{View, builds, libraries, processes, resolution},
    why::Target,
};

use super::*;

impl App {
    pub(super) fn key(&mut self, key: KeyEvent, effects: &mut Vec<Effect>) {
        if self.overlay.is_some() {
            self.overlay_key(key, effects);
            return;
        }
        let bound = self.setup.settings.keys.find(key, self.front());
        match bound.map(|bound| bound.action) {
            Some(action) => self.act(action, effects),
            None if self.focus == Focus::Program => {
                self.screen.scroll_to(true);
                let bytes = keys::encode(key, self.screen.application_cursor());
                if !bytes.is_empty() {
                    effects.push(Effect::Send(bytes));
                }
            }
            None => {
                if let Some(name) = keys::name(key) {
                    let help = self.key_for(Action::Help);
                    self.say(
                        format!("{name} has no meaning here; {help} lists the keys"),
                        Tone::Dim,
                    );
                }
            }
        }
    }

    pub(super) fn act(&mut self, action: Action, effects: &mut Vec<Effect>) {
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
            Action::Layout => {
                self.zoomed = false;
                self.layout = self.layout.next();
                self.say(format!("evidence {}", self.layout.about()), Tone::Note);
            }
            Action::Widen => self.share = (self.share + 5).min(*SHARES.end()),
            Action::Narrow => self.share = self.share.saturating_sub(5).max(*SHARES.start()),
            Action::NextFailure => self.find_failure(true),
            Action::PreviousFailure => self.find_failure(false),
            Action::Fold => self.fold(),
            Action::FoldAll => self.fold_all(),
            Action::Show(view) => self.show(view),
            Action::NextView => self.show(self.view.beside(1)),
            Action::PreviousView => self.show(self.view.beside(View::ALL.len() - 1)),
            Action::Parent => self.go_to_parent(),
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
            Action::OutputBeside => {
                if self.setup.mode != Mode::Launch {
                    self.say("no program was launched here", Tone::Note);
                    return;
                }
                if self.view == View::Output {
                    let before = self.past.iter().rev().map(|place| place.view);
                    let before = before.into_iter().find(|view| *view != View::Output);
                    self.show(before.unwrap_or_default());
                }
                self.output = match layout::output_beside(self) {
                    Some(_) => OutputPlace::Alone,
                    None => OutputPlace::Beside,
                };
                let text = match (self.output, layout::output_beside(self)) {
                    (OutputPlace::Beside, None) => "the window is too narrow for the output beside",
                    (OutputPlace::Beside, Some(_)) => "the program's terminal beside every view",
                    _ => "the program's terminal in Output alone",
                };
                self.say(text, Tone::Note);
            }
            Action::Type => {
                match layout::output_beside(self) {
                    Some(_) => self.zoomed = false,
                    None => self.show(View::Output),
                }
                if self.has_program() {
                    self.focus = Focus::Program;
                    let back = self.key_for(Action::Release);
                    self.say(
                        format!("keys go to the program; {back} takes them back"),
                        Tone::Note,
                    );
                } else {
                    self.say("no program runs here", Tone::Note);
                }
            }
            Action::Release => {
                if self.focus == Focus::Program {
                    self.focus = Focus::List;
                    self.say("keys are yours again", Tone::Note);
                }
            }
            Action::Clock => {
                let Some(clock) = self.clock() else {
                    self.say("the trace does not say when it began", Tone::Note);
                    return;
                };
                self.times = self.times.other();
                let text = match self.times {
                    Times::Clock => format!("times of day, {}", clock.zone()),
                    Times::SinceStart => "seconds since the trace began".to_owned(),
                };
                self.say(text, Tone::Note);
                self.refresh_why();
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

    pub(super) fn open(&mut self) {
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
        self.row_chosen[self.view] = true;
        self.column_chosen = true;
        self.open_why(subject);
        self.focus = Focus::Why;
    }

    pub(super) fn close(&mut self) {
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

    pub(super) fn next_sort(&mut self) {
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
        self.rebuild(self.view);
        if let Some(at) = kept.and_then(|s| self.row_of(self.view, &s)) {
            self.list_mut().selected = at;
        }
        let order = orders.get(next).copied().unwrap_or_default();
        self.say(format!("sorted {order}"), Tone::Note);
    }

    pub(super) fn set_filter(&mut self, filter: Filter, text: String) {
        if filter == self.events.filter && text == self.events.filter_text {
            return;
        }
        let list = self.lists[View::Events];
        self.events.restart(&list);
        self.events.filter = filter;
        self.events.filter_text = text;
        self.work();
    }
}

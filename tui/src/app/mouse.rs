//! The mouse: tabs, rows, cells, links and the wheel.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

use crate::{
    keys::Action,
    layout::{self},
    view::{self, View, resolution},
};

use super::*;

impl App {
    pub(super) fn mouse(&mut self, mouse: MouseEvent, effects: &mut Vec<Effect>) {
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
            if areas.output.is_some_and(within) {
                self.screen.scroll(-by);
            } else if areas.why.is_some_and(within) {
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
        if within(areas.footer) && self.notice.is_none() && self.focus != Focus::Program {
            if let Some(action) = hint_at(self, usize::from(column)) {
                self.act(action, effects);
            }
            return;
        }
        if let Some(view) = layout::tab_at(self, column, row) {
            self.show(view);
            return;
        }
        if areas.output.is_some_and(within) {
            self.act(Action::Type, effects);
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
                    self.column_chosen = true;
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

/// What the bottom line tells of at a column.
fn hint_at(app: &App, column: usize) -> Option<Action> {
    // One column is left free before the first.
    let mut start = 1;
    for hint in crate::draw::hints(app) {
        let end = start + hint.width();
        if (start..end.saturating_sub(2)).contains(&column) {
            return Some(hint.action);
        }
        start = end;
    }
    None
}

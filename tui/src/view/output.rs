//! Output: the terminal of the launched program.

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    style::{Color, Modifier, Style},
};

use crate::theme::{Depth, Theme};

/// Lines that scrolled off and are kept.
const SCROLLBACK: usize = 10_000;

/// The emulated terminal.
pub struct Screen {
    parser: vt100::Parser,
    /// Whether anything was ever printed.
    pub used: bool,
    /// The line that the search found last, counted from the oldest that is kept.
    found: Option<usize>,
}

impl std::fmt::Debug for Screen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Screen")
            .field("used", &self.used)
            .finish_non_exhaustive()
    }
}

impl Default for Screen {
    fn default() -> Self {
        Screen {
            parser: vt100::Parser::new(24, 80, SCROLLBACK),
            used: false,
            found: None,
        }
    }
}

impl Screen {
    /// Takes what the program wrote.
    pub fn write(&mut self, bytes: &[u8]) {
        self.used |= !bytes.is_empty();
        self.parser.process(bytes);
    }

    /// The pane has another size now.
    pub fn resize(&mut self, columns: u16, rows: u16) {
        if self.size() != (columns, rows) && columns > 0 && rows > 0 {
            self.parser.screen_mut().set_size(rows, columns);
        }
    }

    /// Columns and rows.
    pub fn size(&self) -> (u16, u16) {
        let (rows, columns) = self.parser.screen().size();
        (columns, rows)
    }

    /// Looks back by lines; negative towards the end.
    pub fn scroll(&mut self, by: isize) {
        let now = self.parser.screen().scrollback();
        self.parser
            .screen_mut()
            .set_scrollback(now.saturating_add_signed(by));
    }

    /// To the end, or to the very beginning.
    pub fn scroll_to(&mut self, end: bool) {
        self.parser
            .screen_mut()
            .set_scrollback(if end { 0 } else { SCROLLBACK });
    }

    /// Lines between the window and the end.
    pub fn behind(&self) -> usize {
        self.parser.screen().scrollback()
    }

    /// Looks for a text, given in lower case: up from the end or from where it was found last, `down` the other way;
    /// past either end it goes on at the other. The window shows where it was found.
    pub fn find(&mut self, wanted: &str, down: bool) -> bool {
        let before = self.behind();
        self.scroll_to(false);
        let history = self.behind();
        let (columns, rows) = self.size();
        let count = history + usize::from(rows);
        let from = self
            .found
            .filter(|at| *at < count)
            .unwrap_or(if down { count - 1 } else { 0 });
        for step in 1..=count {
            let at = if down {
                (from + step) % count
            } else {
                (from + count - step) % count
            };
            let row = self.show_line(at, history);
            let line = self.parser.screen().rows(0, columns).nth(row);
            if line.is_some_and(|line| line.to_lowercase().contains(wanted)) {
                self.found = Some(at);
                // Not at the edge, so that what led to it is seen too.
                self.show_line(at.saturating_sub(usize::from(rows) / 2), history);
                return true;
            }
        }
        self.parser.screen_mut().set_scrollback(before);
        false
    }

    /// Moves the window so that it shows a line; gives the line's row.
    fn show_line(&mut self, at: usize, history: usize) -> usize {
        let behind = history.saturating_sub(at);
        self.parser.screen_mut().set_scrollback(behind);
        at - (history - behind)
    }

    /// Whether cursor keys send their application codes.
    pub fn application_cursor(&self) -> bool {
        self.parser.screen().application_cursor()
    }

    /// Whether a paste is to be put in brackets.
    pub fn bracketed_paste(&self) -> bool {
        self.parser.screen().bracketed_paste()
    }

    /// The text of the window.
    pub fn text(&self) -> String {
        self.parser.screen().contents()
    }

    /// Where the cursor is within an area, when it shows.
    pub fn cursor(&self, area: Rect) -> Option<(u16, u16)> {
        let screen = self.parser.screen();
        if screen.hide_cursor() || screen.scrollback() > 0 {
            return None;
        }
        let (row, column) = screen.cursor_position();
        (row < area.height && column < area.width).then(|| (area.x + column, area.y + row))
    }

    /// Draws the window.
    pub fn draw(&self, area: Rect, buffer: &mut Buffer, theme: Theme) {
        let screen = self.parser.screen();
        for row in 0..area.height {
            for column in 0..area.width {
                let Some(cell) = screen.cell(row, column) else {
                    continue;
                };
                if cell.is_wide_continuation() {
                    continue;
                }
                let Some(target) = buffer.cell_mut((area.x + column, area.y + row)) else {
                    continue;
                };
                // A wide character in the last column would leave the area.
                if cell.has_contents() && !(cell.is_wide() && column + 1 >= area.width) {
                    target.set_symbol(cell.contents());
                } else {
                    target.set_symbol(" ");
                }
                target.set_style(style(cell, theme));
            }
        }
    }
}

fn style(cell: &vt100::Cell, theme: Theme) -> Style {
    let mut style = Style::new();
    if theme.depth != Depth::None {
        style = style.fg(color(cell.fgcolor())).bg(color(cell.bgcolor()));
    }
    for (holds, modifier) in [
        (cell.bold(), Modifier::BOLD),
        (cell.dim(), Modifier::DIM),
        (cell.italic(), Modifier::ITALIC),
        (cell.underline(), Modifier::UNDERLINED),
        (cell.inverse(), Modifier::REVERSED),
    ] {
        if holds {
            style = style.add_modifier(modifier);
        }
    }
    style
}

fn color(color: vt100::Color) -> Color {
    match color {
        vt100::Color::Default => Color::Reset,
        vt100::Color::Idx(index) => Color::Indexed(index),
        vt100::Color::Rgb(red, green, blue) => Color::Rgb(red, green, blue),
    }
}

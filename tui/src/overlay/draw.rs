//! Drawing what lies over the view.

use ratatui::{
    Frame,
    layout::Rect,
    style::Style,
    text::{Line, Span},
    widgets::{Clear, Widget},
};

use crate::{
    app::{App, Export},
    overlay::{HelpLine, Overlay, Purpose},
    text,
    theme::Tone,
    view::Columns,
};

use super::{
    Prompt,
    help::{HELP_WIDTH, KEYS, help_lines, last_offset},
};
use crate::draw::put;

/// A box in the middle of the screen; the area within it.
fn window(app: &App, frame: &mut Frame<'_>, title: &str, width: u16, height: u16) -> Rect {
    let (columns, rows) = app.size;
    let (width, height) = (width.min(columns), height.min(rows.saturating_sub(2)));
    let area = Rect::new((columns - width) / 2, (rows - height) / 2, width, height);
    Clear.render(area, frame.buffer_mut());
    let borders = ratatui::widgets::Block::bordered()
        .title(Span::styled(
            format!(" {title} "),
            app.theme.style(Tone::Heading),
        ))
        .border_style(app.theme.style(Tone::Accent));
    let borders = if app.theme.unicode {
        borders.border_type(ratatui::widgets::BorderType::Rounded)
    } else {
        borders.border_set(ratatui::symbols::border::Set {
            top_left: "+",
            top_right: "+",
            bottom_left: "+",
            bottom_right: "+",
            vertical_left: "|",
            vertical_right: "|",
            horizontal_top: "-",
            horizontal_bottom: "-",
        })
    };
    let inner = borders.inner(area);
    borders.render(area, frame.buffer_mut());
    inner
}

/// Draws what lies over the view.
pub fn draw(app: &App, frame: &mut Frame<'_>, overlay: &Overlay) {
    match overlay {
        Overlay::Quit => {
            let lines = [
                ("The program is still running.", "", ""),
                ("", "", ""),
                (
                    "l",
                    "leave",
                    "let it run and go on recording, without the view",
                ),
                ("s", "stop", "stop it, and leave"),
                ("Esc", "stay", "go on watching"),
            ];
            let inner = window(app, frame, "Leave?", 66, 7);
            for (row, (key, word, about)) in (0_u16..).zip(lines) {
                let mut out = Columns::new(app, usize::from(inner.width));
                if word.is_empty() {
                    out.rest(key, Tone::Plain);
                } else {
                    out.cell(&format!(" {key}"), 5, Tone::Accent);
                    out.cell(word, 6, Tone::Heading);
                    out.rest(about, Tone::Dim);
                }
                put(
                    frame,
                    Rect::new(inner.x, inner.y + row, inner.width, 1).intersection(inner),
                    out.line(),
                );
            }
        }
        Overlay::Export => {
            let inner = window(app, frame, "Write", 40, 7);
            for (row, (_, key, about)) in (0_u16..).zip(Export::ALL) {
                let mut out = Columns::new(app, usize::from(inner.width));
                out.cell(&format!(" {key}"), 3, Tone::Accent);
                out.rest(about, Tone::Plain);
                put(
                    frame,
                    Rect::new(inner.x, inner.y + row, inner.width, 1).intersection(inner),
                    out.line(),
                );
            }
        }
        Overlay::Prompt(prompt) => typing(app, frame, prompt),
        Overlay::Menu(menu) => {
            let left = menu.left();
            let height = u16::try_from(left.len().clamp(3, 18)).unwrap_or(18) + 3;
            let inner = window(app, frame, &menu.title, 96, height);
            let mut out = Columns::new(app, usize::from(inner.width));
            out.push("> ".to_owned(), Tone::Accent);
            out.rest(&menu.typed, Tone::Plain);
            put(
                frame,
                Rect::new(inner.x, inner.y, inner.width, 1),
                out.line(),
            );
            let cursor = inner.x + 2 + u16::try_from(text::width(&menu.typed)).unwrap_or(0);
            frame.set_cursor_position((cursor.min(inner.right().saturating_sub(1)), inner.y));
            let rows = usize::from(inner.height.saturating_sub(1));
            let offset = menu.selected.saturating_sub(rows.saturating_sub(1));
            for (row, (at, item)) in (1_u16..).zip(left.iter().enumerate().skip(offset).take(rows))
            {
                let area = Rect::new(inner.x, inner.y + row, inner.width, 1);
                let mut out = Columns::new(app, usize::from(inner.width));
                let aside = text::width(&item.aside);
                if menu.has_names() {
                    out.cell(item.name, 17, Tone::Dim);
                }
                let room = out.room().saturating_sub(aside + 2);
                out.cell(&item.text, room, Tone::Plain);
                out.rest(&item.aside, Tone::Accent);
                let mut line = out.line();
                if at == menu.selected {
                    frame
                        .buffer_mut()
                        .set_style(area, app.theme.selection(true));
                    for span in &mut line.spans {
                        span.style = app.theme.selection(true).patch(span.style);
                    }
                }
                put(frame, area, line);
            }
        }
        Overlay::Told(sentence) => {
            let width = 76.min(app.size.0);
            let lines = text::wrap(sentence, usize::from(width.saturating_sub(4)).max(8));
            let height = u16::try_from(lines.len()).unwrap_or(u16::MAX);
            let title = "Settings    any key closes";
            let inner = window(app, frame, title, width, height.saturating_add(2));
            for (row, line) in (0_u16..).zip(lines) {
                let area = Rect::new(inner.x + 1, inner.y + row, inner.width, 1);
                let line = app.theme.glyphs(&line).into_owned();
                let line = Line::styled(line, app.theme.style(Tone::Warning));
                put(frame, area.intersection(inner), line);
            }
        }
        Overlay::Help(help) => {
            let lines = help_lines(app, help);
            let height = u16::try_from(lines.len() + 2).unwrap_or(u16::MAX);
            let title = match (help.typing, help.typed.is_empty()) {
                (false, true) => "Keys    / searches here, Esc closes".to_owned(),
                _ => format!("Keys    /{}", help.typed),
            };
            let inner = window(app, frame, &title, HELP_WIDTH, height);
            let offset = help.offset.min(last_offset(app, lines.len()));
            crate::draw::scrollbar(app, frame, inner, offset, lines.len());
            for (row, line) in
                (0_u16..).zip(lines.iter().skip(offset).take(usize::from(inner.height)))
            {
                // The last column belongs to the scroll bar.
                let mut out = Columns::new(app, usize::from(inner.width.saturating_sub(1)));
                match line {
                    HelpLine::Section(name) => {
                        out.rest(name, Tone::Heading);
                    }
                    HelpLine::Key(keys, about) => {
                        out.cell(&format!("  {keys}"), KEYS, Tone::Accent);
                        out.rest(about, Tone::Plain);
                    }
                    HelpLine::Text(text) => {
                        out.rest(&format!("  {text}"), Tone::Dim);
                    }
                    HelpLine::Gap => {}
                }
                put(
                    frame,
                    Rect::new(inner.x, inner.y + row, inner.width.saturating_sub(1), 1),
                    out.line(),
                );
            }
        }
    }
}

/// The line that is typed in, with the column of an error and the ways to go on above it.
fn typing(app: &App, frame: &mut Frame<'_>, prompt: &Prompt) {
    let (columns, rows) = app.size;
    let lead = match prompt.purpose {
        Purpose::Search => " / ",
        Purpose::Filter => " filter ",
    };
    let line = Rect::new(0, rows.saturating_sub(1), columns, 1);
    Clear.render(line, frame.buffer_mut());
    let lead_width = lead.len();
    // A long text is shown around the cursor.
    let room = usize::from(columns).saturating_sub(lead_width + 1);
    let before: String = prompt.text.chars().take(prompt.cursor).collect();
    let skipped = text::width(&before).saturating_sub(room);
    let mut dropped = 0;
    let shown: String = prompt
        .text
        .chars()
        .skip_while(|c| {
            let here = dropped < skipped;
            if here {
                dropped += text::width(c.encode_utf8(&mut [0; 4])).max(1);
            }
            here
        })
        .collect();
    let mut out = Columns::new(app, usize::from(columns));
    out.push(lead.to_owned(), Tone::Accent);
    out.rest(
        &shown,
        if prompt.error.is_some() {
            Tone::Error
        } else {
            Tone::Plain
        },
    );
    put(frame, line, out.line());
    let cursor = lead_width + text::width(&before).saturating_sub(dropped);
    let cursor = u16::try_from(cursor)
        .unwrap_or(0)
        .min(columns.saturating_sub(1));
    frame.set_cursor_position((cursor, line.y));
    let mut above: Vec<Line<'static>> = Vec::new();
    if prompt.purpose == Purpose::Filter && !prompt.completions.is_empty() && rows > 12 {
        let room = usize::from(rows / 3).min(8);
        let offset = prompt
            .chosen
            .unwrap_or(0)
            .saturating_sub(room.saturating_sub(1));
        for (at, completion) in prompt
            .completions
            .iter()
            .enumerate()
            .skip(offset)
            .take(room)
        {
            let mut out = Columns::new(app, usize::from(columns).min(60));
            out.cell(
                &format!("   {}", completion.word),
                24,
                if prompt.chosen == Some(at) {
                    Tone::Accent
                } else {
                    Tone::Plain
                },
            );
            out.rest(&completion.about, Tone::Dim);
            above.push(out.line());
        }
    }
    if let Some(error) = &prompt.error {
        let column: String = prompt.text.chars().take(error.column).collect();
        let at = (lead_width + text::width(&column)).saturating_sub(dropped);
        let mut out = Columns::new(app, usize::from(columns));
        let caret = if app.theme.unicode { "▲ " } else { "^ " };
        let message = format!("{caret}{}", error.message);
        // Near the right edge the sentence stands before the mark.
        if at + text::width(&message) <= usize::from(columns) {
            out.push(" ".repeat(at), Tone::Plain);
            out.rest(&message, Tone::Error);
        } else {
            let sentence = format!("{} {}", error.message, caret.trim_end());
            out.push(
                text::pad_left("", (at + 1).saturating_sub(text::width(&sentence))),
                Tone::Plain,
            );
            out.rest(&sentence, Tone::Error);
        }
        above.push(out.line());
    }
    let Ok(height) = u16::try_from(above.len()) else {
        return;
    };
    let top = line.y.saturating_sub(height);
    for (row, line) in (0_u16..).zip(above) {
        let area = Rect::new(0, top + row, columns, 1);
        Clear.render(area, frame.buffer_mut());
        frame.buffer_mut().set_style(area, Style::reset());
        put(frame, area, line);
    }
}

//! One frame: the parts of the screen, each drawn from the state, only as far as it is seen.

use jittrace_model::log::SourceState;
use ratatui::{
    Frame,
    layout::Rect,
    text::{Line, Span},
    widgets::Widget,
};

use crate::{
    app::{App, Focus, Mode, Why},
    keys::{Action, Bound, Front, Scope},
    layout,
    overlay::{self},
    subject::Subject,
    text,
    theme::Tone,
    view::{self, Columns, View},
    why::Target,
};

/// Draws everything.
pub fn draw(app: &App, frame: &mut Frame<'_>) {
    let areas = app.areas();
    if app.size.0 < 20 || app.size.1 < 6 {
        let line = Line::from(
            text::fit(
                "jittrace: the window is too small",
                usize::from(app.size.0),
                "",
            )
            .into_owned(),
        );
        put(frame, Rect::new(0, 0, app.size.0, 1), line);
        return;
    }
    header(app, frame, areas.header);
    tabs(app, frame, areas.tabs);
    if areas.rows.area() > 0 || areas.head.area() > 0 {
        body(app, frame, &areas);
    }
    if let (Some(title), Some(pane), Some(why)) = (areas.why_title, areas.why, &app.why) {
        evidence(app, frame, title, pane, why);
    }
    for divider in [areas.divider, areas.output_divider].into_iter().flatten() {
        for row in 0..divider.height {
            let line = Line::styled(app.theme.vertical(), app.theme.style(Tone::Dim));
            put(frame, Rect::new(divider.x, divider.y + row, 1, 1), line);
        }
    }
    if let Some(pane) = areas.output {
        output(app, frame, pane);
    }
    footer(app, frame, areas.footer);
    if let Some(overlay) = &app.overlay {
        overlay::draw(app, frame, overlay);
    }
}

/// A line in one row of the screen; what does not fit is cut.
pub(crate) fn put(frame: &mut Frame<'_>, area: Rect, line: Line<'_>) {
    let area = area.intersection(frame.area());
    if area.area() > 0 {
        line.render(area, frame.buffer_mut());
    }
}

/// Whether a second line of the header is needed: refused sources, losses.
pub fn has_trouble(app: &App) -> bool {
    app.header
        .sources
        .iter()
        .any(|s| s.state == SourceState::Refused)
        || !app.snapshot.report.lost.is_empty()
}

fn header(app: &App, frame: &mut Frame<'_>, area: Rect) {
    if area.height == 0 {
        return;
    }
    let width = usize::from(area.width);
    let report = &app.snapshot.report;
    let separator = app.theme.separator();
    let mut right: Vec<(String, Tone)> = Vec::new();
    let (state, tone) = state(app);
    right.push((state, tone));
    // While something runs, time goes on between its events.
    let live = app.setup.mode != Mode::Replay && !app.progress.complete;
    let elapsed = if live && app.progress.ended.is_none() {
        format!("{} s", app.moment() / 1_000_000_000)
    } else {
        format!("{} s", text::moment(app.snapshot.last_t))
    };
    right.push((elapsed, Tone::Dim));
    let events = text::count(app.store.len() as u64);
    match (app.progress.complete, app.rate) {
        (false, rate @ 1..) => right.push((
            format!("{events} events {}/s", text::count(rate)),
            Tone::Dim,
        )),
        _ => right.push((format!("{events} events"), Tone::Dim)),
    }
    if app.progress.bytes > 0 {
        right.push((text::bytes(app.progress.bytes), Tone::Dim));
    }
    let active: Vec<&str> = app
        .header
        .sources
        .iter()
        .filter(|s| s.state == SourceState::Active)
        .map(|s| s.name.as_str())
        .collect();
    if !active.is_empty() && width >= 100 {
        right.push((active.join("+"), Tone::Dim));
    }
    if let Some(driver) = report.driver.version.as_ref().filter(|_| width >= 140) {
        right.push((format!("driver {driver}"), Tone::Dim));
    }
    let target = match (app.header.attached, app.header.command.is_empty()) {
        (Some(pid), _) => {
            let row = app.snapshot.processes.iter().find(|p| p.pid == pid);
            format!("pid {pid} {}", row.map_or(String::new(), |r| told(&r.argv)))
        }
        (None, false) => told(&app.header.command),
        (None, true) => app.setup.trace.clone(),
    };
    let taken: usize = right.iter().map(|(t, _)| text::width(t) + 3).sum();
    let mut out = Columns::new(app, width);
    out.push(" jittrace ".to_owned(), Tone::Heading);
    let room = out.room().saturating_sub(taken + 1);
    let target = text::clean(&target);
    let target = app.theme.glyphs(&target);
    out.rest(
        &text::pad(&text::fit(&target, room, app.theme.ellipsis()), room + 1),
        Tone::Accent,
    );
    for (at, (content, tone)) in right.iter().enumerate() {
        if at > 0 {
            out.rest(separator, Tone::Dim);
        }
        out.rest(content, *tone);
    }
    put(frame, Rect::new(area.x, area.y, area.width, 1), out.line());
    if area.height > 1 {
        let mut out = Columns::new(app, width);
        out.push(" ".to_owned(), Tone::Plain);
        let mut first = true;
        for source in app
            .header
            .sources
            .iter()
            .filter(|s| s.state == SourceState::Refused)
        {
            if !first {
                out.rest(separator, Tone::Dim);
            }
            first = false;
            let reason = source.reason.as_deref().unwrap_or("no reason given");
            out.rest(&format!("{} refused: {reason}", source.name), Tone::Error);
        }
        for lost in &report.lost {
            if !first {
                out.rest(separator, Tone::Dim);
            }
            first = false;
            out.rest(
                &format!("lost {} {}", text::count(lost.count), lost.what),
                Tone::Warning,
            );
            if !lost.reason.is_empty() {
                out.rest(&format!(" ({})", lost.reason), Tone::Dim);
            }
        }
        put(
            frame,
            Rect::new(area.x, area.y + 1, area.width, 1),
            out.line(),
        );
    }
}

/// A command as the header tells it: where the program lies tells less than what it is given.
fn told(command: &[String]) -> String {
    let mut words = command.iter().map(String::as_str);
    let program = words.next().map(text::base);
    let words: Vec<&str> = program.into_iter().chain(words).collect();
    words.join(" ")
}

/// How far the trace is, in a word.
fn state(app: &App) -> (String, Tone) {
    if let (false, Some(of @ 1..)) = (app.progress.complete, app.progress.of) {
        let percent = (app.progress.bytes * 100 / of).min(99);
        return (format!("reading {percent}%"), Tone::Accent);
    }
    let exit = app.progress.ended.or(app.snapshot.report.exit);
    match (app.setup.mode, exit, app.progress.complete) {
        (_, Some(exit), _) => {
            let (word, tone) = view::exit_word(exit);
            (format!("{} {word}", app.theme.dot()), tone)
        }
        (Mode::Replay, None, true) => (format!("{} recorded", app.theme.dot()), Tone::Dim),
        (_, None, true) => (format!("{} ended", app.theme.dot()), Tone::Dim),
        _ => (format!("{} running", app.theme.dot()), Tone::Good),
    }
}

fn tabs(app: &App, frame: &mut Frame<'_>, area: Rect) {
    let mut spans = Vec::new();
    for view in View::ALL {
        let content = layout::tab_text(app, view);
        let errors = view == View::Findings && content.contains(app.theme.dot());
        let style = match (view == app.view, errors) {
            (true, _) => app.theme.tab(),
            (false, true) => app.theme.style(Tone::Error),
            (false, false) => app.theme.style(Tone::Dim),
        };
        spans.push(Span::styled(content, style));
    }
    if let Some(pid) = app.process {
        spans.push(Span::styled(
            format!("  only pid {pid}"),
            app.theme.style(Tone::Warning),
        ));
    }
    put(frame, area, Line::from(spans));
}

fn body(app: &App, frame: &mut Frame<'_>, areas: &layout::Areas) {
    let view = app.view;
    if view == View::Output {
        output(app, frame, areas.rows);
        return;
    }
    let count = view::count(app, view);
    // Where the list is longer than its area, the last column belongs to the scroll bar.
    let scrolls = count > usize::from(areas.rows.height);
    let width = usize::from(areas.rows.width) - usize::from(scrolls && areas.rows.width > 0);
    if let Some(head) = view::head(app, view, width).filter(|_| areas.head.height > 0 && count > 0)
    {
        put(frame, areas.head, head);
    }
    if count == 0 {
        for (at, sentence) in view::nothing(app, view).iter().enumerate() {
            let Ok(at) = u16::try_from(at) else { break };
            if at + 1 < areas.rows.height {
                let area = Rect::new(
                    areas.rows.x + 2,
                    areas.rows.y + at + 1,
                    areas.rows.width.saturating_sub(2),
                    1,
                );
                put(
                    frame,
                    area,
                    Line::styled(sentence.clone(), app.theme.style(Tone::Dim)),
                );
            }
        }
    }
    let list = app.list();
    let focused = app.focus == Focus::List;
    for (row, at) in list
        .window(count, usize::from(areas.rows.height))
        .enumerate()
    {
        let Ok(row) = u16::try_from(row) else { break };
        let area = Rect::new(areas.rows.x, areas.rows.y + row, areas.rows.width, 1);
        let mut line = view::line(app, view, at, width);
        highlight(app, &mut line);
        if at == list.selected {
            frame
                .buffer_mut()
                .set_style(area, app.theme.selection(focused));
            for span in &mut line.spans {
                if span.style.bg.is_none() {
                    span.style = app.theme.selected(span.style, focused);
                }
            }
        }
        put(frame, area, line);
    }
    if areas.below.height > 0 {
        below(app, frame, areas.below);
    }
    scrollbar(app, frame, areas.rows, list.offset, count);
}

/// A bar at the right edge that shows which part of a long list is seen.
pub(crate) fn scrollbar(app: &App, frame: &mut Frame<'_>, area: Rect, offset: usize, count: usize) {
    let height = usize::from(area.height);
    if count <= height || height < 3 || area.width == 0 {
        return;
    }
    let size = (height * height / count).max(1);
    let start = (offset * (height - size)) / (count - height).max(1);
    for row in start..(start + size).min(height) {
        let Ok(row) = u16::try_from(row) else { break };
        let mark = if app.theme.unicode { "▐" } else { "|" };
        let cell = Rect::new(area.right() - 1, area.y + row, 1, 1);
        put(frame, cell, Line::styled(mark, app.theme.style(Tone::Dim)));
    }
}

/// Marks what the search and the filter found in a line.
fn highlight(app: &App, line: &mut Line<'static>) {
    let mut words: Vec<String> = Vec::new();
    if !app.search.is_empty() {
        words.push(app.search.clone());
    }
    if app.view == View::Events {
        words.extend(app.events.filter.highlights());
    }
    if words.is_empty() {
        return;
    }
    let spans = std::mem::take(&mut line.spans);
    for span in spans {
        let content = span.content.as_ref();
        let lower = content.to_lowercase();
        // Only where lower case keeps the places of bytes can they be carried over.
        if lower.len() != content.len() {
            line.spans.push(span);
            continue;
        }
        let mut at = 0;
        while at < content.len() {
            let next = words
                .iter()
                .filter_map(|w| {
                    lower
                        .get(at..)
                        .and_then(|rest| rest.find(w.as_str()))
                        .map(|f| (at + f, w.len()))
                })
                .filter(|(_, long)| *long > 0)
                .min();
            let Some((found, long)) = next else { break };
            if let (Some(before), Some(hit)) =
                (content.get(at..found), content.get(found..found + long))
            {
                if !before.is_empty() {
                    line.spans.push(Span::styled(before.to_owned(), span.style));
                }
                line.spans
                    .push(Span::styled(hit.to_owned(), app.theme.found()));
            }
            at = found + long;
        }
        if let Some(rest) = content.get(at..).filter(|r| !r.is_empty()) {
            line.spans.push(Span::styled(rest.to_owned(), span.style));
        }
    }
}

fn below(app: &App, frame: &mut Frame<'_>, area: Rect) {
    let width = usize::from(area.width);
    let rule = || {
        Line::styled(
            app.theme.horizontal().repeat(width),
            app.theme.style(Tone::Dim),
        )
    };
    let mut lines: Vec<Line<'static>> = Vec::new();
    match app.view {
        View::Resolution => {
            let title = app.selected().filter(|_| app.why.is_none());
            lines.push(title.map_or_else(rule, |subject| why_rule(app, &subject, width, false)));
            lines.extend(view::resolution::footer(
                app,
                width,
                usize::from(area.height) - 1,
            ));
        }
        View::Findings => {
            lines.push(rule());
            let mut detail = view::findings::detail(app, width);
            let room = usize::from(area.height).saturating_sub(1);
            let left_out = detail.len().saturating_sub(room);
            if left_out > 0 && room > 1 {
                detail.truncate(room - 1);
                let key = app.key_for(Action::Open);
                let more = format!("{} more lines: {key}", left_out + 1);
                detail.push(Line::styled(more, app.theme.style(Tone::Dim)));
            }
            lines.extend(detail);
        }
        View::Builds => lines.push(view::builds::footer(app, width)),
        View::Processes => lines.extend(view::processes::footer(app, width)),
        View::Events => {
            let mut out = Columns::new(app, width);
            out.rest(" filter ", Tone::Heading);
            out.rest(&app.events.filter_text, Tone::Accent);
            let of = text::count(app.store.len() as u64);
            let progress = match app.events.percent(&app.store) {
                100 => String::new(),
                percent => format!(", {percent}% looked at"),
            };
            out.rest(
                &format!(
                    "  {} of {of}{progress}  ({}: everything)",
                    text::count(app.events.passed),
                    app.key_for(Action::ClearFilter)
                ),
                Tone::Dim,
            );
            lines.push(out.line());
        }
        _ => {}
    }
    for (row, line) in lines.into_iter().take(usize::from(area.height)).enumerate() {
        let Ok(row) = u16::try_from(row) else { break };
        put(frame, Rect::new(area.x, area.y + row, area.width, 1), line);
    }
}

fn output(app: &App, frame: &mut Frame<'_>, area: Rect) {
    if app.setup.mode != Mode::Launch {
        let sentences: &[&str] = match app.setup.mode {
            Mode::Attach => {
                &["The output of a process that was attached to stays in its own terminal."]
            }
            _ => &[
                "A trace holds no output but the messages about toolkits:",
                "in Events, the filter kind:message shows them.",
            ],
        };
        for (at, sentence) in (0_u16..).zip(sentences) {
            let row = Rect::new(area.x + 2, area.y + 1 + at, area.width.saturating_sub(2), 1);
            put(
                frame,
                row.intersection(area),
                Line::styled(*sentence, app.theme.style(Tone::Dim)),
            );
        }
        return;
    }
    app.screen.draw(area, frame.buffer_mut(), app.theme);
    if !app.search.is_empty() {
        mark_found(app, frame, area);
    }
    if app.focus == Focus::Program
        && let Some(position) = app.screen.cursor(area)
    {
        frame.set_cursor_position(position);
    }
    if app.screen.behind() > 0 {
        let note = format!(
            " {} lines back, {} returns ",
            app.screen.behind(),
            app.key_for(Action::Last)
        );
        let width = u16::try_from(text::width(&note))
            .unwrap_or(area.width)
            .min(area.width);
        put(
            frame,
            Rect::new(area.right() - width, area.y, width, 1),
            Line::styled(note, app.theme.found()),
        );
    }
}

/// Marks what the search found in the launched program's terminal.
fn mark_found(app: &App, frame: &mut Frame<'_>, area: Rect) {
    let style = app.theme.found();
    let buffer = frame.buffer_mut();
    for y in area.top()..area.bottom() {
        let mut line = String::new();
        // The column of every byte of the line.
        let mut columns = Vec::new();
        for x in area.left()..area.right() {
            let symbol = buffer.cell((x, y)).map_or("", |cell| cell.symbol());
            line.push_str(&symbol.to_lowercase());
            columns.resize(line.len(), x);
        }
        let places: Vec<usize> = line.match_indices(&app.search).map(|(at, _)| at).collect();
        for at in places {
            for x in columns.iter().skip(at).take(app.search.len()) {
                if let Some(cell) = buffer.cell_mut((*x, y)) {
                    cell.set_style(style);
                }
            }
        }
    }
}

/// The lines of the evidence at a width, each with the link that it belongs to.
pub fn why_lines(app: &App, why: &Why, width: usize) -> Vec<(usize, Line<'static>)> {
    let theme = app.theme;
    // The last column belongs to the scroll bar.
    let width = width.saturating_sub(1);
    let mut lines = Vec::new();
    for (at, link) in why.links.iter().enumerate() {
        if link.label.is_empty() && link.text.is_empty() {
            lines.push((at, Line::default()));
            continue;
        }
        let leads = matches!(link.target, Target::Go(_) | Target::Expand);
        let marker = if leads { theme.onward() } else { " " };
        let label = text::clean(&link.label);
        let label = theme.glyphs(&label).into_owned();
        let mut lead = vec![Span::styled(
            format!("{}{marker} ", "  ".repeat(link.depth)),
            theme.style(Tone::Accent),
        )];
        let mut indent = link.depth * 2 + 2;
        if !label.is_empty() {
            let style = if link.text.is_empty() {
                theme.style(link.tone)
            } else {
                theme.style(Tone::Dim)
            };
            lead.push(Span::styled(format!("{label} "), style));
            indent += text::width(&label) + 1;
        }
        // A label that leaves no room stands on a line of its own.
        let hang = if indent > width / 2 {
            link.depth * 2 + 4
        } else {
            indent
        };
        let content = link
            .text
            .split('\n')
            .map(text::clean)
            .collect::<Vec<_>>()
            .join("\n");
        let content = theme.glyphs(&content).into_owned();
        let parts = text::wrap(&content, width.saturating_sub(hang).max(8));
        let mut parts = parts.into_iter();
        if hang == indent
            && let Some(first) = parts.next()
        {
            lead.push(Span::styled(first, theme.style(link.tone)));
        }
        lines.push((at, Line::from(lead)));
        for part in parts.filter(|p| !p.is_empty()) {
            lines.push((
                at,
                Line::from(vec![
                    Span::raw(" ".repeat(hang)),
                    Span::styled(part, theme.style(link.tone)),
                ]),
            ));
        }
    }
    lines
}

/// The line above a chain: whose it is.
fn why_rule(app: &App, subject: &Subject, width: usize, focused: bool) -> Line<'static> {
    let tone = if focused { Tone::Accent } else { Tone::Dim };
    let mut out = Columns::new(app, width);
    let bar = app.theme.horizontal();
    out.push(format!("{bar}{bar} why "), tone);
    let room = out.room().saturating_sub(2);
    let title = app.why_title(subject);
    out.rest(
        &text::fit_middle(&title, room, app.theme.ellipsis()),
        Tone::Heading,
    );
    out.rest(" ", Tone::Dim);
    let room = out.room();
    out.push(bar.repeat(room), tone);
    out.line()
}

fn evidence(app: &App, frame: &mut Frame<'_>, title: Rect, pane: Rect, why: &Why) {
    let focused = app.focus == Focus::Why;
    let line = why_rule(app, &why.subject, usize::from(title.width), focused);
    put(frame, title, line);
    let lines = why_lines(app, why, usize::from(pane.width));
    let count = lines.len();
    for (row, (link, mut line)) in (0_u16..).zip(
        lines
            .into_iter()
            .skip(why.offset)
            .take(usize::from(pane.height)),
    ) {
        let area = Rect::new(pane.x, pane.y + row, pane.width, 1);
        highlight(app, &mut line);
        if link == why.selected && focused {
            frame
                .buffer_mut()
                .set_style(area, app.theme.selection(true));
            for span in &mut line.spans {
                span.style = app.theme.selected(span.style, true);
            }
        }
        put(frame, area, line);
    }
    scrollbar(app, frame, pane, why.offset, count);
}

fn footer(app: &App, frame: &mut Frame<'_>, area: Rect) {
    let width = usize::from(area.width);
    let mut out = Columns::new(app, width);
    out.push(" ".to_owned(), Tone::Plain);
    if let Some((notice, tone, _)) = &app.notice {
        // One that is too long for a line takes the lines above too, as long as it stands there.
        let lines = text::wrap(
            &app.theme.glyphs(&text::clean(notice)),
            width.saturating_sub(2),
        );
        let most = usize::from(area.y / 2).max(1);
        let shown: Vec<String> = lines.into_iter().take(most).collect();
        let above = u16::try_from(shown.len().saturating_sub(1)).unwrap_or(0);
        for (row, line) in (area.y - above..).zip(shown) {
            let line = Line::styled(
                text::pad(&format!(" {line}"), width),
                app.theme.style(*tone),
            );
            put(frame, Rect::new(area.x, row, area.width, 1), line);
        }
        return;
    }
    if app.focus == Focus::Program {
        out.rest("keys go to the program  ", Tone::Accent);
        out.rest(&format!("{} ", app.key_for(Action::Release)), Tone::Accent);
        out.rest("takes them back", Tone::Dim);
        put(frame, area, out.line());
        return;
    }
    if let Some(percent) = app.searched() {
        out.rest(&format!("searching {percent}%  "), Tone::Accent);
    } else if app.has_work() && !app.events.filter.is_empty() {
        out.rest(
            &format!("looking {}%  ", app.events.percent(&app.store)),
            Tone::Accent,
        );
    }
    for hint in hints(app) {
        out.rest(&hint.key, Tone::Accent);
        out.rest(&format!(" {}  ", hint.about), Tone::Dim);
    }
    let position = position(app);
    let gap = out.room().saturating_sub(text::width(&position) + 1);
    out.push(" ".repeat(gap), Tone::Plain);
    out.rest(&position, Tone::Dim);
    put(frame, area, out.line());
}

/// A key that the bottom line tells of, and what it does.
pub struct Hint {
    /// As it is shown.
    pub key: String,
    /// In a word.
    pub about: &'static str,
    /// The same for the mouse.
    pub action: Action,
}

impl Hint {
    /// Columns that it takes, with those that set it apart.
    pub fn width(&self) -> usize {
        text::width(&self.key) + text::width(self.about) + 3
    }
}

/// The keys that matter in front, the most telling first, as many as fit; the way to the others and the way out always.
pub fn hints(app: &App) -> Vec<Hint> {
    let mut all: Vec<Hint> = Vec::new();
    let map = &app.setup.settings.keys;
    let mut hint = |keys: &[String], about, action| {
        if let Some(key) = keys.first() {
            let key = key.clone();
            all.push(Hint { key, about, action });
        }
    };
    let front = app.front();
    let everywhere = |action| {
        let mut bound = map.applicable(front).filter(move |b| b.action == action);
        bound.find(|b| !b.keys.is_empty())
    };
    if app.why.is_some() {
        let other = match app.focus {
            Focus::Why => "list",
            _ => "evidence",
        };
        for (action, about) in [(Action::Switch, other), (Action::Close, "close")] {
            if let Some(bound) = everywhere(action) {
                hint(&bound.keys, about, action);
            }
        }
    }
    // Where there is no row, nothing can be done with one.
    let idle = matches!(front, Front::View(view) if view != View::Output)
        && view::count(app, app.view) == 0
        && app.events.filter.is_empty();
    let own = |b: &Bound| !(idle && matches!(b.scope, Scope::In(_)));
    for bound in map
        .applicable(front)
        .filter(|b| !b.hint.is_empty() && own(b))
    {
        if bound.action != Action::Type || app.has_program() {
            hint(&bound.keys, bound.hint, bound.action);
        }
    }
    if let Some(bound) = everywhere(Action::Palette) {
        hint(&bound.keys, "all actions", Action::Palette);
    }
    let needed = |hint: &Hint| matches!(hint.action, Action::Help | Action::Quit);
    let mut room = usize::from(app.size.0).saturating_sub(text::width(&position(app)) + 2);
    for hint in all.iter().filter(|hint| needed(hint)) {
        room = room.saturating_sub(hint.width());
    }
    let mut full = false;
    all.retain(|hint| {
        if needed(hint) {
            return true;
        }
        full |= hint.width() > room;
        room = room.saturating_sub(hint.width());
        !full
    });
    all
}

/// Where the selection is in what is longer than the screen: `12/345`.
fn position(app: &App) -> String {
    let (at, count) = match (&app.why, app.focus) {
        (Some(why), Focus::Why) => (why.selected, why.links.len()),
        _ => (app.list().selected, view::count(app, app.view)),
    };
    match count {
        0 => String::new(),
        count => format!(
            "{}/{}",
            text::count(at as u64 + 1),
            text::count(count as u64)
        ),
    }
}

//! Where everything is on the screen: computed once for drawing, scrolling and the mouse.

use jittrace_model::report::{Severity, phrase};
use ratatui::layout::Rect;

use crate::{
    app::{App, Focus, Mode},
    text,
    view::{self, View},
};

/// Where the evidence stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Layout {
    /// Beside the list where the screen is wide enough, else below it.
    #[default]
    Auto,
    /// Beside the list.
    Beside,
    /// Below the list.
    Below,
    /// On the whole screen, in place of the list.
    Whole,
}

impl Layout {
    /// All of them, as a key goes through them.
    pub const ALL: [Layout; 4] = [Layout::Auto, Layout::Beside, Layout::Below, Layout::Whole];

    /// What it is called in a file of settings.
    pub fn name(self) -> &'static str {
        match self {
            Layout::Auto => "auto",
            Layout::Beside => "beside",
            Layout::Below => "below",
            Layout::Whole => "whole",
        }
    }

    /// The layout of a name.
    pub fn named(name: &str) -> Option<Layout> {
        Layout::ALL.into_iter().find(|layout| layout.name() == name)
    }

    /// What it does, in words.
    pub fn about(self) -> &'static str {
        match self {
            Layout::Auto => "beside the list where there is room",
            Layout::Beside => "beside the list",
            Layout::Below => "below the list",
            Layout::Whole => "on the whole screen",
        }
    }

    /// The one after it; after the last comes the first.
    pub fn next(self) -> Layout {
        let mut layouts = Layout::ALL.into_iter().cycle();
        layouts.find(|layout| *layout == self);
        layouts.next().unwrap_or_default()
    }
}

/// Where the launched program's terminal stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OutputPlace {
    /// Beside the view in front where the screen is wide enough, else in a view of its own.
    #[default]
    Auto,
    /// Beside the view in front.
    Beside,
    /// In a view of its own.
    Alone,
}

impl OutputPlace {
    /// All of them.
    pub const ALL: [OutputPlace; 3] = [OutputPlace::Auto, OutputPlace::Beside, OutputPlace::Alone];

    /// What it is called in a file of settings.
    pub fn name(self) -> &'static str {
        match self {
            OutputPlace::Auto => "auto",
            OutputPlace::Beside => "beside",
            OutputPlace::Alone => "alone",
        }
    }

    /// The place of a name.
    pub fn named(name: &str) -> Option<OutputPlace> {
        OutputPlace::ALL
            .into_iter()
            .find(|place| place.name() == name)
    }
}

/// The parts of the screen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Areas {
    /// What is traced, how far, by which sources.
    pub header: Rect,
    /// The views.
    pub tabs: Rect,
    /// Titles of the columns.
    pub head: Rect,
    /// The rows of the view.
    pub rows: Rect,
    /// What the view says below its rows.
    pub below: Rect,
    /// The line between the view and the evidence.
    pub divider: Option<Rect>,
    /// Title of the evidence.
    pub why_title: Option<Rect>,
    /// The lines of the evidence.
    pub why: Option<Rect>,
    /// The line between the view and the program's terminal.
    pub output_divider: Option<Rect>,
    /// The program's terminal beside the view.
    pub output: Option<Rect>,
    /// Keys, or a notice.
    pub footer: Rect,
}

/// Columns from which the evidence stands beside the view rather than below it, when nobody says otherwise.
const SIDE_BY_SIDE: u16 = 110;

/// Columns below which nothing stands beside anything.
const TOO_NARROW: u16 = 40;

/// Columns that most programs take a terminal to have.
const TERMINAL: u16 = 80;

/// Columns that a view needs beside the program's terminal, when nobody asked for it there.
const BESIDE_OUTPUT: u16 = 108;

/// Where everything is.
pub fn areas(app: &App) -> Areas {
    let (width, height) = app.size;
    let mut areas = Areas::default();
    let header = header_height(app).min(height.saturating_sub(4));
    areas.header = Rect::new(0, 0, width, header);
    areas.tabs = Rect::new(0, header, width, 1.min(height.saturating_sub(header)));
    areas.footer = Rect::new(0, height.saturating_sub(1), width, 1.min(height));
    let top = header + areas.tabs.height;
    let mut body = Rect::new(
        0,
        top,
        width,
        height.saturating_sub(top + areas.footer.height),
    );
    if let Some(output) = output_beside(app).filter(|_| !app.zoomed) {
        body.width -= output + 1;
        let (x, y, height) = (body.width, body.y, body.height);
        areas.output_divider = Some(Rect::new(x, y, 1, height));
        areas.output = Some(Rect::new(x + 1, y, output, height));
    }
    if app.why.is_some() {
        let whole = app.zoomed || app.layout == Layout::Whole;
        let alone = whole && app.focus == Focus::Why;
        let hidden = whole && app.focus != Focus::Why;
        if alone {
            split_title(&mut areas, body);
            return areas;
        }
        if !hidden {
            let beside = match app.layout {
                Layout::Beside => body.width >= TOO_NARROW,
                // Three columns of text are too narrow for any of them.
                Layout::Auto if areas.output.is_some() => body.width >= SIDE_BY_SIDE + TERMINAL,
                Layout::Auto => body.width >= SIDE_BY_SIDE,
                Layout::Below | Layout::Whole => false,
            };
            if beside {
                let side = share(body.width, app.share);
                let left = body.width - side - 1;
                areas.divider = Some(Rect::new(left, body.y, 1, body.height));
                split_title(&mut areas, Rect::new(left + 1, body.y, side, body.height));
                body.width = left;
            } else {
                let upper = body.height - share(body.height, app.share + 10).min(body.height);
                let upper = upper.min(needed(app, body.width, upper));
                let lower = body.height - upper;
                split_title(&mut areas, Rect::new(0, body.y + upper, body.width, lower));
                body.height = upper;
            }
        }
    }
    if app.view == View::Output {
        areas.rows = body;
        return areas;
    }
    let has_head = !matches!(app.view, View::Findings);
    let head = u16::from(has_head && body.height > 1);
    areas.head = Rect::new(body.x, body.y, body.width, head);
    body.y += head;
    body.height -= head;
    let rows = u16::try_from(view::count(app, app.view)).unwrap_or(u16::MAX);
    let below = below_height(app, body.width, body.height, rows);
    areas.rows = Rect::new(body.x, body.y, body.width, body.height - below);
    areas.below = Rect::new(body.x, body.y + areas.rows.height, body.width, below);
    areas
}

/// Lines that the view in front needs of so many that it could have above the evidence.
fn needed(app: &App, width: u16, height: u16) -> u16 {
    if app.view == View::Output {
        return height;
    }
    let rows = u16::try_from(view::count(app, app.view)).unwrap_or(u16::MAX);
    let head = u16::from(app.view != View::Findings);
    // One empty line sets what is below apart.
    let below = below_height(app, width, height.saturating_sub(head), rows);
    rows.saturating_add(head + below + u16::from(below > 1))
        .min(height)
}

/// So many percent of a length.
fn share(length: u16, percent: u16) -> u16 {
    let part = u32::from(length) * u32::from(percent) / 100;
    u16::try_from(part).unwrap_or(length)
}

fn split_title(areas: &mut Areas, area: Rect) {
    let title = 1.min(area.height);
    areas.why_title = Some(Rect::new(area.x, area.y, area.width, title));
    areas.why = Some(Rect::new(
        area.x,
        area.y + title,
        area.width,
        area.height - title,
    ));
}

/// Lines of the header: a second one tells of refused sources.
fn header_height(app: &App) -> u16 {
    1 + u16::from(crate::draw::has_trouble(app))
}

/// Lines below the rows.
fn below_height(app: &App, width: u16, height: u16, rows: u16) -> u16 {
    match app.view {
        View::Resolution if rows > 0 => {
            let toolkits = app
                .snapshot
                .report
                .toolkits
                .iter()
                .enumerate()
                .filter(|(at, t)| t.used && app.snapshot.is_cuda(*at))
                .count();
            // A rule, what decided the selected cell unless the evidence says so, the toolkits.
            let told = if app.why.is_some() { 1 } else { 5 };
            let wanted = told + u16::try_from(toolkits.min(8)).unwrap_or(8);
            // Where there is room the whole chain of the selected cell stands there; one line sets it apart.
            let spare = height.saturating_sub(rows.saturating_add(1));
            let legend = wanted - told;
            let chain = u16::try_from(view::resolution::ROOMY).unwrap_or(u16::MAX);
            let wanted = match app.why {
                None if spare > legend + chain => return spare,
                _ => wanted,
            };
            wanted
                .min(height.saturating_sub(rows.min(6)).max(height / 3))
                .min(height / 2)
        }
        View::Findings if rows > 0 && app.why.is_none() => {
            // What puts it right should be seen: the list gives way, down to a quarter.
            let detail = view::findings::detail(app, usize::from(width)).len();
            let wanted = u16::try_from(detail + 1).unwrap_or(u16::MAX);
            let list = rows.min((height / 4).max(5));
            wanted
                .max(height.saturating_sub(rows + 1))
                .min(height.saturating_sub(list))
                .min(height.saturating_sub(1))
        }
        View::Builds if rows > 0 && height > 3 => 1,
        View::Processes if rows > 0 && height > 3 => {
            u16::from(app.snapshot.condensed_processes() > 0)
        }
        View::Events if height > 3 && !app.events.filter_text.is_empty() => 1,
        _ => 0,
    }
}

/// The area of the launched program's terminal: beside the view where it stands there, else all of the body, whichever
/// view is in front.
pub fn output_area(app: &App) -> Rect {
    let (width, height) = app.size;
    let top = header_height(app).min(height.saturating_sub(4)) + 1;
    let columns = output_beside(app).unwrap_or(width);
    Rect::new(
        width - columns,
        top,
        columns,
        height.saturating_sub(top + 1),
    )
}

/// Columns of the launched program's terminal beside the view in front, where it stands there.
pub fn output_beside(app: &App) -> Option<u16> {
    if app.setup.mode != Mode::Launch || app.view == View::Output {
        return None;
    }
    let (width, _) = app.size;
    match app.output {
        OutputPlace::Alone => None,
        OutputPlace::Auto => (width > TERMINAL + BESIDE_OUTPUT).then(|| {
            let spare = width - TERMINAL - BESIDE_OUTPUT - 1;
            TERMINAL + spare / 2
        }),
        OutputPlace::Beside => {
            (width >= 2 * TOO_NARROW).then(|| TERMINAL.min(width / 2).max(share(width, 40)))
        }
    }
}

/// A tab's text.
pub fn tab_text(app: &App, view: View) -> String {
    let narrow = app.size.0 < 100;
    let crowded = app.size.0 < 80 && view != app.view;
    let title = match (narrow, view) {
        _ if crowded => "",
        (true, View::Resolution) => "Resolve",
        (true, View::Processes) => "Procs",
        (true, View::Libraries) => "Libs",
        (_, view) => view.title(),
    };
    let report = &app.snapshot.report;
    let errors =
        phrase::count_of(report, Severity::Error) + phrase::count_of(report, Severity::Warning);
    let count = match view {
        View::Findings if errors > 0 => format!(" {}{errors}", app.theme.dot()),
        View::Builds if app.snapshot.builds.running > 0 && !app.progress.complete => {
            format!(" {}", app.snapshot.builds.running)
        }
        _ => String::new(),
    };
    // In a narrow window the tabs stand close, so that the last is whole when the first have counts.
    let after = if narrow { "" } else { " " };
    let before = if title.is_empty() { "" } else { " " };
    format!(" {}{before}{title}{count}{after}", view.index() + 1)
}

/// The view whose tab is at a position.
pub fn tab_at(app: &App, column: u16, row: u16) -> Option<View> {
    let areas = areas(app);
    if row != areas.tabs.y || areas.tabs.height == 0 {
        return None;
    }
    let mut start = 0;
    for view in View::ALL {
        let end = start + text::width(&tab_text(app, view));
        if (start..end).contains(&usize::from(column)) {
            return Some(view);
        }
        start = end;
    }
    None
}

//! Resolution: components down, parts of a toolkit across; which toolkit did each get?
//!
//! A version has the colour and the letter of its toolkit. The toolkit that most use is calm, others stand out. A mark
//! stands beside a version whose release differs from the one that its component was built for, or, where that is not
//! known, from the one that a component in the same processes was built for, or from the other parts of its own. The mark states a difference; whether it does harm is a finding.

use std::collections::{HashMap, HashSet};

use jittrace_model::report::{Component, Resolved};
use ratatui::text::{Line, Span};

use super::Columns;
use crate::{
    app::App,
    keys::Action,
    snapshot::Snapshot,
    subject::Subject,
    text,
    theme::{self, Tone},
};

/// A column of the table.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// The part's name in the report; other columns have a name of their own.
    pub key: &'static str,
    /// The title.
    pub title: &'static str,
    /// Whether its version is a release of the toolkit, to be compared with others.
    pub release: bool,
    /// Shown although nothing is in it.
    pub always: bool,
}

const fn column(key: &'static str, title: &'static str, release: bool, always: bool) -> Column {
    Column {
        key,
        title,
        release,
        always,
    }
}

/// The columns, in the order in which they are shown.
pub const COLUMNS: &[Column] = &[
    column("built-for", "built for", false, true),
    column("nvcc", "nvcc", true, true),
    column("ptxas", "ptxas", true, true),
    column("cudart", "cudart", true, true),
    column("nvrtc", "nvrtc", true, true),
    column("nvjitlink", "nvJitLink", true, true),
    column("libcuda", "driver", false, true),
    column("archs", "archs", false, true),
    column("caches", "cache", false, true),
    column("headers", "headers", true, false),
    column("host_compiler", "host cc", false, false),
    column("cudnn", "cuDNN", false, false),
    column("cublas", "cuBLAS", false, false),
    column("nccl", "NCCL", false, false),
];

/// How far apart two releases are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Difference {
    /// The same release, or not known.
    #[default]
    None,
    /// Another minor release.
    Minor,
    /// Another major release.
    Major,
}

/// What a cell shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cell {
    /// The version or value; empty when nothing was resolved.
    pub value: String,
    /// The same with less detail.
    pub short: String,
    /// Position of its toolkit in the report.
    pub toolkit: Option<usize>,
    /// How it differs from what was expected.
    pub differs: Difference,
    /// Further files that were resolved for the same part.
    pub more: usize,
}

/// A row: a component, by its position in the report, and its cells.
#[derive(Debug, Clone, Default)]
pub struct Row {
    /// Position in the report.
    pub component: usize,
    /// One for each of [`COLUMNS`].
    pub cells: Vec<Cell>,
}

/// The orders in which components can stand.
pub const SORTS: [&str; 3] = ["as resolved", "by name", "disagreeing first"];

/// The rows, for one process or for all.
pub fn rows(snapshot: &Snapshot, process: Option<u32>, sort: usize) -> Vec<Row> {
    let components = &snapshot.report.components;
    let mut rows: Vec<Row> = components
        .iter()
        .enumerate()
        .map(|(at, component)| Row {
            component: at,
            cells: cells(snapshot, component, process),
        })
        .filter(|row| process.is_none() || row.cells.iter().skip(1).any(|c| !c.value.is_empty()))
        .collect();
    match sort {
        1 => rows.sort_by_key(|row| components.get(row.component).map(|c| c.name.to_lowercase())),
        2 => rows.sort_by_key(|row| {
            std::cmp::Reverse(
                row.cells
                    .iter()
                    .map(|c| c.differs)
                    .max()
                    .unwrap_or_default(),
            )
        }),
        _ => {}
    }
    rows
}

/// How a file is shown: as it was found, or without symbolic links when the path only leads around.
trait Shown {
    fn shown(&self) -> &str;
}

impl Shown for Resolved {
    fn shown(&self) -> &str {
        text::straight(&self.path, &self.realpath)
    }
}

/// The files that a component resolved for a part, in one process or in all.
pub fn entries<'a>(
    component: &'a Component,
    part: &str,
    process: Option<u32>,
) -> impl Iterator<Item = &'a Resolved> {
    component
        .resolved
        .get(part)
        .into_iter()
        .flatten()
        .filter(move |entry| process.is_none_or(|pid| entry.pids.contains(&pid)))
}

fn cells(snapshot: &Snapshot, component: &Component, process: Option<u32>) -> Vec<Cell> {
    let mut cells: Vec<Cell> = COLUMNS
        .iter()
        .map(|column| cell(snapshot, component, column.key, process))
        .collect();
    let own = component.built_for.cuda.as_deref().map(release);
    // Without a release that it was built for, the parts are measured by what most of them have.
    let expected = own.or_else(|| {
        let mut counts: Vec<(&str, usize)> = Vec::new();
        for (column, cell) in COLUMNS.iter().zip(&cells) {
            if column.release && !cell.value.is_empty() {
                let release = release(&cell.value);
                match counts.iter_mut().find(|(known, _)| *known == release) {
                    Some((_, count)) => *count += 1,
                    None => counts.push((release, 1)),
                }
            }
        }
        let most = counts.iter().map(|(_, count)| *count).max()?;
        counts
            .iter()
            .find(|(_, count)| *count == most)
            .map(|(release, _)| *release)
    });
    let expected = expected.map(str::to_owned);
    // A component of whose release nothing tells is measured by one that it runs beside.
    let beside = match component.built_for.cuda {
        Some(_) => None,
        None => neighbour(snapshot, component),
    };
    let expected = beside.map(|(_, release)| release.clone()).or(expected);
    for (column, cell) in COLUMNS.iter().zip(&mut cells) {
        if cell.value.is_empty() {
            continue;
        }
        let versions: Vec<&str> = entries(component, column.key, process)
            .filter_map(|e| e.version.as_deref())
            .collect();
        let mut differs = Difference::None;
        if column.release
            && let Some(expected) = &expected
        {
            for version in &versions {
                differs = differs.max(difference(version, expected));
            }
        }
        if let Some((first, rest)) = versions.split_first() {
            for other in rest {
                differs = differs.max(difference(first, other));
            }
        }
        // The driver's number is the newest CUDA that it supports: only an older one disagrees.
        if column.key == "libcuda"
            && let Some(expected) = &expected
            && let Some(cuda) = &snapshot.report.driver.cuda
            && older(cuda, expected)
        {
            differs = differs.max(difference(cuda, expected));
        }
        cell.differs = differs;
    }
    cells
}

/// What only everything together tells of a component.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Beside {
    /// A component that runs in the same processes and says for which release it was built: its name and that release.
    /// Only of one that does not say so itself.
    pub neighbour: Option<(String, String)>,
    /// Architectures that its builds asked for, and those of what lies in its caches.
    pub archs: Vec<String>,
}

/// The same for every component, by its name.
pub fn beside(snapshot: &Snapshot) -> HashMap<String, Beside> {
    let report = &snapshot.report;
    let mut archs: HashMap<&str, Vec<String>> = HashMap::new();
    let built = report
        .builds
        .iter()
        .filter_map(|build| Some((build.started_by.as_deref()?, build.archs.as_slice())));
    let cached = report.caches.iter().flat_map(|cache| {
        let artifacts = cache.artifacts.iter();
        artifacts.map(|a| (cache.owner.as_str(), a.archs.as_slice()))
    });
    for (component, more) in built.chain(cached) {
        add_short(archs.entry(component).or_default(), more);
    }
    let told = |component: &&Component| component.built_for.cuda.is_some();
    let ran: Vec<(&Component, HashSet<usize>)> = match report.components.iter().all(|c| told(&c)) {
        true => Vec::new(),
        false => {
            let told = report.components.iter().filter(told);
            told.map(|c| (c, ran_in(snapshot, c))).collect()
        }
    };
    let all = report.components.iter().map(|component| {
        let neighbour = || {
            let own = ran_in(snapshot, component);
            ran.iter()
                .filter(|(other, _)| other.name != component.name)
                .find(|(_, there)| !there.is_disjoint(&own))
                .and_then(|(other, _)| {
                    let cuda = other.built_for.cuda.as_deref()?;
                    Some((other.name.clone(), release(cuda).to_owned()))
                })
        };
        let beside = Beside {
            neighbour: match component.built_for.cuda {
                Some(_) => None,
                None => neighbour(),
            },
            archs: archs.remove(component.name.as_str()).unwrap_or_default(),
        };
        (component.name.clone(), beside)
    });
    all.collect()
}

/// The processes in which a component resolved anything, and those that led to them.
fn ran_in(snapshot: &Snapshot, component: &Component) -> HashSet<usize> {
    let entries = component.resolved.values().flatten();
    let pids: HashSet<u32> = entries.flat_map(|e| e.pids.iter().copied()).collect();
    let mut ran = HashSet::new();
    for pid in pids {
        let mut at = snapshot.last_of(pid);
        // Where one was met before, so were those above it.
        while let Some(image) = at.filter(|image| ran.insert(*image)) {
            at = snapshot.processes.get(image).and_then(|p| p.parent);
        }
    }
    ran
}

/// A component that runs in the same processes and says for which release it was built: its name and that release.
pub fn neighbour<'a>(
    snapshot: &'a Snapshot,
    component: &Component,
) -> Option<&'a (String, String)> {
    snapshot.beside.get(&component.name)?.neighbour.as_ref()
}

fn cell(snapshot: &Snapshot, component: &Component, key: &str, process: Option<u32>) -> Cell {
    let plain = |value: String| Cell {
        short: value.clone(),
        value,
        ..Cell::default()
    };
    match key {
        "built-for" => plain(component.built_for.cuda.clone().unwrap_or_default()),
        "archs" => plain(archs(snapshot, component).join(" ")),
        "caches" => {
            let (mut hits, mut misses, mut builds) = (0, 0, 0);
            for cache in snapshot
                .report
                .caches
                .iter()
                .filter(|c| c.owner == component.name)
            {
                hits += cache.hits;
                misses += cache.misses;
                builds += cache.builds;
            }
            if hits + misses + builds == 0 {
                return Cell::default();
            }
            let told: Vec<String> = [(hits, "hit"), (misses, "missed"), (builds, "built")]
                .into_iter()
                // What is built was missed before.
                .filter(|(count, word)| *count > 0 && (*word != "missed" || builds == 0))
                .map(|(count, word)| format!("{count} {word}"))
                .collect();
            plain(told.join(" "))
        }
        part => {
            let mut entries = entries(component, part, process);
            let Some(first) = entries.next() else {
                return Cell::default();
            };
            let version = first.version.clone();
            let value = match (part, version) {
                // The driver library has the driver's release; what matters is the CUDA that it supports.
                ("libcuda", version) => {
                    let cuda = snapshot.report.driver.cuda.clone();
                    match (version, cuda) {
                        (Some(version), Some(cuda)) => {
                            return Cell {
                                value: format!("{version} ({cuda})"),
                                short: cuda,
                                more: entries.count(),
                                toolkit: None,
                                ..Cell::default()
                            };
                        }
                        (version, cuda) => version.or(cuda),
                    }
                }
                (_, version) => version,
            };
            let value = value.unwrap_or_else(|| "?".to_owned());
            Cell {
                short: release(&value).to_owned(),
                value,
                toolkit: first
                    .toolkit
                    .as_deref()
                    .and_then(|id| snapshot.toolkit(id))
                    .filter(|&at| snapshot.is_cuda(at)),
                more: entries.count(),
                ..Cell::default()
            }
        }
    }
}

/// Architectures that a component's builds asked for, and those of what lies in its caches.
pub fn archs<'a>(snapshot: &'a Snapshot, component: &Component) -> &'a [String] {
    let beside = snapshot.beside.get(&component.name);
    beside.map_or(&[], |beside| &beside.archs)
}

/// Architectures without what stands before their numbers, each once.
pub fn short(archs: &[String]) -> Vec<String> {
    let mut out = Vec::new();
    add_short(&mut out, archs);
    out
}

fn add_short(to: &mut Vec<String>, archs: &[String]) {
    for arch in archs {
        let short = arch
            .trim_start_matches("compute_")
            .trim_start_matches("sm_");
        if !to.iter().any(|a| a == short) {
            to.push(short.to_owned());
        }
    }
}

/// `13.0` of `13.0.88`.
pub fn release(version: &str) -> &str {
    match version.match_indices('.').nth(1) {
        Some((at, _)) => version.get(..at).unwrap_or(version),
        None => version,
    }
}

/// How two versions differ, as releases.
pub fn difference(a: &str, b: &str) -> Difference {
    let known = |v: &str| v.starts_with(|c: char| c.is_ascii_digit());
    if !known(a) || !known(b) {
        return Difference::None;
    }
    let (a, b) = (release(a), release(b));
    let major = |v: &str| v.split('.').next().unwrap_or_default().to_owned();
    if major(a) != major(b) {
        return Difference::Major;
    }
    // `13` alone says nothing of the minor release.
    if a != b && a.contains('.') && b.contains('.') {
        Difference::Minor
    } else {
        Difference::None
    }
}

fn older(a: &str, b: &str) -> bool {
    let numbers = |v: &str| -> Vec<u32> { v.split('.').filter_map(|n| n.parse().ok()).collect() };
    numbers(a) < numbers(b)
}

/// What a row is about: the selected column's cell.
pub fn subject(app: &App, at: usize) -> Option<Subject> {
    let row = app.rows.resolution.get(at)?;
    let component = app.snapshot.report.components.get(row.component)?;
    Some(Subject::Cell {
        component: component.name.clone(),
        column: app.column,
    })
}

/// Columns that have something in them, by position.
pub fn shown(app: &App) -> Vec<usize> {
    (0..COLUMNS.len())
        .filter(|&at| COLUMNS.get(at).is_some_and(|c| c.always) || !is_empty(app, at))
        .collect()
}

/// Whether no component has anything in a column.
fn is_empty(app: &App, column: usize) -> bool {
    app.rows
        .resolution
        .iter()
        .all(|row| row.cells.get(column).is_none_or(|c| c.value.is_empty()))
}

/// What a component is called; where nobody knows who asked, the report has no name for it.
pub fn name(component: &Component) -> &str {
    match component.name.as_str() {
        "" => "(asker not seen)",
        name => name,
    }
}

/// Widths: the name's, each visible column's, and whether versions are short.
struct Plan {
    name: usize,
    columns: Vec<(usize, usize)>,
    short: bool,
}

/// Longest list of architectures that is shown in full.
const LONGEST: usize = 24;

fn plan(app: &App, width: usize) -> Plan {
    let shown = shown(app);
    let names =
        app.rows.resolution.iter().filter_map(|row| {
            app.snapshot.report.components.get(row.component).map(|c| {
                text::width(name(c)) + c.version.as_ref().map_or(0, |v| text::width(v) + 1)
            })
        });
    let name_width = names
        .max()
        .unwrap_or(0)
        .clamp(10, (width / 4).clamp(14, 36));
    let wanted = |at: usize, short: bool| {
        let title = COLUMNS.get(at).map_or(0, |c| c.title.len());
        let widest = app
            .rows
            .resolution
            .iter()
            .filter_map(|row| row.cells.get(at))
            .map(|cell| width_of(cell, short))
            .max()
            .unwrap_or(0);
        title.max(widest.min(if short { 9 } else { LONGEST }))
    };
    for short in [false, true] {
        let columns: Vec<(usize, usize)> =
            shown.iter().map(|&at| (at, wanted(at, short))).collect();
        let total: usize = columns.iter().map(|(_, w)| w + 2).sum();
        if name_width + 1 + total <= width || short {
            let mut columns = columns;
            let mut total = total;
            // Columns in which nothing stands give way first.
            while name_width + 1 + total > width
                && let Some(empty) = columns
                    .iter()
                    .rposition(|(at, _)| *at != app.column && is_empty(app, *at))
            {
                total -= columns.remove(empty).1 + 2;
            }
            // What does not fit is reached by moving: the selected column is always in sight.
            while name_width + 1 + total > width && columns.len() > 1 {
                let selected = columns.iter().position(|(at, _)| *at == app.column);
                let drop_first = selected.is_some_and(|s| {
                    let until: usize = columns.iter().take(s + 1).map(|(_, w)| w + 2).sum();
                    name_width + 1 + until > width
                });
                let dropped = if drop_first {
                    columns.remove(0)
                } else {
                    columns.pop().unwrap_or_default()
                };
                total -= dropped.1 + 2;
            }
            return Plan {
                name: name_width,
                columns,
                short,
            };
        }
    }
    Plan {
        name: name_width,
        columns: Vec::new(),
        short: true,
    }
}

/// The column at a distance from the left edge.
pub fn column_at(app: &App, x: usize, width: usize) -> Option<usize> {
    let plan = plan(app, width);
    let mut start = plan.name + 1;
    for (at, width) in plan.columns {
        if (start..start + width + 2).contains(&x) {
            return Some(at);
        }
        start += width + 2;
    }
    None
}

/// Columns a cell takes: version, letter, mark, count of others.
fn width_of(cell: &Cell, short: bool) -> usize {
    if cell.value.is_empty() {
        return 1;
    }
    let value = if short { &cell.short } else { &cell.value };
    text::width(value)
        + usize::from(cell.toolkit.is_some())
        + usize::from(cell.differs != Difference::None)
        + if cell.more > 0 { 2 } else { 0 }
}

/// The titles.
pub fn head(app: &App, width: usize) -> Line<'static> {
    let plan = plan(app, width);
    let mut out = Columns::new(app, width);
    out.cell("component", plan.name, Tone::Dim);
    let last = plan.columns.last().map(|(at, _)| *at);
    for (at, width) in plan.columns {
        let title = COLUMNS.get(at).map_or("", |c| c.title);
        out.cell(
            title,
            width + 1,
            if at == app.column {
                Tone::Heading
            } else {
                Tone::Dim
            },
        );
    }
    // Columns that lie further to the right, by number.
    let hidden = shown(app)
        .into_iter()
        .filter(|&at| last.is_some_and(|last| at > last) && !is_empty(app, at))
        .count();
    let more = format!("{hidden}{}", app.theme.onward());
    if hidden > 0 && out.room() >= text::width(&more) {
        let gap = out.room() - text::width(&more);
        out.push(" ".repeat(gap), Tone::Plain);
        out.push(more, Tone::Accent);
    }
    out.line()
}

/// The cell that is looked at first: of the first component, the first part that it resolved.
pub fn first_column(app: &App) -> Option<usize> {
    let row = app.rows.resolution.first()?;
    (1..COLUMNS.len()).find(|&at| row.cells.get(at).is_some_and(|c| !c.value.is_empty()))
}

/// A row.
pub fn line(app: &App, at: usize, width: usize) -> Option<Line<'static>> {
    let row = app.rows.resolution.get(at)?;
    let component = app.snapshot.report.components.get(row.component)?;
    let plan = plan(app, width);
    let selected = app.list().selected == at;
    let mut out = Columns::new(app, width);
    let version = component.version.as_deref().unwrap_or_default();
    let name = name(component);
    let name_room = plan.name.saturating_sub(text::width(version) + 1);
    if text::width(name) <= name_room && !version.is_empty() {
        out.push(
            format!("{} ", app.theme.glyphs(&text::clean(name))),
            Tone::Heading,
        );
        out.cell(version, plan.name - text::width(name) - 1, Tone::Dim);
    } else {
        out.cell(name, plan.name, Tone::Heading);
    }
    for (column, width) in plan.columns {
        let cell = row.cells.get(column).cloned().unwrap_or_default();
        let here = selected && column == app.column;
        for span in cell_spans(app, &cell, width, plan.short, column, here) {
            out.styled(span.content.into_owned(), span.style);
        }
    }
    Some(out.line())
}

fn cell_spans(
    app: &App,
    cell: &Cell,
    width: usize,
    short: bool,
    column: usize,
    selected: bool,
) -> Vec<Span<'static>> {
    let theme = app.theme;
    let mut spans: Vec<(String, Tone)> = Vec::new();
    if cell.value.is_empty() {
        spans.push((theme.nothing().to_owned(), Tone::Dim));
    } else {
        let mut tail: Vec<(String, Tone)> = Vec::new();
        let tone = match cell.toolkit {
            Some(toolkit) => {
                let rank = app.snapshot.rank(toolkit);
                tail.push((theme::letter(rank).to_string(), Tone::Toolkit(rank)));
                Tone::Toolkit(rank)
            }
            None => match COLUMNS.get(column).map(|c| c.key) {
                Some("built-for") => Tone::Heading,
                Some("caches" | "archs") => Tone::Dim,
                _ => Tone::Plain,
            },
        };
        match cell.differs {
            Difference::None => {}
            Difference::Minor => tail.push((theme.differs().to_owned(), Tone::Note)),
            Difference::Major => tail.push((theme.differs().to_owned(), Tone::Warning)),
        }
        if cell.more > 0 {
            tail.push((format!("+{}", cell.more.min(9)), Tone::Dim));
        }
        let taken: usize = tail.iter().map(|(t, _)| text::width(t)).sum();
        let room = width.saturating_sub(taken);
        let value = if short || text::width(&cell.value) > room {
            &cell.short
        } else {
            &cell.value
        };
        let value = theme
            .glyphs(&text::fit(value, room, theme.ellipsis()))
            .into_owned();
        spans.push((value, tone));
        spans.append(&mut tail);
    }
    let used: usize = spans.iter().map(|(t, _)| text::width(t)).sum();
    let mut out: Vec<Span<'static>> = spans
        .into_iter()
        .map(|(content, tone)| {
            let style = theme.style(tone);
            Span::styled(
                content,
                if selected {
                    style.patch(theme.cell())
                } else {
                    style
                },
            )
        })
        .collect();
    let gap = " ".repeat(width.saturating_sub(used));
    out.push(Span::styled(
        gap,
        if selected {
            theme.cell()
        } else {
            ratatui::style::Style::new()
        },
    ));
    out.push(Span::raw("  "));
    out
}

/// Lines from which the chain of the selected cell is shown in full below the table.
pub const ROOMY: usize = 9;

/// The lines below the table: what decided the selected cell, and the toolkits by letter.
pub fn footer(app: &App, width: usize, height: usize) -> Vec<Line<'static>> {
    let report = &app.snapshot.report;
    let mut order: Vec<usize> = (0..report.toolkits.len())
        .filter(|&at| report.toolkits.get(at).is_some_and(|t| t.used) && app.snapshot.is_cuda(at))
        .collect();
    order.sort_by_key(|&at| app.snapshot.rank(at));
    let spare = height.saturating_sub(order.len());
    let mut lines = if app.why.is_none() && spare >= ROOMY {
        let mut chain = chain(app, width);
        let left_out = chain.len().saturating_sub(spare - 1);
        chain.truncate(spare - 1);
        if left_out > 0 {
            chain.pop();
            let more = format!(
                "  {} more lines: {}",
                left_out + 1,
                app.key_for(Action::Open)
            );
            chain.push(Line::styled(more, app.theme.style(Tone::Dim)));
        }
        chain.resize(spare, Line::default());
        chain
    } else if app.why.is_some() {
        // The evidence says it already.
        Vec::new()
    } else {
        chosen(app, width, spare.max(1))
    };
    for at in order {
        if lines.len() >= height {
            break;
        }
        let Some(toolkit) = report.toolkits.get(at) else {
            continue;
        };
        let rank = app.snapshot.rank(at);
        let mut out = Columns::new(app, width);
        out.push(format!("{} ", theme::letter(rank)), Tone::Toolkit(rank));
        out.cell(&toolkit.id, 18, Tone::Toolkit(rank));
        let parts = toolkit
            .parts
            .iter()
            .filter_map(|(part, found)| Some(format!("{part} {}", found.version.as_ref()?)))
            .collect::<Vec<_>>()
            .join(", ");
        // The root tells more than the parts; these stand where both have room.
        let aside = text::width(&parts) + 2;
        let room = out.room();
        if text::width(&toolkit.root) + aside <= room {
            out.rest(&toolkit.root, Tone::Plain);
            out.rest(&format!("  {parts}"), Tone::Dim);
        } else {
            out.path(&toolkit.root, room, Tone::Plain);
        }
        lines.push(out.line());
    }
    lines
}

/// The chain behind the selected cell, as Enter opens it.
fn chain(app: &App, width: usize) -> Vec<Line<'static>> {
    let Some(subject) = app.selected() else {
        return Vec::new();
    };
    crate::draw::why_lines(app, &app.glance(subject), width)
        .into_iter()
        .map(|(_, line)| line)
        .collect()
}

/// The selected cell: file ← rule ← asker, on as many lines as there are, at most four.
fn chosen(app: &App, width: usize, height: usize) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    let Some((component, column)) = app
        .rows
        .resolution
        .get(app.list().selected)
        .and_then(|row| app.snapshot.report.components.get(row.component))
        .zip(COLUMNS.get(app.column))
    else {
        return lines;
    };
    let Some(entry) = entries(component, column.key, app.process)
        .next()
        .filter(|_| height > 1)
    else {
        lines.extend(chosen_line(app, width));
        return lines;
    };
    let tone = match entry
        .toolkit
        .as_deref()
        .and_then(|id| app.snapshot.toolkit(id))
    {
        Some(toolkit) => Tone::Toolkit(app.snapshot.rank(toolkit)),
        None => Tone::Plain,
    };
    let mut out = Columns::new(app, width);
    let version = entry.version.as_deref().unwrap_or("of unknown version");
    out.push(
        format!("{} {} ", name(component), column.title),
        Tone::Heading,
    );
    out.push(format!("{version} "), tone);
    let room = out.room();
    out.path(entry.shown(), room, tone);
    lines.push(out.line());
    let mut steps = vec![crate::why::rule_long(entry.rule, &entry.rule_detail)];
    if let Some(by) = &entry.requested_by {
        steps.push(format!("asked by {by}"));
    }
    let differs = app
        .rows
        .resolution
        .get(app.list().selected)
        .and_then(|row| row.cells.get(app.column))
        .is_some_and(|c| c.differs != Difference::None);
    if differs {
        let expected = match &component.built_for.cuda {
            Some(cuda) => Some(format!("{} was built for CUDA {cuda}", name(component))),
            None => neighbour(&app.snapshot, component)
                .map(|(other, cuda)| format!("{other} beside it was built for CUDA {cuda}")),
        };
        steps.extend(expected.map(|text| format!("{} {text}", app.theme.differs())));
    }
    for step in steps {
        if lines.len() >= height {
            break;
        }
        let warns = step.starts_with(app.theme.differs());
        let mut out = Columns::new(app, width);
        if warns {
            out.push("  ".to_owned(), Tone::Plain);
            out.rest(&step, Tone::Warning);
        } else {
            out.push(format!("  {} ", app.theme.arrow()), Tone::Accent);
            let clean = text::clean(&step).into_owned();
            let room = out.room();
            out.rest(
                &text::fit_middle(&clean, room, app.theme.ellipsis()),
                Tone::Plain,
            );
        }
        lines.push(out.line());
    }
    lines
}

/// The selected cell in one line: file ← rule ← asker.
fn chosen_line(app: &App, width: usize) -> Option<Line<'static>> {
    let row = app.rows.resolution.get(app.list().selected)?;
    let component = app.snapshot.report.components.get(row.component)?;
    let column = COLUMNS.get(app.column)?;
    let mut out = Columns::new(app, width);
    out.push(
        format!("{} {}: ", name(component), column.title),
        Tone::Heading,
    );
    let Some(entry) = entries(component, column.key, app.process).next() else {
        let text = match column.key {
            "built-for" => match &component.built_for.from {
                Some(from) => format!("as {from} says"),
                None => "nothing says for which CUDA it was built".to_owned(),
            },
            "archs" => "asked for by its builds, or found in its caches".to_owned(),
            "caches" if !component.caches.is_empty() => component.caches.join(", "),
            _ => "nothing was resolved".to_owned(),
        };
        out.rest(&text, Tone::Dim);
        return Some(out.line());
    };
    let arrow = app.theme.arrow();
    let tail = match &entry.requested_by {
        Some(by) => format!(
            " {arrow} {} {arrow} {}",
            crate::why::rule_short(entry.rule, &entry.rule_detail),
            by
        ),
        None => format!(
            " {arrow} {}",
            crate::why::rule_short(entry.rule, &entry.rule_detail)
        ),
    };
    let tail_room = text::width(&tail).min(out.room() / 2);
    let path_room = out.room().saturating_sub(tail_room);
    let path = text::fit_path(entry.shown(), path_room, app.theme.ellipsis()).into_owned();
    let tone = match entry
        .toolkit
        .as_deref()
        .and_then(|id| app.snapshot.toolkit(id))
    {
        Some(toolkit) => Tone::Toolkit(app.snapshot.rank(toolkit)),
        None => Tone::Plain,
    };
    out.rest(&path, tone);
    out.rest(&tail, Tone::Dim);
    Some(out.line())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_differ_by_major_or_minor() {
        for (a, b, differs) in [
            ("13.0.88", "13.0", Difference::None),
            ("12.4.131", "13.0", Difference::Major),
            ("12.8", "12.9.1", Difference::Minor),
            ("?", "13.0", Difference::None),
            ("13", "13.0", Difference::None),
        ] {
            assert_eq!(difference(a, b), differs, "{a} {b}");
        }
    }

    #[test]
    fn a_driver_is_older_by_number_not_by_text() {
        assert!(older("9.2", "13.0"));
        assert!(!older("13.1", "13.0"));
    }
}

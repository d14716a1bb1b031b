//! The report for a terminal: the verdict first, then what is wrong, then what each component resolved.
//!
//! Fits a hundred columns and says no more than a person reads: searches are folded into "13 places tried", parts that
//! one component took from one toolkit share a line. The whole of it is in the other formats.

use std::fmt::Write as _;

use super::{Component, Evidence, Finding, Report, Resolved, Severity, phrase};

/// How the text is drawn.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    /// Columns.
    pub width: usize,
    /// Colour it with ANSI sequences; for terminals only.
    pub colour: bool,
}

impl Default for Style {
    fn default() -> Self {
        Style {
            width: 100,
            colour: false,
        }
    }
}

/// Lines that a report with one fault fills at most.
const LINES: usize = 25;
/// Columns before a finding's words: two, and the label.
const INDENT: usize = 11;
/// Findings that are told in full.
const MOST_IN_FULL: usize = 6;

/// Draws the report.
pub fn render(report: &Report, style: Style) -> String {
    let mut page = Page {
        out: String::new(),
        lines: 0,
        style,
    };
    page.head(report);
    page.faults(report);
    page.components(report);
    page.surroundings(report);
    page.out
}

/// A colour of the sixteen that every terminal has.
#[derive(Clone, Copy)]
enum Ink {
    Plain,
    Bold,
    Dim,
    Red,
    Yellow,
    Green,
    Cyan,
}

impl Ink {
    fn code(self) -> &'static str {
        match self {
            Ink::Plain => "",
            Ink::Bold => "1",
            Ink::Dim => "2",
            Ink::Red => "1;31",
            Ink::Yellow => "1;33",
            Ink::Green => "1;32",
            Ink::Cyan => "36",
        }
    }

    fn of(severity: Severity) -> Ink {
        match severity {
            Severity::Error => Ink::Red,
            Severity::Warning => Ink::Yellow,
            Severity::Note => Ink::Cyan,
        }
    }
}

struct Page {
    out: String,
    lines: usize,
    style: Style,
}

impl Page {
    fn ink(&self, ink: Ink, text: &str) -> String {
        let code = ink.code();
        if self.style.colour && !code.is_empty() && !text.is_empty() {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    /// Ends a line that is put together already.
    fn line(&mut self, line: &str) {
        self.out.push_str(line.trim_end());
        self.out.push('\n');
        self.lines += 1;
    }

    fn blank(&mut self) {
        self.line("");
    }

    /// `  label    text`, the text wrapped beside its label, at most `most` lines of it.
    fn labelled(&mut self, label: &str, text: &str, ink: Ink, most: usize) {
        let width = self.style.width.saturating_sub(INDENT).max(20);
        let wrapped = wrap(&phrase::one_line(text), width);
        let shown = wrapped.len().min(most.max(1));
        for (number, line) in wrapped.iter().take(shown).enumerate() {
            let line = match wrapped.len() > shown && number + 1 == shown {
                true => phrase::clipped(&format!("{line} …"), width),
                false => line.clone(),
            };
            let head = if number == 0 { label } else { "" };
            let padded = format!("  {head:<9}");
            let drawn = format!("{}{}", self.ink(Ink::Dim, &padded), self.ink(ink, &line));
            self.line(&drawn);
        }
    }

    fn head(&mut self, report: &Report) {
        let ink = match phrase::primary(report).map(|finding| finding.severity) {
            Some(severity) => Ink::of(severity),
            None if report.exit.is_some_and(|exit| !exit.is_success()) => Ink::Bold,
            None => Ink::Green,
        };
        let verdict = phrase::verdict(report);
        let width = self.style.width.saturating_sub(10);
        for (number, line) in wrap(&verdict, width).iter().take(2).enumerate() {
            let head = if number == 0 {
                "jittrace: "
            } else {
                "          "
            };
            let drawn = format!("{}{}", self.ink(Ink::Bold, head), self.ink(ink, line));
            self.line(&drawn);
        }
        let mut facts = vec![format!(
            "{} after {}",
            phrase::exit(report.exit),
            phrase::duration(report.duration_ns)
        )];
        if report.exit.is_none() {
            facts = vec![format!(
                "still running after {}",
                phrase::duration(report.duration_ns)
            )];
        }
        let errors = phrase::count_of(report, Severity::Error);
        let warnings = phrase::count_of(report, Severity::Warning);
        if errors > 0 {
            facts.push(phrase::counted(errors, "error"));
        }
        if warnings > 0 {
            facts.push(phrase::counted(warnings, "warning"));
        }
        if let Some(machine) = phrase::machine(report) {
            facts.push(machine);
        }
        let what = match report.attached {
            Some(pid) if report.command.is_empty() => format!("pid {}", phrase::pid(pid)),
            _ => phrase::one_line(&phrase::command(&report.command)),
        };
        for line in [what, facts.join(" · ")] {
            let line = phrase::clipped(&line, self.style.width.saturating_sub(2));
            if !line.is_empty() {
                let drawn = format!("  {}", self.ink(Ink::Dim, &line));
                self.line(&drawn);
            }
        }
    }

    fn faults(&mut self, report: &Report) {
        let faults: Vec<&Finding> = report
            .findings
            .iter()
            .filter(|finding| finding.severity != Severity::Note)
            .collect();
        let roots: Vec<&&Finding> = faults
            .iter()
            .filter(|finding| phrase::is_cause(report, finding))
            .collect();
        for finding in roots.iter().take(MOST_IN_FULL) {
            let consequences: Vec<&Finding> = faults
                .iter()
                .filter(|other| other.consequence_of.as_ref() == Some(&finding.id))
                .copied()
                .collect();
            self.fault(report, finding, &consequences);
        }
        if let Some(left) = roots
            .len()
            .checked_sub(MOST_IN_FULL)
            .filter(|left| *left > 0)
        {
            let line = format!(
                "  … and {}; all are in --format markdown",
                phrase::counted(left, "more finding")
            );
            self.line(&line);
        }
    }

    fn fault(&mut self, report: &Report, finding: &Finding, consequences: &[&Finding]) {
        self.blank();
        let severity = phrase::severity(finding.severity);
        let mut head = format!(
            "{}  {}",
            self.ink(Ink::of(finding.severity), severity),
            self.ink(Ink::Bold, &finding.id)
        );
        if let Some(component) = &finding.component {
            let _ = write!(head, "  {}", phrase::one_line(component));
        }
        let confidence = match finding.confidence {
            super::Confidence::Proven => "proven",
            super::Confidence::Likely => "likely",
            super::Confidence::Possible => "possible",
        };
        let _ = write!(head, "  {}", self.ink(Ink::Dim, confidence));
        self.line(&head);
        let is_primary =
            phrase::primary(report).is_some_and(|primary| std::ptr::eq(primary, finding));
        if !is_primary {
            self.labelled("what", &finding.title, Ink::Bold, 2);
        }
        let mut cause = finding.cause.clone();
        if let Some((part, resolved)) = phrase::subjects(report, finding).first() {
            cause = without_repeats(&cause, resolved);
            self.labelled("which", &self.which(part, resolved), Ink::Plain, 1);
            let mut rule = phrase::rule(resolved);
            if let Some(tried) = phrase::places_tried(&resolved.candidates) {
                let _ = write!(rule, " ({tried})");
            }
            self.labelled("rule", &rule, Ink::Plain, 1);
            if let Some(asker) = &resolved.requested_by {
                self.labelled("asked by", asker, Ink::Plain, 1);
            }
        }
        if !cause.is_empty() {
            self.labelled("cause", &cause, Ink::Plain, 6);
        }
        // A command that is cut cannot be followed.
        for (number, remedy) in finding.remedy.iter().take(3).enumerate() {
            self.labelled("fix", remedy, Ink::Green, if number == 0 { 6 } else { 3 });
        }
        for evidence in telling(&finding.evidence, 3) {
            // What is cut is the sentence: the number leads to all of it.
            let number = format!(" (event {})", evidence.event);
            let room = self
                .style
                .width
                .saturating_sub(INDENT + number.len())
                .max(20);
            let text = phrase::clipped(&phrase::one_line(&evidence.text), room);
            self.labelled("seen", &format!("{text}{number}"), Ink::Dim, 1);
        }
        for consequence in consequences.iter().take(3) {
            let text = format!(
                "{}: {}",
                consequence.id,
                phrase::one_line(&consequence.title)
            );
            self.labelled("led to", &text, Ink::Plain, 1);
        }
    }

    fn which(&self, part: &str, resolved: &Resolved) -> String {
        let version = resolved.version.as_deref().unwrap_or("of unknown version");
        let lead = format!("{part} {version}  ");
        let room = self
            .style
            .width
            .saturating_sub(INDENT + lead.chars().count())
            .max(20);
        format!("{lead}{}", phrase::short_path(&resolved.path, room))
    }

    fn components(&mut self, report: &Report) {
        let rows: Vec<Row> = report.components.iter().flat_map(rows).collect();
        if rows.is_empty() {
            return;
        }
        self.blank();
        let total = self.style.width;
        let width = |of: fn(&Row) -> usize, least: usize, most: usize| {
            rows.iter().map(of).max().unwrap_or(0).clamp(least, most)
        };
        let name = width(
            |row| row.component.chars().count(),
            9,
            (total * 3 / 10).max(9),
        );
        let parts = width(
            |row| row.parts.chars().count(),
            5,
            (total * 24 / 100).max(5),
        );
        let version = width(|row| row.version.chars().count(), 7, 12);
        let rule = width(|row| row.rule.chars().count(), 4, 20);
        let rest = self
            .style
            .width
            .saturating_sub(name + parts + version + rule + 8)
            .max(10);
        let head = format!(
            "{:<name$}  {:<parts$}  {:<version$}  {:<rule$}  where",
            "component", "took", "version", "rule"
        );
        let head = self.ink(Ink::Dim, &head);
        self.line(&head);
        let faulty = phrase::count_of(report, Severity::Error)
            + phrase::count_of(report, Severity::Warning)
            > 0;
        let most = if faulty {
            LINES.saturating_sub(self.lines + 3).max(5)
        } else {
            rows.len()
        };
        // The rows that a finding speaks of come first when not all fit.
        let mut order: Vec<&Row> = rows.iter().collect();
        if rows.len() > most {
            let accused = |row: &&Row| {
                report.findings.iter().any(|finding| {
                    finding.severity != Severity::Note
                        && finding.component.as_deref() == Some(row.name)
                })
            };
            order.sort_by_key(|row| !accused(row));
        }
        let mut before = "";
        for row in order.iter().take(most) {
            let shown = if row.component == before {
                ""
            } else {
                &row.component
            };
            before = &row.component;
            let line = format!(
                "{}  {:<parts$}  {:<version$}  {:<rule$}  {}",
                self.ink(
                    Ink::Bold,
                    &format!("{:<name$}", phrase::clipped(shown, name))
                ),
                phrase::clipped(&row.parts, parts),
                phrase::clipped(&row.version, version),
                phrase::clipped(&row.rule, rule),
                self.ink(Ink::Dim, &phrase::short_path(&row.place, rest)),
            );
            self.line(&line);
        }
        if let Some(left) = rows.len().checked_sub(most).filter(|left| *left > 0) {
            let line = format!(
                "… {}: --format markdown shows all",
                phrase::counted(left, "more line")
            );
            let line = self.ink(Ink::Dim, &line);
            self.line(&line);
        }
    }

    /// One line each: builds, caches, notes, and what could not be seen.
    fn surroundings(&mut self, report: &Report) {
        let mut lines: Vec<(&str, String)> = Vec::new();
        if let Some(builds) = phrase::builds(report) {
            lines.push(("built", builds));
        }
        // No table says which tool it was where nothing of a toolkit ran.
        if report.components.iter().all(|c| rows(c).is_empty()) {
            let mut tools: Vec<&str> = Vec::new();
            for build in &report.builds {
                if !build.path.is_empty() && !tools.contains(&build.path.as_str()) {
                    tools.push(&build.path);
                }
            }
            lines.extend(
                tools
                    .into_iter()
                    .take(3)
                    .map(|path| ("by", path.to_owned())),
            );
        }
        for cache in report.caches.iter().take(3) {
            let counts = [
                (cache.hits, "hit"),
                (cache.misses, "miss"),
                (cache.builds, "build"),
            ];
            let counts: Vec<String> = counts
                .iter()
                .filter(|(count, _)| *count > 0)
                .map(|(count, what)| {
                    phrase::counted(usize::try_from(*count).unwrap_or(usize::MAX), what)
                })
                .collect();
            if !counts.is_empty() {
                lines.push((
                    "cache",
                    format!(
                        "{}: {}  {}",
                        cache.owner,
                        counts.join(", "),
                        cache.directory
                    ),
                ));
            }
        }
        let mut notes: Vec<(&str, usize, &str)> = Vec::new();
        for note in report
            .findings
            .iter()
            .filter(|finding| finding.severity == Severity::Note)
        {
            match notes.iter_mut().find(|(id, ..)| *id == note.id) {
                Some((_, count, _)) => *count += 1,
                None => notes.push((&note.id, 1, &note.title)),
            }
        }
        for (id, count, title) in notes.iter().take(3) {
            let more = if *count > 1 {
                format!(" (and {} more)", count - 1)
            } else {
                String::new()
            };
            lines.push(("note", format!("{id}: {title}{more}")));
        }
        for source in &report.sources {
            if source.state == crate::log::SourceState::Refused {
                let reason = source.reason.as_deref().unwrap_or("no reason given");
                lines.push((
                    "not seen",
                    format!("source {} was refused: {reason}", source.name),
                ));
            }
        }
        for lost in &report.lost {
            lines.push((
                "lost",
                format!("{} {}: {}", lost.count, lost.what, lost.reason),
            ));
        }
        for note in &report.notes {
            lines.push(("trace", note.clone()));
        }
        if lines.is_empty() {
            return;
        }
        let faulty = phrase::primary(report).is_some();
        if !faulty || self.lines < LINES - 1 {
            self.blank();
        }
        for (label, text) in &lines {
            if faulty && self.lines >= LINES && !matches!(*label, "lost" | "trace" | "not seen") {
                continue;
            }
            self.labelled(label, text, Ink::Plain, 1);
        }
    }
}

/// A cause without its beginning where the lines above it say the same: which file, by which rule, who asked.
///
/// What follows them in the same sentence stays: `; it was asked for sm_70 and failed`.
fn without_repeats(cause: &str, resolved: &Resolved) -> String {
    let told = [
        Some(resolved.path.as_str()),
        Some(resolved.rule_detail.as_str()),
        // The line may be another one: a tool is asked and run in two places.
        resolved.requested_by.as_deref().map(|by| {
            by.trim_end_matches(|c: char| c.is_ascii_digit())
                .trim_end_matches(':')
        }),
    ];
    let first = cause
        .match_indices(". ")
        .map(|(at, _)| at)
        .next()
        .unwrap_or(cause.len());
    let ends: Vec<Option<usize>> = told
        .into_iter()
        .flatten()
        .filter(|words| !words.is_empty())
        .map(|words| cause.get(..first)?.find(words).map(|at| at + words.len()))
        .collect();
    let end = match ends.iter().copied().collect::<Option<Vec<usize>>>() {
        Some(ends) if ends.len() > 1 => ends.into_iter().max().unwrap_or(0),
        _ => return cause.to_owned(),
    };
    let rest = cause.get(end..).unwrap_or_default();
    let rest = match rest.strip_prefix(':') {
        Some(line) => line.trim_start_matches(|c: char| c.is_ascii_digit()),
        None => rest,
    }
    .trim_start_matches([')', ',', ';', '.', ' ']);
    let mut characters = rest.chars();
    match characters.next() {
        Some(letter) => letter.to_uppercase().chain(characters).collect(),
        None => cause.to_owned(),
    }
}

/// The evidence to show, in its order: what the program said itself is what people search for, and comes along always.
fn telling(evidence: &[Evidence], most: usize) -> Vec<&Evidence> {
    let quoted = evidence
        .iter()
        .position(|evidence| evidence.text.contains(['"', '“', '«']))
        .filter(|at| *at >= most);
    let ordinary = if quoted.is_some() { most - 1 } else { most };
    let mut shown: Vec<&Evidence> = evidence.iter().take(ordinary).collect();
    shown.extend(quoted.and_then(|at| evidence.get(at)));
    shown
}

/// One line of the component table.
struct Row<'a> {
    name: &'a str,
    component: String,
    parts: String,
    version: String,
    rule: String,
    place: String,
}

/// A component's lines: parts that came from one toolkit by one rule share one.
fn rows(component: &Component) -> Vec<Row<'_>> {
    let mut name = phrase::component(component);
    if let Some(cuda) = &component.built_for.cuda {
        let _ = write!(name, " (for {cuda})");
    }
    let mut groups: Vec<(Vec<&str>, &Resolved)> = Vec::new();
    for (part, entries) in &component.resolved {
        for entry in entries {
            let directory =
                |entry: &Resolved| entry.path.rsplit_once('/').map(|(at, _)| at.to_owned());
            let alike = |other: &Resolved| {
                let one_toolkit = other.toolkit.is_some() && other.toolkit == entry.toolkit;
                other.rule == entry.rule
                    && (one_toolkit || directory(other) == directory(entry))
                    && other.version.as_deref().map(phrase::release)
                        == entry.version.as_deref().map(phrase::release)
            };
            match groups.iter_mut().find(|(_, other)| alike(other)) {
                Some((parts, _)) if !parts.contains(&part.as_str()) => parts.push(part),
                Some(_) => {}
                None => groups.push((vec![part], entry)),
            }
        }
    }
    groups
        .into_iter()
        .map(|(parts, entry)| {
            let several = parts.len() > 1;
            let version = entry.version.as_deref().unwrap_or(phrase::UNKNOWN);
            let directory = entry
                .path
                .rsplit_once('/')
                .map_or("", |(directory, _)| directory);
            Row {
                name: &component.name,
                component: name.clone(),
                parts: parts.join(" "),
                version: if several {
                    phrase::release(version)
                } else {
                    version
                }
                .to_owned(),
                rule: entry.rule.word().to_owned(),
                place: if several {
                    directory.to_owned()
                } else {
                    entry.path.clone()
                },
            }
        })
        .collect()
}

/// Breaks a text at blanks; a word that is longer than a line is cut.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut length = 0;
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let mut word = word.to_owned();
        let mut letters = word.chars().count();
        if length > 0 && length + 1 + letters > width {
            lines.push(std::mem::take(&mut line));
            length = 0;
        }
        while letters > width {
            lines.push(word.chars().take(width).collect());
            word = word.chars().skip(width).collect();
            letters = word.chars().count();
        }
        if length > 0 {
            line.push(' ');
            length += 1;
        }
        line.push_str(&word);
        length += letters;
    }
    if !line.is_empty() || lines.is_empty() {
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cause_goes_on_where_the_lines_above_it_end() {
        let resolved = Resolved {
            path: "/a/bin/nvcc".to_owned(),
            rule_detail: "PATH entry 1: /a/bin".to_owned(),
            requested_by: Some("/s/app.py:3".to_owned()),
            ..Resolved::default()
        };
        for (cause, shown) in [
            (
                "app ran nvcc 12.2 at /a/bin/nvcc, first on PATH (PATH entry 1: /a/bin), asked by /s/app.py:47; it was asked for sm_70. It said no.",
                "It was asked for sm_70. It said no.",
            ),
            (
                "app resolved /a/bin/nvcc (PATH entry 1: /a/bin), asked by /s/app.py:3. It asked for more.",
                "It asked for more.",
            ),
            (
                "/a/bin/nvcc is old. Nothing is repeated.",
                "/a/bin/nvcc is old. Nothing is repeated.",
            ),
        ] {
            assert_eq!(without_repeats(cause, &resolved), shown);
        }
    }
}

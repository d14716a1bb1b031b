//! The report for an issue: pasted as it is, it renders right on GitHub and its like.
//!
//! What a maintainer needs at a glance stands open, in less than sixty lines; the rest is folded into `<details>`. The
//! whole stays below the 65,536 characters that an issue may have: lists are cut, and say so, before that.

use std::{collections::HashMap, fmt::Write as _};

use super::{Build, Component, Finding, Report, Severity, phrase};

/// Most characters of a report; an issue may have 65,536, and people write a few words around it.
const MOST_CHARACTERS: usize = 60_000;

/// Draws the report.
pub fn render(report: &Report) -> String {
    // The lists get shorter until the whole fits; a usual report fits at once.
    for most in [60, 20, 6, 2, 0] {
        let text = Page::default().whole(report, most);
        if text.chars().count() <= MOST_CHARACTERS {
            return text;
        }
    }
    let mut text: String = Page::default()
        .whole(report, 0)
        .chars()
        .take(MOST_CHARACTERS)
        .collect();
    text.push_str("\n\n… cut off here; `--format json` has all of it.\n");
    text
}

#[derive(Default)]
struct Page {
    out: String,
}

impl Page {
    fn whole(mut self, report: &Report, most: usize) -> String {
        self.head(report);
        self.faults(report);
        self.table(report);
        self.environment(report);
        self.details(report, most);
        self.out
    }

    fn line(&mut self, line: &str) {
        self.out.push_str(line);
        self.out.push('\n');
    }

    fn head(&mut self, report: &Report) {
        let mark = match phrase::primary(report).map(|finding| finding.severity) {
            Some(Severity::Error) => "❌ ",
            Some(Severity::Warning) => "⚠️ ",
            _ if report.exit.is_some_and(|exit| !exit.is_success()) => "",
            _ => "✅ ",
        };
        self.line(&format!("### {mark}{}", prose(&phrase::verdict(report))));
        self.line("");
        let what = match report.attached {
            Some(pid) if report.command.is_empty() => format!("pid {}", phrase::pid(pid)),
            _ => code(&phrase::clipped(&phrase::command(&report.command), 300)),
        };
        let ended = match report.exit {
            None => format!(
                "still running after {}",
                phrase::duration(report.duration_ns)
            ),
            some => format!(
                "{} after {}",
                phrase::exit(some),
                phrase::duration(report.duration_ns)
            ),
        };
        self.line(&format!("{what} {ended}."));
        self.line("");
    }

    /// The faults: the first in full, those that follow in a line each.
    fn faults(&mut self, report: &Report) {
        let faults: Vec<&Finding> = report
            .findings
            .iter()
            .filter(|finding| finding.severity != Severity::Note)
            .collect();
        let primary = phrase::primary(report);
        if let Some(finding) = primary {
            self.fault(report, finding);
        }
        let others: Vec<&&Finding> = faults
            .iter()
            .filter(|finding| !primary.is_some_and(|primary| std::ptr::eq(primary, **finding)))
            .collect();
        if !others.is_empty() {
            self.line("Also:");
            self.line("");
        }
        for finding in others.iter().take(6) {
            let follows = match &finding.consequence_of {
                Some(cause) => format!(", follows from {}", code(cause)),
                None => String::new(),
            };
            self.line(&format!(
                "- **{}** {}{follows}: {}",
                phrase::severity(finding.severity),
                code(&finding.id),
                prose(&phrase::clipped(&finding.title, 300))
            ));
        }
        if others.len() > 6 {
            self.line(&format!(
                "- … and {} more, in the details below",
                others.len() - 6
            ));
        }
        if !others.is_empty() {
            self.line("");
        }
    }

    fn fault(&mut self, report: &Report, finding: &Finding) {
        let component = finding
            .component
            .as_deref()
            .map(|component| format!(" in {}", code(component)))
            .unwrap_or_default();
        self.line(&format!(
            "**{}** {}{component}",
            phrase::severity(finding.severity),
            code(&finding.id)
        ));
        self.line("");
        if let Some((part, resolved)) = phrase::subjects(report, finding).first() {
            let version = resolved.version.as_deref().unwrap_or("of unknown version");
            let mut text = format!(
                "- **resolved** {part} {} {} by rule {}",
                escaped(version),
                code(&resolved.path),
                code(&phrase::rule(resolved))
            );
            if let Some(tried) = phrase::places_tried(&resolved.candidates) {
                let _ = write!(text, " ({tried})");
            }
            self.line(&text);
            if let Some(asker) = &resolved.requested_by {
                self.line(&format!("- **asked by** {}", code(asker)));
            }
        }
        if !finding.cause.is_empty() {
            self.line(&format!(
                "- **cause** {}",
                prose(&phrase::clipped(&finding.cause, 1500))
            ));
        }
        for remedy in finding.remedy.iter().take(4) {
            self.line(&format!(
                "- **fix** {}",
                prose(&phrase::clipped(remedy, 800))
            ));
        }
        for (text, events) in phrase::seen(&finding.evidence).iter().take(6) {
            self.line(&format!(
                "- **seen** {} ({})",
                escaped(&phrase::clipped(text, 400)),
                phrase::events(events)
            ));
        }
        for missing in finding.missing.iter().take(3) {
            self.line(&format!(
                "- **not seen** {}",
                escaped(&phrase::clipped(missing, 400))
            ));
        }
        self.line("");
    }

    /// Components and the version of each part: one line a component, one column a part.
    fn table(&mut self, report: &Report) {
        let parts: Vec<&str> = phrase::parts(report).into_iter().take(9).collect();
        let shown: Vec<&Component> = report
            .components
            .iter()
            .filter(|component| {
                !component.resolved.is_empty() || component.built_for.cuda.is_some()
            })
            .collect();
        if shown.is_empty() {
            return;
        }
        let mut head = String::from("| component | built for |");
        let mut rule = String::from("|---|---|");
        for part in &parts {
            let _ = write!(head, " {part} |");
            rule.push_str("---|");
        }
        self.line(&head);
        self.line(&rule);
        const MOST_ROWS: usize = 14;
        for component in shown.iter().take(MOST_ROWS) {
            let built_for = component
                .built_for
                .cuda
                .as_deref()
                .unwrap_or(phrase::UNKNOWN);
            let mut row = format!(
                "| {} | {} |",
                cell(&phrase::component(component)),
                cell(built_for)
            );
            for part in &parts {
                let _ = write!(row, " {} |", resolved_cell(component, part));
            }
            self.line(&row);
        }
        self.line("");
        if shown.len() > MOST_ROWS {
            self.line(&format!(
                "… and {}, in the details below.",
                phrase::counted(shown.len() - MOST_ROWS, "more component")
            ));
            self.line("");
        }
    }

    fn environment(&mut self, report: &Report) {
        let host = &report.host;
        let mut facts: Vec<String> = [&host.os, &host.libc, &host.machine]
            .into_iter()
            .filter(|text| !text.is_empty())
            .map(|text| escaped(text))
            .collect();
        if !host.kernel.is_empty() {
            facts.push(format!("kernel {}", escaped(&host.kernel)));
        }
        if let Some(container) = &host.container {
            facts.push(format!("in {}", escaped(container)));
        }
        if let Some(machine) = phrase::machine(report) {
            facts.push(escaped(&machine));
        }
        if !facts.is_empty() {
            self.line(&format!("- **machine** {}", facts.join(", ")));
        }
        let telling = |name: &str| {
            name.starts_with("CUDA_")
                || [
                    "PATH",
                    "LD_LIBRARY_PATH",
                    "LD_PRELOAD",
                    "CONDA_PREFIX",
                    "VIRTUAL_ENV",
                ]
                .contains(&name)
        };
        let variables: Vec<String> = report
            .environment
            .iter()
            .filter(|(name, _)| telling(name))
            .map(|(name, value)| code(&phrase::clipped(&format!("{name}={value}"), 300)))
            .collect();
        if !variables.is_empty() {
            self.line(&format!("- **environment** {}", variables.join(" · ")));
        }
        for lost in &report.lost {
            self.line(&format!(
                "- **lost** {} {}: {}",
                lost.count,
                escaped(&lost.what),
                escaped(&lost.reason)
            ));
        }
        for source in &report.sources {
            if source.state == crate::log::SourceState::Refused {
                let reason = source.reason.as_deref().unwrap_or("no reason given");
                self.line(&format!(
                    "- **not seen** source {} was refused: {}",
                    escaped(&source.name),
                    escaped(reason)
                ));
            }
        }
        self.line(&format!("- **jittrace** {}", escaped(&report.version)));
        self.line("");
    }

    fn details(&mut self, report: &Report, most: usize) {
        let resolved = resolved_lines(report);
        self.folded(
            "What each component resolved, by which rule",
            resolved.len(),
            resolved,
            most * 3,
        );
        self.folded(
            "All findings",
            report.findings.len(),
            finding_lines(report),
            most * 2,
        );
        self.folded(
            "Toolkits",
            report.toolkits.len(),
            toolkit_lines(report),
            most,
        );
        self.folded(
            "JIT caches",
            report.caches.len(),
            cache_lines(report),
            most * 2,
        );
        self.folded(
            "Builds",
            report.builds.len(),
            build_lines(&report.builds),
            most * 2,
        );
        self.folded(
            "Processes",
            report.processes.len(),
            process_lines(report),
            most,
        );
        let mut variables: Vec<String> = report
            .environment
            .iter()
            .map(|(name, value)| {
                format!(
                    "- {}",
                    code(&phrase::clipped(&format!("{name}={value}"), 2000))
                )
            })
            .collect();
        variables.extend(
            report
                .notes
                .iter()
                .map(|note| format!("- {}", escaped(note))),
        );
        let count = variables.len();
        self.folded("Environment and notes on the trace", count, variables, most);
    }

    fn folded(&mut self, title: &str, count: usize, lines: Vec<String>, most: usize) {
        if lines.is_empty() {
            return;
        }
        // The blank lines are what makes Markdown inside HTML be read as Markdown.
        self.line("<details>");
        self.line(&format!("<summary>{title} ({count})</summary>"));
        self.line("");
        for line in lines.iter().take(most) {
            self.line(line);
        }
        if lines.len() > most {
            self.line(&format!(
                "- … {} more; `--format json` has all",
                lines.len() - most
            ));
        }
        self.line("");
        self.line("</details>");
        self.line("");
    }
}

fn resolved_cell(component: &Component, part: &str) -> String {
    let mut texts: Vec<String> = Vec::new();
    for resolved in component.resolved.get(part).into_iter().flatten() {
        let version = resolved.version.as_deref().unwrap_or("?");
        let text = format!("{} <sub>{}</sub>", cell(version), resolved.rule.word());
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    match texts.len() {
        0 => phrase::UNKNOWN.to_owned(),
        _ => texts.join("<br>"),
    }
}

fn resolved_lines(report: &Report) -> Vec<String> {
    let mut lines = Vec::new();
    for component in &report.components {
        for (part, entries) in &component.resolved {
            for entry in entries {
                let version = entry.version.as_deref().unwrap_or("of unknown version");
                let mut line = format!(
                    "- **{}** {part} {}: {} by {}",
                    escaped(&phrase::component(component)),
                    escaped(version),
                    code(&entry.path),
                    code(&phrase::rule(entry))
                );
                if entry.realpath != entry.path && !entry.realpath.is_empty() {
                    let _ = write!(line, ", really {}", code(&entry.realpath));
                }
                if let Some(asker) = &entry.requested_by {
                    let _ = write!(line, ", asked by {}", code(asker));
                }
                if let Some(tried) = phrase::places_tried(&entry.candidates) {
                    let _ = write!(line, ", {tried}");
                }
                lines.push(line);
            }
        }
    }
    lines
}

fn finding_lines(report: &Report) -> Vec<String> {
    let mut lines = Vec::new();
    for finding in &report.findings {
        lines.push(format!(
            "- **{}** {}: {}",
            phrase::severity(finding.severity),
            code(&finding.id),
            prose(&finding.title)
        ));
        if !finding.cause.is_empty() {
            lines.push(format!(
                "  - {}",
                prose(&phrase::clipped(&finding.cause, 2000))
            ));
        }
        for (text, events) in phrase::seen(&finding.evidence).iter().take(12) {
            lines.push(format!(
                "  - {}: {}",
                phrase::events(events),
                escaped(&phrase::clipped(text, 500))
            ));
        }
        for remedy in &finding.remedy {
            lines.push(format!("  - fix: {}", prose(remedy)));
        }
    }
    lines
}

fn toolkit_lines(report: &Report) -> Vec<String> {
    report
        .toolkits
        .iter()
        .map(|toolkit| {
            let parts: Vec<&str> = toolkit.parts.keys().map(String::as_str).collect();
            format!(
                "- {} {} at {}, {}: {}",
                toolkit
                    .version
                    .as_deref()
                    .map_or_else(|| phrase::UNKNOWN.to_owned(), escaped),
                escaped(&toolkit.kind),
                code(&toolkit.root),
                if toolkit.used { "used" } else { "not used" },
                escaped(&parts.join(", "))
            )
        })
        .collect()
}

fn cache_lines(report: &Report) -> Vec<String> {
    let mut lines = Vec::new();
    for cache in &report.caches {
        lines.push(format!(
            "- {} {}: {} hits, {} misses, {} builds",
            escaped(&cache.owner),
            code(&cache.directory),
            cache.hits,
            cache.misses,
            cache.builds
        ));
        for artifact in &cache.artifacts {
            let built_with = artifact
                .built_with
                .as_deref()
                .unwrap_or("an unknown toolkit");
            let mut line = format!(
                "  - {} built with {}",
                code(&artifact.path),
                escaped(built_with)
            );
            if !artifact.archs.is_empty() {
                let _ = write!(line, " for {}", escaped(&artifact.archs.join(" ")));
            }
            lines.push(line);
        }
    }
    lines
}

fn build_lines(builds: &[Build]) -> Vec<String> {
    let by_id: HashMap<u32, &Build> = builds.iter().map(|build| (build.id, build)).collect();
    builds
        .iter()
        .map(|build| {
            let depth = depth(&by_id, build);
            let mut line = format!("{}- **{}**", "  ".repeat(depth), escaped(&build.tool));
            if let Some(version) = &build.version {
                let _ = write!(line, " {}", escaped(version));
            }
            let _ = write!(line, " {}", phrase::exit(build.exit));
            if let Some(duration) = build.duration_ns {
                let _ = write!(line, " after {}", phrase::duration(duration));
            }
            if !build.archs.is_empty() {
                let _ = write!(line, " for {}", escaped(&build.archs.join(" ")));
            }
            let _ = write!(
                line,
                ": {}",
                code(&phrase::clipped(&phrase::command(&build.argv), 400))
            );
            if let Some(message) = &build.message {
                let _ = write!(line, " — {}", code(&phrase::clipped(message, 300)));
            }
            if let Some(why) = &build.why {
                let _ = write!(line, " — {}", prose(&phrase::clipped(why, 300)));
            }
            line
        })
        .collect()
}

/// How many builds are above one.
fn depth(builds: &HashMap<u32, &Build>, build: &Build) -> usize {
    let mut depth = 0;
    let mut parent = build.parent;
    while let Some(above) = parent.and_then(|id| builds.get(&id)) {
        depth += 1;
        parent = above.parent;
        if depth > 8 {
            break;
        }
    }
    depth
}

fn process_lines(report: &Report) -> Vec<String> {
    report
        .processes
        .iter()
        .map(|process| {
            let mut line = format!(
                "- {}{}: {} {}",
                phrase::pid(process.pid),
                // 0: nobody could tell.
                match process.ppid {
                    0 => String::new(),
                    parent => format!(" of {}", phrase::pid(parent)),
                },
                code(&phrase::clipped(&phrase::command(&process.argv), 200)),
                phrase::end_of(process)
            );
            if let Some(reason) = phrase::not_followed(process) {
                let _ = write!(line, ", not followed: {}", escaped(reason));
            }
            line
        })
        .collect()
}

/// Text that Markdown leaves as it is: no markup, no mention, no reference to another issue.
pub(crate) fn escaped(text: &str) -> String {
    let text = phrase::one_line(text);
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            // A word joiner, which has no width, keeps `@name` and `#12` from notifying people and linking issues.
            '@' | '#' => {
                out.push(c);
                out.push('\u{2060}');
            }
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '$' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

/// A sentence of ours: what stands between backticks is code.
fn prose(text: &str) -> String {
    let pieces: Vec<&str> = text.split('`').collect();
    if pieces.len().is_multiple_of(2) {
        return escaped(text);
    }
    let mut out = String::new();
    for (number, piece) in pieces.iter().enumerate() {
        if number.is_multiple_of(2) {
            let blank = |at: bool| {
                if at && !piece.trim().is_empty() {
                    " "
                } else {
                    ""
                }
            };
            out.push_str(blank(piece.starts_with(char::is_whitespace)));
            out.push_str(&escaped(piece));
            out.push_str(blank(piece.ends_with(char::is_whitespace)));
            if piece.trim().is_empty() && !piece.is_empty() {
                out.push(' ');
            }
        } else {
            out.push_str(&code(piece));
        }
    }
    out
}

/// A cell of a table.
fn cell(text: &str) -> String {
    escaped(text)
}

/// A code span; its fence is longer than any run of backticks inside.
pub(crate) fn code(text: &str) -> String {
    let text = phrase::one_line(text);
    let mut longest = 0;
    let mut run = 0;
    for c in text.chars() {
        run = if c == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    if text.is_empty() {
        return phrase::UNKNOWN.to_owned();
    }
    let fence = "`".repeat(longest + 1);
    let pad = if text.starts_with('`') || text.ends_with('`') {
        " "
    } else {
        ""
    };
    format!("{fence}{pad}{text}{pad}{fence}")
}

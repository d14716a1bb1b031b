//! The report for a browser: one file that needs no network.
//!
//! Everything but the search through events is plain HTML: with scripts off the verdict, the findings, the matrix, the
//! trees and the timeline are all there. A content security policy in the page keeps it from loading anything.

mod sample;

use std::{collections::HashMap, fmt::Write as _};

pub use sample::EventSample;

use super::{
    Build, Component, Confidence, Finding, ProcessEntry, Report, Resolved, Severity, phrase,
};
use crate::log::SourceState;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// Most rows of a tree or table; a page stays quick, and says what it leaves out.
const MOST_ROWS: usize = 2000;

/// Most artefacts of one cache.
const MOST_ARTIFACTS: usize = 500;

/// Draws the page.
pub fn render(report: &Report, sample: &EventSample) -> String {
    let mut page = Page {
        out: String::with_capacity(64 << 10),
        releases: phrase::releases_in_use(report),
        report,
    };
    page.begin();
    page.findings();
    page.matrix();
    page.toolkits();
    page.caches();
    page.timeline();
    page.processes();
    page.events(sample);
    page.surroundings();
    page.end();
    page.out
}

struct Page<'a> {
    out: String,
    releases: Vec<&'a str>,
    report: &'a Report,
}

/// Text that HTML takes as text, in elements and in quoted attributes.
fn text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c if c.is_control() && c != '\n' && c != '\t' => out.push('\u{fffd}'),
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// A sentence of ours: what stands between backticks is code.
fn prose(sentence: &str) -> String {
    let pieces: Vec<&str> = sentence.split('`').collect();
    if pieces.len().is_multiple_of(2) {
        return text(sentence);
    }
    let mut out = String::new();
    for (number, piece) in pieces.iter().enumerate() {
        if number.is_multiple_of(2) {
            out.push_str(&text(piece));
        } else {
            let _ = write!(out, "<code>{}</code>", text(piece));
        }
    }
    out
}

fn code(content: &str) -> String {
    format!("<code>{}</code>", text(content))
}

impl Page<'_> {
    fn put(&mut self, html: &str) {
        self.out.push_str(html);
        self.out.push('\n');
    }

    fn section(&mut self, id: &str, title: &str, count: &str, fold: bool) {
        let tools = if fold {
            format!(
                "<span class=\"tools\"><button type=\"button\" hidden data-fold=\"{id}\" aria-pressed=\"false\">Unfold all</button></span>"
            )
        } else {
            String::new()
        };
        self.put(&format!(
            "<section id=\"{id}\" aria-labelledby=\"{id}-title\">\n<h2 id=\"{id}-title\">{title} <span class=\"count\">{}</span>{tools}</h2>",
            text(count)
        ));
    }

    fn begin(&mut self) {
        let report = self.report;
        let verdict = phrase::verdict(report);
        let tone = match phrase::primary(report).map(|finding| finding.severity) {
            Some(Severity::Error) => "error",
            Some(_) => "warning",
            None if report.exit.is_some_and(|exit| !exit.is_success()) => "note",
            None => "fine",
        };
        self.put("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">");
        self.put("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">");
        self.put("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'\">");
        self.put(&format!("<title>{} · jittrace</title>", text(&verdict)));
        self.put(&format!("<style>\n{STYLE}</style>\n</head>\n<body>"));
        self.put("<a class=\"skip\" href=\"#main\">Skip to the report</a>");
        self.put(&format!(
            "<header class=\"masthead {tone}\"><div class=\"wide\">\n<p class=\"brand\"><span><b>jittrace</b> report</span> <button type=\"button\" id=\"theme\" hidden>Light / dark</button></p>"
        ));
        self.put(&format!("<h1>{}</h1>", prose(&verdict)));
        let what = match report.attached {
            Some(pid) if report.command.is_empty() => format!("pid {}", phrase::pid(pid)),
            _ => phrase::command(&report.command),
        };
        if !what.is_empty() {
            self.put(&format!("<p class=\"command\">{}</p>", code(&what)));
        }
        let ended = match report.exit {
            None => "still running".to_owned(),
            some => phrase::exit(some),
        };
        let mut facts = vec![format!(
            "<b>{}</b> after {}",
            text(&ended),
            phrase::duration(report.duration_ns)
        )];
        for (severity, word) in [(Severity::Error, "error"), (Severity::Warning, "warning")] {
            let count = phrase::count_of(report, severity);
            if count > 0 {
                facts.push(format!("<b>{}</b>", phrase::counted(count, word)));
            }
        }
        if let Some(machine) = phrase::machine(report) {
            facts.push(text(&machine));
        }
        if !report.host.name.is_empty() {
            facts.push(format!("on {}", text(&report.host.name)));
        }
        if report.traces.len() > 1 {
            facts.push(format!(
                "{} joined",
                phrase::counted(report.traces.len(), "trace")
            ));
        }
        let facts: Vec<String> = facts
            .iter()
            .map(|fact| format!("<li>{fact}</li>"))
            .collect();
        self.put(&format!(
            "<ul class=\"facts\">{}</ul>\n</div></header>",
            facts.join("")
        ));
        self.put("<nav aria-label=\"Sections\"><ul class=\"wide\">");
        for (id, title) in [
            ("findings", "Findings"),
            ("resolution", "Resolution"),
            ("toolkits", "Toolkits"),
            ("caches", "Caches"),
            ("builds", "Builds"),
            ("processes", "Processes"),
            ("events", "Events"),
            ("about", "Environment"),
        ] {
            self.put(&format!("<li><a href=\"#{id}\">{title}</a></li>"));
        }
        self.put("</ul></nav>\n<main id=\"main\" class=\"wide\" tabindex=\"-1\">");
    }

    fn findings(&mut self) {
        let report = self.report;
        let mut counts: Vec<String> = [Severity::Error, Severity::Warning, Severity::Note]
            .into_iter()
            .map(|severity| {
                (
                    phrase::count_of(report, severity),
                    phrase::severity(severity),
                )
            })
            .filter(|(count, _)| *count > 0)
            .map(|(count, word)| phrase::counted(count, word))
            .collect();
        let consequences = phrase::consequences(report);
        if consequences > 0 {
            counts.push(phrase::counted(consequences, "consequence"));
        }
        self.section("findings", "Findings", &counts.join(", "), false);
        if report.findings.is_empty() {
            self.put("<div class=\"card\"><p class=\"empty\">Nothing that needs attention was seen.</p></div>");
        }
        // What follows from another is told behind it, before what is only worth knowing.
        let is_told_elsewhere = |finding: &&Finding| !phrase::is_cause(report, finding);
        let followers_of = |cause: &Finding| {
            let id = cause.id.clone();
            report
                .findings
                .iter()
                .filter(move |finding| finding.consequence_of.as_ref() == Some(&id))
        };
        let mut told: Vec<&Finding> = Vec::new();
        for cause in report.findings.iter().filter(|f| !is_told_elsewhere(f)) {
            for finding in std::iter::once(cause).chain(followers_of(cause)) {
                if !told.iter().any(|known| std::ptr::eq(*known, finding)) {
                    told.push(finding);
                }
            }
        }
        // Consequences of consequences, and whatever names itself as its cause.
        for finding in &report.findings {
            if !told.iter().any(|known| std::ptr::eq(*known, finding)) {
                told.push(finding);
            }
        }
        for finding in told.into_iter().take(MOST_ROWS) {
            self.finding(finding);
        }
        self.put("</section>");
    }

    fn finding(&mut self, finding: &Finding) {
        let severity = phrase::severity(finding.severity);
        self.put(&format!("<article class=\"card finding {severity}\">"));
        let mut tags = format!(
            "<span class=\"badge\">{severity}</span> <code>{}</code>",
            text(&finding.id)
        );
        if let Some(component) = &finding.component {
            let _ = write!(tags, " <span>in <b>{}</b></span>", text(component));
        }
        let confidence = match finding.confidence {
            Confidence::Proven => "proven",
            Confidence::Likely => "likely",
            Confidence::Possible => "possible",
        };
        let _ = write!(tags, " <span>{confidence}</span>");
        if let Some(cause) = &finding.consequence_of {
            let _ = write!(tags, " <span>follows from {}</span>", code(cause));
        }
        self.put(&format!(
            "<p class=\"tags\">{tags}</p>\n<h3>{}</h3>",
            prose(&finding.title)
        ));
        if !finding.cause.is_empty() {
            self.put(&format!("<p>{}</p>", prose(&finding.cause)));
        }
        self.put("<dl>");
        if let Some((part, resolved)) = phrase::subjects(self.report, finding).first() {
            let version = resolved.version.as_deref().unwrap_or("of unknown version");
            self.pair(
                "which",
                &format!(
                    "{} {} {}",
                    text(part),
                    self.release(version),
                    code(&resolved.path)
                ),
            );
            let mut rule = code(&phrase::rule(resolved));
            if let Some(tried) = phrase::places_tried(&resolved.candidates) {
                let _ = write!(rule, " ({tried})");
            }
            self.pair("rule", &rule);
            if let Some(asker) = &resolved.requested_by {
                self.pair("asked by", &code(asker));
            }
        }
        if !finding.remedy.is_empty() {
            let items: Vec<String> = finding
                .remedy
                .iter()
                .map(|remedy| {
                    format!(
                        "<li class=\"remedy\">{} <button type=\"button\" hidden>Copy</button></li>",
                        code(&remedy.replace('`', ""))
                    )
                })
                .collect();
            self.pair("fix", &format!("<ul>{}</ul>", items.join("")));
        }
        if !finding.evidence.is_empty() {
            let items: Vec<String> = phrase::seen(&finding.evidence)
                .iter()
                .take(50)
                .map(|(what, events)| {
                    let links: Vec<String> = events
                        .iter()
                        .take(12)
                        .map(|event| {
                            format!("<a class=\"event-link\" href=\"#e{event}\">#{event}</a>")
                        })
                        .collect();
                    format!("<li>{} {}</li>", prose(what), links.join(" "))
                })
                .collect();
            self.pair("seen", &format!("<ul>{}</ul>", items.join("")));
        }
        if !finding.missing.is_empty() {
            let items: Vec<String> = finding
                .missing
                .iter()
                .map(|missing| format!("<li>{}</li>", prose(missing)))
                .collect();
            self.pair("not seen", &format!("<ul>{}</ul>", items.join("")));
        }
        self.put("</dl>\n</article>");
    }

    fn pair(&mut self, name: &str, value: &str) {
        self.put(&format!("<dt>{}</dt><dd>{value}</dd>", text(name)));
    }

    /// A version, coloured by its release so that agreement and disagreement show.
    fn release(&self, version: &str) -> String {
        let release = phrase::release(version);
        let class = match self.releases.iter().position(|known| *known == release) {
            Some(at) if self.releases.len() > 1 => format!("release r{}", at % 6),
            _ => "release".to_owned(),
        };
        format!("<span class=\"{class}\">{}</span>", text(version))
    }

    fn matrix(&mut self) {
        let report = self.report;
        let parts = phrase::parts(report);
        let components: Vec<&Component> = report
            .components
            .iter()
            .filter(|component| {
                !component.resolved.is_empty() || component.built_for.cuda.is_some()
            })
            .collect();
        self.section(
            "resolution",
            "What each component resolved",
            &phrase::counted(components.len(), "component"),
            true,
        );
        if components.is_empty() {
            self.put("<div class=\"card\"><p class=\"empty\">No component resolved a toolkit.</p></div>\n</section>");
            return;
        }
        self.put("<div class=\"card scroll\" tabindex=\"0\" role=\"group\" aria-labelledby=\"resolution-title\"><table class=\"matrix\">");
        let heads: Vec<String> = parts
            .iter()
            .map(|part| format!("<th scope=\"col\">{}</th>", text(part)))
            .collect();
        self.put(&format!(
            "<thead><tr><th scope=\"col\">component</th><th scope=\"col\">built for</th>{}</tr></thead>\n<tbody>",
            heads.join("")
        ));
        for component in components.into_iter().take(MOST_ROWS) {
            self.row(component, &parts);
        }
        self.put("</tbody></table></div>\n</section>");
    }

    fn row(&mut self, component: &Component, parts: &[&str]) {
        let version = component.version.as_deref().unwrap_or_default();
        let built_for = match &component.built_for.cuda {
            Some(cuda) => {
                let from = component.built_for.from.as_deref().unwrap_or_default();
                format!("{}<small>{}</small>", self.release(cuda), text(from))
            }
            None => format!("<span class=\"none\">{}</span>", phrase::UNKNOWN),
        };
        self.put(&format!(
            "<tr><th scope=\"row\">{}<small>{}</small></th><td data-part=\"built for\"><div class=\"cells\">{built_for}</div></td>",
            text(&component.name),
            text(version)
        ));
        for part in parts {
            let entries = component
                .resolved
                .get(*part)
                .map(Vec::as_slice)
                .unwrap_or_default();
            let cells: Vec<String> = entries
                .iter()
                .map(|entry| self.cell(component, part, entry))
                .collect();
            match cells.is_empty() {
                true => self.put(&format!("<td class=\"none\">{}</td>", phrase::UNKNOWN)),
                false => self.put(&format!(
                    "<td data-part=\"{}\"><div class=\"cells\">{}</div></td>",
                    text(part),
                    cells.join("\n")
                )),
            }
        }
        self.put("</tr>");
    }

    fn cell(&self, component: &Component, part: &str, entry: &Resolved) -> String {
        let version = entry.version.as_deref().unwrap_or("unknown");
        let accused = self.report.findings.iter().any(|finding| {
            finding.severity != Severity::Note
                && finding.component.as_ref() == Some(&component.name)
                && phrase::subjects(self.report, finding)
                    .iter()
                    .any(|(subject, resolved)| *subject == part && std::ptr::eq(*resolved, entry))
        });
        let mark = if accused {
            " <span class=\"accused\" title=\"a finding speaks of it\">⚠</span>"
        } else {
            ""
        };
        let mut out = format!(
            "<details class=\"cell\"><summary>{} <span class=\"rule\">{}</span>{mark}</summary><dl class=\"why\">",
            self.release(version),
            entry.rule.word()
        );
        let mut pair = |name: &str, value: String| {
            let _ = write!(out, "<dt>{name}</dt><dd>{value}</dd>");
        };
        pair("file", code(&entry.path));
        if entry.realpath != entry.path && !entry.realpath.is_empty() {
            pair("really", code(&entry.realpath));
        }
        if !entry.rule_detail.is_empty() {
            pair("decided by", text(&entry.rule_detail));
        }
        if let Some(asker) = &entry.requested_by {
            pair("asked by", code(asker));
        }
        if let Some(from) = &entry.version_from {
            pair("version from", text(from));
        }
        if let Some(toolkit) = &entry.toolkit {
            pair("toolkit", text(toolkit));
        }
        if !entry.pids.is_empty() {
            let pids: Vec<String> = entry
                .pids
                .iter()
                .take(12)
                .map(|pid| phrase::pid(*pid))
                .collect();
            pair("in process", text(&pids.join(", ")));
        }
        if !entry.events.is_empty() {
            let links: Vec<String> = entry
                .events
                .iter()
                .take(8)
                .map(|event| format!("<a class=\"event-link\" href=\"#e{event}\">#{event}</a>"))
                .collect();
            pair("events", links.join(" "));
        }
        if entry.candidates.len() > 1 {
            let items: Vec<String> = entry
                .candidates
                .iter()
                .take(60)
                .map(|candidate| {
                    let class = match candidate.outcome {
                        super::Outcome::Chosen => "chosen",
                        _ => "missing",
                    };
                    format!(
                        "<li class=\"{class}\">{} {} ({})</li>",
                        code(&candidate.path),
                        phrase::outcome(candidate.outcome),
                        candidate.rule.word()
                    )
                })
                .collect();
            pair(
                "searched",
                format!("<ol class=\"search-list\">{}</ol>", items.join("")),
            );
        }
        out.push_str("</dl></details>");
        out
    }

    fn toolkits(&mut self) {
        let report = self.report;
        self.section(
            "toolkits",
            "Toolkits",
            &report.toolkits.len().to_string(),
            false,
        );
        if report.toolkits.is_empty() {
            self.put(
                "<div class=\"card\"><p class=\"empty\">None was found.</p></div>\n</section>",
            );
            return;
        }
        self.put("<div class=\"card scroll\" tabindex=\"0\" role=\"group\" aria-labelledby=\"toolkits-title\"><table class=\"toolkits\"><thead><tr><th scope=\"col\">toolkit</th><th scope=\"col\">release</th><th scope=\"col\">kind</th><th scope=\"col\">used</th><th scope=\"col\">root</th><th scope=\"col\">parts</th></tr></thead><tbody>");
        for toolkit in &report.toolkits {
            let version = toolkit.version.as_deref().unwrap_or(phrase::UNKNOWN);
            let parts: Vec<String> = toolkit
                .parts
                .iter()
                .map(|(name, part)| {
                    part.version
                        .as_ref()
                        .map_or_else(|| name.clone(), |version| format!("{name} {version}"))
                })
                .collect();
            let used = if toolkit.used {
                "<span class=\"yes\">used</span>"
            } else {
                "<span class=\"none\">not used</span>"
            };
            let row = format!(
                "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td class=\"used\">{used}</td><td class=\"root\">{}</td><td>{}</td></tr>",
                text(&toolkit.id),
                self.release(version),
                text(&toolkit.kind),
                code(&toolkit.root),
                text(&parts.join(", "))
            );
            self.put(&row);
        }
        self.put("</tbody></table></div>\n</section>");
    }

    fn caches(&mut self) {
        let report = self.report;
        self.section(
            "caches",
            "JIT caches",
            &report.caches.len().to_string(),
            false,
        );
        if report.caches.is_empty() {
            self.put("<div class=\"card\"><p class=\"empty\">No JIT cache was used.</p></div>\n</section>");
            return;
        }
        self.put("<div class=\"card scroll\" tabindex=\"0\" role=\"group\" aria-labelledby=\"caches-title\"><table><thead><tr><th scope=\"col\">artefact</th><th scope=\"col\">built with</th><th scope=\"col\">for</th><th scope=\"col\">in this run</th></tr></thead><tbody>");
        let counted = |count: u64, what: &str| {
            phrase::counted(usize::try_from(count).unwrap_or(usize::MAX), what)
        };
        for cache in &report.caches {
            let filesystem = cache
                .filesystem
                .as_deref()
                .map(|name| format!(" on {}", text(name)))
                .unwrap_or_default();
            self.put(&format!(
                "<tr><th scope=\"rowgroup\" colspan=\"4\">{} {}{filesystem}<small>{}, {}, {}</small></th></tr>",
                text(&cache.owner),
                code(&cache.directory),
                counted(cache.hits, "hit"),
                counted(cache.misses, "miss"),
                counted(cache.builds, "build")
            ));
            for artifact in cache.artifacts.iter().take(MOST_ARTIFACTS) {
                let path = artifact
                    .path
                    .strip_prefix(&cache.directory)
                    .unwrap_or(&artifact.path);
                let happened = match (artifact.built, artifact.loaded) {
                    (true, true) => "built and loaded",
                    (true, false) => "built",
                    (false, true) => "taken from the cache",
                    (false, false) => "not used",
                };
                let links: Vec<String> = artifact
                    .events
                    .iter()
                    .take(3)
                    .map(|event| {
                        format!(" <a class=\"event-link\" href=\"#e{event}\">#{event}</a>")
                    })
                    .collect();
                let row = format!(
                    "<tr><td>{}</td><td>{}<small>{}</small></td><td>{}</td><td>{happened}{}</td></tr>",
                    code(path.trim_start_matches('/')),
                    self.release(artifact.built_with.as_deref().unwrap_or(phrase::UNKNOWN)),
                    text(artifact.built_with_from.as_deref().unwrap_or_default()),
                    text(&artifact.archs.join(" ")),
                    links.join("")
                );
                self.put(&row);
            }
            if cache.artifacts.len() > MOST_ARTIFACTS {
                self.put(&format!(
                    "<tr><td colspan=\"4\" class=\"none\">{} more are in the JSON report.</td></tr>",
                    cache.artifacts.len() - MOST_ARTIFACTS
                ));
            }
        }
        self.put("</tbody></table></div>\n</section>");
    }

    /// Builds as a waterfall: one row each, its bar where it lies in time.
    fn timeline(&mut self) {
        let report = self.report;
        let builds = &report.builds;
        self.section(
            "builds",
            "Build timeline",
            &phrase::builds(report).unwrap_or_default(),
            !builds.is_empty(),
        );
        let Some(from) = builds.iter().map(|build| build.start_ns).min() else {
            self.put("<div class=\"card\"><p class=\"empty\">Nothing was compiled.</p></div>\n</section>");
            return;
        };
        let end_of = |build: &Build| {
            build.start_ns
                + build
                    .duration_ns
                    .unwrap_or_else(|| report.duration_ns.saturating_sub(build.start_ns))
        };
        let to = builds
            .iter()
            .map(end_of)
            .max()
            .unwrap_or(from)
            .max(from + 1);
        let whole = (to - from) as f64;
        let ticks: Vec<String> = (0..=4)
            .map(|tick| match tick {
                0 => "<span>0</span>".to_owned(),
                _ => format!("<span>{}</span>", phrase::duration((to - from) / 4 * tick)),
            })
            .collect();
        self.put(&format!(
            "<div class=\"card timeline\"><p class=\"axis\"><span>tool</span><span class=\"ticks\">{}</span><span class=\"took\">took</span></p><ul>",
            ticks.join("")
        ));
        let by_id: HashMap<u32, &Build> = builds.iter().map(|build| (build.id, build)).collect();
        for build in in_tree_order(builds).into_iter().take(MOST_ROWS) {
            let depth = depth(&by_id, build);
            let failed = build.exit.is_some_and(|exit| !exit.is_success());
            let class = match build.tool.as_str() {
                _ if failed => "failed",
                "nvcc" => "nvcc",
                "cicc" | "cudafe++" => "cicc",
                "ptxas" | "ptxas-blackwell" | "fatbinary" => "ptxas",
                "ninja" | "sh" | "make" | "cmake" => "",
                _ => "host",
            };
            let left = (build.start_ns - from) as f64 / whole * 100.0;
            let width = (end_of(build) - build.start_ns) as f64 / whole * 100.0;
            let output = build
                .output
                .as_deref()
                .and_then(|path| path.rsplit('/').next())
                .unwrap_or_default();
            let mut more = format!("<pre>{}</pre>", text(&phrase::command(&build.argv)));
            if !build.cwd.is_empty() {
                let _ = write!(more, "<small>in {}</small>", code(&build.cwd));
            }
            if let Some(message) = &build.message {
                let _ = write!(more, "<p class=\"accused\">{}</p>", text(message));
            }
            if let Some(why) = &build.why {
                let _ = write!(more, "<p>{}</p>", text(why));
            }
            let links: Vec<String> = build
                .events
                .iter()
                .take(3)
                .map(|event| format!(" <a class=\"event-link\" href=\"#e{event}\">#{event}</a>"))
                .collect();
            let archs = match build.archs.is_empty() {
                true => String::new(),
                false => format!(
                    " <span class=\"rule\">{}</span>",
                    text(&build.archs.join(" "))
                ),
            };
            let ended = if failed {
                format!(
                    " <span class=\"accused\">{}</span>",
                    text(&phrase::exit(build.exit))
                )
            } else {
                String::new()
            };
            let took = build
                .duration_ns
                .map_or_else(|| phrase::UNKNOWN.to_owned(), phrase::duration);
            self.put(&format!(
                "<li><details><summary><span class=\"tool\" style=\"padding-left:{:.2}rem\"><b>{}</b>{archs}{ended}</span><span class=\"track\"><span class=\"bar {class}\" style=\"left:{left:.3}%;width:{width:.3}%\"></span></span><span class=\"took\">{took}</span></summary><div class=\"build\">{more}<p>{}{}</p></div></details></li>",
                depth as f64 * 0.9,
                text(&build.tool),
                text(output),
                links.join(""),
            ));
        }
        self.put("</ul></div>");
        self.left_out(builds.len());
        self.put("</section>");
    }

    fn left_out(&mut self, count: usize) {
        if count > MOST_ROWS {
            self.put(&format!(
                "<p class=\"empty\">{} more are in the JSON report.</p>",
                count - MOST_ROWS
            ));
        }
    }

    fn processes(&mut self) {
        let report = self.report;
        self.section(
            "processes",
            "Processes",
            &report.processes.len().to_string(),
            true,
        );
        if report.processes.is_empty() {
            self.put("<div class=\"card\"><p class=\"empty\">None was seen.</p></div>\n</section>");
            return;
        }
        // Images of one pid follow each other; children hang under the pid's latest image.
        let mut children: HashMap<u32, Vec<&ProcessEntry>> = HashMap::new();
        let mut roots = Vec::new();
        let known: std::collections::HashSet<u32> =
            report.processes.iter().map(|process| process.pid).collect();
        let mut first: std::collections::HashSet<u32> = std::collections::HashSet::new();
        let mut images: HashMap<u32, Vec<&ProcessEntry>> = HashMap::new();
        for process in &report.processes {
            images.entry(process.pid).or_default().push(process);
            if first.insert(process.pid) {
                if known.contains(&process.ppid) && process.ppid != process.pid {
                    children.entry(process.ppid).or_default().push(process);
                } else {
                    roots.push(process);
                }
            }
        }
        let tree = Tree { children, images };
        let mut left = MOST_ROWS;
        let mut out = String::from("<div class=\"card\"><ul class=\"tree\">");
        for root in roots {
            tree.draw(root, 0, &mut left, &mut out);
        }
        out.push_str("</ul></div>");
        self.put(&out);
        self.left_out(report.processes.len());
        if let Some(condensed) = &report.condensed {
            let mut programs: Vec<_> = condensed.processes.iter().collect();
            programs.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
            let programs: Vec<String> = programs
                .iter()
                .take(20)
                .map(|(name, count)| format!("{count} {}", code(name)))
                .collect();
            if !programs.is_empty() {
                self.put(&format!(
                    "<p class=\"empty\">Further runs that were like others before and after them: {}.</p>",
                    programs.join(", ")
                ));
            }
        }
        self.put("</section>");
    }

    fn events(&mut self, sample: &EventSample) {
        let kept = sample.kept() as u64;
        let count = if kept == sample.seen() {
            kept.to_string()
        } else {
            format!("{kept} of {}", sample.seen())
        };
        self.section("events", "Events", &count, false);
        self.put("<div class=\"card\"><div class=\"filters\" id=\"events-tools\" hidden><label for=\"search\">Search</label><input type=\"search\" id=\"search\" autocomplete=\"off\" spellcheck=\"false\"><label for=\"kind\">Kind</label><select id=\"kind\"><option value=\"\">all</option></select><p id=\"found\" role=\"status\"></p></div>");
        self.put("<noscript><p class=\"empty\">The search needs scripts. Without them: <code>jittrace export FILE --format jsonl</code>.</p></noscript>");
        self.put("<ul id=\"events-list\" aria-label=\"Events\"></ul><p class=\"more\" hidden><button type=\"button\" id=\"more\">Show more</button></p></div>\n</section>");
        self.put(&format!(
            "<script type=\"application/json\" id=\"event-data\">{}</script>",
            sample.json()
        ));
    }

    fn surroundings(&mut self) {
        let report = self.report;
        self.section("about", "Environment and trace", "", false);
        self.put("<div class=\"card\"><dl class=\"pairs\">");
        let host = &report.host;
        for (name, value) in [
            ("system", host.os.clone()),
            ("kernel", host.kernel.clone()),
            ("C library", host.libc.clone()),
            (
                "machine",
                format!(
                    "{}, {}",
                    host.machine,
                    phrase::counted(host.cpus as usize, "processor")
                ),
            ),
            ("container", host.container.clone().unwrap_or_default()),
        ] {
            if !value.is_empty() {
                self.pair(name, &text(&value));
            }
        }
        for (name, value) in &report.environment {
            let value = code(value);
            self.pair(name, &value);
        }
        for source in &report.sources {
            let state = match source.state {
                SourceState::Active => "active",
                SourceState::Refused => "refused",
                SourceState::Absent => "not asked for",
            };
            let reason = source
                .reason
                .as_deref()
                .map(|reason| format!(": {reason}"))
                .unwrap_or_default();
            self.pair(
                &format!("source {}", source.name),
                &text(&format!("{state}{reason}")),
            );
        }
        for lost in &report.lost {
            self.pair(
                "lost",
                &text(&format!("{} {}: {}", lost.count, lost.what, lost.reason)),
            );
        }
        for note in &report.notes {
            self.pair("note", &text(note));
        }
        for trace in &report.traces {
            self.pair("trace", &code(trace));
        }
        self.put("</dl></div>\n</section>");
    }

    fn end(&mut self) {
        let version = text(&self.report.version);
        self.put(&format!(
            "</main>\n<footer class=\"wide\">Made by jittrace {version} from {}.</footer>",
            match self.report.traces.len() {
                0 | 1 => "one trace".to_owned(),
                count => phrase::counted(count, "trace"),
            }
        ));
        self.put(&format!("<script>\n{SCRIPT}</script>\n</body>\n</html>"));
    }
}

/// Builds with children behind their parents, each generation in order of start.
fn in_tree_order(builds: &[Build]) -> Vec<&Build> {
    let known: std::collections::HashSet<u32> = builds.iter().map(|build| build.id).collect();
    let mut below: HashMap<Option<u32>, Vec<&Build>> = HashMap::new();
    for build in builds {
        let parent = build
            .parent
            .filter(|parent| known.contains(parent) && *parent != build.id);
        below.entry(parent).or_default().push(build);
    }
    for list in below.values_mut() {
        list.sort_by_key(|build| std::cmp::Reverse((build.start_ns, build.id)));
    }
    let mut stack = below.remove(&None).unwrap_or_default();
    let mut order = Vec::with_capacity(builds.len());
    while let Some(build) = stack.pop() {
        order.push(build);
        stack.extend(below.remove(&Some(build.id)).unwrap_or_default());
    }
    order
}

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

struct Tree<'a> {
    children: HashMap<u32, Vec<&'a ProcessEntry>>,
    images: HashMap<u32, Vec<&'a ProcessEntry>>,
}

impl Tree<'_> {
    fn draw(&self, process: &ProcessEntry, level: usize, left: &mut usize, out: &mut String) {
        if *left == 0 || level > 60 {
            return;
        }
        *left -= 1;
        let images = self
            .images
            .get(&process.pid)
            .map(Vec::as_slice)
            .unwrap_or_default();
        let lines: Vec<String> = images.iter().map(|image| line(image)).collect();
        let label = lines.join("<br>");
        match self.children.get(&process.pid) {
            Some(children) => {
                // Deep trees of build tools start folded.
                let open = if level < 2 && children.len() <= 30 {
                    " open"
                } else {
                    ""
                };
                let _ = write!(
                    out,
                    "<li><details{open}><summary>{label} <span class=\"rule\">{}</span></summary><ul>",
                    match children.len() {
                        1 => "1 child".to_owned(),
                        count => format!("{count} children"),
                    }
                );
                for child in children {
                    self.draw(child, level + 1, left, out);
                }
                out.push_str("</ul></details></li>\n");
            }
            None => {
                let _ = writeln!(out, "<li class=\"leaf\">{label}</li>");
            }
        }
    }
}

fn line(process: &ProcessEntry) -> String {
    let command = if process.argv.is_empty() {
        process.exe.clone()
    } else {
        phrase::command(&process.argv)
    };
    let took = process
        .end
        .map(|end| {
            format!(
                " after {}",
                phrase::duration(end.saturating_sub(process.start))
            )
        })
        .unwrap_or_default();
    let ended = match process.exit {
        _ if process.replaced => "then ran".to_owned(),
        Some(exit) if !exit.is_success() => format!(
            "<span class=\"bad\">{}</span>{took}",
            text(&phrase::exit(Some(exit)))
        ),
        _ => format!("{}{took}", text(&phrase::end_of(process))),
    };
    let reason = phrase::not_followed(process)
        .map(|reason| {
            format!(
                " <span class=\"unseen\">not followed: {}</span>",
                text(reason)
            )
        })
        .unwrap_or_default();
    format!(
        "<span class=\"proc\"><span class=\"pid\">{}</span> {} <span class=\"end\">{ended}</span>{reason}</span>",
        text(&phrase::pid(process.pid)),
        code(&phrase::clipped(&command, 400))
    )
}

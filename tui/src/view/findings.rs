//! Findings: what is wrong, the primary cause first, what follows from it folded below.

use jittrace_model::report::{Confidence, Finding, Severity};
use ratatui::text::Line;

use super::Columns;
use crate::{app::App, snapshot::Snapshot, subject::Subject, theme::Tone};

/// A row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Position in the report.
    pub finding: usize,
    /// It follows from the one above.
    pub consequence: bool,
    /// How many follow from it.
    pub below: usize,
    /// They are left out.
    pub folded: bool,
}

/// The rows: primary findings, each followed by its consequences unless they are folded.
pub fn rows(snapshot: &Snapshot, open: impl Fn(&Subject) -> bool) -> Vec<Row> {
    let findings = &snapshot.report.findings;
    let follows = |finding: &Finding, from: &Finding| {
        finding.consequence_of.as_deref() == Some(&from.id) && finding.title != from.title
    };
    let primary = |finding: &Finding| {
        finding.consequence_of.is_none() || !findings.iter().any(|f| follows(finding, f))
    };
    let mut rows = Vec::new();
    for (at, finding) in findings.iter().enumerate().filter(|(_, f)| primary(f)) {
        // Two findings of one id share their consequences: they stand below the first.
        let first = findings
            .iter()
            .position(|f| f.id == finding.id && primary(f))
            == Some(at);
        let below: Vec<usize> = findings
            .iter()
            .enumerate()
            .filter(|(_, f)| first && follows(f, finding) && !primary(f))
            .map(|(at, _)| at)
            .collect();
        let folded = !open(&key(finding));
        rows.push(Row {
            finding: at,
            consequence: false,
            below: below.len(),
            folded,
        });
        if !folded {
            rows.extend(below.into_iter().map(|finding| Row {
                finding,
                consequence: true,
                below: 0,
                folded: false,
            }));
        }
    }
    rows
}

/// The name of a finding that stays while the model grows.
pub fn key(finding: &Finding) -> Subject {
    Subject::Finding(finding.id.clone(), finding.title.clone())
}

/// The finding of a name.
pub fn find<'a>(snapshot: &'a Snapshot, id: &str, title: &str) -> Option<&'a Finding> {
    let findings = &snapshot.report.findings;
    findings
        .iter()
        .find(|f| f.id == id && f.title == title)
        .or_else(|| findings.iter().find(|f| f.id == id))
}

/// What a row is about.
pub fn subject(app: &App, at: usize) -> Option<Subject> {
    let row = app.rows.findings.get(at)?;
    app.snapshot.report.findings.get(row.finding).map(key)
}

/// The tone and the word of a severity.
pub fn severity(severity: Severity) -> (Tone, &'static str) {
    match severity {
        Severity::Error => (Tone::Error, "error"),
        Severity::Warning => (Tone::Warning, "warning"),
        Severity::Note => (Tone::Note, "note"),
    }
}

/// How sure a finding is, in words.
pub fn confidence(confidence: Confidence) -> &'static str {
    match confidence {
        Confidence::Proven => "proven: every link is an event",
        Confidence::Likely => "likely: one link is known from the package, not seen",
        Confidence::Possible => "possible: more than one link was not seen",
    }
}

/// A row.
pub fn line(app: &App, at: usize, width: usize) -> Option<Line<'static>> {
    let row = app.rows.findings.get(at)?;
    let finding = app.snapshot.report.findings.get(row.finding)?;
    let (tone, word) = severity(finding.severity);
    let mut out = Columns::new(app, width);
    if row.consequence {
        out.push("    ".to_owned(), Tone::Dim);
    }
    out.push(
        format!("{} ", app.theme.fold(row.below > 0, row.folded)),
        Tone::Dim,
    );
    out.cell(word, 7, tone);
    if width >= 100 {
        out.cell(finding.component.as_deref().unwrap_or(""), 16, Tone::Plain);
    }
    let tail = tail(row);
    let title_room = out.room().saturating_sub(tail.len());
    let title_tone = if row.consequence {
        Tone::Plain
    } else {
        Tone::Heading
    };
    let clean = crate::text::clean(&finding.title).into_owned();
    let title = crate::text::fit(&clean, title_room, app.theme.ellipsis()).into_owned();
    out.rest(&title, title_tone);
    out.rest(&tail, Tone::Dim);
    Some(out.line())
}

/// What is said behind a title whose consequences are folded.
fn tail(row: &Row) -> String {
    match (row.below, row.folded) {
        (0, _) | (_, false) => String::new(),
        (1, true) => "  1 follows from it".to_owned(),
        (n, true) => format!("  {n} follow from it"),
    }
}

/// Columns that a row has for its title.
fn title_room(row: &Row, width: usize) -> usize {
    let before = match (row.consequence, width >= 100) {
        (false, false) => 10,
        (true, false) => 14,
        (false, true) => 27,
        (true, true) => 31,
    };
    // The scroll bar may need a column.
    width.saturating_sub(before + tail(row).len() + 1)
}

/// The selected finding in full, for the lower part of the view.
pub fn detail(app: &App, width: usize) -> Vec<Line<'static>> {
    let Some(row) = app.rows.findings.get(app.list().selected) else {
        return Vec::new();
    };
    let Some(finding) = app.snapshot.report.findings.get(row.finding) else {
        return Vec::new();
    };
    let theme = app.theme;
    let mut lines = Vec::new();
    // A title that the list had to cut stands here in full.
    let cut = title_room(row, width) < crate::text::width(&finding.title);
    let paragraph = |lines: &mut Vec<Line<'static>>, text: &str, first: &str, tone: Tone| {
        let indent = " ".repeat(crate::text::width(first));
        let clean = crate::text::clean(text).into_owned();
        for (at, part) in
            crate::text::wrap(&theme.glyphs(&clean), width.saturating_sub(indent.len()))
                .into_iter()
                .enumerate()
        {
            let lead = if at == 0 {
                first.to_owned()
            } else {
                indent.clone()
            };
            lines.push(Line::from(vec![
                ratatui::text::Span::styled(lead, theme.style(Tone::Accent)),
                ratatui::text::Span::styled(part, theme.style(tone)),
            ]));
        }
    };
    if cut {
        paragraph(&mut lines, &finding.title, "", Tone::Heading);
    }
    paragraph(&mut lines, &finding.cause, "", Tone::Plain);
    if !finding.remedy.is_empty() {
        lines.push(Line::default());
        lines.push(Line::styled(
            "What puts it right",
            theme.style(Tone::Heading),
        ));
        for remedy in &finding.remedy {
            paragraph(&mut lines, remedy, "- ", Tone::Good);
        }
    }
    lines.push(Line::default());
    if finding.evidence.is_empty() {
        lines.push(Line::styled("Evidence", theme.style(Tone::Heading)));
        let told = "The trace's header tells it; no single event stands behind it.";
        paragraph(&mut lines, told, "", Tone::Dim);
        return lines;
    }
    lines.push(Line::styled(
        format!("Evidence ({})", confidence(finding.confidence)),
        theme.style(Tone::Heading),
    ));
    for evidence in &finding.evidence {
        paragraph(
            &mut lines,
            &evidence.text,
            &format!("#{} ", evidence.event),
            Tone::Plain,
        );
    }
    lines
}

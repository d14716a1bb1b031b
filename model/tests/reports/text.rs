//! What a person sees on the terminal.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use jittrace_model::report::{
    Finding, Report, Severity,
    text::{Style, render},
};

use crate::stories;

fn plain(report: &Report) -> String {
    render(report, Style::default())
}

#[test]
fn the_founding_failure_is_told_in_25_lines_of_100_columns() {
    let text = plain(&stories::founding());
    assert!(
        text.lines().count() <= 25,
        "{} lines:\n{text}",
        text.lines().count()
    );
    for line in text.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
    insta::assert_snapshot!(text);
}

#[test]
fn evidence_that_is_cut_keeps_the_number_of_its_event() {
    let narrow = Style {
        width: 60,
        ..Style::default()
    };
    let text = render(&stories::founding(), narrow);
    let seen: Vec<&str> = text
        .lines()
        .filter(|line| line.trim_start().starts_with("seen "))
        .collect();
    assert!(seen.iter().any(|line| line.contains('…')), "{text}");
    for line in seen {
        assert!(line.ends_with(')') && line.contains(" (event "), "{line}");
    }
}

#[test]
fn a_healthy_run() {
    insta::assert_snapshot!(plain(&stories::healthy()));
}

#[test]
fn a_shadowed_library() {
    insta::assert_snapshot!(plain(&stories::nvjitlink(true)));
}

#[test]
fn an_empty_report() {
    insta::assert_snapshot!(plain(&Report::default()), @r"
    jittrace: no fault seen
      still running after 0 µs
    ");
}

#[test]
fn colour_is_only_drawn_when_asked_for_and_changes_no_letter() {
    let report = stories::founding();
    let coloured = render(
        &report,
        Style {
            colour: true,
            ..Style::default()
        },
    );
    assert!(coloured.contains("\x1b[1;31m"));
    let stripped = regex::Regex::new("\x1b\\[[0-9;]*m")
        .unwrap()
        .replace_all(&coloured, "")
        .into_owned();
    assert_eq!(stripped, plain(&report));
}

#[test]
fn any_width_is_kept_and_nothing_steers_the_terminal() {
    let mut report = stories::founding();
    report.command.push("\x1b]0;owned\x07".into());
    report.findings.push(Finding {
        id: "x".into(),
        severity: Severity::Warning,
        title: "\x1b[2J".repeat(40),
        cause: "x".repeat(500),
        ..Finding::default()
    });
    for width in [40, 80, 100, 160] {
        let text = render(
            &report,
            Style {
                width,
                colour: false,
            },
        );
        assert!(!text.contains('\x1b') && !text.contains('\x07'));
        for line in text.lines().filter(|_| width >= 80) {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
    }
}

#[test]
fn what_follows_from_a_cause_is_not_counted_beside_it() {
    let finding = |id: &str, severity, of: Option<&str>| Finding {
        id: id.into(),
        severity,
        title: id.into(),
        consequence_of: of.map(str::to_owned),
        ..Finding::default()
    };
    let report = Report {
        findings: vec![
            finding("nvcc-older-than-required", Severity::Error, None),
            finding("ptxas-shadowed", Severity::Warning, None),
            finding(
                "arch-list-empty",
                Severity::Error,
                Some("nvcc-older-than-required"),
            ),
            // Its cause is in no report that was joined: it stands for itself.
            finding(
                "cudart-not-found",
                Severity::Error,
                Some("cache-foreign-major"),
            ),
        ],
        ..Report::default()
    };
    for text in [
        plain(&report),
        jittrace_model::report::html::render(&report, &Default::default()),
    ] {
        assert!(
            text.contains("2 errors") && text.contains("1 warning") && !text.contains("3 errors"),
            "{text}"
        );
    }
}

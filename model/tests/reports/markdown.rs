//! The Markdown report, read back by a real renderer.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use jittrace_model::report::{Report, markdown::render};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd, html};

use crate::stories;

fn events(markdown: &str) -> Vec<Event<'_>> {
    Parser::new_ext(
        markdown,
        Options::ENABLE_TABLES | Options::ENABLE_GFM | Options::ENABLE_STRIKETHROUGH,
    )
    .collect()
}

/// Lines that are shown before anything is unfolded.
fn open_lines(markdown: &str) -> usize {
    let mut folded = false;
    let mut lines = 0;
    for line in markdown.lines() {
        match line {
            "<details>" => folded = true,
            "</details>" => folded = false,
            _ if !folded => lines += 1,
            _ => {}
        }
    }
    lines
}

/// Rows and columns of the first table.
fn table(markdown: &str) -> (usize, usize) {
    let (mut rows, mut columns) = (0, 0);
    for event in events(markdown) {
        match event {
            Event::Start(Tag::Table(alignments)) => columns = alignments.len(),
            Event::End(TagEnd::TableRow) => rows += 1,
            Event::End(TagEnd::Table) => break,
            _ => {}
        }
    }
    (rows, columns)
}

#[test]
fn the_founding_failure() {
    insta::assert_snapshot!(render(&stories::founding()));
}

#[test]
fn every_story_renders_right() {
    for (name, report) in stories::all() {
        let markdown = render(&report);
        assert!(
            open_lines(&markdown) < 60,
            "{name}: {} lines",
            open_lines(&markdown)
        );
        assert!(markdown.chars().count() < 65_536, "{name}");
        let (rows, columns) = table(&markdown);
        let told = report
            .components
            .iter()
            .filter(|component| !component.resolved.is_empty())
            .count();
        assert_eq!(rows, told, "{name}");
        assert!(columns >= 3 || told == 0, "{name}");
        let mut rendered = String::new();
        html::push_html(&mut rendered, events(&markdown).into_iter());
        assert!(rendered.starts_with("<h3>"), "{name}");
        assert_eq!(
            rendered.matches("<details>").count(),
            rendered.matches("</details>").count(),
            "{name}"
        );
        assert!(
            rendered.contains("<details>") && !rendered.contains("**"),
            "{name}"
        );
    }
}

#[test]
fn what_a_program_says_cannot_break_out() {
    let hostile = "`</details><script>alert(1)</script> | @octocat #12 **x** [a](http://b) \u{1b}[2J\n\n# head\n";
    let mut report = stories::founding();
    report.command = vec![hostile.into()];
    for finding in &mut report.findings {
        finding.title = hostile.into();
        finding.cause = hostile.into();
        finding.remedy = vec![hostile.into()];
    }
    for component in &mut report.components {
        component.name = hostile.into();
    }
    report.environment.insert(hostile.into(), hostile.into());
    let markdown = render(&report);
    let mut headings = 0;
    for event in events(&markdown) {
        match event {
            Event::Html(text) | Event::InlineHtml(text) => {
                let known = [
                    "<details>",
                    "</details>",
                    "<summary>",
                    "</summary>",
                    "<sub>",
                    "</sub>",
                    "<br>",
                ];
                let text = text.trim();
                assert!(
                    known.iter().any(|tag| text.starts_with(tag)) && !text.contains("script"),
                    "{text}"
                );
            }
            Event::Start(Tag::Link { dest_url, .. }) => panic!("a link to {dest_url}"),
            Event::Start(Tag::Heading { .. }) => headings += 1,
            Event::Text(text) => assert!(
                !text.contains("@octocat") && !text.contains("#12"),
                "{text}"
            ),
            _ => {}
        }
    }
    assert_eq!(headings, 1);
    assert_eq!(table(&markdown).1, table(&render(&stories::founding())).1);
}

#[test]
fn a_huge_report_still_fits_an_issue() {
    let mut report = stories::founding();
    let component = report.components[0].clone();
    for number in 0..3000 {
        let mut component = component.clone();
        component.name = format!("component-{number}");
        report.components.push(component);
        report.findings.push(report.findings[2].clone());
        report.processes.push(report.processes[0].clone());
    }
    report.builds = stories::healthy()
        .builds
        .iter()
        .cycle()
        .take(5000)
        .cloned()
        .collect();
    report
        .environment
        .insert("LD_LIBRARY_PATH".into(), "/x".repeat(100_000));
    let markdown = render(&report);
    assert!(markdown.chars().count() < 65_536);
    assert!(open_lines(&markdown) < 60);
    assert!(markdown.contains("more; `--format json` has all"));
}

#[test]
fn an_empty_report_is_no_empty_page() {
    let markdown = render(&Report::default());
    assert!(markdown.starts_with("### ✅ no fault seen"), "{markdown}");
}

#[test]
fn a_build_says_why_it_ran_again() {
    assert!(render(&stories::full()).contains("rebuilt since"));
}

//! The page: whole without scripts, loads nothing, and what a program says stays text in it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use jittrace_model::report::{
    Report,
    html::{EventSample, render},
};

use crate::stories;

fn page(report: &Report) -> String {
    let mut sample = EventSample::default();
    stories::events().iter().for_each(|event| sample.add(event));
    render(report, &sample)
}

/// The page without its scripts, style and data.
fn markup(page: &str) -> String {
    let mut out = String::new();
    let mut rest = page;
    while let Some(at) = ["<script", "<style"]
        .iter()
        .filter_map(|tag| rest.find(tag))
        .min()
    {
        let (before, inside) = rest.split_at(at);
        out.push_str(before);
        let end = if inside.starts_with("<script") {
            "</script>"
        } else {
            "</style>"
        };
        rest = &inside[inside.find(end).unwrap() + end.len()..];
    }
    out + rest
}

#[test]
fn every_story_is_well_formed_and_loads_nothing() {
    // For looking at: JITTRACE_PAGES=DIR cargo test --test reports
    let looked_at = std::env::var_os("JITTRACE_PAGES");
    for (name, report) in stories::all() {
        let page = page(&report);
        if let Some(directory) = &looked_at {
            std::fs::write(
                std::path::Path::new(directory).join(format!("{name}.html")),
                &page,
            )
            .unwrap();
        }
        let markup = markup(&page);
        balanced(name, &markup);
        for outside in [
            "http:", "https:", "src=", "url(", "@import", "<link", "<img", "<iframe",
        ] {
            assert!(!markup.contains(outside), "{name}: {outside}");
        }
        assert!(page.contains("default-src 'none'"), "{name}");
        // Without scripts: the verdict and every component are there.
        let shown = report
            .components
            .iter()
            .filter(|component| !component.resolved.is_empty());
        for component in shown {
            assert!(
                markup.contains(&format!("<th scope=\"row\">{}<small>", component.name)),
                "{name}"
            );
        }
        for finding in &report.findings {
            assert!(
                markup.contains(&format!("<code>{}</code>", finding.id)),
                "{name}"
            );
        }
    }
}

/// Every element that is opened is closed, in order.
fn balanced(name: &str, markup: &str) {
    let tag = regex::Regex::new(r"<(/?)([a-z][a-z0-9]*)([^<>]*)>").unwrap();
    let mut open: Vec<String> = Vec::new();
    for found in tag.captures_iter(markup) {
        let element = found[2].to_owned();
        if ["meta", "br", "input", "doctype"].contains(&element.as_str()) {
            continue;
        }
        if &found[1] == "/" {
            let last = open.pop();
            assert_eq!(
                last.as_deref(),
                Some(element.as_str()),
                "{name}: …{}",
                &markup[found.get(0).unwrap().start().saturating_sub(200)
                    ..found.get(0).unwrap().end()]
            );
        } else {
            open.push(element);
        }
    }
    assert_eq!(open, Vec::<String>::new(), "{name}");
    let mut ids: Vec<String> = regex::Regex::new(r#" id="([^"]+)""#)
        .unwrap()
        .captures_iter(markup)
        .map(|id| id[1].to_owned())
        .collect();
    let count = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), count, "{name}: an id occurs twice");
}

#[test]
fn what_a_program_says_stays_text() {
    let hostile = "</script></style><img src=x onerror=alert(1)>\"'&`<b>`\u{202e}";
    let mut report = stories::full();
    report.command = vec![hostile.into()];
    for finding in &mut report.findings {
        finding.title = hostile.into();
        finding.cause = hostile.into();
        finding.remedy = vec![hostile.into()];
        finding.component = Some(hostile.into());
    }
    for component in &mut report.components {
        component.name = hostile.into();
        for entry in component.resolved.values_mut().flatten() {
            entry.path = hostile.into();
            entry.rule_detail = hostile.into();
        }
    }
    for build in &mut report.builds {
        build.argv = vec![hostile.into()];
        build.tool = hostile.into();
        build.message = Some(hostile.into());
    }
    for process in &mut report.processes {
        process.argv = vec![hostile.into()];
    }
    report.environment.insert(hostile.into(), hostile.into());
    report.notes = vec![hostile.into()];
    let page = page(&report);
    let markup = markup(&page);
    assert!(!markup.contains("<img") && !markup.contains("<b>`") && !markup.contains('\u{202e}'));
    balanced("hostile", &markup);
    assert_eq!(
        page.matches("<script").count(),
        page.matches("</script>").count()
    );
}

#[test]
fn a_huge_report_stays_a_page() {
    let mut report = stories::founding();
    let process = report.processes[0].clone();
    for number in 0..20_000 {
        let mut process = process.clone();
        process.pid = 10_000 + number;
        process.ppid = 10_000 + number / 2;
        report.processes.push(process);
    }
    report.builds = stories::healthy()
        .builds
        .iter()
        .cycle()
        .take(20_000)
        .cloned()
        .collect();
    for (number, build) in report.builds.iter_mut().enumerate() {
        build.id = u32::try_from(number).unwrap();
        build.parent = None;
    }
    let page = page(&report);
    assert!(page.len() < 8 << 20, "{}", page.len());
    assert!(page.contains("more are in the JSON report"));
}

#[test]
fn a_build_says_why_it_ran_again() {
    assert!(page(&stories::full()).contains("rebuilt since /s/page.cu"));
}

//! Pairs of runs whose cause is known: the first line of the diff is it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use jittrace_model::{
    Body, Event, Model,
    diff::{self, Diff, Kind, NOTHING, Weight, compare},
    event::{CacheFact, DistributionFact, Fact, Outcome, Rule, Source},
    log::Header,
    report::{Report, Severity, text::Style},
};

use serde_json::{Value, json};

use crate::stories;

fn text(good: &Report, bad: &Report) -> String {
    diff::text(&compare(good, bad), Style::default())
}

#[test]
fn the_first_line_is_the_cause() {
    let mut upgraded = stories::founding();
    upgraded.environment = stories::before_upgrade().environment;
    for (name, good, bad, cause) in [
        (
            "check",
            stories::healthy(),
            stories::founding(),
            "CUDA_HOME is unset, it was /opt/toolkits/cuda-13.0 in the good run: flashinfer's nvcc is 12.4.131 instead of 13.0.88 (rule path instead of cuda-home)",
        ),
        (
            "cold to warm",
            stories::healthy(),
            stories::warm(),
            "CUDA_HOME=/opt/toolkits/cuda-12.4 instead of /opt/toolkits/cuda-13.0: page.so came from the cache, built with 13.0; CUDA_HOME=12.4 had no effect on it",
        ),
        (
            "upgrade",
            stories::before_upgrade(),
            upgraded,
            "flashinfer is 0.6.8.post1 instead of 0.6.6",
        ),
        (
            "D06",
            stories::nvjitlink(false),
            stories::nvjitlink(true),
            "LD_LIBRARY_PATH=/opt/cuda-12.1/lib64, unset in the good run: nvidia-cusparse-cu12's nvjitlink is 12.1 instead of 12.9 (rule ld-library-path instead of runpath)",
        ),
        (
            "D14",
            stories::libcuda(false),
            stories::libcuda(true),
            "app.py's libcuda is 575.57.08 instead of 580.65.06 (rule ld-so-cache)",
        ),
        (
            "D15",
            stories::respelled(false),
            stories::respelled(true),
            "PATH has /opt/cuda/bin instead of /opt/cuda-13.2/bin: app.py's nvcc was named /opt/cuda-13.2/bin/nvcc and is named /opt/cuda/bin/nvcc now, the same file, yet everything was compiled again",
        ),
        (
            "D16",
            stories::stale(false),
            stories::stale(true),
            "CUDA_HOME=/opt/cuda-13.2 instead of /opt/cuda-13.0: sampling.so came from the cache, built with 13.0; CUDA_HOME=/opt/cuda-13.2 had no effect on it",
        ),
    ] {
        let text = text(&good, &bad);
        assert_eq!(text.lines().next(), Some(cause), "{name}:\n{text}");
        for line in text.lines().skip(1) {
            assert!(line.chars().count() <= 100, "{name}: {line}");
        }
        let markdown = diff::markdown(&compare(&good, &bad));
        assert!(markdown.starts_with("### 🔀 "), "{name}");
    }
}

#[test]
fn the_founding_pair() {
    insta::assert_snapshot!(text(&stories::healthy(), &stories::founding()));
}

/// An upgrade whose cache is a new one compiles again, and a compilation takes headers, a host compiler and ptxas.
#[test]
fn what_every_compilation_takes_is_no_cause_beside_a_new_version() {
    let bad = {
        let mut bad = stories::healthy();
        let flashinfer = bad.components.iter_mut().find(|c| c.name == "flashinfer");
        let resolved = &mut flashinfer.unwrap().resolved;
        let mut compiler = resolved["nvcc"][0].clone();
        compiler.version = None;
        for (part, names) in [
            ("host_compiler", ["gcc", "c++"]),
            ("headers", ["cuda.h", "crt.h"]),
        ] {
            let entries = names.map(|name| {
                let mut entry = compiler.clone();
                entry.path = format!("/usr/bin/{name}");
                entry.realpath.clone_from(&entry.path);
                entry
            });
            resolved.insert(part.into(), entries.to_vec());
        }
        bad
    };
    let mut good = bad.clone();
    good.builds.clear();
    for component in &mut good.components {
        if component.name == "flashinfer" {
            component.version = Some("0.6.6".into());
            for part in ["host_compiler", "headers"] {
                component.resolved[part].truncate(1);
            }
        }
    }
    let text = text(&good, &bad);
    assert!(
        text.starts_with("flashinfer is 0.6.8.post1 instead of 0.6.6\n"),
        "{text}"
    );
    assert!(!text.contains("also changed"), "{text}");
}

/// The cold run built what the warm one takes from the cache, under another CUDA_HOME.
#[test]
fn a_variable_without_effect_comes_before_the_cache_that_answered() {
    let bad = stories::warm();
    let mut good = stories::healthy();
    good.caches.clone_from(&bad.caches);
    for artifact in good.caches.iter_mut().flat_map(|c| &mut c.artifacts) {
        artifact.built = true;
    }
    let text = text(&good, &bad);
    assert!(
        text.contains("was compiled in the good run and comes from the cache now"),
        "{text}"
    );
    assert!(text.starts_with("CUDA_HOME=/opt/toolkits/cuda-12.4 instead of /opt/toolkits/cuda-13.0: page.so came from the cache"), "{text}");
}

/// FlashInfer with a warm cache may ask no toolkit at all; that it was another one is the cause all the same.
#[test]
fn who_took_all_from_a_cache_is_compared_too() {
    let run = |version: &str| {
        let facts = [
            Fact::Distribution(DistributionFact {
                name: "flashinfer-python".into(),
                version: version.into(),
                ..DistributionFact::default()
            }),
            Fact::Cache(Box::new(CacheFact {
                path: format!("/home/u/.cache/flashinfer/{version}/120f/cached_ops/page/page.so"),
                directory: "/home/u/.cache/flashinfer".into(),
                owner: "flashinfer".into(),
                ..CacheFact::default()
            })),
        ];
        let mut model = Model::new(Header::default());
        for (fact, id) in facts.into_iter().zip(1..) {
            model.apply(Event {
                id,
                t: id,
                pid: 0,
                tid: 0,
                source: Source::Collector,
                same_as: None,
                body: Body::Fact(Box::new(fact)),
            });
        }
        model.report()
    };
    let text = text(&run("0.6.6"), &run("0.6.8.post1"));
    assert!(
        text.starts_with("flashinfer is 0.6.8.post1 instead of 0.6.6\n"),
        "{text}"
    );
}

#[test]
fn a_rebuild_without_a_change() {
    insta::assert_snapshot!(text(&stories::respelled(false), &stories::respelled(true)));
}

#[test]
fn the_founding_pair_as_markdown() {
    insta::assert_snapshot!(diff::markdown(&compare(
        &stories::healthy(),
        &stories::founding()
    )));
}

/// The same run at another time: other pids, event numbers, durations, temporary names, order.
fn again(report: &Report, run: u64) -> Report {
    let mut report = report.clone();
    report.duration_ns += run * 700_000_000;
    let pid = |pid: u32| pid + 1000 * u32::try_from(run).unwrap();
    for process in &mut report.processes {
        process.pid = pid(process.pid);
        process.ppid = pid(process.ppid);
        process.start += run;
    }
    report.processes.reverse();
    for component in &mut report.components {
        for entry in component.resolved.values_mut().flatten() {
            entry.events.iter_mut().for_each(|event| *event += run * 37);
            entry.pids = vec![pid(4711)];
            if run % 2 == 1 {
                entry.candidates.clear();
            }
        }
    }
    if run.is_multiple_of(3) {
        report.components.reverse();
    }
    for build in &mut report.builds {
        build.pid = pid(build.pid);
        build.start_ns += run * 1_000_000;
        build.duration_ns = build.duration_ns.map(|duration| duration + run * 9_000_000);
        build.argv.push(format!("/tmp/tmpxft_0000{run}/page.ii"));
    }
    for cache in &mut report.caches {
        cache.hits += run;
    }
    report.command.push("x".into());
    *report.command.last_mut().unwrap() = format!("/tmp/run-{run}/app.py");
    report
        .environment
        .insert("PWD".into(), format!("/tmp/run-{run}"));
    report
}

#[test]
fn ten_runs_of_the_same_thing_are_the_same() {
    for (name, report) in stories::all() {
        let first = again(&report, 0);
        for run in 0..10 {
            let diff = compare(&first, &again(&report, run));
            assert!(
                diff.same,
                "{name}, run {run}:\n{}",
                diff::text(&diff, Style::default())
            );
            assert_eq!(diff.headline, NOTHING);
        }
    }
}

#[test]
fn another_spelling_of_the_same_file_is_no_change() {
    let good = stories::healthy();
    let mut bad = good.clone();
    bad.environment
        .insert("CUDA_HOME".into(), "/usr/local/cuda".into());
    for entry in bad.components[0].resolved.values_mut().flatten() {
        entry.path = "/usr/local/cuda/bin/nvcc".into();
        entry.rule_detail = "CUDA_HOME=/usr/local/cuda".into();
    }
    // Nothing was compiled this time, nor in the good run.
    let (mut good, mut bad) = (good, bad);
    for report in [&mut good, &mut bad] {
        report.builds.clear();
        report.caches.clear();
    }
    let diff = compare(&good, &bad);
    assert!(diff.same, "{}", diff::text(&diff, Style::default()));
    assert!(
        diff.changes
            .iter()
            .any(|change| change.kind == Kind::Environment && change.weight == Weight::None)
    );
}

#[test]
fn a_failed_look_up_is_no_fault_and_a_successful_one_no_proof() {
    // More places are tried on the way to the same file: nothing.
    let good = stories::healthy();
    let mut bad = good.clone();
    for entry in bad.components[0].resolved.values_mut().flatten() {
        entry.candidates.insert(
            0,
            stories::candidate("/nowhere/nvcc", Rule::Path, Outcome::Missing),
        );
    }
    assert!(compare(&good, &bad).same);
    // Every look-up succeeds, one of them elsewhere: that is the cause.
    let diff = compare(&stories::libcuda(false), &stories::libcuda(true));
    assert!(!diff.same && diff.changes[0].kind == Kind::Resolution);
}

#[test]
fn two_hosts_say_what_one_lacks() {
    let good = stories::healthy();
    let mut bad = stories::healthy();
    bad.host.name = "gpu18".into();
    for component in &mut bad.components {
        for entry in component.resolved.values_mut().flatten() {
            entry.path = entry
                .path
                .replace("/srv/venv", "/data/env")
                .replace("/opt/toolkits", "/usr/local");
            entry.realpath = entry.path.clone();
        }
    }
    bad.components.truncate(1);
    bad.driver.version = Some("575.57.08".into());
    let diff = compare(&good, &bad);
    let titles: Vec<&str> = diff
        .changes
        .iter()
        .filter(|change| change.weight != Weight::None)
        .map(|change| change.title.as_str())
        .collect();
    assert_eq!(titles[0], "the driver is 575.57.08 instead of 580.65.06");
    assert!(
        titles
            .iter()
            .any(|title| title.contains("only the good run has component torch")),
        "{titles:?}"
    );
    assert!(
        !titles.iter().any(|title| title.contains("/data/env")),
        "{titles:?}"
    );
}

#[test]
fn a_new_note_is_not_a_difference() {
    let good = stories::healthy();
    let mut bad = good.clone();
    bad.findings = stories::founding().findings;
    bad.findings
        .retain(|finding| finding.severity == Severity::Note);
    assert!(compare(&good, &bad).same);
}

/// The schema with every object closed: a name that it does not list is an error.
fn closed(schema: &mut Value) {
    if let Value::Object(map) = schema {
        if map.contains_key("properties") {
            map.insert("additionalProperties".into(), json!(false));
        }
        map.values_mut().for_each(closed);
    } else if let Value::Array(list) = schema {
        list.iter_mut().for_each(closed);
    }
}

fn problems(schema: &Value, diff: &Diff) -> Vec<String> {
    let validator = jsonschema::draft202012::new(schema).unwrap();
    let diff = serde_json::to_value(diff).unwrap();
    validator
        .iter_errors(&diff)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect()
}

/// Every report that there is, compared with every other one: all keep to the schema, and every name, kind and weight
/// that the schema lists is used by one of them.
#[test]
fn every_pair_keeps_to_the_schema() {
    let mut schema: Value = serde_json::from_str(diff::JSON_SCHEMA).unwrap();
    closed(&mut schema);
    let mut reports = stories::all();
    reports.push(("full", stories::full()));
    let mut used = String::new();
    for (good_name, good) in &reports {
        for (bad_name, bad) in &reports {
            let diff = compare(good, bad);
            assert_eq!(
                problems(&schema, &diff),
                Vec::<String>::new(),
                "{good_name} {bad_name}"
            );
            used.push_str(&serde_json::to_string(&diff).unwrap());
        }
    }
    for definition in ["side", "change", "facet"] {
        let names = schema["$defs"][definition]["properties"].as_object();
        for name in names.unwrap().keys() {
            assert!(
                used.contains(&format!("\"{name}\":")),
                "{definition}.{name}"
            );
        }
    }
    let mut broken = compare(&stories::healthy(), &stories::founding());
    broken.schema = "jittrace.diff/2".into();
    broken.changes[0].title.clear();
    assert_eq!(problems(&schema, &broken).len(), 2);
}

#[test]
fn the_json_form_reads_back() {
    let diff = compare(&stories::healthy(), &stories::founding());
    let text = serde_json::to_string(&diff).unwrap();
    let back: Diff = serde_json::from_str(&text).unwrap();
    assert_eq!(serde_json::to_string(&back).unwrap(), text);
    assert!(
        text.starts_with(
            r#"{"schema":"jittrace.diff/1","same":false,"headline":"CUDA_HOME is unset"#
        ),
        "{text}"
    );
}

/// Of runs that were alike a long trace lists the first and the last.
#[test]
fn how_many_alike_runs_a_condensed_trace_lists_is_no_difference() {
    let good = stories::healthy();
    let mut bad = good.clone();
    let nvcc = |report: &Report| report.builds.iter().find(|b| b.tool == "nvcc").cloned();
    bad.builds.extend(nvcc(&good));
    assert!(!compare(&good, &bad).same);
    bad.condensed = Some(jittrace_model::report::Condensed {
        processes: [("nvcc".to_owned(), 40)].into(),
        entries: 40,
    });
    assert!(compare(&good, &bad).same);
    bad.builds.retain(|b| b.tool != "nvcc");
    assert!(!compare(&good, &bad).same);
}

//! The JSON report keeps to its schema, and the schema knows every name that the report uses.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use jittrace_model::report::{JSON_SCHEMA, Report};
use serde_json::{Value, json};

use crate::stories;

fn schema() -> Value {
    serde_json::from_str(JSON_SCHEMA).unwrap()
}

/// The schema with every object closed: a name that it does not list is an error.
fn closed(schema: &mut Value) {
    if let Value::Object(map) = schema {
        if map.contains_key("properties") && !map.contains_key("additionalProperties") {
            map.insert("additionalProperties".into(), json!(false));
        }
        map.values_mut().for_each(closed);
    } else if let Value::Array(list) = schema {
        list.iter_mut().for_each(closed);
    }
}

fn problems(schema: &Value, report: &Report) -> Vec<String> {
    let validator = jsonschema::draft202012::new(schema).unwrap();
    let report = serde_json::to_value(report).unwrap();
    validator
        .iter_errors(&report)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect()
}

#[test]
fn every_story_keeps_to_the_schema() {
    let mut closed_schema = schema();
    closed(&mut closed_schema);
    for (name, report) in stories::all() {
        assert_eq!(problems(&schema(), &report), Vec::<String>::new(), "{name}");
        assert_eq!(
            problems(&closed_schema, &report),
            Vec::<String>::new(),
            "{name}, closed"
        );
    }
}

#[test]
fn a_report_of_every_field_is_known_to_the_schema() {
    let mut schema = schema();
    closed(&mut schema);
    assert_eq!(problems(&schema, &stories::full()), Vec::<String>::new());
    // And the other way round: what the schema lists exists in a full report, so that no name is left over.
    let report = serde_json::to_value(stories::full()).unwrap();
    let names = |definition: &str| -> Vec<String> {
        let of = if definition.is_empty() {
            &schema["properties"]
        } else {
            &schema["$defs"][definition]["properties"]
        };
        of.as_object().unwrap().keys().cloned().collect()
    };
    for (definition, value) in [
        ("", &report),
        ("host", &report["host"]),
        ("source", &report["sources"][0]),
        ("toolkit", &report["toolkits"][0]),
        ("component", &report["components"][0]),
        ("resolved", &report["components"][0]["resolved"]["nvcc"][0]),
        ("cache", &report["caches"][0]),
        ("artifact", &report["caches"][0]["artifacts"][0]),
        ("build", &report["builds"][0]),
        ("finding", &report["findings"][0]),
        ("process", &report["processes"][0]),
    ] {
        for name in names(definition) {
            assert!(value.get(&name).is_some(), "{definition}.{name}");
        }
    }
}

#[test]
fn a_broken_report_is_refused() {
    let mut report = stories::founding();
    report.schema = "jittrace.report/2".into();
    assert_eq!(problems(&schema(), &report).len(), 1);
    let mut report = stories::founding();
    report.findings[0].id = "Not Kebab".into();
    assert_eq!(problems(&schema(), &report).len(), 1);
}

#[test]
fn a_report_reads_back_as_it_was_written() {
    for (name, report) in stories::all() {
        let text = serde_json::to_string(&report).unwrap();
        assert_eq!(
            serde_json::from_str::<Report>(&text).unwrap(),
            report,
            "{name}"
        );
    }
}

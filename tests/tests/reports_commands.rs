//! `report`, `diff`, `export` and `bundle` on trace files: formats, forms of input, statuses, sentences.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    time::Duration,
};

use jittrace_model::{
    event::{Body, Event, Exec, Frame, ProcessExit, ProcessStart, Source},
    log::{Header, Writer},
};
use jittrace_tests::{finish, jittrace};
use serde_json::Value;
use sha2::{Digest, Sha256};

const PATIENCE: Duration = Duration::from_secs(60);

/// A trace of a program that asked the nvcc of a toolkit for its version.
fn trace(home: &str) -> Vec<u8> {
    let header = Header {
        jittrace: 1,
        version: "0.1.0".into(),
        command: vec!["python".into(), "app.py".into()],
        started_unix_ns: 1_000_000,
        ..Header::default()
    };
    let env: Vec<(String, String)> = vec![
        ("CUDA_HOME".into(), home.into()),
        ("PATH".into(), "/usr/bin".into()),
    ];
    let nvcc = format!("{home}/bin/nvcc");
    let argv = vec![nvcc.clone(), "--version".into()];
    let python = vec![Frame {
        file: "/w/app.py".into(),
        line: 3,
        function: "version".into(),
        distribution: None,
    }];
    let bodies = [
        (
            10,
            Body::ProcessStart(Box::new(ProcessStart {
                ppid: 1,
                exe: "/usr/bin/python3".into(),
                argv: vec!["python".into(), "app.py".into()],
                cwd: "/w".into(),
                env: env.iter().cloned().collect(),
                ..ProcessStart::default()
            })),
        ),
        (
            10,
            Body::Exec(Box::new(Exec {
                call: "posix_spawn".into(),
                path: nvcc.clone(),
                argv: argv.clone(),
                python,
                child: Some(11),
                ..Exec::default()
            })),
        ),
        (
            11,
            Body::ProcessStart(Box::new(ProcessStart {
                ppid: 10,
                exe: nvcc,
                argv,
                env: env.into_iter().collect(),
                ..ProcessStart::default()
            })),
        ),
        (
            11,
            Body::ProcessExit(ProcessExit {
                code: Some(0),
                ..ProcessExit::default()
            }),
        ),
        (
            10,
            Body::ProcessExit(ProcessExit {
                code: Some(0),
                ..ProcessExit::default()
            }),
        ),
    ];
    let mut writer = Writer::new(Vec::new(), &header).unwrap();
    for (id, (pid, body)) in (1..).zip(bodies) {
        writer
            .write(&Event {
                id,
                t: id * 1_000_000,
                pid,
                tid: pid,
                source: Source::Preload,
                same_as: None,
                body,
            })
            .unwrap();
    }
    writer.into_inner()
}

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Place(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

fn run(arguments: &[&str]) -> Output {
    finish(Command::new(jittrace()).args(arguments), PATIENCE)
}

fn piped(arguments: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(jittrace())
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    child.wait_with_output().unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn a_trace_is_reported_in_every_format_from_every_form() {
    let place = Place::new();
    let plain = trace("/opt/cuda-13.0");
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&plain).unwrap();
    let gzip = gzip.finish().unwrap();
    let zstd = zstd::encode_all(plain.as_slice(), 3).unwrap();
    let expected = stdout(&run(&[
        "report",
        text(&place.file("t.jtrace", &plain)),
        "--format",
        "json",
    ]));
    let report: Value = serde_json::from_str(&expected).unwrap();
    assert_eq!(report["schema"], "jittrace.report/1");
    assert_eq!(report["environment"]["CUDA_HOME"], "/opt/cuda-13.0");
    for (name, bytes) in [
        ("t.jtrace.gz", &gzip),
        ("t.jtrace.zst", &zstd),
        ("unnamed", &zstd),
    ] {
        let output = run(&["report", text(&place.file(name, bytes)), "--format", "json"]);
        assert_eq!(
            (output.status.code(), stdout(&output)),
            (Some(0), expected.clone()),
            "{name}"
        );
    }
    for bytes in [&plain, &gzip, &zstd] {
        assert_eq!(
            stdout(&piped(&["report", "-", "--format", "json"], bytes)),
            expected
        );
    }
    let plain = place.file("t.jtrace", &plain);
    for (format, start) in [
        ("text", "jittrace: "),
        ("markdown", "### "),
        ("html", "<!doctype html>"),
    ] {
        let output = run(&["report", text(&plain), "--format", format]);
        assert!(stdout(&output).starts_with(start), "{format}: {output:?}");
        assert!(!stdout(&output).contains('\x1b'), "{format}");
        let file = place.path(format);
        let written = run(&[
            "report",
            text(&plain),
            "--format",
            format,
            "-o",
            text(&file),
        ]);
        assert_eq!(
            std::fs::read_to_string(&file).unwrap(),
            stdout(&output),
            "{format}"
        );
        assert!(written.stdout.is_empty() && written.status.success());
    }
}

#[test]
fn what_is_readable_is_read_and_the_rest_is_told() {
    let place = Place::new();
    let whole = trace("/opt/cuda-13.0");
    for (name, bytes, events) in [
        ("torn", whole[..whole.len() - 20].to_vec(), 4),
        ("growing", whole[..whole.len() - 1].to_vec(), 4),
        (
            "damaged",
            String::from_utf8(whole.clone())
                .unwrap()
                .replacen("\n{\"id\":2", "\nX{\"id\":2", 1)
                .into_bytes(),
            4,
        ),
        (
            "torn zst",
            {
                let z = zstd::encode_all(whole.as_slice(), 3).unwrap();
                z[..z.len() - 6].to_vec()
            },
            0,
        ),
        (
            "newer",
            String::from_utf8(whole.clone())
                .unwrap()
                .replacen("\"jittrace\":1", "\"jittrace\":2", 1)
                .into_bytes(),
            5,
        ),
    ] {
        let file = place.file(name, &bytes);
        let output = run(&["report", text(&file), "--format", "json"]);
        if name == "torn zst" && !output.status.success() {
            // So short a file may be cut before its first block.
            assert!(stderr(&output).contains("is empty"), "{output:?}");
            continue;
        }
        assert_eq!(output.status.code(), Some(0), "{name}: {output:?}");
        let report: Value = serde_json::from_str(&stdout(&output)).unwrap();
        assert_eq!(
            report["notes"].as_array().unwrap().len(),
            1,
            "{name}: {}",
            report["notes"]
        );
        if events > 0 {
            let exported = stdout(&run(&["export", text(&file), "--format", "jsonl"]));
            assert_eq!(exported.lines().count(), events, "{name}");
        }
    }
}

#[test]
fn bad_input_is_named_in_one_sentence_with_its_remedy() {
    let place = Place::new();
    let foreign = place.file("notes.txt", b"dear diary\n");
    let empty = place.file("empty.jtrace", b"");
    let good = place.file("good.jtrace", &trace("/opt/cuda-13.0"));
    let existing = place.file("there.tar.gz", b"mine");
    for (arguments, status, sentence) in [
        (
            vec!["report", "/nowhere/x.jtrace"],
            1,
            "there is no file /nowhere/x.jtrace",
        ),
        (vec!["report", text(&foreign)], 1, "not a jittrace trace"),
        (vec!["report", text(&empty)], 1, "the trace is empty"),
        (vec!["report"], 2, "required"),
        (
            vec!["report", text(&good), "--format", "pdf"],
            2,
            "possible values",
        ),
        (
            vec!["report", text(&good), "-o", "/nowhere/out"],
            1,
            "cannot write /nowhere/out",
        ),
        (
            vec!["diff", text(&good), "/nowhere/x"],
            2,
            "there is no file /nowhere/x",
        ),
        (
            vec!["diff", text(&good), text(&foreign)],
            2,
            "not a jittrace trace",
        ),
        (vec!["diff", "-", "-"], 2, "only one of the two traces"),
        (vec!["diff", text(&good)], 2, "required"),
        (
            vec!["export", text(&foreign), "--format", "jsonl"],
            1,
            "not a jittrace trace",
        ),
        (
            vec!["export", text(&foreign), "--format", "perfetto"],
            1,
            "not a jittrace trace",
        ),
        (vec!["export", text(&good)], 2, "--format"),
        (
            vec!["bundle", text(&good), "-o", text(&existing)],
            1,
            "exists and is not replaced",
        ),
        (
            vec!["bundle", "/nowhere/x.jtrace", "-o", "/tmp/never.tar.gz"],
            1,
            "there is no file",
        ),
    ] {
        let output = run(&arguments);
        assert_eq!(
            output.status.code(),
            Some(status),
            "{arguments:?}: {output:?}"
        );
        assert!(
            stderr(&output).contains(sentence),
            "{arguments:?}: {}",
            stderr(&output)
        );
        assert!(output.stdout.is_empty(), "{arguments:?}");
        if status == 1 {
            assert_eq!(
                stderr(&output).lines().count(),
                1,
                "{arguments:?}: {}",
                stderr(&output)
            );
        }
    }
    assert_eq!(std::fs::read(&existing).unwrap(), b"mine");
    assert!(!Path::new("/tmp/never.tar.gz").exists());
}

#[test]
fn several_traces_are_joined_and_a_bad_one_among_them_is_told() {
    let place = Place::new();
    let one = place.file("one.jtrace", &trace("/opt/cuda-13.0"));
    let two = place.file("two.jtrace", &trace("/opt/cuda-12.4"));
    let output = run(&["report", text(&one), text(&two), "--format", "json"]);
    let report: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(report["traces"].as_array().unwrap().len(), 2);
    let pids: Vec<u64> = report["processes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| p["pid"].as_u64().unwrap())
        .collect();
    assert_eq!(pids, [10, 11, 10_000_010, 10_000_011]);
    let output = run(&["report", text(&one), "/nowhere/x", "--format", "json"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("there is no file /nowhere/x"));
    assert!(serde_json::from_str::<Value>(&stdout(&output)).is_ok());
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let place = Place::new();
    let file = place.file("t.jtrace", &trace("/opt/cuda-13.0").repeat(1));
    let mut child = Command::new(jittrace())
        .args(["report", text(&file), "--format", "html"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        (output.status.code(), stderr(&output)),
        (Some(0), String::new())
    );
}

#[test]
fn a_diff_names_the_cause_and_its_status_is_that_of_diff() {
    let place = Place::new();
    let good = place.file("good.jtrace", &trace("/opt/cuda-13.0"));
    let again = place.file("again.jtrace", &trace("/opt/cuda-13.0"));
    let bad = place.file("bad.jtrace", &trace("/opt/cuda-12.4"));
    let same = run(&["diff", text(&good), text(&again)]);
    assert_eq!(
        (same.status.code(), stdout(&same).lines().next()),
        (Some(0), Some("no difference that matters"))
    );
    let differs = run(&["diff", text(&good), text(&bad)]);
    assert_eq!(differs.status.code(), Some(1));
    let first = stdout(&differs).lines().next().unwrap().to_owned();
    assert!(
        first.starts_with("CUDA_HOME=/opt/cuda-12.4 instead of /opt/cuda-13.0: "),
        "{first}"
    );
    assert!(first.contains("nvcc"), "{first}");
    let json = run(&["diff", text(&good), text(&bad), "--format", "json"]);
    let diff: Value = serde_json::from_str(&stdout(&json)).unwrap();
    assert_eq!(
        (&diff["same"], &diff["headline"]),
        (&false.into(), &first.as_str().into())
    );
    let markdown = run(&["diff", text(&good), text(&bad), "--format", "markdown"]);
    assert!(stdout(&markdown).starts_with("### "), "{markdown:?}");
    let from_pipe = piped(&["diff", text(&good), "-"], &std::fs::read(&bad).unwrap());
    assert_eq!(stdout(&from_pipe), stdout(&differs));
}

#[test]
fn exports_are_the_events_and_a_timeline() {
    let place = Place::new();
    let bytes = trace("/opt/cuda-13.0");
    let file = place.file("t.jtrace", &bytes);
    let jsonl = stdout(&run(&["export", text(&file), "--format", "jsonl"]));
    let lines: String = String::from_utf8(bytes)
        .unwrap()
        .split_inclusive('\n')
        .skip(1)
        .collect();
    assert_eq!(jsonl, lines);
    let out = place.path("t.perfetto");
    let output = run(&[
        "export",
        text(&file),
        "--format",
        "perfetto",
        "-o",
        text(&out),
    ]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(std::fs::read(&out).unwrap().first(), Some(&0x0a));
}

#[test]
fn a_bundle_holds_what_its_manifest_says() {
    let place = Place::new();
    let file = place.file("t.jtrace", &trace("/opt/cuda-13.0"));
    let output = run(&["bundle", text(&file)]);
    assert!(output.status.success(), "{output:?}");
    let said = stderr(&output);
    let bundle = place.path("t.tar.gz");
    assert!(said.find("trace.jtrace.zst") < said.find("wrote"), "{said}");
    assert!(bundle.metadata().unwrap().len() < 1 << 20);
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(
        std::fs::File::open(&bundle).unwrap(),
    ));
    archive.unpack(place.path("unpacked")).unwrap();
    let inside = place.path("unpacked").join("t");
    let manifest: Value =
        serde_json::from_slice(&std::fs::read(inside.join("MANIFEST.json")).unwrap()).unwrap();
    let files = manifest["files"].as_array().unwrap();
    assert_eq!(files.len(), 5);
    for entry in files {
        let bytes = std::fs::read(inside.join(entry["path"].as_str().unwrap())).unwrap();
        let sum: String = Sha256::digest(&bytes)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        assert_eq!(
            (
                entry["sha256"].as_str().unwrap(),
                entry["bytes"].as_u64().unwrap()
            ),
            (sum.as_str(), bytes.len() as u64)
        );
        assert!(said.contains(entry["path"].as_str().unwrap()));
    }
    // The trace inside gives the same report, and a second bundle does not replace the first.
    let again = run(&[
        "report",
        text(&inside.join("trace.jtrace.zst")),
        "--format",
        "json",
    ]);
    assert_eq!(
        stdout(&again).as_bytes(),
        std::fs::read(inside.join("report.json")).unwrap()
    );
    let second = run(&["bundle", text(&file)]);
    assert_eq!(second.status.code(), Some(1));
    assert!(stderr(&second).contains("exists and is not replaced"));
    let mistaken = run(&["report", text(&bundle)]);
    assert!(
        stderr(&mistaken).contains("is a bundle, not a trace"),
        "{mistaken:?}"
    );
}

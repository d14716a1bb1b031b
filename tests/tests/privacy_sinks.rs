//! Two hundred planted credentials through every sink: the trace, the reports, the exports, the bundle, the diff.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    io::Read,
    process::{Command, Output},
    time::Duration,
};

use jittrace_model::{
    event::{Event, Source},
    log::{Header, Writer},
    redact::{Options, Redactor},
};
use jittrace_tests::{finish, jittrace};

#[path = "../../model/tests/secrets/mod.rs"]
mod secrets;

fn run(arguments: &[&str]) -> Output {
    finish(
        Command::new(jittrace()).args(arguments),
        Duration::from_secs(120),
    )
}

/// The credentials that a text holds.
fn survivors<'a>(secrets: &'a [String], sink: &[u8]) -> Vec<&'a str> {
    let text = String::from_utf8_lossy(sink);
    secrets
        .iter()
        .map(String::as_str)
        .filter(|secret| text.contains(secret))
        .collect()
}

#[test]
fn no_planted_credential_survives_in_any_sink() {
    let place = tempfile::tempdir().unwrap();
    let mut redactor = Redactor::new(Options {
        key: b"sinks".to_vec(),
        places: None,
    });
    let mut header = Header {
        jittrace: 1,
        command: vec!["python".into()],
        ..Header::default()
    };
    let mut planted = Vec::new();
    let mut events = Vec::new();
    for number in 0..200 {
        let (secret, by_shape) = secrets::planted(number);
        if number % 10 == 0 {
            header
                .command
                .extend(["--api-key".to_owned(), secret.clone()]);
        }
        for body in secrets::plant(number, &secret, by_shape) {
            let id = events.len() as u64 + 1;
            events.push(Event {
                id,
                t: id,
                pid: 7,
                tid: 7,
                source: Source::Preload,
                same_as: None,
                body,
            });
        }
        planted.push(secret);
    }
    redactor.header(&mut header);
    let mut writer = Writer::new(Vec::new(), &header).unwrap();
    for mut event in events {
        redactor.event(&mut event);
        writer.write(&event).unwrap();
    }
    let trace = place.path().join("t.jtrace");
    std::fs::write(&trace, writer.into_inner()).unwrap();
    let trace = trace.to_str().unwrap();
    let bundle = place.path().join("b.tar.gz");
    let mut sinks = vec![("trace", std::fs::read(trace).unwrap())];
    for (name, arguments) in [
        ("report text", vec!["report", trace, "--format", "text"]),
        (
            "report markdown",
            vec!["report", trace, "--format", "markdown"],
        ),
        ("report json", vec!["report", trace, "--format", "json"]),
        ("report html", vec!["report", trace, "--format", "html"]),
        ("export jsonl", vec!["export", trace, "--format", "jsonl"]),
        (
            "export perfetto",
            vec!["export", trace, "--format", "perfetto"],
        ),
        ("diff", vec!["diff", trace, trace, "--format", "json"]),
        (
            "bundle",
            vec!["bundle", trace, "-o", bundle.to_str().unwrap()],
        ),
    ] {
        let output = run(&arguments);
        assert!(
            output.status.success(),
            "{name}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        sinks.push((name, [output.stdout, output.stderr].concat()));
    }
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(
        std::fs::File::open(&bundle).unwrap(),
    ));
    for entry in archive.entries().unwrap() {
        let mut bytes = Vec::new();
        let mut entry = entry.unwrap();
        entry.read_to_end(&mut bytes).unwrap();
        if entry
            .path()
            .unwrap()
            .extension()
            .is_some_and(|end| end == "zst")
        {
            bytes = zstd::decode_all(bytes.as_slice()).unwrap();
        }
        sinks.push(("bundle entry", bytes));
    }
    assert_eq!(sinks.len(), 15);
    for (name, bytes) in &sinks {
        assert_eq!(survivors(&planted, bytes), Vec::<&str>::new(), "{name}");
    }
    // The test can fail: unmasked, the same events hold every one of them.
    let bare: String = (0..200)
        .flat_map(|number| {
            let (secret, by_shape) = secrets::planted(number);
            secrets::plant(number, &secret, by_shape)
        })
        .map(|body| format!("{body:?}"))
        .collect();
    assert_eq!(survivors(&planted, bare.as_bytes()).len(), 200);
}

#[test]
fn a_traced_program_leaves_no_credential_in_its_trace() {
    let place = tempfile::tempdir().unwrap();
    let trace = place.path().join("t.jtrace");
    let (token, _) = secrets::planted(0);
    let (key, _) = secrets::planted(2);
    let wandb = "0123456789abcdef0123456789abcdef01234567";
    let script = format!(
        "echo 'nvcc fatal : requires CUDA, api_key={key}' >&2; exec true {wandb} 'https://alice:hunter2hunter2@x.example/'"
    );
    let output = finish(
        Command::new(jittrace())
            .args([
                "--no-tui",
                "--report",
                "text",
                "-o",
                trace.to_str().unwrap(),
                "--",
                "sh",
                "-c",
                &script,
                "--api-key",
                &key,
            ])
            .env("HF_TOKEN", &token)
            .env("WANDB_API_KEY", wandb),
        Duration::from_secs(60),
    );
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let written = std::fs::read_to_string(&trace).unwrap();
    for secret in [token.as_str(), &key, wandb, "hunter2hunter2"] {
        assert!(!written.contains(secret), "{secret} in {written}");
    }
    assert!(written.contains("https://alice:<secret:"), "{written}");
}

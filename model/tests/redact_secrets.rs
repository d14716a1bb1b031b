//! Two hundred planted credentials, in every shape and place that stacks are known to put them: none is left, and what
//! is no credential is.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use jittrace_model::{
    event::*,
    log::{Header, Reader, Writer},
    redact::{Options, Places, Redactor},
};
use proptest::prelude::*;

mod secrets;
use secrets::{plant, planted, shaped};

fn event(id: u64, body: Body) -> Event {
    Event {
        id,
        t: id,
        pid: 7,
        tid: 7,
        source: Source::Preload,
        same_as: None,
        body,
    }
}

#[test]
fn two_hundred_planted_credentials_do_not_survive() {
    let mut redactor = Redactor::new(Options {
        key: b"test".to_vec(),
        places: None,
    });
    let mut secrets = Vec::new();
    let mut trace = Writer::new(
        Vec::new(),
        &Header {
            jittrace: 1,
            ..Header::default()
        },
    )
    .unwrap();
    let mut id = 0;
    for number in 0..200 {
        let (secret, by_shape) = planted(number);
        for body in plant(number, &secret, by_shape) {
            id += 1;
            let mut event = event(id, body);
            redactor.event(&mut event);
            trace.write(&event).unwrap();
        }
        secrets.push(secret);
    }
    let written = String::from_utf8(trace.into_inner()).unwrap();
    let survivors: Vec<String> = secrets
        .iter()
        .filter(|secret| written.contains(secret.as_str()))
        .map(|secret| {
            let lines: Vec<&str> = written
                .lines()
                .filter(|line| line.contains(secret.as_str()))
                .collect();
            format!("{secret} in {lines:#?}")
        })
        .collect();
    assert!(
        survivors.is_empty(),
        "{} survive: {}",
        survivors.len(),
        survivors.join("\n")
    );
    // The lines are still events, and what stands around the credentials is readable.
    let mut reader = Reader::new(written.as_bytes()).unwrap();
    let mut read = 0;
    while reader.next_event().unwrap().is_some() {
        read += 1;
    }
    assert_eq!((read, reader.skipped_count()), (id, 0));
    for kept in [
        "-arch=sm_120a",
        r#"\"max_tokens\": 512"#,
        "https://alice:<secret:",
        "SM 12.x requires CUDA >= 12.9",
        "/page.so",
        "?rev=1&token=<secret:",
    ] {
        assert!(written.contains(kept), "{kept} is gone");
    }
    assert!(redactor.masked() >= 600);
}

#[test]
fn ordinary_values_stay_readable() {
    let mut redactor = Redactor::new(Options::default());
    redactor.learn_environment([("WANDB_API_KEY", "0123456789abcdef0123456789abcdef01234567")]);
    for text in [
        "/home/u/.cache/flashinfer/0.6.8.post1/120f/cached_ops/page/build.ninja",
        "/home/u/.triton/cache/3QZWVZ7XJQ2W4ZB5Y6LJ5Q2Z3YF4K5M6N7P8Q9R0S1T2U3V4W5X6/k.cubin",
        "/tmp/torchinductor_u/k6/ck6qgn7cf7zwltnqhf2dcmlc2dqzxzkzy6lvvz5txlqrpjbzxwhq.py",
        "550e8400-e29b-41d4-a716-446655440000",
        "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "--gpu-name=sm_121a -DFLASHINFER_ENABLE_F16 -DTORCH_EXTENSION_NAME=page -std=c++17",
        "9.0a;10.0a;12.0f",
        "--max-total-tokens 512 --skip-tokenizer-init --attention-backend=flashinfer",
        "TOKENIZERS_PARALLELISM=false",
        "nvcc fatal   : Unsupported gpu architecture 'compute_120f'",
        "ptxas k.ptx, line 1; fatal   : Unsupported .version 9.0; current version is '8.7'",
        "error: expected a ';' before token 'int'; unexpected token: identifier",
        "eos_token=<|endoftext|> pad_token: 0",
        "cache key: 4f2a9c81d0e34b7fa1",
        "KEY=abc123def456",
        "build 13.0.88 with key=sampling",
        "git@github.com:flashinfer-ai/flashinfer.git",
        "ssh://git@github.com/x.git",
        "https://pypi.org/simple/torch/?version=2.11.0+cu130",
        "libcudart-faf08d9a.so.13: cannot open shared object file",
        "--api-key-file /run/secrets/key --token-dir=/data/tokens",
        "api_key=None token=$HF_TOKEN password: ****",
        "PWD=/home/u/work",
        "Author: someone; authority=x; keyboard=us; monkey=12345678a",
        "__nvJitLinkComplete_12_9",
    ] {
        let mut masked = text.to_owned();
        redactor.text(&mut masked);
        assert_eq!(masked, text);
    }
    let mut argv: Vec<String> = [
        "python",
        "--max-tokens",
        "512",
        "--tokenizer",
        "gpt2abc123",
        "--key",
        "a",
        "--dtype",
        "bf16",
    ]
    .map(str::to_owned)
    .into();
    let before = argv.clone();
    redactor.argv(&mut argv);
    assert_eq!(argv, before);
}

#[test]
fn the_same_credential_is_the_same_placeholder_and_another_key_another() {
    let masked = |key: &[u8], text: &str| {
        let mut text = text.to_owned();
        Redactor::new(Options {
            key: key.to_vec(),
            places: None,
        })
        .text(&mut text);
        text
    };
    let token = shaped(0);
    let in_url = masked(b"k", &format!("https://x.example/?token={token}"));
    let in_option = masked(b"k", &format!("--hf-token={token}"));
    assert_eq!(in_url.rsplit('=').next(), in_option.rsplit('=').next());
    assert_ne!(masked(b"k", &token), masked(b"other", &token));
    assert_ne!(masked(b"k", &shaped(10)), masked(b"k", &token));
    // Fixed for all time: traces of two versions have to be comparable.
    assert_eq!(
        masked(b"k", "HF_TOKEN=hf_aBcDeFgHiJkLmNoPqRsTuVwXyZ12345678"),
        "HF_TOKEN=<secret:499315>"
    );
}

#[test]
fn what_the_environment_teaches_is_masked_in_file_names() {
    let mut redactor = Redactor::new(Options::default());
    redactor.learn_environment([
        ("WANDB_API_KEY", "0123456789abcdef0123456789abcdef01234567"),
        ("CUDA_HOME", "/usr/local/cuda-13.0"),
        ("HF_TOKEN", "short"),
    ]);
    let mut path =
        "/tmp/runs/0123456789abcdef0123456789abcdef01234567/short/usr/local/cuda-13.0".to_owned();
    redactor.text(&mut path);
    assert!(path.starts_with("/tmp/runs/<secret:"), "{path}");
    assert!(path.ends_with("/short/usr/local/cuda-13.0"), "{path}");
}

#[test]
fn places_are_hidden_in_every_field_when_asked() {
    let mut redactor = Redactor::new(Options {
        key: Vec::new(),
        places: Some(Places {
            homes: vec!["/home/alice".into()],
            users: vec!["alice".into()],
            projects: vec!["/srv/product-x".into()],
            hosts: vec!["gpu17".into()],
        }),
    });
    let mut header = Header {
        jittrace: 1,
        command: vec!["/srv/product-x/run.py".into()],
        ..Header::default()
    };
    header.host.name = "gpu17".into();
    redactor.header(&mut header);
    let argv = vec![
        "/home/alice/venv/bin/python".into(),
        "-I/srv/product-x/include".into(),
    ];
    let mut started = event(
        1,
        Body::ProcessStart(Box::new(ProcessStart {
            argv,
            ..ProcessStart::default()
        })),
    );
    redactor.event(&mut started);
    let text = format!(
        "{}{}",
        serde_json::to_string(&header).unwrap(),
        started.to_line().unwrap()
    );
    for gone in ["alice", "product-x", "gpu17"] {
        assert!(!text.contains(gone), "{gone} in {text}");
    }
    assert!(
        text.contains("<home>/venv/bin/python") && text.contains("-I<project>/include"),
        "{text}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn masking_twice_is_masking_once(text in r#"[-a-zA-Z0-9_=:/ '"?&@.]{0,80}"#, secret in 0u64..40, at in 0usize..80) {
        let mut text = text;
        let at = at.min(text.len());
        text.insert_str(at, &format!(" --api-key={} ", shaped(secret)));
        let mut redactor = Redactor::new(Options::default());
        redactor.text(&mut text);
        let once = text.clone();
        redactor.text(&mut text);
        prop_assert_eq!(once, text);
    }

    #[test]
    fn any_text_is_survived(text in "\\PC{0,200}") {
        let mut text = text;
        Redactor::new(Options::default()).text(&mut text);
    }
}

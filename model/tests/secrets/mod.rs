//! Made-up credentials and the places where they are planted.

use jittrace_model::event::*;

const ALNUM: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const UPPER: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const HEX: &[u8] = b"0123456789abcdef";
const BASE64: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// A credential's letters, different for every number and the same in every run.
fn letters(number: u64, length: usize, alphabet: &[u8]) -> String {
    let mut state = number
        .wrapping_mul(0x9E37_79B9_7F4A_7C15)
        .wrapping_add(0xD1B5_4A32_D192_ED03);
    (0..length)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            alphabet[(state >> 33) as usize % alphabet.len()] as char
        })
        .collect()
}

/// Credentials that are known by their shape wherever they stand.
pub(crate) fn shaped(number: u64) -> String {
    let any = |length| letters(number, length, ALNUM);
    match number % 10 {
        0 => format!("hf_{}", any(34)),
        1 => format!("sk-proj-{}", any(48)),
        2 => format!("AKIA{}", letters(number, 16, UPPER)),
        3 => format!("ghp_{}", any(36)),
        4 => format!("github_pat_{}_{}", any(22), any(40)),
        5 => format!("wandb_v1_{}", any(40)),
        6 => format!("xoxb-1234567890-{}", any(24)),
        7 => format!("eyJ{}.eyJ{}.{}", any(30), any(40), any(43)),
        8 => format!("nvapi-{}", any(64)),
        _ => format!("glpat-{}", any(20)),
    }
}

/// Credentials without a shape: known by their name, then by memory.
fn shapeless(number: u64) -> String {
    match number % 4 {
        0 => letters(number, 40, HEX),
        1 => format!("Zq{}", letters(number, 38, BASE64)),
        2 => format!("{}9x", letters(number, 22, ALNUM)),
        _ => format!(
            "{}-{}7a",
            letters(number, 9, ALNUM),
            letters(number, 9, ALNUM)
        ),
    }
}

/// The credential of this number, and whether it has a shape.
pub(crate) fn planted(number: u64) -> (String, bool) {
    let by_shape = number.is_multiple_of(2);
    (
        if by_shape {
            shaped(number / 2)
        } else {
            shapeless(number / 2) + &number.to_string()
        },
        by_shape,
    )
}

fn start(argv: Vec<String>) -> Body {
    Body::ProcessStart(Box::new(ProcessStart {
        exe: "/usr/bin/python3".into(),
        argv,
        ..ProcessStart::default()
    }))
}

fn message(text: String) -> Body {
    Body::Message(Box::new(Message {
        stream: "stderr".into(),
        text,
        pattern: "requires-cuda".into(),
    }))
}

fn file(path: String) -> Body {
    Body::File(Box::new(FileAccess {
        path,
        ..FileAccess::default()
    }))
}

/// Plants one credential in one of twenty places, then where only its shape or the memory of it tells.
pub(crate) fn plant(number: u64, secret: &str, by_shape: bool) -> Vec<Body> {
    // `§` stands for the credential.
    let s = |text: &str| text.replace('§', secret);
    let argv = |arguments: &[&str]| {
        let all = ["python", "-m", "sglang.launch_server"]
            .iter()
            .chain(arguments);
        start(all.map(|argument| s(argument)).collect())
    };
    let named = match (number / 10) % 20 {
        0 => argv(&["--api-key", "§"]),
        1 => argv(&["--api-key=§"]),
        2 => argv(&[
            "--json-model-override-args",
            r#"{"auth": {"api_key": "§"}, "max_tokens": 512}"#,
        ]),
        3 => argv(&[r#"{\"access_token\":\"§\"}"#]),
        4 => argv(&["-DAPI_KEY=§", "-arch=sm_120a"]),
        5 => argv(&["-DKEY=§", "k.cu"]),
        6 => argv(&["--model-path", "https://alice:§@models.example/llama"]),
        7 => argv(&["https://models.example/llama?rev=1&token=§&x=2"]),
        8 => start(vec![
            "sh".into(),
            "-c".into(),
            s("export WANDB_API_KEY=§; exec python train.py"),
        ]),
        9 => start(vec![
            "curl".into(),
            "-u".into(),
            s("alice:§"),
            "https://example.com".into(),
        ]),
        10 => start(vec![
            "curl".into(),
            "-H".into(),
            s("Authorization: Bearer §"),
            "https://example.com".into(),
        ]),
        11 => message(s(
            "RuntimeError: SM 12.x requires CUDA >= 12.9 (hf_token='§')",
        )),
        12 => message(s("config: {'password': '§', 'cuda': '13.0'}")),
        13 => Body::Call(Box::new(Call {
            function: "nvrtcCompileProgram".into(),
            args: vec![s("-DSECRET_KEY=§"), "--gpu-architecture=sm_120".into()],
            ..Call::default()
        })),
        14 => Body::Exec(Box::new(Exec {
            path: "/usr/bin/git".into(),
            argv: vec![
                "git".into(),
                "clone".into(),
                s("https://oauth2:§@example.com/x.git"),
            ],
            ..Exec::default()
        })),
        15 => Body::ExecFailed(Box::new(ExecFailed {
            path: "/usr/bin/wandb".into(),
            argv: vec![
                "wandb".into(),
                "login".into(),
                "--wandb-key".into(),
                secret.to_owned(),
            ],
            errno: 2,
            ..ExecFailed::default()
        })),
        16 => Body::Note(Note {
            about: "x".into(),
            text: s("x-api-key: §"),
        }),
        17 => file(s(
            "/home/u/.cache/hub/https%3A%2F%2Fexample.com%3Faccess_token%3D§/x",
        )),
        18 => Body::ProcessStart(Box::new(ProcessStart {
            env: [("HF_TOKEN".to_owned(), secret.to_owned())].into(),
            ..ProcessStart::default()
        })),
        _ => {
            let fields = serde_json::json!({
                "id": 1, "t": 1, "source": "preload", "kind": "of-tomorrow", "login": {"client_secret": secret}
            });
            let fields = fields.as_object().cloned().unwrap_or_default();
            Body::Other(Box::new(OtherKind {
                kind: "of-tomorrow".into(),
                fields,
            }))
        }
    };
    let mut bodies = vec![named];
    // Again without its name: in the file name of a cache, as a bare argument, in a library's path.
    bodies.push(file(s("/home/u/.cache/flashinfer/0.6.8/120f/§/page.so")));
    bodies.push(start(vec!["nvcc".into(), secret.to_owned()]));
    if by_shape {
        bodies.push(Body::LibraryLoaded(Box::new(LibraryLoaded {
            path: s("/opt/x-§/libx.so"),
            candidates: vec![Candidate {
                path: s("/opt/x-§/libx.so"),
                rule: Rule::Runpath,
                outcome: Outcome::Chosen,
            }],
            ..LibraryLoaded::default()
        })));
    }
    bodies
}

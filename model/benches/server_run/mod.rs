//! The events of a long server run: a thousand processes, builds in a hundred of them, library loads with their searches,
//! calls, cache files, messages.

use std::{
    fs::File,
    io::{self, BufWriter},
};

use jittrace_model::{
    event::*,
    log::{Header, Writer},
};

/// How many there are.
pub(crate) const EVENTS: u64 = 1_000_000;

fn body(n: u64, pid: u32) -> Body {
    let site = "/srv/venv/lib/python3.12/site-packages";
    let python = || {
        vec![
            Frame {
                file: format!("{site}/flashinfer/jit/cpp_ext.py"),
                line: 78,
                function: "get_cuda_version".into(),
                distribution: Some("flashinfer-python".into()),
            },
            Frame {
                file: "/srv/app/serve.py".into(),
                line: 12,
                function: "main".into(),
                distribution: None,
            },
        ]
    };
    match n % 1000 {
        0 => Body::ProcessStart(Box::new(ProcessStart {
            ppid: if n == 0 { 1 } else { 1000 },
            exe: if n.is_multiple_of(10_000) {
                "/opt/cuda-13.0/bin/nvcc".into()
            } else {
                "/usr/bin/python3.12".into()
            },
            argv: vec!["python".into(), "-m".into(), "sglang.launch_server".into()],
            cwd: "/srv/app".into(),
            env: [
                ("CUDA_HOME".to_owned(), "/opt/cuda-13.0".to_owned()),
                ("PATH".to_owned(), "/usr/bin:/bin".to_owned()),
            ]
            .into(),
            ..ProcessStart::default()
        })),
        999 => Body::ProcessExit(ProcessExit {
            code: Some(0),
            ..ProcessExit::default()
        }),
        1..=20 => Body::LibraryLoaded(Box::new(LibraryLoaded {
            path: format!(
                "{site}/nvidia/cu13/lib/lib{}.so.13",
                ["cudart", "nvrtc", "cublas", "nvJitLink"][(n % 4) as usize]
            ),
            realpath: format!(
                "{site}/nvidia/cu13/lib/lib{}.so.13",
                ["cudart", "nvrtc", "cublas", "nvJitLink"][(n % 4) as usize]
            ),
            requested_by: Some(format!("{site}/torch/lib/libtorch_cuda.so")),
            rule: Rule::Rpath,
            rule_detail: "$ORIGIN/../../nvidia/cu13/lib".into(),
            explanation: Explanation::Confirmed,
            candidates: (0..4)
                .map(|at| Candidate {
                    path: format!("{site}/nvidia/{at}/lib/libcudart.so.13"),
                    rule: Rule::Rpath,
                    outcome: Outcome::Missing,
                })
                .collect(),
            python: python(),
            ..LibraryLoaded::default()
        })),
        21 => Body::Exec(Box::new(Exec {
            call: "posix_spawn".into(),
            path: "/opt/cuda-13.0/bin/nvcc".into(),
            argv: vec!["nvcc".into(), "--version".into()],
            python: python(),
            child: Some(pid + 1),
            ..Exec::default()
        })),
        22..=30 => Body::Message(Box::new(Message {
            stream: "stderr".into(),
            text: format!("warning {n}: requires CUDA"),
            pattern: "requires-cuda".into(),
        })),
        31..=500 => Body::Call(Box::new(Call {
            function: "cudaRuntimeGetVersion".into(),
            object: Some(format!("{site}/nvidia/cu13/lib/libcudart.so.13")),
            result: Some(0),
            value: Some("13000".into()),
            python: python(),
            count: 1,
            ..Call::default()
        })),
        _ => Body::File(Box::new(FileAccess {
            path: format!(
                "/home/u/.cache/flashinfer/0.6.8/120f/cached_ops/op{}/build.ninja",
                n % 4096
            ),
            errno: if n.is_multiple_of(3) { 2 } else { 0 },
            ..FileAccess::default()
        })),
    }
}

/// One of them.
pub(crate) fn event(n: u64) -> Event {
    let pid = 1000 + u32::try_from(n / 1000).unwrap_or(0);
    Event {
        id: n + 1,
        t: n * 60_000,
        pid,
        tid: pid,
        source: Source::Preload,
        same_as: None,
        body: body(n, pid),
    }
}

/// Writes a trace of all of them.
pub(crate) fn write(file: File) -> io::Result<()> {
    let header = Header {
        jittrace: 1,
        command: vec!["python".into()],
        ..Header::default()
    };
    let mut writer = Writer::new(BufWriter::new(file), &header)?;
    for n in 0..EVENTS {
        writer.write(&event(n))?;
    }
    writer.flush()
}

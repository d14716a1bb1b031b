//! Traces that were recorded on a machine with a GPU still give the verdicts that they gave there.

use std::{path::Path, process::Command, time::Duration};

use jittrace_model::{
    event::Rule,
    report::{Confidence, Report, Severity},
};
use jittrace_tests::{finish, jittrace};

fn report(name: &str) -> Report {
    let trace =
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("fixtures/gpu/{name}.jtrace.zst"));
    let output = finish(
        Command::new(jittrace())
            .args(["report", "--format", "json"])
            .arg(trace),
        Duration::from_secs(60),
    );
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn each_trace_gives_its_verdict_and_the_healthy_ones_none() {
    // Name, the primary finding above a note, and words that its cause must have.
    let cases: [(&str, Option<&str>, &[&str]); 14] = [
        ("attach", None, &[]),
        ("serve-launch", None, &[]),
        ("serve-attach", None, &[]),
        ("serve-beside", None, &[]),
        ("serve-frames", None, &[]),
        (
            "both-sources",
            Some("nvcc-differs-from-built-for"),
            &["12.4", "13.0", "CUDA_HOME=", "page.so", "libcudart.so.12"],
        ),
        ("healthy", None, &[]),
        ("triton", None, &[]),
        ("nokernel-ptx", None, &[]),
        (
            "mixed",
            Some("nvcc-differs-from-built-for"),
            &["12.4", "13.0", "CUDA_HOME=", "page.so", "libcudart.so.12"],
        ),
        (
            "twomajors",
            Some("cache-foreign-major"),
            &["page.so", "libcudart.so.12", "13.0"],
        ),
        (
            "sm120",
            Some("nvcc-older-than-required"),
            &["12.4", "get_cuda_version"],
        ),
        (
            "ptx222",
            Some("ptx-too-new-for-driver"),
            &["222", "9.9", "13.0"],
        ),
        ("nokernel-cubin", Some("no-kernel-image"), &["209", "sm_80"]),
    ];
    for (name, id, words) in cases {
        let report = report(name);
        let primary = report
            .findings
            .iter()
            .find(|f| f.severity != Severity::Note && f.consequence_of.is_none());
        assert_eq!(
            primary.map(|f| f.id.as_str()),
            id,
            "{name}: {:?}",
            report.findings
        );
        if let Some(finding) = primary {
            for word in words {
                assert!(
                    finding.cause.contains(word),
                    "{name}: {word} is not in {}",
                    finding.cause
                );
            }
            assert!(
                finding.confidence <= Confidence::Likely && !finding.evidence.is_empty(),
                "{name}"
            );
        }
        assert_eq!(
            report.driver.version.as_deref(),
            Some("580.159.04"),
            "{name}"
        );
        // The attached processes had asked the driver before jittrace came.
        if !matches!(name, "attach" | "serve-attach" | "serve-frames") {
            assert_eq!(report.driver.cuda.as_deref(), Some("13.0"), "{name}");
        }
    }
}

#[test]
fn a_consequence_hangs_on_its_cause() {
    for (name, consequence) in [
        ("mixed", "cudart-not-found"),
        ("sm120", "arch-list-empty"),
        ("twomajors", "cudart-two-majors"),
    ] {
        let report = report(name);
        let finding = report
            .findings
            .iter()
            .find(|f| f.id == consequence)
            .unwrap_or_else(|| panic!("{name}"));
        assert!(finding.consequence_of.is_some(), "{name}: {finding:?}");
    }
}

#[test]
fn a_real_build_on_a_gpu_machine_is_a_tree() {
    // By the shim in a launch, and by the kernel in a process that was attached to before it built.
    for name in ["healthy", "attach"] {
        let report = report(name);
        for tool in ["ninja", "nvcc", "cicc", "ptxas", "fatbinary"] {
            let mut runs = report.builds.iter().filter(|b| b.tool == tool);
            assert!(
                runs.any(|b| b.exit.is_some_and(|e| e.is_success()) && b.duration_ns.is_some()),
                "{name}: {tool}"
            );
        }
        let ptxas: Vec<_> = report.builds.iter().filter(|b| b.tool == "ptxas").collect();
        assert!(
            ptxas.len() == 2
                && ptxas
                    .iter()
                    .all(|b| b.archs == ["sm_90a"] && b.parent.is_some()),
            "{name}: {ptxas:?}"
        );
    }
}

/// What root gets: a launch with the kernel beside the shim, and an attach that reads Python frames from outside. Whoever
/// starts a compiler is named in both, the Triton that the server imports as well as its FlashInfer.
#[test]
fn who_built_is_told_with_and_without_the_shim() {
    for name in ["serve-beside", "serve-frames"] {
        let report = report(name);
        let by = |component: &str, part: &str| {
            let found = report.components.iter().find(|c| c.name == component);
            let all = found.and_then(|c| c.resolved.get(part));
            all.and_then(|all| all.first())
                .unwrap_or_else(|| panic!("{name}: {component} has no {part}"))
        };
        for (component, part, version) in [
            ("flashinfer", "nvcc", "13.0.88"),
            ("sglang", "nvcc", "13.0.88"),
            ("triton", "ptxas", "12.8.93"),
            ("triton", "headers", "12.8"),
        ] {
            let resolved = by(component, part);
            let version_of = resolved.version.as_deref();
            assert_eq!(version_of, Some(version), "{name}: {component} {part}");
        }
        assert_eq!(by("triton", "headers").rule, Rule::Bundled, "{name}");
        for (component, part, place) in [
            ("flashinfer", "nvcc", "flashinfer/jit/cpp_ext.py"),
            ("triton", "ptxas", "triton/"),
        ] {
            let asker = by(component, part).requested_by.as_deref();
            assert!(
                asker.is_some_and(|a| a.contains(place)),
                "{name}: {asker:?}"
            );
        }
    }
}

/// A server that serves: launched (what it says of itself is an argument), and attached to while it serves (its scheduler
/// has a title instead of arguments, and builds its sampling kernels at the first request).
#[test]
fn a_served_sglang_is_told_by_component() {
    for name in ["serve-launch", "serve-attach"] {
        let report = report(name);
        let nvcc = |component: &str| {
            report
                .components
                .iter()
                .find(|c| c.name == component)
                .and_then(|c| c.resolved.get("nvcc"))
                .and_then(|all| all.first())
        };
        let resolved = nvcc("flashinfer").unwrap_or_else(|| panic!("{name}"));
        assert_eq!(resolved.version.as_deref(), Some("13.0.88"), "{name}");
        assert!(
            report.components.iter().all(|c| !c.name.is_empty()),
            "{name}: every component has a name"
        );
        let flashinfer = report.caches.iter().find(|c| c.owner == "flashinfer");
        let flashinfer = flashinfer.unwrap_or_else(|| panic!("{name}"));
        assert_eq!(
            (flashinfer.builds, flashinfer.hits),
            if name == "serve-launch" {
                (4, 0)
            } else {
                (1, 3)
            },
            "{name}"
        );
        let copies: Vec<_> = report
            .findings
            .iter()
            .map(|f| (f.id.as_str(), f.severity))
            .collect();
        assert!(
            copies.contains(&("cudart-same-soname-twice", Severity::Note)),
            "{name}: {copies:?}"
        );
    }
}

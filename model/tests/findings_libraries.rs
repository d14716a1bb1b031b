//! Findings about libraries and the driver: each with the trace that proves it, and the healthy one beside it.

use jittrace_model::{
    event::{FileOp, Image, Outcome, Rule},
    report::Severity,
};

mod findings;

use findings::{PYTHON, Trace, candidate};

const WHEELS: &str = "/v/site-packages/nvidia";

fn cusparse(rule: Rule, fails: bool) -> Trace {
    let mut trace = Trace::python(&[("LD_LIBRARY_PATH", "/opt/cuda-12.1/lib64")]);
    let consumer = format!("{WHEELS}/cusparse/lib/libcusparse.so.12");
    let own = format!("{WHEELS}/nvjitlink/lib/libnvJitLink.so.12");
    trace.is(
        "/opt/cuda-12.1/lib64/libnvJitLink.so.12",
        "nvjitlink",
        "12.1.105",
    );
    trace.is(&own, "nvjitlink", "12.9.86");
    trace.loaded(
        PYTHON,
        "/opt/cuda-12.1/lib64/libnvJitLink.so.12",
        rule,
        &consumer,
        |l| {
            l.candidates = vec![
                candidate(
                    "/opt/cuda-12.1/lib64/libnvJitLink.so.12",
                    rule,
                    Outcome::Chosen,
                ),
                candidate(&own, Rule::Runpath, Outcome::NotTried),
            ];
        },
    );
    if fails {
        trace.load_failed(
            PYTHON,
            &consumer,
            &format!(
                "{consumer}: undefined symbol: __nvJitLinkComplete_12_9, version libnvJitLink.so.12"
            ),
            |_| {},
        );
    }
    trace.exit(PYTHON, 0);
    trace
}

#[test]
fn ld_library_path_before_runpath() {
    let found = cusparse(Rule::LdLibraryPath, true).finds(
        "library-shadowed-by-ld-library-path",
        Severity::Warning,
        &[
            "/opt/cuda-12.1/lib64/libnvJitLink.so.12",
            "libcusparse.so.12",
            "RUNPATH",
            "__nvJitLinkComplete_12_9",
            "nvjitlink/lib/libnvJitLink.so.12 (12.9.86)",
        ],
    );
    assert!(
        found
            .consequences
            .contains(&"nvjitlink-older-than-consumer".to_owned())
    );
    cusparse(Rule::AlreadyLoaded, true);
    cusparse(Rule::LdSoCache, true).finds(
        "nvjitlink-older-than-consumer",
        Severity::Warning,
        &["12.9"],
    );
    // Another release came first, and nothing failed of it.
    cusparse(Rule::LdLibraryPath, false).notes("library-shadowed-by-ld-library-path");
}

#[test]
fn the_program_said_so() {
    let mut trace = cusparse(Rule::LdLibraryPath, true);
    trace.says(
        PYTHON,
        "ImportError: undefined symbol: __nvJitLinkComplete_12_9, version libnvJitLink.so.12",
    );
    trace.finds("library-shadowed-by-ld-library-path", Severity::Error, &[]);
}

#[test]
fn a_load_that_a_later_try_made_good() {
    let mut trace = cusparse(Rule::LdLibraryPath, true);
    trace.loaded(
        PYTHON,
        &format!("{WHEELS}/cusparse/lib/libcusparse.so.12"),
        Rule::AbsolutePath,
        "",
        |_| {},
    );
    trace.silent();
}

#[test]
fn cudart_not_found() {
    let mut bad = Trace::python(&[]);
    bad.torch("12.9");
    bad.loaded(
        PYTHON,
        "/v/cudart/libcudart.so.12",
        Rule::AbsolutePath,
        "",
        |_| {},
    );
    bad.is("/v/cudart/libcudart.so.12", "cudart", "12.9.79");
    bad.load_failed(
        PYTHON,
        "/v/site-packages/vllm/_C.abi3.so",
        "libcudart.so.13: cannot open shared object file: No such file or directory",
        |f| {
            f.missing = Some("libcudart.so.13".into());
            f.missing_for = Some("/v/site-packages/vllm/_C.abi3.so".into());
            f.candidates = vec![candidate(
                "/v/cudart/libcudart.so.13",
                Rule::Runpath,
                Outcome::Missing,
            )];
        },
    );
    bad.says(
        PYTHON,
        "ImportError: libcudart.so.13: cannot open shared object file: No such file or directory",
    );
    bad.exit(PYTHON, 1);
    let found = bad.finds(
        "cudart-not-found",
        Severity::Error,
        &[
            "libcudart.so.13",
            "_C.abi3.so",
            "/v/cudart",
            "libcudart.so.12 (12.9.79)",
            "torch is built for CUDA 12.9",
        ],
    );
    assert_eq!(found.component.as_deref(), Some("app.py"));
    // A program that tries several names and takes what it gets.
    let mut probe = Trace::python(&[]);
    probe.load_failed(
        PYTHON,
        "libcudart.so.13",
        "libcudart.so.13: cannot open shared object file: No such file or directory",
        |_| {},
    );
    probe.loaded(
        PYTHON,
        "/v/cudart/libcudart.so.12",
        Rule::LdSoCache,
        "",
        |_| {},
    );
    probe.exit(PYTHON, 0);
    probe.silent();
}

#[test]
fn a_module_of_the_cache_binds_another_major() {
    let mut bad = Trace::python(&[]);
    bad.torch("12.9");
    let module = "/c/flashinfer/norm/norm.so";
    bad.cached(module, |c| {
        c.built_with = Some("13.0".into());
        c.needed = vec!["libcudart.so.13".into()];
    });
    bad.load_failed(
        PYTHON,
        module,
        "libcudart.so.13: cannot open shared object file: No such file or directory",
        |f| {
            f.missing = Some("libcudart.so.13".into());
            f.missing_for = Some(module.into());
        },
    );
    bad.exit(PYTHON, 1);
    let found = bad.finds(
        "cache-foreign-major",
        Severity::Error,
        &[
            module,
            "13.0",
            "torch is built for CUDA 12.9",
            "Delete /c/flashinfer/norm",
        ],
    );
    assert_eq!(found.consequences, ["cudart-not-found"]);
    let mut fine = Trace::python(&[]);
    fine.torch("13.0");
    fine.cached(module, |c| c.needed = vec!["libcudart.so.13".into()]);
    fine.loaded(PYTHON, module, Rule::AbsolutePath, "", |_| {});
    fine.silent();
}

fn two(paths: [&str; 2]) -> Trace {
    let mut trace = Trace::python(&[]);
    for path in paths {
        trace.loaded(PYTHON, path, Rule::LdLibraryPath, "", |l| {
            l.python = vec![findings::frame("/w/app.py", None)];
        });
    }
    trace
}

#[test]
fn two_majors_of_cudart() {
    let paths = ["/a/libcudart.so.12", "/b/libcudart.so.13"];
    two(paths).notes("cudart-two-majors");
    let mut refused = two(paths);
    refused.says(
        PYTHON,
        "RuntimeError: Multiple libcudart libraries found: libcudart.so.12 and libcudart.so.13",
    );
    refused.exit(PYTHON, 1);
    refused.finds(
        "cudart-two-majors",
        Severity::Error,
        &[
            "/a/libcudart.so.12",
            "/b/libcudart.so.13",
            "needed by nobody",
        ],
    );
    let mut handle = two(paths);
    handle.call(PYTHON, "cudaStreamSynchronize", 400, |_| {});
    handle.finds("cudart-two-majors", Severity::Error, &["400"]);
    let mut failed = two(paths);
    failed.killed(PYTHON, 11);
    failed.finds("cudart-two-majors", Severity::Warning, &[]);
    // Told to stop is no failure.
    let mut stopped = two(paths);
    stopped.killed(PYTHON, 9);
    stopped.silent();
}

#[test]
fn copies_of_one_major() {
    let mut same = two([
        "/t/libcudart.so.13",
        "/v/torchvision.libs/libcudart.faf08d9a.so.13",
    ]);
    same.is("/t/libcudart.so.13", "cudart", "13.0.96");
    same.is(
        "/v/torchvision.libs/libcudart.faf08d9a.so.13",
        "cudart",
        "13.0.96",
    );
    same.exit(PYTHON, 1);
    same.notes("cudart-same-soname-twice");
    // One file by two names is one copy.
    let mut one = Trace::python(&[]);
    for path in ["/t/libcudart.so.13", "/u/libcudart.so.13"] {
        one.loaded(PYTHON, path, Rule::Rpath, "", |l| {
            l.realpath = "/t/libcudart.so.13.0.96".into()
        });
    }
    assert!(one.findings().is_empty());
}

#[test]
fn a_stand_in_for_cudart() {
    let stub = "/v/site-packages/tilelang/lib/libcudart_stub.so";
    let mut bad = Trace::python(&[]);
    bad.loaded(PYTHON, "/t/libcudart.so.13", Rule::Rpath, "", |_| {});
    bad.file(PYTHON, FileOp::Open, "/proc/self/maps", 0);
    bad.load_failed(
        PYTHON,
        stub,
        &format!("{stub}: undefined symbol: cudaDeviceReset"),
        |_| {},
    );
    bad.says(
        PYTHON,
        &format!("AttributeError: {stub}: undefined symbol: cudaDeviceReset"),
    );
    bad.finds(
        "cudart-stub-chosen",
        Severity::Error,
        &[
            "libcudart_stub.so",
            "cudaDeviceReset",
            "memory map",
            "/t/libcudart.so.13",
        ],
    );
    let mut fine = Trace::python(&[]);
    fine.loaded(PYTHON, stub, Rule::AbsolutePath, "", |_| {});
    fine.silent();
}

#[test]
fn a_stub_for_the_driver() {
    let stub = "/opt/cuda/lib64/stubs/libcuda.so";
    let run = |result: i64| {
        let mut trace = Trace::python(&[("LD_LIBRARY_PATH", "/opt/cuda/lib64/stubs:/drv")]);
        trace.is_with("/drv/libcuda.so.1", "libcuda", "13.0", |f| {
            f.variant = Some("driver".into())
        });
        trace.loaded(PYTHON, stub, Rule::LdLibraryPath, "", |l| {
            l.requested = Some("libcuda.so".into());
            l.candidates = vec![candidate(
                "/drv/libcuda.so",
                Rule::LdLibraryPath,
                Outcome::NotTried,
            )];
        });
        if result >= 0 {
            trace.call(PYTHON, "cuInit", result, |c| c.object = Some(stub.into()));
        }
        trace.loaded(PYTHON, stub, Rule::AlreadyLoaded, "", |l| {
            l.requested = Some("libcuda.so.1".into())
        });
        trace
    };
    run(34).finds(
        "libcuda-stub",
        Severity::Error,
        &[
            stub,
            "LD_LIBRARY_PATH",
            "34",
            "later request for libcuda.so.1",
            "/drv/libcuda.so.1",
        ],
    );
    // Mapped and never called.
    run(-1).notes("libcuda-stub");
    // By its answer, wherever it lies: `-L` order put it into a RUNPATH.
    let mut elsewhere = Trace::python(&[]);
    elsewhere.loaded(PYTHON, "/x/libcuda.so.1", Rule::Runpath, "/x/app", |_| {});
    elsewhere.call(PYTHON, "cuInit", 34, |c| {
        c.object = Some("/x/libcuda.so.1".into())
    });
    elsewhere.finds(
        "libcuda-stub",
        Severity::Error,
        &["/x/libcuda.so.1", "RUNPATH"],
    );
}

fn compat(path: &str, real: &str, rule: Rule, result: i64) -> Trace {
    let mut trace = Trace::python(&[]);
    trace.kernel_module("580.65.06");
    trace.is_with("/usr/lib/libcuda.so.1", "libcuda", "13.0", |f| {
        f.realpath = "/usr/lib/libcuda.so.580.65.06".into()
    });
    trace.loaded(PYTHON, path, rule, "", |l| {
        l.realpath = real.into();
        l.candidates = vec![candidate(
            "/usr/lib/libcuda.so.1",
            Rule::LdSoCache,
            Outcome::NotTried,
        )];
    });
    trace.call(PYTHON, "cuInit", result, |c| c.object = Some(path.into()));
    trace
}

#[test]
fn a_compat_driver() {
    let (path, real) = (
        "/usr/local/cuda/compat/libcuda.so.1",
        "/usr/local/cuda/compat/libcuda.so.575.57.08",
    );
    compat(path, real, Rule::LdSoCache, 803).finds(
        "libcuda-compat",
        Severity::Error,
        &[
            "575.57.08",
            "CUDA 12.9",
            "loader cache",
            "803",
            "580.65.06",
            "/usr/lib/libcuda.so.1",
            "ldconfig",
        ],
    );
    compat(path, real, Rule::LdLibraryPath, 804).finds(
        "libcuda-compat",
        Severity::Error,
        &["804", "LD_LIBRARY_PATH"],
    );
    // It works: forward compatibility as it is meant.
    compat(path, real, Rule::LdLibraryPath, 0).notes("libcuda-compat");
    // An old copy under any name.
    compat(
        "/opt/old/libcuda.so.1",
        "/opt/old/libcuda.so.535.54.03",
        Rule::LdLibraryPath,
        803,
    )
    .finds("libcuda-compat", Severity::Error, &["535.54.03"]);
    assert!(
        compat(
            "/usr/lib/wsl/lib/libcuda.so.1",
            "/usr/lib/wsl/lib/libcuda.so.1",
            Rule::LdSoCache,
            0
        )
        .findings()
        .is_empty()
    );
}

#[test]
fn the_driver_is_not_found() {
    let run = |ends: i32, answered: bool| {
        let mut trace = Trace::python(&[]);
        trace.is("/usr/lib/wsl/lib/libcuda.so.1", "libcuda", "13.0");
        trace.load_failed(
            PYTHON,
            "libcuda.so",
            "libcuda.so: cannot open shared object file: No such file or directory",
            |f| {
                f.candidates = vec![candidate(
                    "/usr/lib/libcuda.so",
                    Rule::LdSoCache,
                    Outcome::Missing,
                )];
            },
        );
        if answered {
            trace.loaded(
                PYTHON,
                "/usr/lib/wsl/lib/libcuda.so.1",
                Rule::LdSoCache,
                "",
                |_| {},
            );
        }
        trace.says(
            PYTHON,
            "libcuda.so: cannot open shared object file: No such file or directory",
        );
        trace.exit(PYTHON, ends);
        trace
    };
    run(1, false).finds(
        "libcuda-not-found",
        Severity::Error,
        &["libcuda.so was asked for", "/usr/lib/wsl/lib/libcuda.so.1"],
    );
    run(0, false).silent();
    run(0, true).silent();
    // A CPU run that fails for another reason.
    let mut other = Trace::python(&[]);
    other.load_failed(
        PYTHON,
        "libcuda.so.1",
        "libcuda.so.1: cannot open shared object file",
        |_| {},
    );
    other.exit(PYTHON, 1);
    other.silent();
}

#[test]
fn a_driver_that_is_too_old() {
    let run = |ends: i32, driver: &str| {
        let mut trace = Trace::python(&[]);
        trace.is("/t/libcudart.so.13", "cudart", "13.0.96");
        trace.loaded(PYTHON, "/t/libcudart.so.13", Rule::Rpath, "", |_| {});
        trace.driver_says(driver);
        trace.call(PYTHON, "cudaGetDeviceCount", 35, |c| {
            c.object = Some("/t/libcudart.so.13".into())
        });
        trace.says(
            PYTHON,
            "RuntimeError: The NVIDIA driver on your system is too old (found version 12040).",
        );
        trace.exit(PYTHON, ends);
        trace
    };
    run(1, "12040").finds("driver-too-old", Severity::Error, &["12.4", "13.0", "580"]);
    run(0, "12040").finds(
        "driver-too-old",
        Severity::Warning,
        &["went on without a GPU"],
    );
    // 35 is also the answer when there is no driver.
    let mut none = Trace::python(&[]);
    none.is("/t/libcudart.so.13", "cudart", "13.0.96");
    none.loaded(PYTHON, "/t/libcudart.so.13", Rule::Rpath, "", |_| {});
    none.call(PYTHON, "cudaGetDeviceCount", 35, |_| {});
    none.exit(PYTHON, 1);
    none.silent();
}

#[test]
fn ptx_that_is_too_new_for_the_driver() {
    let ptx = |isa: &str| Image {
        kind: "ptx".into(),
        ptx_version: Some(isa.into()),
        target: Some("sm_80".into()),
        ..Image::default()
    };
    let mut bad = Trace::python(&[]);
    bad.toolkit("/opt/cuda-13.0", "13.0");
    bad.driver_says("13000");
    bad.image(222, ptx("9.2"));
    bad.finds(
        "ptx-too-new-for-driver",
        Severity::Error,
        &[
            "PTX 9.2",
            "9.0",
            "CUDA 13.0",
            "nvcc 13.2",
            "CUDA_HOME=/opt/cuda-13.0",
            "595",
        ],
    );
    let mut fine = Trace::python(&[]);
    fine.driver_says("13000");
    fine.image(0, ptx("9.0"));
    fine.silent();
    let mut said = Trace::python(&[]);
    said.says(
        PYTHON,
        "RuntimeError: CUDA error: the provided PTX was compiled with an unsupported toolchain.",
    );
    said.exit(PYTHON, 1);
    said.finds(
        "ptx-too-new-for-driver",
        Severity::Error,
        &["unsupported toolchain"],
    );
}

#[test]
fn no_code_for_this_gpu() {
    let cubin = |arch: &str| Image {
        kind: "cubin".into(),
        archs: vec![arch.into()],
        ..Image::default()
    };
    for (arch, words) in [("sm_90a", "suffix a"), ("sm_80", "sm_80")] {
        let mut bad = Trace::python(&[]);
        bad.capability(12, 1);
        bad.image(209, cubin(arch));
        bad.finds("no-kernel-image", Severity::Error, &[arch, "12.1", words]);
    }
    let mut fine = Trace::python(&[]);
    fine.capability(12, 0);
    fine.image(0, cubin("sm_120"));
    fine.silent();
    let mut said = Trace::python(&[]);
    said.capability(12, 1);
    said.is_with("/v/_C.so", "", "", |f| f.archs = vec!["sm_90a".into()]);
    said.loaded(PYTHON, "/v/_C.so", Rule::AbsolutePath, "", |_| {});
    said.says(
        PYTHON,
        "RuntimeError: CUDA error: no kernel image is available for execution on the device",
    );
    said.exit(PYTHON, 1);
    said.finds(
        "no-kernel-image",
        Severity::Error,
        &["/v/_C.so", "sm_90a", "12.1"],
    );
}

fn nvrtc(trace: &mut Trace, path: &str, number: &str) {
    trace.loaded(PYTHON, path, Rule::AbsolutePath, "", |_| {});
    trace.call(PYTHON, "nvrtcVersion", 0, |c| {
        c.object = Some(path.into());
        c.value = Some(number.into());
    });
}

#[test]
fn nvrtc_with_headers_of_another_release() {
    let run = |env: &[(&str, &str)], header: &str, version: &str, result: i64| {
        let mut trace = Trace::python(env);
        nvrtc(&mut trace, "/env/lib/libnvrtc.so.12", "12090");
        trace.is(header, "headers", version);
        let include = format!(
            "-I{}",
            header.rsplit_once('/').map(|(d, _)| d).unwrap_or_default()
        );
        trace.call(PYTHON, "nvrtcCompileProgram", result, |c| {
            c.object = Some("/env/lib/libnvrtc.so.12".into());
            c.args = vec!["-arch=sm_90".into(), include];
            c.log = (result != 0)
                .then(|| "cuda_fp8.h(12): error: incomplete type is not allowed".to_owned());
        });
        trace
    };
    let system = "/usr/local/cuda/include/cuda_runtime_api.h";
    run(&[("PATH", "/env/bin:/usr/bin")], system, "12.4", 6).finds(
        "nvrtc-headers-differ",
        Severity::Error,
        &[
            "NVRTC 12.9",
            "12.4",
            "CONDA_PREFIX is unset although /env/bin is on PATH",
            "incomplete type",
        ],
    );
    run(&[("CUDA_PATH", "/usr/local/cuda")], system, "12.4", 6).finds(
        "nvrtc-headers-differ",
        Severity::Error,
        &["CUDA_PATH=/usr/local/cuda"],
    );
    run(&[], system, "12.4", 0).silent();
    run(&[], system, "12.9", 6).silent();
}

#[test]
fn nvrtc_without_its_builtins() {
    let run = |later: bool| {
        let mut trace = Trace::python(&[]);
        nvrtc(&mut trace, "/w/libnvrtc.so.13", "13000");
        trace.is("/w/libnvrtc.so.13", "nvrtc", "13.0.88");
        trace.load_failed(
            PYTHON,
            "libnvrtc-builtins.so.13.0",
            "libnvrtc-builtins.so.13.0: cannot open shared object file",
            |f| {
                f.requested_by = Some("/w/libnvrtc.so.13".into());
                f.candidates = vec![candidate(
                    "/usr/lib/libnvrtc-builtins.so.13.0",
                    Rule::LdSoCache,
                    Outcome::Missing,
                )];
            },
        );
        if later {
            trace.loaded(
                PYTHON,
                "/w/libnvrtc-builtins.so.13.0",
                Rule::AbsolutePath,
                "",
                |_| {},
            );
        }
        trace.call(
            PYTHON,
            "nvrtcCompileProgram",
            if later { 0 } else { 7 },
            |_| {},
        );
        trace
    };
    run(false).finds(
        "nvrtc-builtins-not-found",
        Severity::Error,
        &[
            "libnvrtc-builtins.so.13.0",
            "/w/libnvrtc.so.13",
            "no RUNPATH",
            "/usr/lib",
        ],
    );
    run(true).silent();
}

#[test]
fn nvrtc_that_does_not_know_the_gpu() {
    let mut bad = Trace::python(&[]);
    nvrtc(&mut bad, "/w/libnvrtc.so.12", "12080");
    bad.call(PYTHON, "nvrtcCompileProgram", 5, |c| {
        c.object = Some("/w/libnvrtc.so.12".into());
        c.args = vec!["--gpu-architecture=sm_121".into()];
    });
    bad.finds(
        "arch-unsupported-by-nvrtc",
        Severity::Error,
        &["12.8", "sm_121", "12.9"],
    );
}

#[test]
fn nvjitlink_that_is_older_than_nvrtc() {
    let run = |result: i64| {
        let mut trace = Trace::python(&[]);
        nvrtc(&mut trace, "/w/libnvrtc.so.13", "13000");
        trace.call(PYTHON, "nvJitLinkVersion", 0, |c| {
            c.value = Some("12080".into())
        });
        trace.call(PYTHON, "__nvJitLinkAddData_12_8", result, |c| {
            c.object = Some("/w/libnvJitLink.so.12".into())
        });
        trace
    };
    run(4).finds(
        "nvjitlink-older-than-nvrtc",
        Severity::Error,
        &["12.8", "13.0", "/w/libnvJitLink.so.12"],
    );
    run(0).silent();
}

#[test]
fn cudnn_from_two_releases() {
    let run = |second: &str, version: &str, says: bool| {
        let mut trace = Trace::python(&[("LD_LIBRARY_PATH", "/usr/lib/cudnn")]);
        for (path, version) in [
            ("/v/cudnn/lib/libcudnn.so.9", "9.20.0"),
            ("/v/cudnn/lib/libcudnn_graph.so.9", "9.20.0"),
            (second, version),
        ] {
            trace.is(path, "cudnn", version);
            trace.loaded(
                PYTHON,
                path,
                if path == second {
                    Rule::LdLibraryPath
                } else {
                    Rule::Rpath
                },
                "/v/cudnn/lib/libcudnn_graph.so.9",
                |_| {},
            );
        }
        if says {
            trace.says(
                PYTHON,
                "RuntimeError: CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH",
            );
        }
        trace
    };
    let other = "/usr/lib/cudnn/libcudnn_engines_tensor_ir.so.9";
    run(other, "9.23.0", true).finds(
        "cudnn-mixed",
        Severity::Error,
        &[
            "9.20",
            "9.23",
            other,
            "LD_LIBRARY_PATH",
            "libcudnn_graph.so.9",
        ],
    );
    run(other, "9.23.0", false).notes("cudnn-mixed");
    assert!(
        run("/v/cudnn/lib/libcudnn_ops.so.9", "9.20.0", false)
            .findings()
            .is_empty()
    );
    assert!(
        run(other, "9.20.0", false)
            .findings()
            .iter()
            .all(|f| f.id != "cudnn-mixed")
    );
}

#[test]
fn a_component_that_went_on_without_a_part_of_itself() {
    let found = cusparse(Rule::LdLibraryPath, true).findings();
    let disabled = found.iter().find(|f| f.id == "component-disabled").unwrap();
    assert_eq!(disabled.severity, Severity::Note);
    assert_eq!(
        disabled.consequence_of.as_deref(),
        Some("library-shadowed-by-ld-library-path")
    );
}

#[test]
fn a_library_that_answers_otherwise_than_its_file() {
    let run = |number: &str| {
        let mut trace = Trace::python(&[]);
        trace.is("/t/libcudart.so.13", "cudart", "13.0.96");
        trace.call(PYTHON, "cudaRuntimeGetVersion", 0, |c| {
            c.object = Some("/t/libcudart.so.13".into());
            c.value = Some(number.into());
        });
        trace
    };
    run("12040").notes("version-disagreement");
    assert!(run("13000").findings().is_empty());
}

#[test]
fn a_library_that_was_found_and_could_not_be_taken() {
    let run = |error: &str, failed: bool| {
        let mut trace = Trace::python(&[("FLASHINFER_WORKSPACE_BASE", "/c")]);
        trace.cached("/c/flashinfer/k/k.so", |_| {});
        trace.mounted_noexec("/c/flashinfer");
        trace.load_failed(PYTHON, "/c/flashinfer/k/k.so", error, |_| {});
        trace.exit(PYTHON, i32::from(failed));
        trace
    };
    for (words, fact) in [
        ("failed to map segment from shared object", "mounted noexec"),
        ("file too short", "Delete /c/flashinfer/k"),
        ("invalid ELF header", "Delete /c/flashinfer/k"),
        ("wrong ELF class: ELFCLASS32", "another machine"),
        (
            "cannot enable executable stack as shared object requires: Invalid argument",
            "--clear-execstack",
        ),
        (
            "cannot allocate memory in static TLS block",
            "LD_PRELOAD=/c/flashinfer/k/k.so",
        ),
        (
            "cannot open shared object file: Permission denied",
            "Let this user read",
        ),
    ] {
        let found = run(&format!("/c/flashinfer/k/k.so: {words}"), true).findings();
        let first = found.first().expect(words);
        assert_eq!(first.id, "library-unusable", "{words}");
        assert_eq!(first.severity, Severity::Error, "{words}");
        let text = format!("{} {}", first.cause, first.remedy.join(" "));
        assert!(text.contains(fact), "{words}: {text}");
    }
    // A file that is simply not there is another matter.
    let absent = "/c/flashinfer/k/k.so: cannot open shared object file: No such file or directory";
    assert!(
        run(absent, true)
            .findings()
            .iter()
            .all(|f| f.id != "library-unusable")
    );
}

#[test]
fn a_search_that_ended_over_a_file_tells_so_without_the_loaders_words() {
    for (outcome, fact) in [
        (Outcome::Broken, "no ELF object"),
        (Outcome::WrongClass, "another machine"),
    ] {
        let mut trace = Trace::python(&[]);
        trace.load_failed(PYTHON, "libcuda.so.1", "dlopen returned no handle", |f| {
            f.candidates = vec![candidate("/i/libcuda.so.1", Rule::LdLibraryPath, outcome)];
        });
        trace.exit(PYTHON, 1);
        trace.finds(
            "library-unusable",
            Severity::Error,
            &["/i/libcuda.so.1", fact],
        );
    }
}

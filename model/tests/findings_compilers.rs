//! Findings about compilers and toolkits: each with the trace that proves it, and the healthy one beside it.

use jittrace_model::{event::FileOp, report::Severity};

mod findings;

use findings::{PYTHON, Trace};

const OLD: &str = "/opt/cuda-12.8";
const NEW: &str = "/opt/cuda-13.0";

/// FlashInfer asked the nvcc of a toolkit for its release.
fn flashinfer_asks(trace: &mut Trace, root: &str, version: &str) {
    let nvcc = format!("{root}/bin/nvcc");
    trace.is(&nvcc, "nvcc", version);
    trace.distribution("flashinfer-python", "0.6.8", None);
    trace.tool_asked_by(
        200,
        PYTHON,
        &nvcc,
        &["--version"],
        "/v/site-packages/flashinfer/jit/cpp_ext.py",
        Some("flashinfer-python"),
    );
    trace.exit(200, 0);
}

fn sm120(env: &[(&str, &str)], root: &str, version: &str) -> Trace {
    let mut trace = Trace::python(env);
    trace.torch("13.0");
    trace.toolkit(NEW, "13.0");
    trace.capability(12, 0);
    flashinfer_asks(&mut trace, root, version);
    trace
}

#[test]
fn nvcc_older_than_required() {
    let mut bad = sm120(&[("PATH", "/opt/cuda-12.8/bin:/usr/bin")], OLD, "12.8.93");
    bad.says(
        PYTHON,
        "Failed to get device capability: SM 12.x requires CUDA >= 12.9.",
    );
    bad.says(
        PYTHON,
        "RuntimeError: FlashInfer requires GPUs with sm75 or higher",
    );
    let found = bad.finds(
        "nvcc-older-than-required",
        Severity::Error,
        &[
            "12.8",
            "/opt/cuda-12.8/bin/nvcc",
            "PATH entry 1",
            "CUDA_HOME unset",
            "12.9",
            "13.0",
            "CUDA_HOME=/opt/cuda-13.0",
            "flashinfer/jit/cpp_ext.py",
        ],
    );
    assert_eq!(found.component.as_deref(), Some("flashinfer"));
    assert_eq!(found.consequences, ["arch-list-empty"]);
    // The same old nvcc, and nothing was refused.
    sm120(&[("PATH", "/opt/cuda-12.8/bin:/usr/bin")], OLD, "12.8.93").silent();
    // The sentence beside an nvcc that satisfies it, from another part of the program.
    let mut fine = sm120(&[("CUDA_HOME", NEW)], NEW, "13.0.88");
    fine.says(PYTHON, "this feature requires CUDA >= 12.9");
    fine.silent();
}

#[test]
fn advice_is_no_refusal() {
    let mut trace = sm120(&[("CUDA_HOME", OLD)], OLD, "12.8.93");
    trace.says(
        PYTHON,
        "For better performance, please use at least NVCC version should be 12.9+",
    );
    trace.silent();
}

#[test]
fn a_known_gate_explains_an_empty_list() {
    let mut bad = sm120(&[("CUDA_HOME", OLD)], OLD, "12.8.93");
    bad.says(PYTHON, "FlashInfer requires GPUs with sm75 or higher");
    let found = bad.finds(
        "nvcc-older-than-required",
        Severity::Error,
        &["CUDA_HOME=/opt/cuda-12.8"],
    );
    assert_eq!(found.confidence, jittrace_model::report::Confidence::Likely);
}

#[test]
fn the_complaint_is_true_without_a_gpu() {
    let mut trace = Trace::python(&[("CUDA_HOME", NEW)]);
    flashinfer_asks(&mut trace, NEW, "13.0.88");
    trace.says(PYTHON, "FlashInfer requires GPUs with sm75 or higher");
    trace.silent();
}

#[test]
fn arch_list_empty_by_its_path() {
    let mut bad = Trace::python(&[]);
    bad.says(PYTHON, "FlashInfer requires GPUs with sm75 or higher");
    bad.file(
        PYTHON,
        FileOp::Mkdir,
        "/home/u/.cache/flashinfer/0.6.8/cached_ops",
        0,
    );
    bad.finds(
        "arch-list-empty",
        Severity::Error,
        &["no architecture in it"],
    );
}

#[test]
fn nvcc_missing() {
    let mut bad = Trace::python(&[("CUDA_HOME", "/opt/gone"), ("PATH", "/usr/bin")]);
    bad.toolkit(NEW, "13.0");
    bad.exec_failed(PYTHON, "/opt/gone/bin/nvcc", 2);
    bad.exit(PYTHON, 1);
    bad.finds(
        "nvcc-missing",
        Severity::Error,
        &[
            "/opt/gone/bin/nvcc",
            "CUDA_HOME=/opt/gone",
            "CUDA_HOME=/opt/cuda-13.0",
        ],
    );
    let mut said = Trace::python(&[("PATH", "/usr/bin")]);
    said.says(PYTHON, "OSError: CUDA_HOME environment variable is not set. Please set it to your CUDA install root.");
    said.finds("nvcc-missing", Severity::Error, &["unset"]);
    // It falls back on torch's release and goes on.
    let mut fine = Trace::python(&[("CUDA_HOME", "/opt/gone")]);
    fine.exec_failed(PYTHON, "/opt/gone/bin/nvcc", 2);
    fine.exit(PYTHON, 0);
    fine.silent();
    let mut warned = Trace::python(&[]);
    warned.says(
        PYTHON,
        "No CUDA runtime is found, using CUDA_HOME='/usr/local/cuda'",
    );
    warned.silent();
}

#[test]
fn nvcc_differs_from_built_for() {
    let mixed = |fails: bool| {
        let mut trace = Trace::python(&[("CUDA_HOME", "/opt/cuda-12.4")]);
        trace.torch("13.0");
        trace.toolkit(NEW, "13.0");
        trace.is("/opt/cuda-12.4/bin/nvcc", "nvcc", "12.4.131");
        trace.tool(
            200,
            PYTHON,
            "/opt/cuda-12.4/bin/nvcc",
            &[
                "-gencode=arch=compute_90a,code=sm_90a",
                "-c",
                "page.cu",
                "-o",
                "/c/flashinfer/page/page.so",
            ],
            0,
        );
        trace.cached("/c/flashinfer/page/page.so", |c| {
            c.needed = vec!["libcudart.so.12".into()]
        });
        if fails {
            trace.load_failed(
                PYTHON,
                "/c/flashinfer/page/page.so",
                "libcudart.so.12: cannot open shared object file: No such file or directory",
                |f| {
                    f.missing = Some("libcudart.so.12".into());
                    f.missing_for = Some("/c/flashinfer/page/page.so".into());
                },
            );
            trace.says(PYTHON, "OSError: libcudart.so.12: cannot open shared object file: No such file or directory");
        }
        trace
    };
    let found = mixed(true).finds(
        "nvcc-differs-from-built-for",
        Severity::Error,
        &[
            "12.4",
            "13.0",
            "libcudart.so.12",
            "CUDA_HOME=/opt/cuda-13.0",
        ],
    );
    assert_eq!(found.consequences, ["cudart-not-found"]);
    mixed(false).notes("nvcc-differs-from-built-for");
    // Another minor is no fault.
    let mut minor = Trace::python(&[]);
    minor.torch("13.0");
    minor.is("/opt/cuda-13.2/bin/nvcc", "nvcc", "13.2.10");
    minor.tool(
        200,
        PYTHON,
        "/opt/cuda-13.2/bin/nvcc",
        &["-arch=sm_90a", "-c", "a.cu"],
        0,
    );
    assert!(minor.findings().is_empty());
}

#[test]
fn an_architecture_that_a_compiler_does_not_know() {
    for (version, arch, message, needs) in [
        (
            "12.4.131",
            "sm_120a",
            "nvcc fatal   : Unsupported gpu architecture 'compute_120a'",
            "12.8",
        ),
        (
            "12.8.93",
            "sm_120f",
            "nvcc fatal   : Unsupported gpu architecture 'compute_120f'",
            "12.9",
        ),
        (
            "12.8.93",
            "sm_103a",
            "nvcc fatal   : Unsupported gpu architecture 'compute_103a'",
            "12.9",
        ),
        (
            "12.9.86",
            "sm_110a",
            "nvcc fatal   : Unsupported gpu architecture 'compute_110a'",
            "13.0",
        ),
        (
            "13.0.88",
            "sm_107a",
            "nvcc fatal   : Unsupported gpu architecture 'compute_107a'",
            "13.4",
        ),
    ] {
        let flag = format!(
            "-gencode=arch=compute_{0},code={arch}",
            arch.trim_start_matches("sm_")
        );
        let run = |code: i32, says: bool| {
            let mut trace = Trace::python(&[("CUDA_HOME", "/opt/cuda")]);
            trace.toolkit("/opt/cuda-13.5", "13.5");
            trace.is("/opt/cuda/bin/nvcc", "nvcc", version);
            trace.tool_begins(200, PYTHON, "/opt/cuda/bin/nvcc", &[&flag, "-c", "k.cu"]);
            if says {
                trace.says(200, message);
            }
            trace.exit(200, code);
            trace
        };
        run(1, true).finds(
            "arch-unsupported-by-nvcc",
            Severity::Error,
            &[needs, "CUDA_HOME=/opt/cuda-13.5"],
        );
        run(1, false).finds("arch-unsupported-by-nvcc", Severity::Error, &[needs]);
        run(0, false).silent();
    }
}

#[test]
fn an_architecture_that_was_dropped() {
    let mut trace = Trace::python(&[]);
    trace.is("/opt/cuda/bin/nvcc", "nvcc", "13.0.88");
    trace.tool(
        200,
        PYTHON,
        "/opt/cuda/bin/nvcc",
        &["-gencode=arch=compute_70,code=sm_70", "-c", "k.cu"],
        1,
    );
    trace.finds(
        "arch-unsupported-by-nvcc",
        Severity::Error,
        &["dropped in 13.0"],
    );
}

#[test]
fn a_probe_that_tries_is_no_fault() {
    let mut trace = Trace::python(&[]);
    trace.is("/opt/cuda/bin/nvcc", "nvcc", "12.8.93");
    trace.tool(
        200,
        PYTHON,
        "/opt/cuda/bin/nvcc",
        &["-arch=sm_121a", "-c", "probe.cu"],
        1,
    );
    trace.tool(
        201,
        PYTHON,
        "/opt/cuda/bin/nvcc",
        &["-arch=sm_120a", "-c", "k.cu"],
        0,
    );
    trace.exit(PYTHON, 0);
    trace.silent();
}

const TRITON: &str = "/v/site-packages/triton/backends/nvidia/bin";

fn triton(tool: &str, version: &str, env: &[(&str, &str)], arch: &str, code: i32) -> Trace {
    let mut trace = Trace::python(env);
    let path = format!("{TRITON}/{tool}");
    trace.toolkit(NEW, "13.0");
    trace.is_with(&path, "ptxas", version, |f| {
        f.toolkit_kind = Some("bundled".into())
    });
    trace.tool_begins(
        200,
        PYTHON,
        &path,
        &[&format!("--gpu-name={arch}"), "k.ptx", "-o", "k.cubin"],
    );
    if code != 0 {
        trace.says(
            200,
            &format!("ptxas fatal   : Value '{arch}' is not defined for option 'gpu-name'"),
        );
    }
    trace.exit(200, code);
    trace
}

#[test]
fn tritons_own_ptxas_is_too_old() {
    let bad = triton(
        "ptxas",
        "12.8.93",
        &[("PATH", "/opt/cuda-13.0/bin")],
        "sm_121a",
        255,
    );
    let found = bad.finds(
        "arch-unsupported-by-ptxas",
        Severity::Error,
        &[
            "ptxas 12.8",
            "TRITON_PTXAS_PATH is unset",
            "TRITON_PTXAS_PATH=/opt/cuda-13.0/bin/ptxas",
        ],
    );
    assert_eq!(found.component.as_deref(), Some("triton"));
    // Newer GPUs have a second tool, and a second variable.
    triton("ptxas-blackwell", "12.8.93", &[], "sm_121a", 255).finds(
        "arch-unsupported-by-ptxas",
        Severity::Error,
        &[
            "TRITON_PTXAS_BLACKWELL_PATH is unset",
            "TRITON_PTXAS_BLACKWELL_PATH=/opt/cuda-13.0/bin/ptxas",
        ],
    );
    triton("ptxas-blackwell", "12.9.86", &[], "sm_120a", 0).silent();
}

#[test]
fn an_override_that_had_no_effect() {
    // It does not run, and nobody says so.
    let mut fallback = Trace::python(&[("TRITON_PTXAS_PATH", "/opt/gone/ptxas")]);
    fallback.exec_failed(PYTHON, "/opt/gone/ptxas", 2);
    fallback.is_with(&format!("{TRITON}/ptxas"), "ptxas", "12.8.93", |f| {
        f.toolkit_kind = Some("bundled".into())
    });
    fallback.tool(
        200,
        PYTHON,
        &format!("{TRITON}/ptxas"),
        &["--gpu-name=sm_90a", "k.ptx"],
        0,
    );
    fallback.finds(
        "ptxas-override-ignored",
        Severity::Warning,
        &["TRITON_PTXAS_PATH=/opt/gone/ptxas", "ENOENT"],
    );
    // Inductor sets the variable by itself; for this GPU another tool is used.
    triton(
        "ptxas-blackwell",
        "12.9.86",
        &[("TRITON_PTXAS_PATH", "/v/site-packages/torch/bin/ptxas")],
        "sm_120a",
        0,
    )
    .notes("ptxas-override-ignored");
    let honoured = triton(
        "ptxas",
        "12.8.93",
        &[(
            "TRITON_PTXAS_PATH",
            "/v/site-packages/triton/backends/nvidia/bin/ptxas",
        )],
        "sm_90a",
        0,
    );
    assert!(honoured.findings().is_empty());
}

fn ptx_too_new(rule_by_path: bool, wheel: bool) -> Trace {
    let path = if rule_by_path {
        "/opt/cuda-12.1/bin:/usr/bin"
    } else {
        "/usr/bin"
    };
    let mut trace = Trace::python(&[("PATH", path)]);
    trace.is("/opt/cuda-12.1/bin/ptxas", "ptxas", "12.1.105");
    if wheel {
        trace.is_with(
            "/v/site-packages/nvidia/cuda_nvcc/bin/ptxas",
            "ptxas",
            "12.6.85",
            |f| f.toolkit_kind = Some("wheel".into()),
        );
    }
    trace.tool_begins(
        200,
        PYTHON,
        "/opt/cuda-12.1/bin/ptxas",
        &["--gpu-name=sm_80", "k.ptx"],
    );
    trace.says(
        200,
        "ptxas k.ptx, line 1; fatal   : Unsupported .version 8.5; current version is '8.1'",
    );
    trace.exit(200, 255);
    trace
}

#[test]
fn ptxas_is_too_old_for_the_ptx() {
    let found = ptx_too_new(true, true).finds(
        "ptxas-shadowed",
        Severity::Error,
        &["12.1", "12.6", "8.5", "8.1", "/opt/cuda-12.1/bin"],
    );
    assert_eq!(found.consequences, ["ptxas-too-old-for-ptx"]);
    ptx_too_new(true, false).finds(
        "ptxas-too-old-for-ptx",
        Severity::Error,
        &["12.1", "8.5", "8.1"],
    );
    ptx_too_new(false, true).finds("ptxas-too-old-for-ptx", Severity::Error, &["12.6"]);
}

#[test]
fn a_root_that_is_no_directory() {
    for (value, meant) in [
        (":/opt/cuda-13.0", "Set CUDA_HOME=/opt/cuda-13.0"),
        (
            "/opt/cuda-13.0:/opt/cuda-12.8",
            "Set CUDA_HOME=/opt/cuda-13.0",
        ),
        ("\"/opt/cuda-13.0\"", "Set CUDA_HOME=/opt/cuda-13.0"),
        ("/opt/cuda-13.0/bin", "Set CUDA_HOME=/opt/cuda-13.0"),
        ("~/cuda", "CUDA_HOME"),
        ("/opt/cuda-13.0 ", "Set CUDA_HOME=/opt/cuda-13.0"),
    ] {
        let mut bad = Trace::python(&[("CUDA_HOME", value)]);
        bad.toolkit(NEW, "13.0");
        bad.exec_failed(PYTHON, &format!("{value}/bin/nvcc"), 2);
        bad.exit(PYTHON, 1);
        bad.finds(
            "toolkit-root-malformed",
            Severity::Error,
            &[meant, "ENOENT"],
        );
        // Never used, or used with success.
        let mut unused = Trace::python(&[("CUDA_HOME", value)]);
        unused.exit(PYTHON, 0);
        unused.silent();
    }
    let mut slash = Trace::python(&[("CUDA_HOME", "/opt/cuda-13.0/")]);
    slash.is("/opt/cuda-13.0/bin/nvcc", "nvcc", "13.0.88");
    slash.tool(
        200,
        PYTHON,
        "/opt/cuda-13.0/bin/nvcc",
        &["-arch=sm_90a", "-c", "a.cu"],
        0,
    );
    assert!(slash.findings().is_empty());
}

fn compile_with_headers(
    root: &str,
    header: &str,
    version: &str,
    env: &[(&str, &str)],
    says: Option<&str>,
    code: i32,
) -> Trace {
    let nvcc = format!("{root}/bin/nvcc");
    let mut trace = Trace::python(env);
    trace.is(&nvcc, "nvcc", "13.3.33");
    trace.is_with(header, "headers", version, |f| {
        f.version_from = Some("cudart-h".into())
    });
    trace.tool_begins(200, PYTHON, &nvcc, &["-arch=sm_90a", "-c", "a.cu"]);
    trace.tool_begins(201, 200, "/usr/lib/gcc/cc1plus", &["a.cu"]);
    trace.file(201, FileOp::Open, header, 0);
    if let Some(says) = says {
        trace.says(201, says);
    }
    trace.exit(201, code);
    trace.exit(200, code);
    trace
}

const INCOMPATIBLE: &str = "error: #error \"CUDA compiler and CUDA toolkit headers are incompatible, please check your include paths\"";

#[test]
fn compiler_and_headers_of_two_releases() {
    let root = "/v/site-packages/nvidia/cu13";
    let header = format!("{root}/include/cuda_runtime_api.h");
    compile_with_headers(root, &header, "13.0", &[], Some(INCOMPATIBLE), 1).finds(
        "toolkit-mixed-releases",
        Severity::Error,
        &["13.3", "13.0", root],
    );
    compile_with_headers(root, &header, "13.0", &[], None, 1).finds(
        "toolkit-mixed-releases",
        Severity::Warning,
        &["13.3"],
    );
    // nvcc itself does not mind.
    compile_with_headers(root, &header, "13.0", &[], None, 0).notes("toolkit-mixed-releases");
    assert!(
        compile_with_headers(root, &header, "13.3", &[], None, 0)
            .findings()
            .is_empty()
    );
}

#[test]
fn headers_of_another_toolkit() {
    let header = "/opt/cuda-12.4/include/cuda_runtime_api.h";
    for (variable, value) in [
        ("CPATH", "/opt/cuda-12.4/include"),
        ("NVCC_APPEND_FLAGS", "-I/opt/cuda-12.4/include"),
    ] {
        compile_with_headers(
            "/opt/cuda-13.3",
            header,
            "12.4",
            &[(variable, value)],
            Some(INCOMPATIBLE),
            1,
        )
        .finds(
            "headers-differ-from-nvcc",
            Severity::Error,
            &["13.3", "12.4", variable],
        );
    }
    compile_with_headers("/opt/cuda-13.3", header, "12.4", &[], None, 0)
        .notes("headers-differ-from-nvcc");
}

#[test]
fn a_toolkit_without_a_header() {
    let mut bad = Trace::python(&[("CUDA_HOME", NEW)]);
    bad.is("/opt/cuda-13.0/bin/nvcc", "nvcc", "13.0.88");
    bad.is(
        "/v/site-packages/nvidia/curand/lib/libcurand.so.10",
        "curand",
        "10.4",
    );
    bad.tool_begins(
        200,
        PYTHON,
        "/opt/cuda-13.0/bin/nvcc",
        &["-arch=sm_90a", "-c", "a.cu"],
    );
    bad.tool_begins(201, 200, "/usr/lib/gcc/cc1plus", &["a.cu"]);
    bad.file(
        201,
        FileOp::Open,
        "/opt/cuda-13.0/include/curand_kernel.h",
        2,
    );
    bad.says(
        201,
        "a.cu:2:10: fatal error: curand_kernel.h: No such file or directory",
    );
    bad.exit(201, 1);
    bad.exit(200, 1);
    bad.finds(
        "toolkit-incomplete",
        Severity::Error,
        &[
            "curand_kernel.h",
            "/opt/cuda-13.0/include",
            "libcurand.so.10",
            "libcurand-dev",
        ],
    );
    // A header that is not CUDA's is not our affair; one that is found in the next directory is none at all.
    let mut foreign = Trace::python(&[("CUDA_HOME", NEW)]);
    foreign.is("/opt/cuda-13.0/bin/nvcc", "nvcc", "13.0.88");
    foreign.tool_begins(200, PYTHON, "/opt/cuda-13.0/bin/nvcc", &["-c", "a.cu"]);
    foreign.says(
        200,
        "a.cu:1:10: fatal error: boost/version.hpp: No such file or directory",
    );
    foreign.exit(200, 1);
    foreign.silent();
    let mut next = Trace::python(&[("CUDA_HOME", NEW)]);
    next.tool_begins(200, PYTHON, "/usr/bin/c++", &["-c", "a.cc"]);
    next.file(200, FileOp::Open, "/usr/include/cuda.h", 2);
    next.file(200, FileOp::Open, "/opt/cuda-13.0/include/cuda.h", 0);
    next.exit(200, 0);
    next.silent();
}

#[test]
fn a_toolkit_that_the_linker_cannot_use() {
    let mut bad = Trace::python(&[("CUDA_HOME", "/v/site-packages/nvidia/cu13")]);
    bad.tool_begins(
        200,
        PYTHON,
        "/usr/bin/c++",
        &[
            "a.o",
            "-shared",
            "-L/v/site-packages/nvidia/cu13/lib64",
            "-lcudart",
            "-o",
            "a.so",
        ],
    );
    bad.says(
        200,
        "/usr/bin/ld: cannot find -lcudart: No such file or directory",
    );
    bad.exit(200, 1);
    bad.finds(
        "toolkit-incomplete",
        Severity::Error,
        &["libcudart.so", "/v/site-packages/nvidia/cu13/lib64"],
    );
}

#[test]
fn a_toolkit_without_cicc() {
    let mut bad = Trace::python(&[]);
    bad.tool_begins(
        200,
        PYTHON,
        "/opt/cuda/bin/nvcc",
        &["-arch=sm_90a", "-c", "a.cu"],
    );
    bad.tool_begins(201, 200, "/bin/sh", &["-c", "cicc a.cu"]);
    bad.says(201, "sh: 1: cicc: not found");
    bad.exit(201, 127);
    bad.exit(200, 127);
    bad.finds(
        "toolkit-incomplete",
        Severity::Error,
        &["cicc", "nvidia-nvvm"],
    );
}

#[test]
fn a_host_compiler_that_nvcc_refuses() {
    let run = |says: bool| {
        let mut trace = Trace::python(&[
            ("CUDA_HOME", "/opt/cuda-12.4"),
            ("NVCC_CCBIN", "/usr/bin/g++-14"),
        ]);
        trace.is("/opt/cuda-12.4/bin/nvcc", "nvcc", "12.4.131");
        trace.tool_begins(
            200,
            PYTHON,
            "/opt/cuda-12.4/bin/nvcc",
            &["-arch=sm_90a", "-c", "a.cu"],
        );
        trace.tool_begins(201, 200, "/usr/bin/g++-14", &["-E", "a.cu"]);
        if says {
            trace.says(201, "/opt/cuda-12.4/include/crt/host_config.h:143:2: error: #error -- unsupported GNU version! gcc versions later than 13 are not supported!");
        }
        trace.exit(201, i32::from(says));
        trace.exit(200, i32::from(says));
        trace
    };
    run(true).finds(
        "host-compiler-unsupported",
        Severity::Error,
        &["/usr/bin/g++-14", "NVCC_CCBIN=/usr/bin/g++-14", "13"],
    );
    run(false).silent();
}

#[test]
fn a_build_tool_that_is_not_on_path() {
    let mut bad = Trace::default();
    bad.process(
        PYTHON,
        1,
        "/usr/bin/python3.12",
        &["/v/bin/python", "/w/app.py"],
        &[("PATH", "/usr/bin:/bin")],
    );
    for directory in ["/usr/bin", "/bin"] {
        bad.exec_failed(PYTHON, &format!("{directory}/ninja"), 2);
    }
    bad.is("/v/bin/ninja", "ninja", "");
    bad.exit(PYTHON, 1);
    bad.finds(
        "build-tool-missing",
        Severity::Error,
        &[
            "ninja",
            "/usr/bin, /bin",
            "/v/bin/ninja",
            "beside the running python",
        ],
    );
    // One directory fails, the next has it.
    let mut fine = Trace::python(&[("PATH", "/usr/bin:/v/bin")]);
    fine.exec_failed(PYTHON, "/usr/bin/ninja", 2);
    fine.tool(200, PYTHON, "/v/bin/ninja", &["-v"], 0);
    fine.exit(PYTHON, 0);
    fine.silent();
    // gcc is not there, clang is.
    let mut other = Trace::python(&[("PATH", "/usr/bin")]);
    other.exec_failed(PYTHON, "/usr/bin/gcc", 2);
    other.tool(200, PYTHON, "/usr/bin/clang", &["-c", "a.c"], 0);
    other.exit(PYTHON, 1);
    other.silent();
}

#[test]
fn a_build_tool_that_a_shell_did_not_find() {
    let mut bad = Trace::python(&[("PATH", "/usr/bin")]);
    bad.tool_begins(
        200,
        PYTHON,
        "/bin/sh",
        &["-c", "cuobjdump -symbols k.cubin"],
    );
    bad.says(200, "sh: 1: cuobjdump: not found");
    bad.exit(200, 127);
    bad.exit(PYTHON, 1);
    bad.finds(
        "build-tool-missing",
        Severity::Error,
        &["cuobjdump", "/usr/bin"],
    );
}

#[test]
fn one_nvcc_is_asked_and_another_compiles() {
    let run = |code: i32| {
        let mut trace = Trace::python(&[
            ("CUDA_HOME", NEW),
            ("FLASHINFER_NVCC", "/opt/cuda-12.4/bin/nvcc"),
        ]);
        flashinfer_asks(&mut trace, NEW, "13.0.88");
        trace.is("/opt/cuda-12.4/bin/nvcc", "nvcc", "12.4.131");
        trace.tool_asked_by(
            300,
            PYTHON,
            "/opt/cuda-12.4/bin/nvcc",
            &["-static-global-template-stub=false", "-c", "a.cu"],
            "/v/site-packages/flashinfer/jit/core.py",
            Some("flashinfer-python"),
        );
        if code != 0 {
            trace.says(
                300,
                "nvcc fatal   : Unknown option '-static-global-template-stub=false'",
            );
        }
        trace.exit(300, code);
        trace
    };
    run(1).finds(
        "version-disagreement",
        Severity::Error,
        &["13.0", "12.4", "FLASHINFER_NVCC"],
    );
    run(0).notes("version-disagreement");
}

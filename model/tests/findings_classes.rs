//! The classes of mismatch (resolution.md 3): for each the evidence that a trace has of it, and the verdict.

use jittrace_model::{
    event::{FileOp, Image, Outcome, Rule},
    report::Severity,
};

mod findings;

use findings::{PYTHON, Trace, candidate};

/// A class: its number, what people paste, the trace, the kind that must come first.
struct Class {
    number: u32,
    trace: fn() -> Trace,
    verdict: &'static str,
    severity: Severity,
    facts: &'static [&'static str],
}

const fn class(
    number: u32,
    verdict: &'static str,
    facts: &'static [&'static str],
    trace: fn() -> Trace,
) -> Class {
    Class {
        number,
        trace,
        verdict,
        severity: Severity::Error,
        facts,
    }
}

fn asked_nvcc(trace: &mut Trace, path: &str, version: &str) {
    trace.is(path, "nvcc", version);
    trace.tool(200, PYTHON, path, &["--version"], 0);
}

fn failed_compile(path: &str, part: &str, version: &str, arguments: &[&str], says: &str) -> Trace {
    let mut trace = Trace::python(&[("CUDA_HOME", "/opt/cuda")]);
    trace.toolkit("/opt/cuda-13.5", "13.5");
    trace.is(path, part, version);
    trace.tool_begins(200, PYTHON, path, arguments);
    trace.says(200, says);
    trace.exit(200, 1);
    trace
}

#[rustfmt::skip]
const CLASSES: &[Class] = &[
    class(1, "nvcc-older-than-required", &["12.8", "13.0"], || {
        let mut trace = Trace::python(&[("CUDA_HOME", "/opt/cuda")]);
        trace.torch("13.0");
        trace.capability(12, 0);
        asked_nvcc(&mut trace, "/opt/cuda/bin/nvcc", "12.8.93");
        trace.says(PYTHON, "Failed to get device capability: SM 12.x requires CUDA >= 12.9.");
        trace.says(PYTHON, "No supported CUDA architectures found for major versions [12]");
        trace.file(PYTHON, FileOp::Mkdir, "/h/.cache/flashinfer/0.6.8/cached_ops", 0);
        trace
    }),
    class(2, "library-shadowed-by-ld-library-path", &["__nvJitLinkComplete_12_4", "RUNPATH"], || {
        let mut trace = Trace::python(&[]);
        trace.loaded(PYTHON, "/opt/cuda-12.1/lib64/libnvJitLink.so.12", Rule::LdLibraryPath, "/v/libcusparse.so.12", |l| {
            l.candidates = vec![candidate("/v/libnvJitLink.so.12", Rule::Runpath, Outcome::NotTried)];
        });
        trace.load_failed(PYTHON, "/v/torch/_C.so", "/v/libcusparse.so.12: undefined symbol: __nvJitLinkComplete_12_4, version libnvJitLink.so.12", |_| {});
        trace.exit(PYTHON, 1);
        trace
    }),
    class(3, "cudart-not-found", &["libcudart.so.12"], || {
        let mut trace = Trace::python(&[]);
        trace.load_failed(PYTHON, "/v/flash_attn/_C.so", "libcudart.so.12: cannot open shared object file: No such file or directory", |f| {
            f.missing = Some("libcudart.so.12".into());
            f.missing_for = Some("/v/flash_attn/_C.so".into());
        });
        trace.exit(PYTHON, 1);
        trace
    }),
    class(4, "cudart-two-majors", &["400", "libcudart.so.12", "libcudart.so.13"], || {
        let mut trace = Trace::python(&[]);
        trace.loaded(PYTHON, "/a/libcudart.so.12", Rule::LdSoCache, "", |_| {});
        trace.loaded(PYTHON, "/b/libcudart.so.13", Rule::Rpath, "", |_| {});
        trace.call(PYTHON, "cudaEventRecord", 400, |_| {});
        trace
    }),
    class(5, "arch-unsupported-by-nvcc", &["12.6", "compute_120", "12.8"], || failed_compile("/opt/cuda/bin/nvcc", "nvcc", "12.6.85", &["-gencode=arch=compute_120,code=sm_120", "-c", "a.cu"], "nvcc fatal   : Unsupported gpu architecture 'compute_120'")),
    class(6, "arch-unsupported-by-ptxas", &["12.8", "sm_120f", "12.9"], || failed_compile("/opt/cuda/bin/ptxas", "ptxas", "12.8.93", &["--gpu-name=sm_120f", "a.ptx"], "ptxas fatal   : Value 'sm_120f' is not defined for option 'gpu-name'")),
    class(7, "ptxas-too-old-for-ptx", &["8.7", "8.4"], || failed_compile("/opt/cuda/bin/ptxas", "ptxas", "12.4.131", &["--gpu-name=sm_90", "a.ptx"], "ptxas a.ptx, line 1; fatal   : Unsupported .version 8.7; current version is '8.4'")),
    class(8, "ptx-too-new-for-driver", &["PTX 9.2", "9.0"], || {
        let mut trace = Trace::python(&[]);
        trace.driver_says("13000");
        trace.image(222, Image { kind: "ptx".into(), ptx_version: Some("9.2".into()), ..Image::default() });
        trace
    }),
    class(9, "no-kernel-image", &["sm_90a", "12.0"], || {
        let mut trace = Trace::python(&[]);
        trace.capability(12, 0);
        trace.image(209, Image { kind: "cubin".into(), archs: vec!["sm_90a".into()], ..Image::default() });
        trace
    }),
    class(10, "no-kernel-image", &["invalid device function", "12.0", "/v/torchvision/_C.so has code for sm_80, sm_90 only"], || {
        let mut trace = Trace::python(&[]);
        trace.capability(12, 0);
        trace.is_with("/v/torchvision/_C.so", "", "", |f| f.archs = vec!["sm_80".into(), "sm_90".into()]);
        trace.loaded(PYTHON, "/v/torchvision/_C.so", Rule::AbsolutePath, "", |_| {});
        trace.says(PYTHON, "RuntimeError: CUDA error: invalid device function");
        trace.exit(PYTHON, 1);
        trace
    }),
    class(11, "cache-corrupt", &["/h/.triton/cache/K/k.cubin (17 bytes)", "200", "Delete /h/.triton/cache/K"], || {
        let mut trace = Trace::python(&[]);
        trace.capability(12, 0);
        trace.cached("/h/.triton/cache/K/k.cubin", |c| { c.owner = "triton".into(); c.size = Some(17); });
        trace.file(PYTHON, FileOp::Open, "/h/.triton/cache/K/k.cubin", 0);
        trace.image(200, Image { kind: "cubin".into(), ..Image::default() });
        trace.says(PYTHON, "RuntimeError: Triton Error [CUDA]: device kernel image is invalid");
        trace.exit(PYTHON, 1);
        trace
    }),
    class(12, "nvrtc-builtins-not-found", &["libnvrtc-builtins.so.13.0"], || {
        let mut trace = Trace::python(&[]);
        trace.says(PYTHON, "nvrtc: error: failed to open libnvrtc-builtins.so.13.0.");
        trace
    }),
    class(13, "libcuda-compat", &["804", "compat"], || {
        let mut trace = Trace::python(&[]);
        trace.loaded(PYTHON, "/usr/local/cuda/compat/libcuda.so.1", Rule::LdLibraryPath, "", |_| {});
        trace.says(PYTHON, "CUDA error 804: forward compatibility was attempted on non supported HW");
        trace
    }),
    class(14, "libcuda-stub", &["/stubs/", "34"], || {
        let mut trace = Trace::python(&[]);
        trace.loaded(PYTHON, "/opt/cuda/lib64/stubs/libcuda.so.1", Rule::LdLibraryPath, "", |_| {});
        trace.call(PYTHON, "cuInit", 34, |c| c.object = Some("/opt/cuda/lib64/stubs/libcuda.so.1".into()));
        trace
    }),
    class(15, "cudnn-mixed", &["9.1", "9.5"], || {
        let mut trace = Trace::python(&[]);
        for (path, version) in [("/v/libcudnn.so.9", "9.1.0"), ("/v/libcudnn_ops.so.9", "9.1.0"), ("/usr/lib/libcudnn_cnn.so.9", "9.5.1")] {
            trace.is(path, "cudnn", version);
            trace.loaded(PYTHON, path, Rule::LdSoCache, "", |_| {});
        }
        trace.says(PYTHON, "cuDNN error: CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH");
        trace
    }),
    class(16, "headers-differ-from-nvcc", &["13.3", "12.4", "CPATH"], || {
        let mut trace = Trace::python(&[("CPATH", "/opt/cuda-12.4/include")]);
        trace.is("/opt/cuda/bin/nvcc", "nvcc", "13.3.33");
        trace.is("/opt/cuda-12.4/include/cuda_runtime_api.h", "headers", "12.4");
        trace.tool_begins(200, PYTHON, "/opt/cuda/bin/nvcc", &["-c", "a.cu"]);
        trace.tool_begins(201, 200, "/usr/lib/gcc/cc1plus", &["a.cu"]);
        trace.file(201, FileOp::Open, "/opt/cuda-12.4/include/cuda_runtime_api.h", 0);
        trace.says(201, "error: \"CUDA compiler and CUDA toolkit headers are incompatible, please check your include paths\"");
        trace.exit(201, 1);
        trace.exit(200, 1);
        trace
    }),
    class(17, "cudart-stub-chosen", &["libcudart_stub.so", "cudaDeviceReset"], || {
        let mut trace = Trace::python(&[]);
        trace.file(PYTHON, FileOp::Open, "/proc/self/maps", 0);
        trace.says(PYTHON, "AttributeError: /v/tilelang/lib/libcudart_stub.so: undefined symbol: cudaDeviceReset");
        trace
    }),
    class(18, "nvcc-differs-from-built-for", &["12.8", "13.0", "mismatches"], || {
        let mut trace = Trace::python(&[("CUDA_HOME", "/opt/cuda")]);
        trace.torch("13.0");
        asked_nvcc(&mut trace, "/opt/cuda/bin/nvcc", "12.8.93");
        trace.says(PYTHON, "RuntimeError: The detected CUDA version (12.8) mismatches the version that was used to compile PyTorch (13.0)");
        trace
    }),
    class(19, "toolkit-incomplete", &["libcudart.so", "lib64"], || {
        let mut trace = Trace::python(&[]);
        trace.tool_begins(200, PYTHON, "/usr/bin/c++", &["a.o", "-shared", "-L/v/nvidia/cu13/lib64", "-lcudart"]);
        trace.says(200, "/usr/bin/ld: cannot find -lcudart");
        trace.exit(200, 1);
        trace
    }),
    Class { number: 20, verdict: "ptxas-override-ignored", severity: Severity::Warning, facts: &["TRITON_PTXAS_PATH=/gone/ptxas"], trace: || {
        let mut trace = Trace::python(&[("TRITON_PTXAS_PATH", "/gone/ptxas")]);
        trace.exec_failed(PYTHON, "/gone/ptxas", 13);
        trace.tool(200, PYTHON, "/v/site-packages/triton/backends/nvidia/bin/ptxas", &["--gpu-name=sm_90a", "a.ptx"], 0);
        trace
    } },
    class(21, "cache-stale-build-file", &["/opt/cuda-12.4/bin/nvcc", "CUDA_HOME=/opt/cuda-13.0"], || {
        let mut trace = Trace::python(&[("CUDA_HOME", "/opt/cuda-13.0")]);
        trace.is("/opt/cuda-12.4/bin/nvcc", "nvcc", "12.4.131");
        trace.cached("/c/flashinfer/page/page.so", |c| c.cuda_home = Some("/opt/cuda-12.4".into()));
        trace.tool_begins(200, PYTHON, "/usr/bin/ninja", &["-C", "/c/flashinfer/page", "-f", "/c/flashinfer/page/build.ninja"]);
        trace.tool(201, 200, "/opt/cuda-12.4/bin/nvcc", &["-gencode=arch=compute_120f,code=sm_120f", "-c", "a.cu"], 1);
        trace.exit(200, 1);
        trace
    }),
];

#[test]
fn every_class_has_its_verdict() {
    for class in CLASSES {
        let trace = (class.trace)();
        let first = trace.findings().into_iter().next();
        assert_eq!(
            first.as_ref().map(|f| f.id.as_str()),
            Some(class.verdict),
            "class {}: {first:#?}",
            class.number
        );
        trace.finds(class.verdict, class.severity, class.facts);
    }
}

#[test]
fn no_class_is_forgotten() {
    let mut numbers: Vec<u32> = CLASSES.iter().map(|c| c.number).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=21).collect::<Vec<_>>());
}

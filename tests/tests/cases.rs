//! Public reports, played again: each case's script is run with its traced program starts under jittrace, and the first
//! finding of a bad run must name the cause with its facts, while a good run has neither an error nor a warning.
//!
//! The scripts are in `cases/`; they need `sh`, `python3` and `cc`, no GPU and no network. `$RUN` in a script starts one
//! traced program.
//!
//! `d…` are the cases, `s…` what lies next to them: kinds that other trackers report, and healthy runs that look odd.

use std::{fs, path::Path, process::Command};

use jittrace_model::report::{Finding, Report, Severity};
use jittrace_tests::{case, jittrace, trace::kernel_source};

/// What is expected of one traced program start.
enum Expect {
    /// Neither an error nor a warning.
    Silent,
    /// The first finding is one of `primary`; its words hold all of `facts`; `consequences` are attached to it.
    Finds {
        primary: &'static [&'static str],
        consequences: &'static [&'static str],
        facts: &'static [&'static str],
    },
}

const fn finds(primary: &'static [&'static str], facts: &'static [&'static str]) -> Expect {
    Expect::Finds {
        primary,
        consequences: &[],
        facts,
    }
}

struct Case {
    script: &'static str,
    /// Number of the traced start, counted from 1, and what is expected of it.
    runs: &'static [(usize, Expect)],
}

use Expect::Silent;

#[rustfmt::skip]
const CASES: &[Case] = &[
    Case { script: "d01", runs: &[
        (1, Expect::Finds {
            primary: &["nvcc-older-than-required"],
            consequences: &["arch-list-empty"],
            facts: &["12.8", "cuda-12.8/bin/nvcc", "PATH entry", "CUDA_HOME unset", "SM 12.x requires CUDA >= 12.9", "compute capability is 12.0", "built for CUDA 13.0", "CUDA_HOME=$W/cuda-13.0"],
        }),
        (2, Silent),
    ] },
    Case { script: "d02", runs: &[
        (1, finds(&["toolkit-root-malformed"], &["CUDA_HOME", "\":$W/cuda-12.8\"", ":$W/cuda-12.8/bin/nvcc", "ENOENT", "127", "Set CUDA_HOME=$W/cuda-12.8"])),
        (2, Silent),
    ] },
    Case { script: "d03", runs: &[
        (1, finds(&["toolkit-mixed-releases", "headers-differ-from-nvcc"], &["13.3", "13.0", "$W/site-packages/nvidia/cu13", "nvidia-cuda-nvcc 13.3.33", "nvidia-cuda-runtime 13.0.96"])),
        (2, Silent),
    ] },
    Case { script: "d04", runs: &[
        (1, finds(&["arch-unsupported-by-ptxas"], &["ptxas 12.8", "site-packages/triton/backends/nvidia/bin/ptxas", "sm_121a", "TRITON_PTXAS_PATH is unset", "TRITON_PTXAS_PATH=$W/cuda-13.0/bin/ptxas", "13.0"])),
        (2, Silent),
    ] },
    Case { script: "d05", runs: &[
        (1, finds(&["ptxas-shadowed", "ptxas-too-old-for-ptx"], &["ptxas 12.1", "$W/cuda-12.1/bin/ptxas", "PATH", "8.5", "8.1", "12.6", "site-packages/nvidia/cuda_nvcc/bin/ptxas"])),
        (2, Silent),
    ] },
    Case { script: "d06", runs: &[
        (1, Expect::Finds {
            primary: &["library-shadowed-by-ld-library-path"],
            consequences: &["nvjitlink-older-than-consumer"],
            facts: &["$W/cuda-12.1/lib64/libnvJitLink.so.12", "LD_LIBRARY_PATH", "libcusparse.so.12", "RUNPATH", "nvjitlink/lib/libnvJitLink.so.12", "__nvJitLinkComplete_12_9"],
        }),
        (2, Silent),
    ] },
    Case { script: "d07", runs: &[
        (1, finds(&["libcuda-not-found"], &["libcuda.so", "$W/cache/libcuda.so.1"])),
        (2, Silent),
        (3, Silent),
    ] },
    Case { script: "d08", runs: &[
        (1, finds(&["libcuda-stub"], &["cuda/lib64/stubs/libcuda.so", "app.py", "LD_LIBRARY_PATH", "34", "later request for libcuda.so.1", "drv/libcuda.so.1"])),
        (2, Silent),
    ] },
    Case { script: "d09", runs: &[
        (1, finds(&["cudart-two-majors"], &["wheel/libcudart.so.12", "cuda-13/lib64/libcudart.so.13", "LD_LIBRARY_PATH", "needed by nobody", "12.8", "13.0"])),
        (2, Silent),
    ] },
    Case { script: "d10", runs: &[
        (1, finds(&["cudart-not-found"], &["libcudart.so.13", "pkg/_C.abi3.so", "nvidia/cuda_runtime/lib", "libcudart.so.12", "12.9"])),
    ] },
    Case { script: "d11", runs: &[
        (1, finds(&["nvrtc-headers-differ"], &["NVRTC 12.9", "env/lib/libnvrtc.so.12", "12.4", "usr-local-cuda/include", "CONDA_PREFIX is unset"])),
        (2, Silent),
    ] },
    Case { script: "d12", runs: &[
        (1, finds(&["toolkit-incomplete"], &["nvcc 12.9 works", "curand_kernel.h", "$W/cuda/include", "libcurand"])),
        (2, Silent),
    ] },
    Case { script: "d13", runs: &[
        (1, finds(&["ptx-too-new-for-driver"], &["222", "PTX 9.2", "CUDA 13.0", "9.0"])),
    ] },
    Case { script: "d14", runs: &[
        (1, finds(&["libcuda-compat"], &["compat/libcuda.so.1", "575.57.08", "LD_LIBRARY_PATH", "803", "host/libcuda.so.1", "580.65.06"])),
        (2, Silent),
        (3, finds(&["libcuda-compat"], &["804", "575.57.08"])),
    ] },
    Case { script: "d15", runs: &[
        (1, Silent),
        (2, finds(&["cache-rebuilt-without-change"], &["$W/cuda-13.2 before", "$W/cuda now", "same directory", "3 runs of nvcc", "ms"])),
        (3, Silent),
    ] },
    Case { script: "d16", runs: &[
        (1, Silent),
        (2, finds(&["cache-stale-toolkit"], &["cache/0.6.9/90a/sampling/sampling.so", "13.0", "CUDA_HOME=$W/cuda-13.2", "no compiler ran", "Delete $W/cache/0.6.9/90a/sampling"])),
    ] },
    Case { script: "d17", runs: &[
        (1, finds(&["build-tool-missing"], &["ninja", "/usr/bin, /bin", "$W/venv/bin/ninja", "beside the running python"])),
        (2, Silent),
    ] },
    Case { script: "d18", runs: &[
        (1, finds(&["duplicate-jit-builds", "cache-contended"], &["abc123", "8 times", "8 processes", "2 processes then failed to open"])),
    ] },
];

/// The kinds next to the reports, as their siblings describe them.
#[rustfmt::skip]
const SIBLINGS: &[Case] = &[
    Case { script: "s01-nvrtc-builtins", runs: &[
        (1, finds(&["nvrtc-builtins-not-found"], &["libnvrtc-builtins.so.13.0", "w/nvrtc/lib/libnvrtc.so.13", "Put $W/w/nvrtc/lib on LD_LIBRARY_PATH"])),
        (2, Silent),
    ] },
    Case { script: "s02-cudnn-mixed", runs: &[
        (1, finds(&["cudnn-mixed"], &["9.20", "9.23", "system/libcudnn_ops.so.9", "LD_LIBRARY_PATH"])),
        (2, Silent),
    ] },
    Case { script: "s03-host-compiler", runs: &[
        (1, finds(&["host-compiler-unsupported"], &["nvcc 12.4", "$W/new/g++-14", "NVCC_CCBIN", "13"])),
        (2, Silent),
    ] },
    Case { script: "s04-lock-stale", runs: &[
        (1, finds(&["build-lock-stale"], &[".cache/torch_extensions/py312_cu130/ext/lock", "EEXIST", "left it behind"])),
        (2, Silent),
    ] },
    Case { script: "s05-cache-unwritable", runs: &[
        (1, finds(&["cache-unwritable"], &["$W/bad/.triton", "ENOTDIR"])),
        (2, Silent),
    ] },
    Case { script: "s06-no-nvcc", runs: &[
        (1, finds(&["nvcc-missing"], &["CUDA_HOME and CUDA_PATH are unset"])),
        (2, finds(&["nvcc-missing"], &["CUDA_HOME=$W/nowhere", "CUDA_HOME=$W/cuda-13.0"])),
        (3, Silent),
    ] },
    Case { script: "s07-headers-by-cpath", runs: &[
        (1, finds(&["headers-differ-from-nvcc"], &["13.0", "12.4", "CPATH=$W/cuda-12.4/include"])),
        (2, Silent),
    ] },
    Case { script: "s08-stale-build-file", runs: &[
        (1, Expect::Finds {
            primary: &["cache-stale-build-file"],
            consequences: &["arch-unsupported-by-nvcc"],
            facts: &["cached_ops/page/build.ninja", "$W/cuda-12.8/bin/nvcc", "CUDA_HOME=$W/cuda-13.0"],
        }),
        (2, Silent),
    ] },
    Case { script: "s09-cache-foreign-major", runs: &[
        (1, finds(&["cache-foreign-major"], &["cached_ops/norm/norm.so", "libcudart.so.13", "earlier run"])),
        (2, Silent),
    ] },
    Case { script: "s10-cuobjdump-missing", runs: &[
        (1, finds(&["build-tool-missing"], &["$W/cuda-13.0/bin/cuobjdump"])),
        (2, Silent),
    ] },
    Case { script: "s11-override-falls-back", runs: &[
        (1, Expect::Finds {
            primary: &["ptxas-override-ignored"],
            consequences: &["arch-unsupported-by-ptxas"],
            facts: &["TRITON_PTXAS_PATH=$W/cuda-13.1/bin/ptxas", "ENOENT", "12.8", "TRITON_PTXAS_PATH=$W/cuda-13.0/bin/ptxas"],
        }),
        (2, Silent),
    ] },
    Case { script: "s12-older-cudart", runs: &[
        (1, finds(&["library-shadowed-by-ld-library-path"], &["$W/old/libcudart.so.12", "cudaGetDriverEntryPointByVersion", "RUNPATH", "new/libcudart.so.12"])),
        (2, Silent),
    ] },
    Case { script: "s13-driver-too-old", runs: &[
        (1, finds(&["driver-too-old"], &["12.4", "13.0", "580"])),
        (2, Silent),
        (3, finds(&["driver-too-old"], &["12.4", "13.0", "answered 35", "went on without a GPU", "drv/libcuda.so.1"])),
        (4, Silent),
        (5, Silent),
        (6, Silent),
    ] },
    Case { script: "s14-jitlink-older-than-nvrtc", runs: &[
        (1, finds(&["nvjitlink-older-than-nvrtc"], &["12.8", "13.0", "libnvJitLink.so.12"])),
        (2, Silent),
    ] },
    Case { script: "s15-stub-by-link-order", runs: &[
        (1, finds(&["libcuda-stub"], &["cuda/lib64/stubs/libcuda.so.1", "RUNPATH", "34"])),
        (2, Silent),
    ] },
    Case { script: "s16-cleared-environment", runs: &[
        (1, finds(&["child-not-followed"], &["nvcc", "cleared"])),
        (2, Silent),
    ] },
];

/// Kinds that people report to the trackers of the frameworks, in the words that these print.
#[rustfmt::skip]
const TRACKERS: &[Case] = &[
    Case { script: "s17-extension-for-another-major", runs: &[
        (1, finds(&["nvcc-differs-from-built-for"], &["12.8", "$W/usr/local/cuda-12.8/bin/nvcc", "PATH entry", "13.0", "detected CUDA version (12.8) mismatches", "CUDA_HOME=$W/usr/local/cuda-13.0"])),
        (2, Silent),
    ] },
    Case { script: "s18-no-code-for-this-gpu", runs: &[
        (1, finds(&["no-kernel-image"], &["said \"CUDA error: no kernel image", "sm_120 is not compatible", "sm_80 sm_86 sm_90", "12.0"])),
        (2, Silent),
    ] },
    Case { script: "s19-nvrtc-older-than-gpu", runs: &[
        (1, finds(&["arch-unsupported-by-nvrtc"], &["NVRTC 12.4", "$W/old/libnvrtc.so.12", "sm_120", "$W/new/libnvrtc.so.12"])),
        (2, Silent),
    ] },
    Case { script: "s20-cudnn-older-than-compiled", runs: &[
        (1, Expect::Finds {
            primary: &["library-shadowed-by-ld-library-path"],
            consequences: &["cudnn-mixed"],
            facts: &["$W/opt/cudnn/lib/libcudnn.so.9", "9.10.1", "9.13.1", "RUNPATH", "nvidia/cudnn/lib/libcudnn.so.9", "source was compiled with: 9.13.1"],
        }),
        (2, Silent),
    ] },
    Case { script: "s21-nccl-lacks-a-symbol", runs: &[
        (1, finds(&["library-shadowed-by-ld-library-path"], &["$W/opt/hpc/nccl/lib/libnccl.so.2", "ncclCommWindowRegister", "libtorch_cuda.so", "RUNPATH", "nvidia/nccl/lib/libnccl.so.2"])),
        (2, Silent),
    ] },
    Case { script: "s22-toolkit-without-cicc", runs: &[
        (1, Expect::Finds {
            primary: &["toolkit-incomplete"],
            consequences: &["build-tool-missing"],
            facts: &["cicc", "$W/site-packages/nvidia/cu13", "nvcc 13.0", "127", "nvidia-nvvm"],
        }),
        (2, Silent),
    ] },
    Case { script: "s23-wheel-tree-without-lib64", runs: &[
        (1, finds(&["toolkit-incomplete"], &["libcudart.so", "$W/site-packages/nvidia/cu13", "lib64", "cannot find -lcudart"])),
        (2, Silent),
    ] },
    Case { script: "s24-ptxas-of-another-toolkit", runs: &[
        (1, finds(&["ptxas-too-old-for-ptx", "ptxas-shadowed", "toolkit-mixed-releases"], &["12.4", "$W/cuda-12.4/bin/ptxas", "9.0", "8.4", "13.0"])),
        (2, Silent),
    ] },
    Case { script: "s25-arch-dropped", runs: &[
        (1, finds(&["arch-unsupported-by-nvcc"], &["nvcc 13.0", "sm_70 was dropped in 13.0", "$W/cuda-12.8"])),
        (2, Silent),
    ] },
    Case { script: "s26-home-not-writable", runs: &[
        (1, finds(&["cache-unwritable"], &["$W/nohome/.triton", "TRITON_CACHE_DIR"])),
        (2, Silent),
        (3, Silent),
    ] },
    Case { script: "s27-maps-scan-takes-stand-in", runs: &[
        (1, finds(&["cudart-stub-chosen"], &["libcudart_stub.so", "cudaRuntimeGetVersion", "memory map", "cuda_runtime/lib/libcudart.so.12"])),
        (2, Silent),
    ] },
    Case { script: "s28-cached-for-another-gpu", runs: &[
        (1, Expect::Finds {
            primary: &["cache-wrong-arch"],
            consequences: &["no-kernel-image"],
            facts: &["$W/.triton/cache/K1/k.cubin", "sm_90", "12.0", "209", "Delete $W/.triton/cache/K1"],
        }),
        (2, Silent),
    ] },
    Case { script: "s29-headers-by-include-flag", runs: &[
        (1, finds(&["headers-differ-from-nvcc"], &["13.0", "12.9", "-I$W/cuda-12.9/include", "incompatible"])),
        (2, Silent),
    ] },
    Case { script: "s30-asked-one-ran-another", runs: &[
        (1, finds(&["version-disagreement"], &["13.0", "12.4", "FLASHINFER_NVCC=$W/cuda-12.4/bin/nvcc", "CUDA_HOME=$W/cuda-13.0", "Unknown option"])),
        (2, Silent),
    ] },
    Case { script: "s31-library-for-another-major", runs: &[
        (1, finds(&["library-not-found"], &["libcusparse.so.11", "libbitsandbytes_cuda118.so"])),
        (2, Silent),
    ] },
    Case { script: "s32-wsl-driver-hidden", runs: &[
        (1, finds(&["libcuda-compat"], &["$W/usr/lib/x86_64-linux-gnu/libcuda.so.1", "535.183.01", "cuInit answered 100", "$W/usr/lib/wsl/lib/libcuda.so.1", "WSL"])),
        (2, Silent),
    ] },
    Case { script: "s33-ccache-and-stale-link", runs: &[
        (1, finds(&["arch-unsupported-by-nvcc"], &["nvcc 12.6", "$W/bin/nvcc", "sm_120a", "12.8 or newer", "$W/opt/cuda-12.9"])),
        (2, Silent),
    ] },
    Case { script: "s34-conda-headers-elsewhere", runs: &[
        (1, finds(&["toolkit-incomplete"], &["cuda_runtime.h", "$W/miniconda3/envs/llm", "12.8"])),
        (2, Silent),
    ] },
    Case { script: "s35-cudnn-part-missing", runs: &[
        (1, finds(&["library-not-found"], &["libcudnn_ops.so.9"])),
        (2, Silent),
    ] },
    Case { script: "s36-no-libdevice", runs: &[
        (1, finds(&["toolkit-incomplete"], &["libdevice", "$W/cuda-12.4", "XLA_FLAGS"])),
        (2, Silent),
    ] },
    Case { script: "s37-xla-ptxas-too-old", runs: &[
        (1, finds(&["arch-unsupported-by-ptxas", "ptxas-shadowed"], &["ptxas 12.4", "$W/cuda-12.4/bin/ptxas", "sm_120", "nvidia/cuda_nvcc/bin/ptxas"])),
        (2, Silent),
    ] },
    Case { script: "s38-device-linker-too-old", runs: &[
        (1, finds(&["toolkit-mixed-releases"], &["nvlink", "12.8", "13.0", "$W/cuda-12.8/bin/nvlink", "PATH entry", "$W/cuda-13.0"])),
        (2, Silent),
    ] },
    Case { script: "s39-lock-left-behind", runs: &[
        (1, finds(&["build-lock-stale"], &["$W/ext/py312_cu130/fused_adam/lock", "left it behind", "delete $W/ext/py312_cu130/fused_adam/lock"])),
        (2, Silent),
    ] },
    Case { script: "s40-hash-renamed-runtime", runs: &[
        (1, finds(&["cudart-two-majors"], &["a/torch/lib/libcudart.so.12", "libcudart-9335f6a2.so.11.0", "needed by _C.so", "invalid resource handle"])),
        (2, Silent),
    ] },
    Case { script: "s41-linker-refuses-ptx", runs: &[
        (1, finds(&["ptx-too-new-for-driver"], &["222", "8.5", "8.4", "CUDA 12.4"])),
        (2, Silent),
    ] },
    Case { script: "s42-function-missing-at-first-call", runs: &[
        (1, finds(&["library-shadowed-by-ld-library-path"], &["$W/usr-local-cuda-12.1/lib64/libcublasLt.so.12", "cublasLtHSHMatmulAlgoInit", "RUNPATH", "$W/w/nvidia/cublas/lib/libcublasLt.so.12"])),
        (2, Silent),
    ] },
    Case { script: "s43-silent-fallback", runs: &[
        (1, finds(&["cudart-not-found"], &["libcudart.so.13", "flash_attn_2_cuda.so", "libcudart.so.12", "12.9"])),
        (2, Silent),
    ] },
    Case { script: "s44-host-compiler-too-new", runs: &[
        (1, finds(&["host-compiler-unsupported"], &["nvcc 12.2", "$W/b14/g++", "12"])),
        (2, Silent),
    ] },
    Case { script: "s45-first-on-path-is-debian", runs: &[
        (1, finds(&["arch-unsupported-by-nvcc"], &["nvcc 12.0", "$W/usr/bin/nvcc", "PATH", "compute_120", "$W/usr/local/cuda-12.9"])),
        (2, Silent),
    ] },
    Case { script: "s46-program-cannot-start", runs: &[
        (1, finds(&["cudart-not-found"], &["llama-server", "libcudart.so.13", "$W/opt/cuda-12.9/lib64", "libcudart.so.12", "12.9"])),
        (2, Silent),
    ] },
    Case { script: "s47-child-cannot-start", runs: &[
        (1, finds(&["cudart-not-found"], &["llama-server", "libcudart.so.13", "$W/opt/cuda-12.9/lib64"])),
        (2, Silent),
    ] },
    Case { script: "s48-child-bound-at-start", runs: &[
        (1, finds(&["library-shadowed-by-ld-library-path"], &["$W/cuda-12.1/lib64/libcublasLt.so.12", "cublasLtHSHMatmulAlgoInit", "RUNPATH"])),
        (2, Silent),
    ] },
    Case { script: "s49-driver-not-in-loader-cache", runs: &[
        (1, finds(&["libcuda-not-found"], &["libcuda.so.1", "ldconfig -p", "LD_LIBRARY_PATH=$W"])),
        (2, Silent),
    ] },
    Case { script: "s50-extension-needs-other-nvrtc", runs: &[
        (1, finds(&["library-not-found"], &["libnvrtc.so.12", "common_ops.abi3.so", "libnvrtc.so.13"])),
        (2, Silent),
    ] },
    Case { script: "s51-assertion-on-nvcc", runs: &[
        (1, finds(&["nvcc-older-than-required"], &["nvcc 12.2", "$W/cuda-12.2/bin/nvcc", "PATH entry", "12.3"])),
        (2, Silent),
    ] },
    Case { script: "s52-extension-of-another-day", runs: &[
        (1, finds(&["cache-stale-toolkit"], &["$W/.cache/torch_extensions/py312_cu130/ext/ext.so", "12.4", "CUDA_HOME=$W/cuda-13.0"])),
        (2, Silent),
    ] },
    Case { script: "s53-roots-of-every-spelling", runs: &[
        (1, finds(&["toolkit-root-malformed"], &["$W/opt/cuda/bin/bin/nvcc", "CUDA_HOME=$W/opt/cuda"])),
        (2, finds(&["toolkit-root-malformed"], &["$W/opt/cuda/bin/nvcc", "CUDA_HOME=$W/opt/cuda"])),
        (3, finds(&["toolkit-root-malformed"], &["~/cuda"])),
        (4, finds(&["toolkit-root-malformed"], &["CUDA_HOME=$W/opt/cuda"])),
        (5, finds(&["toolkit-root-malformed"], &["CUDA_HOME=$W/opt/cuda"])),
        (6, finds(&["toolkit-root-malformed"], &["CUDA_HOME=$W/opt/cuda"])),
        (7, finds(&["toolkit-root-malformed"], &["$HOME/cuda"])),
        (8, Silent),
        (9, Silent),
    ] },
    Case { script: "s54-no-c-compiler", runs: &[
        (1, finds(&["build-tool-missing"], &["$W/pybin", "CC is unset", "Failed to find C compiler"])),
        (2, Silent),
        (3, finds(&["build-tool-missing"], &["$W/nocc/gcc-13"])),
    ] },
    Case { script: "s55-two-copies-of-one-major", runs: &[
        (1, finds(&["cudart-same-soname-twice"], &["$W/a/torch/lib/libcudart.so.12", "$W/sys/libcudart.so.12", "12.4", "12.8", "invalid resource handle"])),
        (2, Silent),
    ] },
    Case { script: "s56-override-too-old", runs: &[
        (1, finds(&["arch-unsupported-by-ptxas"], &["ptxas 12.6", "TRITON_PTXAS_BLACKWELL_PATH=$W/cuda-12.6/bin/ptxas", "sm_120a"])),
        (2, Silent),
    ] },
    Case { script: "s57-stub-in-a-c-program", runs: &[
        (1, finds(&["libcuda-stub"], &["$W/cuda/lib64/stubs/libcuda.so", "LD_LIBRARY_PATH", "34", "$W/drv/libcuda.so.1"])),
        (2, Silent),
    ] },
    Case { script: "s58-c-program-finds-nothing", runs: &[
        (1, finds(&["cudart-not-found"], &["libcudart.so.12", "libcudart.so.11.0"])),
        (2, Silent),
        (3, finds(&["libcuda-not-found"], &["libcuda.so", "$W/w/libcuda.so.1"])),
    ] },
    Case { script: "s63-library-skipped-with-a-warning", runs: &[
        (1, finds(&["library-not-found"], &["libcudnn.so.8", "Could not load dynamic library"])),
        (2, Silent),
    ] },
    Case { script: "s64-op-builder-refuses", runs: &[
        (1, finds(&["nvcc-differs-from-built-for"], &["nvcc 12.8", "CUDA_HOME=$W/cuda-12.8", "13.0", "CUDA_HOME=$W/cuda-13.0"])),
        (2, Silent),
    ] },
    Case { script: "s65-package-supports-newer-only", runs: &[
        (1, finds(&["nvcc-older-than-required"], &["nvcc 11.5", "$W/cuda-11.5/bin/nvcc", "PATH entry", "11.7", "$W/cuda-12.4"])),
        (2, Silent),
    ] },
    Case { script: "s66-build-system-finds-no-nvcc", runs: &[
        (1, finds(&["nvcc-missing"], &["No CMAKE_CUDA_COMPILER", "CUDA_HOME and CUDA_PATH are unset"])),
        (2, Silent),
    ] },
    Case { script: "s67-imported-extension", runs: &[
        (1, finds(&["cudart-not-found"], &["libcudart.so.13", "$W/sp/vllm/_C"])),
        (2, Silent),
    ] },
    Case { script: "s68-nvcc-is-a-script-of-conda", runs: &[
        (1, finds(&["arch-unsupported-by-nvcc"], &["nvcc 12.4", "sm_120f", "12.9", "$W/cuda-12.9"])),
        (2, Silent),
    ] },
    Case { script: "s69-driver-pair-by-its-sentence", runs: &[
        (1, finds(&["libcuda-compat"], &["803", "575.57.08", "$W/compat/libcuda.so.1", "LD_LIBRARY_PATH", "$W/host/libcuda.so.1"])),
        (2, Silent),
    ] },
];

/// What the machine around the program lacks: a service of the driver, a GPU, a part of the driver, a permission.
#[rustfmt::skip]
const MACHINES: &[Case] = &[
    Case { script: "s71-driver-needs-a-service", runs: &[
        (1, finds(&["driver-not-ready"], &["cuInit answered 802", "fabric manager", "nvidia-fabricmanager", "580.126.20", "$W/drv/libcuda.so.1"])),
        (2, finds(&["driver-not-ready"], &["went on without a GPU"])),
        (3, Silent),
        (4, Silent),
        (5, finds(&["mps-unavailable"], &["805", "CUDA_MPS_PIPE_DIRECTORY=$W/mps"])),
        (6, finds(&["nvml-driver-mismatch"], &["nvmlInit_v2 answered 18", "$W/drv/libnvidia-ml.so.1", "580.126.20"])),
        (7, Silent),
    ] },
    Case { script: "s72-no-gpu-to-be-seen", runs: &[
        (1, finds(&["gpu-not-visible"], &["CUDA_VISIBLE_DEVICES=4,5", "cuInit answered 100", "No CUDA GPUs are available", "nvidia-smi -L"])),
        (2, Silent),
        (3, Silent),
        (4, Silent),
    ] },
    Case { script: "s73-driver-cannot-compile", runs: &[
        (1, finds(&["ptx-compiler-missing"], &["221", "libnvidia-ptxjitcompiler.so.1", "580.65.06", "$W/drv", "NVIDIA_DRIVER_CAPABILITIES"])),
        (2, Silent),
    ] },
    Case { script: "s74-tool-is-not-to-be-run", runs: &[
        (1, finds(&["build-tool-missing"], &["ptxas: permission denied (EACCES)", "chmod +x site-packages/triton/backends/nvidia/bin/ptxas"])),
        (2, Silent),
        (3, finds(&["build-tool-missing"], &["NVCC_PREPEND_FLAGS=-ccbin=$W/gone", "Let NVCC_PREPEND_FLAGS name a file that is there"])),
        (4, Silent),
    ] },
    Case { script: "s75-library-found-and-unusable", runs: &[
        (1, finds(&["library-unusable"], &["$W/img/libcuda.so.1", "The file is empty", "$W/host/libcuda.so.1", "Remove $W/img/libcuda.so.1 from the image"])),
        (2, Silent),
        (3, finds(&["library-unusable"], &["$W/arm/libcudart.so.13", "another machine"])),
        (4, Silent),
    ] },
    Case { script: "s76-extension-of-another-torch", runs: &[
        (1, finds(&["extension-abi-mismatch"], &["$W/site-packages/flash_attn_2_cuda.so", "flash-attn 2.5.7", "c10::cuda::SetDevice", "site-packages/torch/lib/libc10.so", "torch 2.8.0+cu128", "flash-attn for torch 2.8"])),
        (2, Silent),
        (3, Silent),
        (4, finds(&["extension-abi-mismatch"], &["$W/.cache/torch_extensions/py312_cu128/ext/ext.so", "from a cache", "Delete $W/.cache/torch_extensions/py312_cu128/ext"])),
    ] },
    Case { script: "s77-asked-for-by-a-bare-name", runs: &[
        (1, finds(&["library-not-found"], &["libcudnn_cnn_infer.so.8 needs libnvrtc.so", "development name", "ln -s $W/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12"])),
        (2, Silent),
        (3, finds(&["library-not-found"], &["libnvshmem_host.so.3 needs nvshmem_bootstrap_uid.so.3", "Put $W/site-packages/nvidia/nvshmem/lib on LD_LIBRARY_PATH"])),
        (4, Silent),
        (5, Silent),
        (6, Silent),
        (7, finds(&["library-not-found"], &["libnvidia-ml.so.1", "NVIDIA_DRIVER_CAPABILITIES"])),
        (8, Silent),
    ] },
    Case { script: "s78-older-libstdcxx", runs: &[
        (1, finds(&["library-shadowed-by-ld-library-path"], &["$W/conda/lib/libstdc++.so.6", "GLIBCXX_3.4.32", "fused_adam.so", "$W/sys/libstdc++.so.6"])),
        (2, Silent),
    ] },
    Case { script: "s80-no-cplusplus", runs: &[
        (1, finds(&["build-tool-missing"], &["could not start cc1plus, a part of itself", "package g++"])),
        (2, Silent),
    ] },
    Case { script: "s81-configured-before", runs: &[
        (1, finds(&["arch-unsupported-by-nvcc"], &["nvcc 12.2", "compute_120", "Delete $W/build/CMakeCache.txt", "-DCMAKE_CUDA_COMPILER=$W/cuda-13.0/bin/nvcc"])),
        (2, Silent),
    ] },
    Case { script: "s82-no-python-headers", runs: &[
        (1, finds(&["python-headers-missing"], &["triton", "triton/runtime/build.py:4", "Python.h", "/usr/include", "-dev"])),
        (2, Silent),
    ] },
    Case { script: "s83-compiler-is-killed", runs: &[
        (1, finds(&["build-tool-killed"], &["cicc", "SIGKILL", "died due to signal 9", "MAX_JOBS is unset", "MAX_JOBS=2"])),
        (2, Silent),
    ] },
    Case { script: "s84-assembler-crashes", runs: &[
        (1, finds(&["build-tool-killed"], &["ptxas 12.8", "site-packages/triton/backends/nvidia/bin/ptxas", "crashed (SIGSEGV)"])),
        (2, Silent),
    ] },
    Case { script: "s85-newer-c-library", runs: &[
        (1, finds(&["host-headers-unsupported"], &["nvcc 12.4", "CUDA_HOME=$W/cuda-12.4", "rsqrt", "CUDA_HOME=$W/cuda-13.1"])),
        (2, Silent),
    ] },
    Case { script: "s86-no-arch-in-an-image-build", runs: &[
        (1, finds(&["arch-list-empty"], &["TORCH_CUDA_ARCH_LIST is unset", "no GPU is seen", "no driver here"])),
        (2, Silent),
    ] },
    Case { script: "s87-arch-unknown-to-torch", runs: &[
        (1, finds(&["arch-list-unknown"], &["12.0f", "TORCH_CUDA_ARCH_LIST=12.0f", "Write 12.0 or 12.0a"])),
        (2, Silent),
    ] },
    Case { script: "s88-linked-with-another-major", runs: &[
        (1, finds(&["cudart-two-majors"], &["c/tvm-ffi/k.so was linked in this run by cc", "-Lusr/lib", "$W/usr/lib/libcudart.so.11.0", "Link c/tvm-ffi/k.so with $W/site-packages/nvidia/cu13/lib/libcudart.so.13"])),
        (2, Silent),
    ] },
    Case { script: "s89-cached-for-a-newer-major", runs: &[
        (1, Expect::Finds {
            primary: &["cache-foreign-major"],
            consequences: &["driver-too-old", "cudart-two-majors"],
            facts: &["s13.so", "libcudart.so.13", "$W/lib12/libcudart.so.12", "driver version is insufficient", "Delete"],
        }),
        (2, Silent),
    ] },
    Case { script: "s90-part-from-elsewhere", runs: &[
        (1, finds(&["library-not-found"], &["$W/sys/libcudnn_engines_tensor_ir.so.9", "libcublasLt.so.12", "libcudnn_graph.so.9", "of another installation", "take $W/sys out of the search"])),
        (2, Silent),
    ] },
    Case { script: "s91-driver-lacks-a-function", runs: &[
        (1, finds(&["library-older-than-consumer"], &["cuTensorMapEncodeTiled", "deep_gemm_cpp.so", "$W/old/libcuda.so.1", "470.256.02", "Update the NVIDIA driver"])),
        (2, Silent),
    ] },
    Case { script: "s92-build-for-another-major", runs: &[
        (1, finds(&["cudart-not-found"], &["libcudart.so.13", "site-packages/vllm/_C.abi3.so", "Install the build of vllm for CUDA 12, as torch is", "has +cu129 in its name", "releases/tag/v0.22.0"])),
    ] },
    Case { script: "s93-ended-for-reasons-of-its-own", runs: &[
        (1, Silent),
        (2, Silent),
        (3, Silent),
    ] },
    Case { script: "s94-linked-where-no-driver-is", runs: &[
        (1, finds(&["toolkit-incomplete"], &["libcuda.so", "$W/cuda-13.0/lib64", "cannot find -lcuda", "LIBRARY_PATH=$W/cuda-13.0/lib64/stubs"])),
        (2, Silent),
        (3, Silent),
    ] },
    Case { script: "s95-empty-entry", runs: &[
        (1, Expect::Finds {
            primary: &["library-shadowed-by-ld-library-path"],
            consequences: &["nvjitlink-older-than-consumer"],
            facts: &["empty: current directory", "12.1", "__nvJitLinkComplete_12_9", "take the empty entry"],
        }),
        (2, Silent),
    ] },
    Case { script: "s96-package-lacks-a-release", runs: &[
        (1, finds(&["package-lacks-release"], &["CUDA 13.2", "$W/site-packages/bitsandbytes/libbitsandbytes_cuda132.so", "ls $W/site-packages/bitsandbytes/libbitsandbytes_cuda*.so", "BNB_CUDA_VERSION"])),
        (2, Silent),
    ] },
    Case { script: "s79-file-of-two-wheels", runs: &[
        (1, finds(&["library-not-found"], &["libcudnn.so.9", "libtorch_cuda.so", "RECORD names $W/site-packages/nvidia/cudnn/lib/libcudnn.so.9", "pip install --force-reinstall --no-deps nvidia-cudnn-cu12==9.13.0.50"])),
        (2, Silent),
    ] },
];

/// Runs in which something looks odd and nothing is wrong.
#[rustfmt::skip]
const HEALTHY: &[(&str, usize)] = &[
    ("s59-healthy-oddities", 18),
    ("s60-more-healthy-oddities", 14),
    ("s70-source-is-newer", 3),
];

#[test]
fn a_build_that_ran_since_its_source_is_newer_says_so() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let reports = reports_of("s70-source-is-newer", place.path());
    let why: Vec<Option<String>> = reports
        .iter()
        .map(|(report, directory)| {
            let nvcc = report.builds.iter().find(|b| b.tool == "nvcc");
            let why = nvcc.expect("nvcc ran").why.as_ref();
            why.map(|w| w.replace(directory.as_str(), "$W"))
        })
        .collect();
    let newer = "rebuilt since $W/src/page.cu is newer than $W/out/page.o, by 1 h 30 min";
    assert_eq!(why, [None, Some(newer.to_owned()), None]);
}

#[test]
fn what_the_machine_lacks_is_told() {
    let mut failures = Vec::new();
    for case in MACHINES {
        play(case, &mut failures);
    }
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

#[test]
fn what_the_trackers_report_has_its_verdict() {
    let mut failures = Vec::new();
    for case in TRACKERS {
        play(case, &mut failures);
    }
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

#[test]
fn odd_and_healthy_runs_are_left_in_peace() {
    let mut failures = Vec::new();
    leave_in_peace("preload", &mut failures);
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

fn leave_in_peace(source: &str, failures: &mut Vec<String>) {
    for (script, runs) in HEALTHY {
        let place = tempfile::tempdir().expect("a temporary directory");
        let reports = reports_under(source, script, place.path());
        assert_eq!(reports.len(), *runs, "{script}: every start was traced");
        for (number, (report, directory)) in reports.iter().enumerate() {
            let name = format!("{script} run {} ({source})", number + 1);
            judge(&name, report, directory, &Silent, failures);
        }
    }
}

/// What the shim alone says of a child that it cannot follow: with the kernel it is followed.
const OF_THE_SHIM_ALONE: &[&str] = &["s16-cleared-environment"];

/// Plays cases with the kernel beside the shim, as root gets it without asking.
fn beside_the_kernel(test: &str, cases: &[Case]) {
    if !kernel_source(test) {
        return;
    }
    let mut failures = Vec::new();
    for case in cases {
        if !OF_THE_SHIM_ALONE.contains(&case.script) {
            play_under("auto", case, &mut failures);
        }
    }
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

#[test]
fn the_kernel_beside_the_shim_changes_no_verdict() {
    beside_the_kernel("the_kernel_beside_the_shim_changes_no_verdict", CASES);
}

#[test]
fn nor_that_of_the_kinds_next_to_the_reports() {
    beside_the_kernel("nor_that_of_the_kinds_next_to_the_reports", SIBLINGS);
}

#[test]
fn nor_that_of_what_the_trackers_report() {
    beside_the_kernel("nor_that_of_what_the_trackers_report", TRACKERS);
}

#[test]
fn nor_that_of_what_the_machine_lacks() {
    beside_the_kernel("nor_that_of_what_the_machine_lacks", MACHINES);
}

#[test]
fn odd_and_healthy_runs_are_left_in_peace_by_both() {
    if !kernel_source("odd_and_healthy_runs_are_left_in_peace_by_both") {
        return;
    }
    let mut failures = Vec::new();
    leave_in_peace("auto", &mut failures);
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

/// The report of several traces as one.
fn joined(place: &Path, numbers: &[usize]) -> Report {
    let traces = numbers
        .iter()
        .map(|n| place.join("out").join(format!("{n}.jtrace")));
    let output = Command::new(jittrace())
        .arg("report")
        .args(traces)
        .args(["--format", "json"])
        .output()
        .expect("jittrace runs");
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&output.stderr)))
}

#[test]
fn work_that_leaves_the_tree_is_said_with_the_process_it_went_to() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let (report, directory) = reports_of("s61-handed-to-a-server", place.path()).remove(0);
    let server =
        fs::read_to_string(Path::new(&directory).join("server")).expect("the server's pid");
    let found = report
        .findings
        .iter()
        .find(|f| f.id == "child-not-followed")
        .expect("what was handed over is said");
    assert_eq!(found.severity, Severity::Note);
    let title = format!(
        "nvcc was handed to process {}, which is not followed",
        server.trim()
    );
    assert_eq!(found.title, title);
}

#[test]
fn a_module_built_in_one_trace_and_loaded_in_another_names_both() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let (_, directory) = reports_of("d16", place.path()).remove(0);
    let report = joined(place.path(), &[1, 2]);
    let found = report
        .findings
        .iter()
        .find(|f| f.id == "cache-stale-toolkit")
        .expect("the stale module is found across the traces");
    let words = words(found);
    for fact in [
        "The build is in another of these traces, by nvcc 13.0",
        "wrote $W/cache/0.6.9/90a/sampling/sampling.so in trace 1",
        "CUDA_HOME=$W/cuda-13.2",
    ] {
        let fact = fact.replace("$W", &directory);
        assert!(words.contains(&fact), "{fact}:\n{words}");
    }
}

#[test]
fn the_rank_that_differs_from_its_peers_is_named() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let (_, directory) = reports_of("s62-ranks", place.path()).remove(0);
    let report = joined(place.path(), &[1, 2, 3, 4]);
    let first = report.findings.first().expect("a rank failed");
    assert_eq!(first.id, "arch-unsupported-by-nvcc");
    let found = report
        .findings
        .iter()
        .find(|f| f.id == "ranks-differ")
        .expect("the rank that differs is found");
    assert_eq!(found.severity, Severity::Warning);
    let words = words(found);
    for fact in [
        "rank 2 of trace 3 resolved another nvcc than 3 of its peers",
        "nvcc 12.4",
        "nvcc 13.0",
        "CUDA_HOME is $W/cuda-12.4 in rank 2 of trace 3",
        "Only those that differ failed",
    ] {
        let fact = fact.replace("$W", &directory);
        assert!(words.contains(&fact), "{fact}:\n{words}");
    }
    let healthy = joined(place.path(), &[1, 2, 4]);
    assert!(
        healthy
            .findings
            .iter()
            .all(|f| f.severity == Severity::Note)
    );
}

#[test]
fn the_kinds_next_to_the_reports_have_their_verdicts() {
    let mut failures = Vec::new();
    for case in SIBLINGS {
        play(case, &mut failures);
    }
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

#[test]
fn every_public_report_gets_the_verdict_that_took_its_thread_days() {
    let mut failures = Vec::new();
    for case in CASES {
        play(case, &mut failures);
    }
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

fn play(case: &Case, failures: &mut Vec<String>) {
    play_under("preload", case, failures);
}

/// Plays a case with these sources.
fn play_under(source: &str, case: &Case, failures: &mut Vec<String>) {
    let place = tempfile::tempdir().expect("a temporary directory");
    let reports = reports_under(source, case.script, place.path());
    for (number, expected) in case.runs {
        let name = format!("{} run {number} ({source})", case.script);
        let Some((report, directory)) = reports.get(number - 1) else {
            failures.push(format!("{name}: there is no such traced start"));
            continue;
        };
        judge(&name, report, directory, expected, failures);
    }
}

fn judge(
    name: &str,
    report: &Report,
    directory: &str,
    expected: &Expect,
    failures: &mut Vec<String>,
) {
    let grave: Vec<&Finding> = report
        .findings
        .iter()
        .filter(|f| f.severity != Severity::Note)
        .collect();
    match expected {
        Silent => {
            for finding in grave {
                failures.push(format!(
                    "{name}: a healthy run is accused of {}: {}",
                    finding.id, finding.title
                ));
            }
        }
        Expect::Finds {
            primary,
            consequences,
            facts,
        } => {
            let Some(first) = report.findings.first() else {
                failures.push(format!("{name}: nothing was found, expected {primary:?}"));
                return;
            };
            if !primary.contains(&first.id.as_str()) || first.severity == Severity::Note {
                failures.push(format!(
                    "{name}: the first finding is {} ({}), expected {primary:?}",
                    first.id, first.title
                ));
                return;
            }
            for consequence in *consequences {
                let attached = first.consequences.iter().any(|c| c == consequence)
                    && report.findings.iter().any(|f| {
                        f.id == *consequence && f.consequence_of.as_deref() == Some(&first.id)
                    });
                if !attached {
                    failures.push(format!(
                        "{name}: {consequence} is not attached to {}",
                        first.id
                    ));
                }
            }
            let words = words(first);
            for fact in *facts {
                let fact = fact.replace("$W", directory);
                if !words.contains(&fact) {
                    failures.push(format!(
                        "{name}: the finding does not say {fact:?}:\n{words}"
                    ));
                }
            }
            if first.evidence.is_empty() || first.remedy.is_empty() {
                failures.push(format!("{name}: a finding without evidence or remedy"));
            }
            // One cause: whatever else is grave must follow from it.
            for other in grave.iter().skip(1).filter(|f| f.consequence_of.is_none()) {
                failures.push(format!(
                    "{name}: a second, unattached finding {}: {}",
                    other.id, other.title
                ));
            }
        }
    }
}

fn words(finding: &Finding) -> String {
    let mut words = vec![finding.title.clone(), finding.cause.clone()];
    words.extend(finding.evidence.iter().map(|e| e.text.clone()));
    words.extend(finding.remedy.iter().cloned());
    words.join("\n")
}

/// Runs a script; the report of each traced start, and the directory that the script made for itself.
fn reports_of(script: &str, place: &Path) -> Vec<(Report, String)> {
    reports_under("preload", script, place)
}

/// The same with these sources.
fn reports_under(source: &str, script: &str, place: &Path) -> Vec<(Report, String)> {
    let played = case::play(script, place, source, true);
    let directory = played.directory.to_string_lossy();
    let reports: Vec<(Report, String)> = played
        .files("json")
        .iter()
        .map(|file| {
            let text = fs::read_to_string(file).expect("the report is read");
            let report = serde_json::from_str(&text);
            let report = report.unwrap_or_else(|e| panic!("{script}: {}: {e}", file.display()));
            (report, directory.clone().into_owned())
        })
        .collect();
    assert!(
        !reports.is_empty(),
        "{script}: no report was written\n{}\n{}",
        String::from_utf8_lossy(&played.output.stdout),
        String::from_utf8_lossy(&played.output.stderr)
    );
    reports
}

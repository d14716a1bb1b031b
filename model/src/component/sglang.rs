//! SGLang and its kernels: the usual rules, and a libcudart preloaded from CUDA_HOME (resolution.md 1.4).

use super::{Component, JitCache, NOTHING, Step, USUAL, search};

/// SGLang.
pub(super) const SGLANG: Component = Component {
    name: "sglang",
    aliases: &["sglang"],
    searches: &[search("nvcc", USUAL)],
    caches: &[JitCache {
        variable: "SGLANG_JIT_CACHE_DIR",
        directory: "~/.cache/sglang/jit",
        not_keyed: "nearly nothing: nvcc and c++ are in the key",
    }],
    ..NOTHING
};

/// The compiled kernels of SGLang.
pub(super) const SGL_KERNEL: Component = Component {
    name: "sgl-kernel",
    aliases: &["sgl-kernel", "sglang-kernel"],
    // libcudart of torch's major, then 13, then 12, by absolute path and for everybody (RTLD_GLOBAL).
    searches: &[search(
        "cudart",
        &[
            Step::Root("CUDA_HOME"),
            Step::Root("CUDA_PATH"),
            Step::Which("nvcc"),
            Step::Directory("/usr/local/cuda"),
            Step::Directory("/usr/lib/x86_64-linux-gnu"),
            Step::Loaded,
        ],
    )],
    ..NOTHING
};

//! tvm-ffi: builds for others by the usual rules (resolution.md 1.7).

use super::{Component, JitCache, NOTHING, USUAL, search};

/// tvm-ffi.
pub(super) const TVM_FFI: Component = Component {
    name: "tvm-ffi",
    aliases: &["apache-tvm-ffi", "tvm-ffi"],
    plumbing: true,
    searches: &[search("nvcc", USUAL)],
    caches: &[JitCache {
        variable: "TVM_FFI_CACHE_DIR",
        directory: "~/.cache/tvm-ffi",
        not_keyed: "nvcc and the architecture; ninja sees a changed path of CUDA_HOME",
    }],
    ..NOTHING
};

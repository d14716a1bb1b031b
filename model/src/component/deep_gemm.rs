//! DeepGEMM: the usual rules with `which`, NVRTC of one toolkit with the headers of another (resolution.md 1.6).

use super::{Component, Gate, JitCache, NOTHING, Step, Versions, replaces, search};
use crate::toolkit::Version;

/// DeepGEMM.
pub(super) const DEEP_GEMM: Component = Component {
    name: "deep-gemm",
    aliases: &["deep-gemm", "sgl-deep-gemm"],
    searches: &[
        search(
            "nvcc",
            &[
                Step::File("DG_JIT_NVCC_COMPILER"),
                Step::Root("CUDA_HOME"),
                Step::Root("CUDA_PATH"),
                Step::Which("nvcc"),
                Step::Directory("/usr/local/cuda"),
            ],
        ),
        search("nvrtc", &[Step::Loaded, Step::Loader]),
    ],
    gates: &[Gate {
        part: "nvcc",
        versions: Versions::ALL,
        capability: (9, 0, 9),
        needs: Version::release(12, 3),
    }],
    overrides: &[replaces("DG_JIT_NVCC_COMPILER", "nvcc", "nvcc")],
    caches: &[JitCache {
        variable: "DG_JIT_CACHE_DIR",
        directory: "~/.deep_gemm",
        not_keyed: "nvcc's patch level, CUDA_HOME and the host compiler; a hit still runs cuobjdump",
    }],
    ..NOTHING
};

//! FlashInfer: CUDA_HOME, CUDA_PATH, `which nvcc`, /usr/local/cuda; a gate for SM 12.x (resolution.md 0 and 1.3).

use super::{
    Component, Gate, JitCache, NOTHING, Override, Step, Versions, between, from, replaces, search,
};
use crate::toolkit::Version;

/// FlashInfer.
pub(super) const FLASHINFER: Component = Component {
    name: "flashinfer",
    aliases: &["flashinfer", "flashinfer-python"],
    searches: &[search(
        "nvcc",
        &[
            Step::Root("CUDA_HOME"),
            Step::Root("CUDA_PATH"),
            Step::Which("nvcc"),
            Step::Directory("/usr/local/cuda"),
            Step::TorchRelease,
        ],
    )],
    gates: &[
        Gate {
            part: "nvcc",
            versions: between("0.6.7", "0.7.1"),
            capability: (12, 0, 9),
            needs: Version::release(12, 9),
        },
        Gate {
            part: "nvcc",
            versions: from("0.7.1"),
            capability: (12, 0, 0),
            needs: Version::release(12, 8),
        },
        Gate {
            part: "nvcc",
            versions: from("0.7.1"),
            capability: (12, 1, 9),
            needs: Version::release(12, 9),
        },
        Gate {
            part: "nvcc",
            versions: Versions::ALL,
            capability: (11, 0, 9),
            needs: Version::release(13, 0),
        },
    ],
    overrides: &[Override {
        not_asked: true,
        ..replaces("FLASHINFER_NVCC", "nvcc", "nvcc")
    }],
    caches: &[JitCache {
        variable: "FLASHINFER_WORKSPACE_BASE",
        directory: "~/.cache/flashinfer",
        not_keyed: "nvcc, CUDA_HOME, torch, the host compiler and libcudart's major; up to 0.6.11 build.ninja is written once and keeps the old toolkit",
    }],
    ..NOTHING
};

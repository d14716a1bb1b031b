//! The CUTLASS Python DSL: carries its compiler; the flavour follows the driver (resolution.md 1.13).

use super::{Component, JitCache, NOTHING, Step, replaces, search};

/// CUTLASS DSL.
pub(super) const CUTLASS_DSL: Component = Component {
    name: "cutlass-dsl",
    aliases: &["nvidia-cutlass-dsl", "cutlass"],
    searches: &[search(
        "nvdisasm",
        &[
            Step::Root("CUDA_HOME"),
            Step::Root("CUDA_PATH"),
            Step::Path("nvcc"),
            Step::Directory("/usr/local/cuda"),
        ],
    )],
    overrides: &[replaces("CUTE_DSL_PTXAS_PATH", "ptxas", "ptxas")],
    caches: &[JitCache {
        variable: "CUTE_DSL_CACHE_DIR",
        directory: "/tmp",
        not_keyed: "the toolkit; the compiler is part of the package",
    }],
    ..NOTHING
};

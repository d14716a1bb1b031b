//! JAX and XLA: ptxas by PATH before the wheel's; CUDA_HOME is not read (resolution.md 1.11).

use super::{Component, JitCache, NOTHING, Step, search};

/// JAX.
pub(super) const JAX: Component = Component {
    name: "jax",
    aliases: &[
        "jax",
        "jaxlib",
        "jax-cuda12-plugin",
        "jax-cuda13-plugin",
        "jax-cuda12-pjrt",
        "jax-cuda13-pjrt",
    ],
    searches: &[
        search(
            "ptxas",
            &[
                Step::Root("CUDA_ROOT"),
                Step::Path("ptxas"),
                Step::Directory("/usr/local/cuda"),
                Step::Directory("/opt/cuda"),
                Step::Wheels,
            ],
        ),
        search("cudart", &[Step::Wheels, Step::Loader]),
    ],
    caches: &[JitCache {
        variable: "JAX_COMPILATION_CACHE_DIR",
        directory: "",
        not_keyed: "ptxas",
    }],
    ..NOTHING
};

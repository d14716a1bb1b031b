//! Triton: its own ptxas, or the one that a variable names; PATH and CUDA_HOME are never used (resolution.md 1.2).

use super::{Component, JitCache, NOTHING, Search, Step, before, from, replaces, search};

/// Triton.
pub(super) const TRITON: Component = Component {
    name: "triton",
    aliases: &["triton", "pytorch-triton", "triton-nightly"],
    searches: &[
        Search {
            part: "ptxas",
            versions: before("3.5"),
            order: &[
                Step::File("TRITON_PTXAS_PATH"),
                Step::Bundled("backends/nvidia/bin/ptxas"),
            ],
        },
        // From an architecture on (100 in 3.6, 90 in 3.9) the second file and the second variable hold.
        Search {
            part: "ptxas",
            versions: from("3.5"),
            order: &[
                Step::File("TRITON_PTXAS_BLACKWELL_PATH"),
                Step::Bundled("backends/nvidia/bin/ptxas-blackwell"),
                Step::File("TRITON_PTXAS_PATH"),
                Step::Bundled("backends/nvidia/bin/ptxas"),
            ],
        },
        search(
            "libcuda",
            &[Step::Root("TRITON_LIBCUDA_PATH"), Step::Loader],
        ),
        search(
            "host_compiler",
            &[Step::File("CC"), Step::Path("gcc"), Step::Path("clang")],
        ),
    ],
    overrides: &[
        replaces("TRITON_PTXAS_PATH", "ptxas", "ptxas"),
        replaces("TRITON_PTXAS_BLACKWELL_PATH", "ptxas", "ptxas-blackwell"),
        replaces("TRITON_CUOBJDUMP_PATH", "cuobjdump", "cuobjdump"),
        replaces("TRITON_NVDISASM_PATH", "nvdisasm", "nvdisasm"),
    ],
    caches: &[JitCache {
        variable: "TRITON_CACHE_DIR",
        directory: "~/.triton/cache",
        not_keyed: "the driver and the host compiler",
    }],
    ..NOTHING
};

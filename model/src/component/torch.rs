//! torch: extensions by the usual rules, Inductor, and the libraries of its wheels (resolution.md 1.1).

use super::{Component, JitCache, NOTHING, Override, Step, USUAL, replaces, search};

/// torch.
pub(super) const TORCH: Component = Component {
    name: "torch",
    aliases: &["torch"],
    searches: &[
        search("nvcc", USUAL),
        // RPATH of every torch library beats LD_LIBRARY_PATH; what sys.path offers is loaded before.
        search("cudart", &[Step::Loaded, Step::Wheels, Step::Loader]),
        search("nvrtc", &[Step::Loaded, Step::Wheels, Step::Loader]),
        search("host_compiler", &[Step::File("CXX"), Step::Path("c++")]),
    ],
    overrides: &[
        Override {
            not_asked: true,
            ..replaces("PYTORCH_NVCC", "nvcc", "nvcc")
        },
        replaces("CUDACXX", "nvcc", "nvcc"),
    ],
    caches: &[
        JitCache {
            variable: "TORCH_EXTENSIONS_DIR",
            directory: "~/.cache/torch_extensions",
            not_keyed: "nvcc's release and the driver",
        },
        JitCache {
            variable: "TORCHINDUCTOR_CACHE_DIR",
            directory: "<tmp>/torchinductor_<user>",
            not_keyed: "nvcc and the driver; ptxas only through Triton's own key",
        },
        JitCache {
            variable: "PYTORCH_KERNEL_CACHE_PATH",
            directory: "~/.cache/torch/kernels",
            not_keyed: "the driver",
        },
    ],
    ..NOTHING
};

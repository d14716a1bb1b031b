//! What is known of the components of the stack: their names, and the words they use.
//!
//! Knowledge explains and predicts. It never overrules what was seen.

/// A component and the distributions it comes in.
struct Known {
    name: &'static str,
    /// Distribution names and import names, normalized as PyPI compares them.
    aliases: &'static [&'static str],
    /// It loads or runs things for others: the next frame out speaks.
    plumbing: bool,
}

const fn known(name: &'static str, aliases: &'static [&'static str]) -> Known {
    Known {
        name,
        aliases,
        plumbing: false,
    }
}

const fn plumbing(name: &'static str, aliases: &'static [&'static str]) -> Known {
    Known {
        name,
        aliases,
        plumbing: true,
    }
}

const KNOWN: &[Known] = &[
    known("torch", &["torch"]),
    known("triton", &["triton", "pytorch-triton", "triton-nightly"]),
    known("flashinfer", &["flashinfer", "flashinfer-python"]),
    known("sglang", &["sglang"]),
    known("sgl-kernel", &["sgl-kernel", "sglang-kernel"]),
    known("vllm", &["vllm"]),
    known("deep-gemm", &["deep-gemm", "sgl-deep-gemm"]),
    plumbing("tvm-ffi", &["apache-tvm-ffi", "tvm-ffi"]),
    known("tilelang", &["tilelang"]),
    known(
        "cupy",
        &[
            "cupy",
            "cupy-cuda11x",
            "cupy-cuda12x",
            "cupy-cuda13x",
            "cupy-backends",
        ],
    ),
    known("numba-cuda", &["numba-cuda", "numba"]),
    plumbing("cuda-pathfinder", &["cuda-pathfinder"]),
    plumbing("cuda-bindings", &["cuda-bindings", "cuda-python", "cuda"]),
    known(
        "jax",
        &[
            "jax",
            "jaxlib",
            "jax-cuda12-plugin",
            "jax-cuda13-plugin",
            "jax-cuda12-pjrt",
            "jax-cuda13-pjrt",
        ],
    ),
    known(
        "transformer-engine",
        &[
            "transformer-engine",
            "transformer-engine-cu12",
            "transformer-engine-cu13",
        ],
    ),
    known("cutlass-dsl", &["nvidia-cutlass-dsl", "cutlass"]),
    known("bitsandbytes", &["bitsandbytes"]),
    known("flash-attn", &["flash-attn"]),
    known("xformers", &["xformers"]),
    plumbing("ninja", &["ninja"]),
    plumbing(
        "setuptools",
        &["setuptools", "-distutils-hack", "pkg-resources"],
    ),
    plumbing("pip", &["pip"]),
];

fn find(distribution: &str) -> Option<&'static Known> {
    let wanted = crate::fold::normalized(distribution);
    KNOWN.iter().find(|k| k.aliases.contains(&wanted.as_str()))
}

/// The component's name for a distribution or import name; the name itself when it is not known.
pub fn name_of(distribution: &str) -> String {
    find(distribution).map_or_else(
        || crate::fold::normalized(distribution),
        |k| k.name.to_owned(),
    )
}

/// Whether a distribution loads or runs things for others, so that the next frame out is the one that asked.
pub fn is_plumbing(distribution: &str) -> bool {
    find(distribution).is_some_and(|k| k.plumbing)
}

/// Whether a distribution is one of the components that a report speaks of even when nobody asked for it.
pub fn is_known(distribution: &str) -> bool {
    find(distribution).is_some()
}

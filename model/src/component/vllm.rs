//! vLLM: mirrors FlashInfer's rules, and a compat driver that only children see (resolution.md 1.5).

use super::{Component, JitCache, NOTHING, Step, USUAL, search};

/// vLLM.
pub(super) const VLLM: Component = Component {
    name: "vllm",
    aliases: &["vllm"],
    searches: &[
        search("nvcc", USUAL),
        search("cudart", &[Step::Loaded, Step::File("VLLM_CUDART_SO_PATH")]),
        search("nccl", &[Step::File("VLLM_NCCL_SO_PATH"), Step::Loader]),
    ],
    caches: &[JitCache {
        variable: "VLLM_CACHE_ROOT",
        directory: "~/.cache/vllm",
        not_keyed: "the release of a toolkit without version.json, as pip's and conda's are",
    }],
    ..NOTHING
};

//! bitsandbytes: a library for each CUDA release, chosen by torch's (resolution.md 1.15).

use super::{Component, NOTHING, Step, search};

/// bitsandbytes.
pub(super) const BITSANDBYTES: Component = Component {
    name: "bitsandbytes",
    aliases: &["bitsandbytes"],
    // Its RUNPATH names /usr/local/cuda-X.Y, which comes before the loader cache.
    searches: &[search(
        "cudart",
        &[
            Step::Loaded,
            Step::Directory("/usr/local/cuda"),
            Step::Loader,
        ],
    )],
    ..NOTHING
};

//! NCCL, cuDNN and cuBLAS: what they load by themselves (resolution.md 1.16).

use super::{Component, NOTHING, Step, search};

/// NCCL. Has libcudart linked into itself, which is normal.
pub(super) const NCCL: Component = Component {
    name: "nccl",
    aliases: &["nvidia-nccl-cu12", "nvidia-nccl-cu13"],
    searches: &[search("libcuda", &[Step::Loader])],
    ..NOTHING
};

/// cuDNN. Loads its sub-libraries by their bare SONAMEs.
pub(super) const CUDNN: Component = Component {
    name: "cudnn",
    aliases: &["nvidia-cudnn-cu12", "nvidia-cudnn-cu13"],
    searches: &[
        search("cudnn", &[Step::Loaded, Step::Loader]),
        search("nvrtc", &[Step::Loaded, Step::Loader]),
    ],
    ..NOTHING
};

/// cuBLAS.
pub(super) const CUBLAS: Component = Component {
    name: "cublas",
    aliases: &["nvidia-cublas-cu12", "nvidia-cublas-cu13", "nvidia-cublas"],
    searches: &[search("cublas", &[Step::Loaded, Step::Loader])],
    ..NOTHING
};

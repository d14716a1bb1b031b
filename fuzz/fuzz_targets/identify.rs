//! Toolkit files: any bytes under any of the names that matter.
#![no_main]

use jittrace_model::toolkit::{Context, NoFiles, identify};
use std::path::Path;

const NAMES: &[&str] = &[
    "/usr/local/cuda/bin/nvcc",
    "/t/lib64/libcudart.so.12",
    "/t/lib64/stubs/libcuda.so",
    "/usr/lib/libcuda.so.580.65.06",
    "/s/site-packages/nvidia/cu13/include/cuda.h",
    "/t/lib/libnvJitLink.so.12",
    "/t/lib/libnvrtc-builtins.so.13.0",
    "/t/lib/libnccl.so.2",
    "/t/lib/libcudnn_ops.so.9",
    "/t/x.so",
];

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((first, rest)) = bytes.split_first() else {
        return;
    };
    let name = NAMES[usize::from(*first) % NAMES.len()];
    let found = identify(
        Path::new(name),
        rest,
        &Context {
            files: &NoFiles,
            owner: None,
        },
    );
    let _ = (found.disagreement(), found.to_fact());
});

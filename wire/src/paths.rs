//! Which paths are of interest, found by pattern so that not every file a program opens is watched.

/// Why a path is of interest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Interest {
    /// Something in a JIT cache: a compiled module, a kernel, a side file.
    Cache,
    /// A build description whose text names a toolkit.
    BuildFile,
    /// A lock that serialises builds.
    Lock,
    /// A header that carries the toolkit's version, or that a partial toolkit lacks.
    Header,
    /// A toolkit's version file.
    Version,
    /// A CUDA library opened as a file.
    Library,
    /// A tool of a toolkit, opened or looked for.
    Tool,
    /// Memory map of the process: how some packages decide what is loaded.
    Maps,
    /// A device node by which the driver reaches a GPU.
    Device,
}

impl Interest {
    /// Name in the log.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Interest::Cache => "cache",
            Interest::BuildFile => "build-file",
            Interest::Lock => "lock",
            Interest::Header => "header",
            Interest::Version => "version",
            Interest::Library => "library",
            Interest::Tool => "tool",
            Interest::Maps => "maps",
            Interest::Device => "device",
        }
    }
}

/// Directories, as they appear in a path, below which JIT artifacts lie (facts: resolution.md 1).
#[rustfmt::skip]
pub const CACHE_DIRECTORIES: &[&str] = &[
    "/flashinfer/", "/.flashinfer/", "/cached_ops", "/.triton/", "/triton/cache/", "/torchinductor_", "/torch_extensions/", "/torch/kernels/",
    "/.deep_gemm/", "/deep_gemm/", "/tvm-ffi/", "/tvm_ffi/", "/.tilelang/", "/tilelang/", "/.nv/ComputeCache", "/nv/ComputeCache",
    "/.cupy/", "/kernel_cache/", "/sglang/", "/vllm/torch_compile_cache", "/.jax_cache/", "/jax_cache/", "/cutlass/", "/cute_dsl",
    "/cache/",
];

/// Endings of files that a JIT leaves behind. `.so` and `.o` count only below a cache directory.
#[rustfmt::skip]
const ARTIFACT_ENDINGS: &[&str] = &[
    ".cubin", ".ptx", ".fatbin", ".ttir", ".ttgir", ".llir", ".cu", ".cuh", ".nbi", ".nbc", ".cubin.tmp",
];

const CACHED_ENDINGS: &[&str] = &[".so", ".o", ".json", ".source", ".index", ".jit.log"];

/// Names of headers that carry the version, or whose absence shows a partial toolkit.
#[rustfmt::skip]
const HEADERS: &[&str] = &[
    "cuda.h", "cuda_runtime.h", "cuda_runtime_api.h", "cuda_fp16.h", "cuda_bf16.h", "cuda_fp8.h", "cublas_v2.h", "cublasLt.h", "cusparse.h", "cusolverDn.h",
    "curand.h", "curand_kernel.h", "cudnn.h", "cudnn_version.h", "nccl.h", "nvrtc.h", "nvJitLink.h", "crt/host_config.h", "cuda_pipeline.h", "Python.h",
];

const LIBRARIES: &[&str] = &[
    "libcuda.so",
    "libcudart",
    "libnvrtc",
    "libnvJitLink",
    "libnvvm.so",
    "libdevice.",
    "libnvidia-ml.so",
    "libnvidia-ptxjitcompiler",
    "libcudnn",
    "libcublas",
    "libnccl",
];

const TOOLS: &[&str] = &[
    "nvcc",
    "ptxas",
    "ptxas-blackwell",
    "cicc",
    "fatbinary",
    "cudafe++",
    "nvlink",
    "cuobjdump",
    "nvdisasm",
    "nvcc.profile",
    "ninja",
];

/// What every use of a GPU opens; that of WSL is the last. The nodes of single GPUs tell nothing more.
const DEVICES: &[&str] = &["/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/dxg"];

/// Whether a lock guards a build. torch's is a file `lock` in whatever directory TORCH_EXTENSIONS_DIR names.
fn is_build_lock(path: &[u8], name: &[u8]) -> bool {
    const PLACES: &[&str] = &["extension", "jit", "build"];
    name == b"lock"
        || is_cache_directory(path)
        || PLACES.iter().any(|place| contains(path, place.as_bytes()))
}

/// Why this path is of interest; `None` when it is not.
#[must_use]
pub fn interest(path: &[u8]) -> Option<Interest> {
    let name = file_name(path);
    if name.is_empty() || name.len() > 255 {
        return is_cache_directory(path).then_some(Interest::Cache);
    }
    if matches!(
        name,
        b"build.ninja" | b".ninja_log" | b".ninja_deps" | b"CMakeCache.txt"
    ) {
        return Some(Interest::BuildFile);
    }
    if name.ends_with(b".lock") || name == b"lock" || name == b"baton" {
        return is_build_lock(path, name).then_some(Interest::Lock);
    }
    if any_ending(name, ARTIFACT_ENDINGS) {
        // nvcc's own temporary files tell nothing that the exec of its tools does not; sources lie in packages.
        let is_source = in_package(path) && any_ending(name, &[".cu", ".cuh"]);
        return (!name.starts_with(b"tmpxft_") && !is_source).then_some(Interest::Cache);
    }
    if HEADERS
        .iter()
        .any(|header| path_ends_with(path, header.as_bytes()))
    {
        return Some(Interest::Header);
    }
    if (name == b"version.json" || name == b"version.txt") && contains(path, b"cuda") {
        return Some(Interest::Version);
    }
    if name.starts_with(b"lib")
        && LIBRARIES
            .iter()
            .any(|library| name.starts_with(library.as_bytes()))
    {
        return Some(Interest::Library);
    }
    if TOOLS.iter().any(|tool| tool.as_bytes() == name) {
        return Some(Interest::Tool);
    }
    if DEVICES.iter().any(|device| device.as_bytes() == path) {
        return Some(Interest::Device);
    }
    if name == b"maps" && path.starts_with(b"/proc/") {
        return Some(Interest::Maps);
    }
    if is_python(name) || in_package(path) {
        return None;
    }
    if is_cache_directory(path)
        && (any_ending(name, CACHED_ENDINGS)
            || is_compute_cache(path)
            || contains(path, b"/cached_ops"))
    {
        return Some(Interest::Cache);
    }
    None
}

/// Like [`interest`], for calls that make, list or remove a directory: any directory of a JIT cache counts.
#[must_use]
pub fn directory_interest(path: &[u8]) -> Option<Interest> {
    (is_cache_directory(path)
        && !contains(path, b"site-packages")
        && !contains(path, b"__pycache__"))
    .then_some(Interest::Cache)
}

/// Whether the path lies in, or is, one of [`CACHE_DIRECTORIES`].
#[must_use]
pub fn is_cache_directory(path: &[u8]) -> bool {
    CACHE_DIRECTORIES.iter().any(|directory| {
        let directory = directory.as_bytes();
        contains(path, directory)
            // A relative path has no slash before its first directory, a directory itself none after its last.
            || directory.get(1..).is_some_and(|relative| path.starts_with(relative))
            || directory.strip_suffix(b"/").is_some_and(|whole| path.ends_with(whole) || whole.get(1..) == Some(path))
    })
}

/// Whether what the file said before is worth keeping when it is about to be overwritten.
#[must_use]
pub fn is_build_description(path: &[u8]) -> bool {
    file_name(path) == b"build.ninja"
}

/// Whether the path lies in an installed package.
fn in_package(path: &[u8]) -> bool {
    contains(path, b"site-packages/") || contains(path, b"dist-packages/")
}

fn is_compute_cache(path: &[u8]) -> bool {
    contains(path, b"nv/ComputeCache")
}

fn is_python(name: &[u8]) -> bool {
    any_ending(name, &[".py", ".pyc", ".pyi", ".pth", ".dist-info"])
}

fn file_name(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
}

fn any_ending(name: &[u8], endings: &[&str]) -> bool {
    endings
        .iter()
        .any(|ending| name.ends_with(ending.as_bytes()))
}

fn path_ends_with(path: &[u8], name: &[u8]) -> bool {
    path.strip_suffix(name)
        .is_some_and(|before| before.is_empty() || before.ends_with(b"/"))
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.len() >= part.len() && text.windows(part.len()).any(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_of_interest_by_what_they_are() {
        let cases = [
            (
                "/home/u/.cache/flashinfer/0.6.8/120f/cached_ops/norm/norm.so",
                Some(Interest::Cache),
            ),
            (
                "/home/u/.cache/flashinfer/0.6.8/cached_ops/norm/build.ninja",
                Some(Interest::BuildFile),
            ),
            (
                "/home/u/.cache/flashinfer/0.6.8/120f/cached_ops/tmp/norm.lock",
                Some(Interest::Lock),
            ),
            ("/home/u/.triton/cache/ab/k.cubin", Some(Interest::Cache)),
            (
                "cache/0.6.9/90a/sampling/sampling.so",
                Some(Interest::Cache),
            ),
            ("shared/cache/abc123/k.cubin", Some(Interest::Cache)),
            ("nodeB-view/abc123/k.cubin", Some(Interest::Cache)),
            ("cache/build.ninja", Some(Interest::BuildFile)),
            ("cache/0.o", Some(Interest::Cache)),
            (
                "/usr/local/cuda/include/cuda_runtime_api.h",
                Some(Interest::Header),
            ),
            ("/usr/include/curand_kernel.h", Some(Interest::Header)),
            ("/usr/local/cuda/version.json", Some(Interest::Version)),
            ("/usr/lib/libcuda.so.1", Some(Interest::Library)),
            ("/opt/cuda/bin/nvcc", Some(Interest::Tool)),
            ("/proc/self/maps", Some(Interest::Maps)),
            ("/home/u/.nv/ComputeCache/6/7/abcdef", Some(Interest::Cache)),
            (
                "/usr/lib/python3/site-packages/flashinfer/jit/core.py",
                None,
            ),
            (
                "/usr/lib/python3/site-packages/sglang/__pycache__/x.cpython-312.pyc",
                None,
            ),
            (
                "/usr/lib/python3/site-packages/flashinfer/data/csrc/page.cu",
                None,
            ),
            ("/usr/lib/python3/site-packages/sglang/x.abi3.so", None),
            ("/tmp/tmpxft_0000_page.ptx", None),
            ("/etc/passwd", None),
            ("/usr/lib/x86_64-linux-gnu/libm.so.6", None),
            ("", None),
        ];
        for (path, expected) in cases {
            assert_eq!(interest(path.as_bytes()), expected, "{path}");
        }
    }

    #[test]
    fn directories_of_caches_are_of_interest() {
        for (path, expected) in [
            ("/home/u/.cache/flashinfer/0.6.8/cached_ops", true),
            ("cache", true),
            ("shared/cache/abc123/tmp.3", true),
            ("/usr/lib/python3/site-packages/flashinfer/jit", false),
            ("/tmp", false),
        ] {
            assert_eq!(
                directory_interest(path.as_bytes()).is_some(),
                expected,
                "{path}"
            );
        }
    }
}

//! The parts of a CUDA installation, and how their files are named.

use serde::{Deserialize, Serialize};

/// One part: a tool, a library or the headers. Serialised under the names that reports use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the variants are the names of NVIDIA's files")]
pub enum Part {
    Nvcc,
    Ptxas,
    Fatbinary,
    Cicc,
    #[serde(rename = "cudafe++")]
    Cudafe,
    Nvlink,
    Cuobjdump,
    Nvdisasm,
    Bin2c,
    Cudart,
    /// `libcudart_static.a`.
    CudartStatic,
    /// A library that stands in for libcudart and loads the real one later (tilelang's), or a link-time stub.
    CudartStub,
    Cudadevrt,
    Nvrtc,
    NvrtcBuiltins,
    Nvjitlink,
    Nvvm,
    Libdevice,
    Nvptxcompiler,
    Libcuda,
    Nvml,
    /// `libnvidia-ptxjitcompiler`: the driver's own compiler for PTX.
    Ptxjitcompiler,
    Cudnn,
    Cublas,
    CublasLt,
    Cusparse,
    CusparseLt,
    Cufft,
    Curand,
    Cusolver,
    Cufile,
    Nvjpeg,
    Npp,
    Nccl,
    Nvshmem,
    Cupti,
    Nvtx,
    Headers,
    HostCompiler,
    Ninja,
    Other,
}

impl Part {
    /// The name that reports use, such as `nvcc` or `nvrtc`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nvcc => "nvcc",
            Self::Ptxas => "ptxas",
            Self::Fatbinary => "fatbinary",
            Self::Cicc => "cicc",
            Self::Cudafe => "cudafe++",
            Self::Nvlink => "nvlink",
            Self::Cuobjdump => "cuobjdump",
            Self::Nvdisasm => "nvdisasm",
            Self::Bin2c => "bin2c",
            Self::Cudart => "cudart",
            Self::CudartStatic => "cudart_static",
            Self::CudartStub => "cudart_stub",
            Self::Cudadevrt => "cudadevrt",
            Self::Nvrtc => "nvrtc",
            Self::NvrtcBuiltins => "nvrtc_builtins",
            Self::Nvjitlink => "nvjitlink",
            Self::Nvvm => "nvvm",
            Self::Libdevice => "libdevice",
            Self::Nvptxcompiler => "nvptxcompiler",
            Self::Libcuda => "libcuda",
            Self::Nvml => "nvml",
            Self::Ptxjitcompiler => "ptxjitcompiler",
            Self::Cudnn => "cudnn",
            Self::Cublas => "cublas",
            Self::CublasLt => "cublas_lt",
            Self::Cusparse => "cusparse",
            Self::CusparseLt => "cusparse_lt",
            Self::Cufft => "cufft",
            Self::Curand => "curand",
            Self::Cusolver => "cusolver",
            Self::Cufile => "cufile",
            Self::Nvjpeg => "nvjpeg",
            Self::Npp => "npp",
            Self::Nccl => "nccl",
            Self::Nvshmem => "nvshmem",
            Self::Cupti => "cupti",
            Self::Nvtx => "nvtx",
            Self::Headers => "headers",
            Self::HostCompiler => "host_compiler",
            Self::Ninja => "ninja",
            Self::Other => "other",
        }
    }

    /// Whether it is a program of the toolkit, which states its release when asked `--version`.
    #[must_use]
    pub const fn is_tool(self) -> bool {
        matches!(
            self,
            Self::Nvcc
                | Self::Ptxas
                | Self::Fatbinary
                | Self::Cicc
                | Self::Cudafe
                | Self::Nvlink
                | Self::Cuobjdump
                | Self::Nvdisasm
                | Self::Bin2c
        )
    }

    /// Whether the part's own version is the CUDA release (nvcc 13.0 is of CUDA 13.0), unlike cuDNN's or cuFFT's.
    #[must_use]
    pub const fn is_numbered_as_cuda(self) -> bool {
        self.is_tool()
            || matches!(
                self,
                Self::Cudart
                    | Self::CudartStatic
                    | Self::Cudadevrt
                    | Self::Nvrtc
                    | Self::NvrtcBuiltins
                    | Self::Nvjitlink
                    | Self::Nvvm
                    | Self::Nvptxcompiler
                    | Self::Libcuda
                    | Self::Headers
            )
    }

    /// Whether it belongs to the display driver and not to a toolkit.
    #[must_use]
    pub const fn is_of_driver(self) -> bool {
        matches!(self, Self::Libcuda | Self::Nvml | Self::Ptxjitcompiler)
    }

    /// The part's key in a toolkit's `version.json`.
    pub(crate) const fn version_json_key(self) -> Option<&'static str> {
        Some(match self {
            Self::Nvcc
            | Self::Ptxas
            | Self::Fatbinary
            | Self::Cicc
            | Self::Cudafe
            | Self::Nvlink
            | Self::Bin2c => "cuda_nvcc",
            Self::Cuobjdump => "cuda_cuobjdump",
            Self::Nvdisasm => "cuda_nvdisasm",
            Self::Cudart | Self::CudartStatic | Self::Headers => "cuda_cudart",
            Self::Nvrtc | Self::NvrtcBuiltins => "cuda_nvrtc",
            Self::Nvjitlink => "libnvjitlink",
            Self::Cublas | Self::CublasLt => "libcublas",
            Self::Cusparse => "libcusparse",
            Self::Cufft => "libcufft",
            Self::Curand => "libcurand",
            Self::Cusolver => "libcusolver",
            Self::Cupti => "cuda_cupti",
            _ => return None,
        })
    }

    /// The part that a file of this name is; [`Part::Other`] if the name tells nothing.
    #[must_use]
    pub fn of_file_name(name: &str) -> Self {
        if let Some(library) = LibraryName::parse(name) {
            return Self::of_library(library.stem);
        }
        match name {
            "libcudart_static.a" => return Self::CudartStatic,
            "libcudadevrt.a" => return Self::Cudadevrt,
            "libnvptxcompiler_static.a" => return Self::Nvptxcompiler,
            "cuda.h" | "cuda_runtime.h" | "cuda_runtime_api.h" | "nvrtc.h" | "cuda_fp16.h"
            | "cuda_fp8.h" | "cudart_version.h" => {
                return Self::Headers;
            }
            "ninja" | "ninja-build" => return Self::Ninja,
            _ => {}
        }
        if name.starts_with("libdevice.") && name.ends_with(".bc") {
            return Self::Libdevice;
        }
        // Triton carries `ptxas-blackwell`; distributions add releases (`nvcc-12.8`).
        const TOOLS: &[(&str, Part)] = &[
            ("nvcc", Part::Nvcc),
            ("ptxas", Part::Ptxas),
            ("fatbinary", Part::Fatbinary),
            ("cicc", Part::Cicc),
            ("cudafe++", Part::Cudafe),
            ("nvlink", Part::Nvlink),
            ("cuobjdump", Part::Cuobjdump),
            ("nvdisasm", Part::Nvdisasm),
            ("bin2c", Part::Bin2c),
        ];
        for (tool, part) in TOOLS {
            if let Some(rest) = name.strip_prefix(tool)
                && (rest.is_empty()
                    || rest.starts_with(['-', '_'])
                    || matches!(rest, ".real" | ".orig" | ".bin" | ".exe"))
            {
                return *part;
            }
        }
        if is_host_compiler(name) {
            Self::HostCompiler
        } else {
            Self::Other
        }
    }

    fn of_library(stem: &str) -> Self {
        match stem {
            "cudart" => Self::Cudart,
            "cudart_stub" | "stub_cudart" => Self::CudartStub,
            "nvrtc" => Self::Nvrtc,
            "nvrtc-builtins" => Self::NvrtcBuiltins,
            "nvJitLink" => Self::Nvjitlink,
            "nvvm" => Self::Nvvm,
            "nvptxcompiler" => Self::Nvptxcompiler,
            "cuda" => Self::Libcuda,
            "nvidia-ml" => Self::Nvml,
            "nvidia-ptxjitcompiler" => Self::Ptxjitcompiler,
            "cublas" => Self::Cublas,
            "cublasLt" => Self::CublasLt,
            "cusparse" => Self::Cusparse,
            "cusparseLt" => Self::CusparseLt,
            "cufft" | "cufftw" => Self::Cufft,
            "curand" => Self::Curand,
            "cusolver" | "cusolverMg" => Self::Cusolver,
            "cufile" => Self::Cufile,
            "nvjpeg" => Self::Nvjpeg,
            "nccl" => Self::Nccl,
            "cupti" => Self::Cupti,
            "nvToolsExt" => Self::Nvtx,
            stem if stem == "cudnn" || stem.starts_with("cudnn_") => Self::Cudnn,
            stem if stem.starts_with("nvshmem") => Self::Nvshmem,
            stem if stem.starts_with("npp") => Self::Npp,
            _ => Self::Other,
        }
    }
}

impl std::fmt::Display for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Whether a program of this name compiles C or C++ for the host (`c++`, `gcc-12`, `x86_64-linux-gnu-g++`).
#[must_use]
pub fn is_host_compiler(name: &str) -> bool {
    let versioned = name
        .trim_end_matches(|c: char| c.is_ascii_digit() || c == '.')
        .trim_end_matches('-');
    // Packagers put wrappers before the real thing and rename it.
    let versioned = versioned
        .trim_end_matches("-real")
        .trim_end_matches(".real");
    let base = versioned
        .rsplit_once('-')
        .map_or(versioned, |(_, last)| last);
    matches!(
        base,
        "cc" | "c++" | "gcc" | "g++" | "clang" | "clang++" | "icx" | "icpx" | "nvc" | "nvc++"
    )
}

/// A shared library's file name, taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LibraryName<'a> {
    /// Between `lib` and `.so`, without a hash: `cudart`, `nvrtc-builtins`.
    pub stem: &'a str,
    /// The hash that a wheel-repair tool put into the name (`faf08d9a` in `libcudart.faf08d9a.so.13`).
    pub hash: Option<&'a str>,
    /// Whether it is an `.alt` variant (`libnvrtc.alt.so.13`).
    pub alternative: bool,
    /// What follows `.so.`; empty for the development name.
    pub suffix: &'a str,
}

impl<'a> LibraryName<'a> {
    /// Takes a file name apart; `None` if it is no shared library's.
    #[must_use]
    pub fn parse(name: &'a str) -> Option<Self> {
        let rest = name.strip_prefix("lib")?;
        let (stem, suffix) = match rest.split_once(".so.") {
            Some((stem, suffix)) => (stem, suffix),
            None => (rest.strip_suffix(".so")?, ""),
        };
        let (stem, hash) = match stem.rsplit_once(['.', '-']) {
            Some((before, hash)) if is_hash(hash) => (before, Some(hash)),
            _ => (stem, None),
        };
        let (stem, alternative) = match stem.strip_suffix(".alt") {
            Some(stem) => (stem, true),
            None => (stem, false),
        };
        (!stem.is_empty()).then_some(Self {
            stem,
            hash,
            alternative,
            suffix,
        })
    }
}

/// Wheel-repair tools write eight hexadecimal digits; a release number like `550` or a word is none.
fn is_hash(text: &str) -> bool {
    (6..=40).contains(&text.len())
        && text
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        && text
            .bytes()
            .any(|byte| byte.is_ascii_digit() || text.len() == 8 && byte.is_ascii_hexdigit())
}

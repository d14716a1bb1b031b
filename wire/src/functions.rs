//! The functions whose calls are watched: one line each in [`WATCHED`].
//!
//! To watch another function, add its line: name, family, what to capture. It is then reached wherever a program looks
//! it up (`dlsym`, `dlvsym`, `cuGetProcAddress`), and, when the line ends in `linked`, also where the loader binds a
//! reference to it. Give `linked` only to functions that **every** release of the library exports: the shim then defines
//! the name with the library's own symbol version, and a definition that the real library lacks would hide the very
//! failure that is to be shown (`undefined symbol: __nvJitLinkComplete_12_4`). Driver functions are never `linked`, as
//! libcuda has no symbol versions and an unversioned definition would make weak references present.

/// A library that comes in several releases under one SONAME stem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Family {
    /// Name in words of the report: `cudart`, `libcuda` …
    pub name: &'static str,
    /// What the SONAME begins with. Renamed copies (`libcudart-faf08d9a.so.13`, `libcudart.faf08d9a.so.13`) match too.
    pub soname: &'static str,
    /// Symbol versions under which the shim may define the family's `linked` functions (facts: resolution.md 2.9).
    pub versions: &'static [&'static str],
}

/// The runtime library.
pub const CUDART: &Family = &Family {
    name: "cudart",
    soname: "libcudart",
    versions: &["libcudart.so.11.0", "libcudart.so.12", "libcudart.so.13"],
};
/// The run-time compiler.
pub const NVRTC: &Family = &Family {
    name: "nvrtc",
    soname: "libnvrtc",
    versions: &["libnvrtc.so.12", "libnvrtc.so.13"],
};
/// The device linker. Its functions carry their release in the name, so hardly any is in every release.
pub const NVJITLINK: &Family = &Family {
    name: "nvjitlink",
    soname: "libnvJitLink",
    versions: &[],
};
/// The driver, which has no symbol versions.
pub const LIBCUDA: &Family = &Family {
    name: "libcuda",
    soname: "libcuda.so",
    versions: &[],
};
/// The management library.
pub const NVML: &Family = &Family {
    name: "nvml",
    soname: "libnvidia-ml",
    versions: &[],
};

/// Every family.
pub const FAMILIES: &[&Family] = &[CUDART, NVRTC, NVJITLINK, LIBCUDA, NVML];

/// What is read when a watched function returns. Arguments are numbered from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capture {
    /// Only the result.
    Result,
    /// The `int` behind argument `.0`.
    Int(u8),
    /// Two `int`s behind arguments `.0` and `.1`: value is 1000 * first + 10 * second, as CUDA numbers its releases.
    Release(u8, u8),
    /// `cuDeviceGetAttribute`: the `int` behind argument 0, only for the two attributes of the compute capability.
    CapabilityAttribute,
    /// The compute capability in the `cudaDeviceProp` behind argument 0 as 10 * major + minor; the layout is that of
    /// the library's major release.
    DeviceProperties,
    /// A module image behind argument `.0`, as in `cuModuleLoadData`.
    Image(u8),
    /// A file name in argument `.0`.
    FileName(u8),
    /// A kind in argument 1, an image behind argument 2 of the size in argument 3, as in `cuLinkAddData_v2` and
    /// `__nvJitLinkAddData`.
    LinkInput,
    /// A kind in argument 1 and a file name in argument 2.
    LinkFile,
    /// The options of `nvrtcCompileProgram` (count in argument 1, array in 2), and the log when it failed.
    NvrtcCompile,
    /// The option texts of `nvJitLinkCreate` (count in argument 1, array in 2).
    Options,
    /// The highest of an array of `int`s behind argument 0, as in `nvrtcGetSupportedArchs`.
    Archs,
    /// A text that the function wrote to the buffer in argument `.0`.
    Text(u8),
    /// `cuGetProcAddress`: the address behind argument 1 is replaced by a thunk when the name in argument 0 is watched.
    ProcAddress,
}

/// One watched function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watched {
    /// Exported name. A `*` at the end stands for a release, `__nvJitLinkCreate_*` for `__nvJitLinkCreate_12_9`.
    pub name: &'static str,
    /// The library that exports it.
    pub family: &'static Family,
    /// What is read when it returns.
    pub capture: Capture,
    /// Symbol versions under which every release of that SONAME exports it; empty for functions reached by look-up only.
    pub linked: &'static [&'static str],
}

const fn looked_up(name: &'static str, family: &'static Family, capture: Capture) -> Watched {
    Watched {
        name,
        family,
        capture,
        linked: &[],
    }
}

const fn linked(name: &'static str, family: &'static Family, capture: Capture) -> Watched {
    Watched {
        name,
        family,
        capture,
        linked: family.versions,
    }
}

use Capture::{
    Archs, CapabilityAttribute, DeviceProperties, FileName, Image, Int, LinkFile, LinkInput,
    NvrtcCompile, Options, ProcAddress, Release, Result, Text,
};

/// The table.
#[rustfmt::skip]
pub const WATCHED: &[Watched] = &[
    linked("cudaRuntimeGetVersion", CUDART, Int(0)),
    linked("cudaDriverGetVersion", CUDART, Int(0)),
    linked("cudaGetDeviceCount", CUDART, Int(0)),
    linked("cudaGetDeviceProperties", CUDART, DeviceProperties),
    looked_up("cudaGetDeviceProperties_v2", CUDART, DeviceProperties),
    looked_up("cuInit", LIBCUDA, Result),
    looked_up("cuDriverGetVersion", LIBCUDA, Int(0)),
    looked_up("cuDeviceGetCount", LIBCUDA, Int(0)),
    looked_up("cuDeviceGetAttribute", LIBCUDA, CapabilityAttribute),
    looked_up("cuModuleLoad", LIBCUDA, FileName(1)),
    looked_up("cuModuleLoadData", LIBCUDA, Image(1)),
    looked_up("cuModuleLoadDataEx", LIBCUDA, Image(1)),
    looked_up("cuModuleLoadFatBinary", LIBCUDA, Image(1)),
    looked_up("cuLibraryLoadData", LIBCUDA, Image(1)),
    looked_up("cuLibraryLoadFromFile", LIBCUDA, FileName(1)),
    looked_up("cuLinkCreate_v2", LIBCUDA, Result),
    looked_up("cuLinkAddData_v2", LIBCUDA, LinkInput),
    looked_up("cuLinkAddFile_v2", LIBCUDA, LinkFile),
    looked_up("cuLinkComplete", LIBCUDA, Result),
    looked_up("cuGetProcAddress", LIBCUDA, ProcAddress),
    looked_up("cuGetProcAddress_v2", LIBCUDA, ProcAddress),
    linked("nvrtcVersion", NVRTC, Release(0, 1)),
    linked("nvrtcCompileProgram", NVRTC, NvrtcCompile),
    linked("nvrtcGetSupportedArchs", NVRTC, Archs),
    looked_up("nvJitLinkVersion", NVJITLINK, Release(0, 1)),
    looked_up("__nvJitLinkCreate*", NVJITLINK, Options),
    looked_up("__nvJitLinkAddData*", NVJITLINK, LinkInput),
    looked_up("__nvJitLinkAddFile*", NVJITLINK, LinkFile),
    looked_up("__nvJitLinkComplete*", NVJITLINK, Result),
    looked_up("nvmlInit", NVML, Result),
    looked_up("nvmlInit_v2", NVML, Result),
    looked_up("nvmlInitWithFlags", NVML, Result),
    looked_up("nvmlSystemGetDriverVersion", NVML, Text(0)),
    looked_up("nvmlSystemGetCudaDriverVersion", NVML, Int(0)),
    looked_up("nvmlSystemGetCudaDriverVersion_v2", NVML, Int(0)),
];

/// Position in [`WATCHED`] of the function with this exported name.
#[must_use]
pub fn find(name: &[u8]) -> Option<usize> {
    if !matches!(name.first(), Some(b'c' | b'n' | b'_')) {
        return None;
    }
    WATCHED
        .iter()
        .position(|watched| match watched.name.strip_suffix('*') {
            Some(stem) => name.strip_prefix(stem.as_bytes()).is_some_and(|release| {
                release
                    .iter()
                    .all(|byte| byte.is_ascii_digit() || *byte == b'_')
            }),
            None => watched.name.as_bytes() == name,
        })
}

/// The family that a SONAME or file name belongs to.
#[must_use]
pub fn family_of(soname: &[u8]) -> Option<&'static Family> {
    FAMILIES
        .iter()
        .copied()
        .find(|family| soname.starts_with(family.soname.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_by_their_line() {
        let cases = [
            ("cuInit", Some("cuInit")),
            ("cuInit_v2", None),
            ("__nvJitLinkCreate_12_9", Some("__nvJitLinkCreate*")),
            ("__nvJitLinkCreate_x", None),
            ("nvrtcVersion", Some("nvrtcVersion")),
            ("malloc", None),
            ("", None),
        ];
        for (name, line) in cases {
            assert_eq!(
                find(name.as_bytes()).map(|at| WATCHED[at].name),
                line,
                "{name}"
            );
        }
    }

    #[test]
    fn no_driver_function_is_ever_exported() {
        for watched in WATCHED {
            assert!(
                watched.linked.is_empty() || !watched.family.versions.is_empty(),
                "{}",
                watched.name
            );
            assert!(
                !watched.name.starts_with("cu")
                    || watched.name.starts_with("cuda")
                    || watched.linked.is_empty()
            );
        }
    }

    #[test]
    fn renamed_copies_belong_to_their_family() {
        let cases = [
            ("libcudart.so.12", Some("cudart")),
            ("libcudart.faf08d9a.so.13", Some("cudart")),
            ("libcuda.so.1", Some("libcuda")),
            ("libcudadevrt.so", None),
            ("libnvJitLink.so.13", Some("nvjitlink")),
            ("libm.so.6", None),
        ];
        for (soname, family) in cases {
            assert_eq!(
                family_of(soname.as_bytes()).map(|family| family.name),
                family,
                "{soname}"
            );
        }
    }
}

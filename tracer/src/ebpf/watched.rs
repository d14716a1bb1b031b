//! What the probes capture of each watched function: the shim's table, in the kernel programs' words.
//!
//! One table, two sources: a line in [`jittrace_wire::functions::WATCHED`] is seen by the shim and by the probes. The
//! entries of the dynamic loader are added here, because the shim knows them by name.

use jittrace_ebpf::{
    CallSpec, Capture as Read, NO_FILTER, RESULT, SLOTS, TEXT_IMAGE, TEXT_SMALL,
    at::{EITHER, RETURN},
    read, report,
};
use jittrace_wire::functions::{Capture, WATCHED, Watched, family_of, find};

/// A watched function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function {
    /// A function of a CUDA library.
    Cuda(&'static Watched),
    /// `void *dlopen(const char *file, int flags)`
    Dlopen,
    /// `void *dlmopen(Lmid_t namespace, const char *file, int flags)`
    Dlmopen,
    /// `int dlclose(void *handle)`: its entry only, the handle's name is gone when it returns.
    Dlclose,
}

/// The dynamic loader's entries, behind the CUDA functions in the numbering of the specs.
const LOADER: [Function; 3] = [Function::Dlopen, Function::Dlmopen, Function::Dlclose];

/// Offset of `link_map::l_name`: public since ever (link.h), and what a handle points to.
const LINK_MAP_NAME: u32 = 8;

/// `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR` and `…_MINOR`.
pub(crate) const CAPABILITY_ATTRIBUTES: [u32; 2] = [75, 76];

/// Offsets of `major` and `minor` in `struct cudaDeviceProp`. CUDA 13 dropped `clockRate`, whose place
/// the alignment of `totalConstMem` keeps, so they are the same from 11 to 13.
const DEVICE_PROPERTIES: [u32; 2] = [360, 364];

// Each function has a program of its own where the kernel has no attach cookies.
const _: () = assert!(WATCHED.len() + LOADER.len() <= SLOTS as usize);

impl Function {
    /// The function with this number in the specs.
    pub(crate) fn by_index(index: u16) -> Option<Self> {
        let index = usize::from(index);
        match WATCHED.get(index) {
            Some(watched) => Some(Self::Cuda(watched)),
            None => LOADER.get(index - WATCHED.len()).copied(),
        }
    }

    /// All of them, in the order of their numbers.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        WATCHED.iter().map(Self::Cuda).chain(LOADER)
    }

    /// The name in the table; a `*` at its end stands for a release.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Cuda(watched) => watched.name,
            Self::Dlopen => "dlopen",
            Self::Dlmopen => "dlmopen",
            Self::Dlclose => "dlclose",
        }
    }

    /// Whether a return probe of the kernel's may stand in where not every `ret` can be probed.
    ///
    /// A uretprobe breaks what looks at its return address (the loader) and C++ code that throws through it
    /// (mechanisms 4d). Only C functions that answer from memory are allowed.
    pub(crate) fn allows_return_probe(self) -> bool {
        match self {
            Self::Cuda(watched) => matches!(
                watched.name,
                "cudaRuntimeGetVersion"
                    | "cudaDriverGetVersion"
                    | "cudaGetDeviceCount"
                    | "cuInit"
                    | "cuDriverGetVersion"
                    | "cuDeviceGetCount"
                    | "cuDeviceGetAttribute"
                    | "nvrtcVersion"
                    | "nvJitLinkVersion"
                    | "nvmlSystemGetDriverVersion"
                    | "nvmlSystemGetCudaDriverVersion"
                    | "nvmlSystemGetCudaDriverVersion_v2"
            ),
            Self::Dlopen | Self::Dlmopen | Self::Dlclose => false,
        }
    }

    /// What is captured of it.
    pub(crate) fn spec(self) -> CallSpec {
        let returns = CallSpec {
            report: report::RETURN,
            ..CallSpec::NONE
        };
        match self {
            Self::Cuda(watched) => match watched.capture {
                Capture::Result => returns,
                Capture::Int(argument) => {
                    reading(returns, 0, [capture(read::INT32, argument, RETURN, 0)])
                }
                Capture::Release(major, minor) => reading(
                    returns,
                    0,
                    [
                        capture(read::INT32, major, RETURN, 0),
                        capture(read::INT32, minor, RETURN, 0),
                    ],
                ),
                Capture::CapabilityAttribute => {
                    let [major, minor] = CAPABILITY_ATTRIBUTES;
                    let only = CallSpec {
                        filter_argument: 1,
                        filter_from: major,
                        filter_to: minor,
                        ..returns
                    };
                    reading(only, 0, [capture(read::INT32, 0, RETURN, 0)])
                }
                Capture::DeviceProperties => reading(
                    returns,
                    0,
                    DEVICE_PROPERTIES.map(|offset| capture(read::INT32, 0, RETURN, offset)),
                ),
                Capture::Image(argument) => reading(
                    returns,
                    TEXT_IMAGE,
                    [capture(read::IMAGE, argument, EITHER, 0)],
                ),
                Capture::LinkInput => {
                    reading(returns, TEXT_IMAGE, [capture(read::IMAGE, 2, EITHER, 0)])
                }
                Capture::FileName(argument) => reading(
                    returns,
                    TEXT_SMALL,
                    [capture(read::TEXT, argument, EITHER, 0)],
                ),
                Capture::LinkFile => {
                    reading(returns, TEXT_SMALL, [capture(read::TEXT, 2, EITHER, 0)])
                }
                // The first options, by the array in argument 2; `Call::texts` keeps as many as argument 1 counts.
                Capture::NvrtcCompile | Capture::Options => reading(
                    returns,
                    TEXT_SMALL,
                    [0, 8, 16, 24].map(|offset| capture(read::TEXT_BEHIND, 2, EITHER, offset)),
                ),
                Capture::Archs => {
                    reading(returns, TEXT_SMALL, [capture(read::BYTES, 0, RETURN, 0)])
                }
                Capture::Text(argument) => reading(
                    returns,
                    TEXT_SMALL,
                    [capture(read::TEXT, argument, RETURN, 0)],
                ),
                Capture::ProcAddress => reading(
                    returns,
                    TEXT_SMALL,
                    [
                        capture(read::TEXT, 0, EITHER, 0),
                        capture(read::INT64, 1, RETURN, 0),
                    ],
                ),
            },
            Self::Dlopen => loader(0),
            Self::Dlmopen => loader(1),
            Self::Dlclose => reading(
                CallSpec {
                    report: report::ENTRY,
                    ..CallSpec::NONE
                },
                TEXT_SMALL,
                [capture(read::TEXT_BEHIND, 0, EITHER, LINK_MAP_NAME)],
            ),
        }
    }
}

/// dlopen and dlmopen: the request when it is made, the name that the loader gave when it is done.
fn loader(file: u8) -> CallSpec {
    let both = CallSpec {
        report: report::ENTRY | report::RETURN | report::LOADER,
        ..CallSpec::NONE
    };
    reading(
        both,
        TEXT_SMALL,
        [
            capture(read::TEXT, file, EITHER, 0),
            capture(read::TEXT_BEHIND, RESULT, RETURN, LINK_MAP_NAME),
        ],
    )
}

fn capture(read: u8, from: u8, at: u8, offset: u32) -> Read {
    Read {
        read,
        from,
        at,
        reserved: 0,
        offset,
    }
}

fn reading<const N: usize>(mut spec: CallSpec, text: u32, captures: [Read; N]) -> CallSpec {
    debug_assert_eq!(spec.filter_argument == NO_FILTER, spec.filter_from == 0);
    spec.text = text;
    for (place, capture) in spec.captures.iter_mut().zip(captures) {
        *place = capture;
    }
    spec
}

/// Number of the watched function that a symbol of this name is.
pub(crate) fn index_of(symbol: &str) -> Option<u16> {
    let loader = || {
        LOADER
            .iter()
            .position(|function| function.name() == symbol)
            .map(|at| WATCHED.len() + at)
    };
    find(symbol.as_bytes())
        .or_else(loader)
        .and_then(|index| u16::try_from(index).ok())
}

/// What a file may hold that is watched, judged by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holds {
    /// A CUDA library: its exports.
    CudaLibrary,
    /// The C library (before 2.34: libdl): the dynamic loader's entries.
    Loader,
    /// Any other object: perhaps a static copy of cudart, if it has a symbol table.
    StaticCopy,
}

/// See [`Holds`].
pub(crate) fn holds(file_name: &[u8]) -> Holds {
    if family_of(file_name).is_some() {
        return Holds::CudaLibrary;
    }
    // Before 2.33 the files were named by release: libc-2.31.so, libdl-2.31.so.
    let of_loader = ["libc.so.", "libdl.so.", "libc-2.", "libdl-2."];
    if of_loader
        .iter()
        .any(|stem| file_name.starts_with(stem.as_bytes()))
    {
        Holds::Loader
    } else {
        Holds::StaticCopy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_has_its_number_back() {
        for (index, function) in Function::all().enumerate() {
            let name = function.name().replace('*', "_12_9");
            assert_eq!(index_of(&name), Some(index as u16), "{name}");
            assert_eq!(Function::by_index(index as u16), Some(function), "{name}");
        }
        assert_eq!(index_of("malloc"), None);
        assert_eq!(Function::by_index(Function::all().count() as u16), None);
    }

    #[test]
    fn texts_have_room_and_the_loader_is_never_return_probed() {
        for function in Function::all() {
            let spec = function.spec();
            let reads = spec.captures.map(|capture| capture.read);
            let needs = match () {
                () if reads.contains(&read::IMAGE) => TEXT_IMAGE,
                () if reads
                    .iter()
                    .any(|one| matches!(*one, read::TEXT | read::TEXT_BEHIND | read::BYTES)) =>
                {
                    TEXT_SMALL
                }
                () => 0,
            };
            assert_eq!(spec.text, needs, "{}", function.name());
            assert_ne!(spec.report, 0, "{}", function.name());
            if function.name().starts_with("dl") {
                assert!(!function.allows_return_probe());
            }
        }
    }

    #[test]
    fn files_by_name() {
        let cases = [
            ("libcudart.so.12", Holds::CudaLibrary),
            ("libcuda.so.1", Holds::CudaLibrary),
            ("libc.so.6", Holds::Loader),
            ("libdl-2.31.so", Holds::Loader),
            ("libcrypt.so.1", Holds::StaticCopy),
            ("server", Holds::StaticCopy),
        ];
        for (name, expected) in cases {
            assert_eq!(holds(name.as_bytes()), expected, "{name}");
        }
    }
}

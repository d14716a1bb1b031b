//! The tables of architectures, PTX ISA and drivers, and the names of files.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use jittrace_model::toolkit::{
    Arch, ComputeCapability, DriverRelease, LibraryName, Part, Version, driver_cuda,
    first_branch_for, first_toolkit_for, first_toolkit_for_ptx, lowest_ptx_isa_for, profile,
    ptx_isa_of, reads_ptx, runs_on, supports, toolkits_writing,
};
use proptest::prelude::*;
use std::path::Path;

fn version(text: &str) -> Version {
    Version::parse(text).unwrap()
}

fn arch(text: &str) -> Arch {
    Arch::parse(text).unwrap_or_else(|| panic!("{text}"))
}

#[test]
fn architectures_in_every_spelling() {
    for (text, name) in [
        ("sm_120f", "sm_120f"),
        ("compute_90a", "compute_90a"),
        ("12.0f", "sm_120f"),
        ("120a", "sm_120a"),
        ("12.0", "sm_120"),
        ("9.0+PTX", "sm_90"),
        ("9.0a+PTX", "sm_90a"),
        ("sm_75", "sm_75"),
        ("90", "sm_90"),
    ] {
        assert_eq!(arch(text).to_string(), name);
        assert_eq!(arch(&arch(text).to_string()), arch(text));
    }
    for text in [
        "",
        "native",
        "all-major",
        "sm_",
        "sm_a",
        "compute_1",
        "12.34",
        "sm_+90",
        "12.",
        ".0",
        "999999999999",
    ] {
        assert_eq!(Arch::parse(text), None, "{text}");
    }
}

#[test]
fn which_toolkit_knows_which_architecture() {
    for (name, first, isa) in [
        ("sm_90a", "12.0", "8.0"),
        ("sm_120", "12.8", "8.7"),
        ("sm_120a", "12.8", "8.7"),
        ("sm_120f", "12.9", "8.8"),
        ("sm_121a", "12.9", "8.8"),
        ("sm_103", "12.9", "8.8"),
        ("sm_100", "12.8", "8.6"),
        ("sm_110f", "13.0", "9.0"),
        ("sm_88", "13.0", "9.0"),
        ("sm_107a", "13.4", "9.4"),
    ] {
        assert_eq!(
            first_toolkit_for(arch(name)),
            Some(version(first)),
            "{name}"
        );
        assert_eq!(lowest_ptx_isa_for(arch(name)), Some(version(isa)), "{name}");
    }
    for (tool, name, answer) in [
        ("12.8.93", "sm_120f", Some(false)),
        ("12.8.93", "sm_120a", Some(true)),
        ("12.9.86", "sm_120f", Some(true)),
        ("12.4.131", "sm_120", Some(false)),
        ("13.0.88", "sm_70", Some(false)),
        ("12.9", "sm_70", Some(true)),
        ("13.0", "sm_101a", Some(false)),
        ("12.9", "sm_101a", Some(true)),
        ("13.5", "sm_130", None),
        ("13.0", "sm_90f", None),
    ] {
        assert_eq!(supports(version(tool), arch(name)), answer, "{tool} {name}");
    }
}

#[test]
fn ptx_and_drivers() {
    for (toolkit, isa) in [
        ("12.4", "8.4"),
        ("12.5", "8.5"),
        ("12.6", "8.5"),
        ("12.8.93", "8.7"),
        ("12.9", "8.8"),
        ("13.0", "9.0"),
        ("13.2", "9.2"),
    ] {
        assert_eq!(
            ptx_isa_of(version(toolkit)),
            Some(version(isa)),
            "{toolkit}"
        );
    }
    assert_eq!(
        toolkits_writing(version("8.5")).collect::<Vec<_>>(),
        [version("12.5"), version("12.6")]
    );
    assert_eq!(first_toolkit_for_ptx(version("8.5")), Some(version("12.5")));
    assert_eq!(reads_ptx(version("12.1"), version("8.5")), Some(false));
    assert_eq!(reads_ptx(version("13.0"), version("9.0")), Some(true));
    for (branch, cuda) in [
        (550, "12.4"),
        (570, "12.8"),
        (575, "12.9"),
        (580, "13.0"),
        (610, "13.3"),
    ] {
        assert_eq!(driver_cuda(branch), Some(version(cuda)));
    }
    assert_eq!(driver_cuda(999), None);
    assert_eq!(first_branch_for(version("13.2")), Some(595));
    let release = DriverRelease::parse("580.65.06").unwrap();
    assert_eq!(
        (release.branch(), release.to_string().as_str()),
        (580, "580.65.06")
    );
    assert_eq!(DriverRelease::parse("1"), None);
    assert_eq!(DriverRelease::parse("12.8.90"), None);
}

#[test]
fn what_runs_where() {
    for (image, device, answer) in [
        ("sm_120", (12, 1), true),
        ("sm_120a", (12, 1), false),
        ("sm_120a", (12, 0), true),
        ("sm_120f", (12, 1), true),
        ("sm_121", (12, 0), false),
        ("sm_90", (10, 0), false),
        ("compute_90", (12, 0), true),
        ("compute_90a", (12, 0), false),
        ("compute_120f", (12, 1), true),
        ("compute_120f", (13, 0), false),
        ("compute_120", (9, 0), false),
    ] {
        let (major, minor) = device;
        assert_eq!(
            runs_on(arch(image), ComputeCapability { major, minor }),
            answer,
            "{image} on {device:?}"
        );
    }
}

#[test]
fn numbers_in_calls_and_headers() {
    assert_eq!(Version::from_cuda_number(12080), Some(version("12.8")));
    assert_eq!(Version::from_cuda_number(13000), Some(version("13.0")));
    assert_eq!(Version::from_cuda_number(0), None);
    assert_eq!(Version::from_cuda_number(12081), None);
    assert_eq!(version("13.3").cuda_number(), 13030);
    assert_eq!(Version::from_cudnn_number(91100), Some(version("9.11.0")));
    assert_eq!(Version::from_cudnn_number(8902), Some(version("8.9.2")));
    assert_eq!(Version::from_nccl_number(22703), Some(version("2.27.3")));
    assert!(
        version("12.8") < version("12.8.1")
            && version("12.8.93") < version("12.9")
            && version("9.9") < version("10.0")
    );
}

#[test]
fn file_names() {
    for (name, part) in [
        ("nvcc", Part::Nvcc),
        ("nvcc-12.8", Part::Nvcc),
        ("nvcc.profile", Part::Other),
        ("ptxas-blackwell", Part::Ptxas),
        ("cudafe++", Part::Cudafe),
        ("libcudart.so.13", Part::Cudart),
        ("libcudart.faf08d9a.so.13", Part::Cudart),
        ("libcudart-d0da41ae.so.11.0", Part::Cudart),
        ("libcudart_stub.so", Part::CudartStub),
        ("libstub_cudart.so", Part::CudartStub),
        ("libcudart_static.a", Part::CudartStatic),
        ("libnvrtc-builtins.so.13.0", Part::NvrtcBuiltins),
        ("libnvrtc-builtins.alt.so.13.0", Part::NvrtcBuiltins),
        ("libnvrtc.alt.so.13", Part::Nvrtc),
        ("libcuda.so", Part::Libcuda),
        ("libcuda.so.580.65.06", Part::Libcuda),
        ("libcudadebugger.so.1", Part::Other),
        ("libnvidia-ml.so.1", Part::Nvml),
        ("libnvidia-ptxjitcompiler.so.1", Part::Ptxjitcompiler),
        ("libcudnn_engines_precompiled.so.9", Part::Cudnn),
        ("libcublasLt.so.13", Part::CublasLt),
        ("libnvJitLink.so.12", Part::Nvjitlink),
        ("libdevice.10.bc", Part::Libdevice),
        ("cuda.h", Part::Headers),
        ("x86_64-linux-gnu-g++-12", Part::HostCompiler),
        ("clang-18", Part::HostCompiler),
        ("python3.12", Part::Other),
    ] {
        assert_eq!(Part::of_file_name(name), part, "{name}");
    }
    let renamed = LibraryName::parse("libcudart-d0da41ae.so.11.0").unwrap();
    assert_eq!(
        (renamed.stem, renamed.hash, renamed.suffix),
        ("cudart", Some("d0da41ae"), "11.0")
    );
    let plain = LibraryName::parse("libnvrtc-builtins.so.13.0").unwrap();
    assert_eq!((plain.stem, plain.hash), ("nvrtc-builtins", None));
}

#[test]
fn nvcc_profile_names_the_root() {
    let text = "\nTOP              = $(_HERE_)/..\n\nCICC_PATH        = $(TOP)/nvvm/bin\nLD_LIBRARY_PATH += $(TOP)/lib:\n\
        PATH            += $(CICC_PATH):$(_HERE_):\nINCLUDES        +=  \"-I$(TOP)/$(_TARGET_DIR_)/include\" $(_SPACE_)\n\
        SYSTEM_INCLUDES +=  \"-isystem\" \"$(TOP)/include/cccl\" $(_SPACE_)\n\
        LIBRARIES        =+ $(_SPACE_) \"-L$(TOP)/lib$(_TARGET_SIZE_)/stubs\" \"-L$(TOP)/lib64\"\n";
    let profile = profile::evaluate(text, Path::new("/usr/local/cuda/bin"));
    assert_eq!(profile.top.as_deref(), Some("/usr/local/cuda"));
    assert_eq!(
        profile.includes,
        ["/usr/local/cuda/include", "/usr/local/cuda/include/cccl"]
    );
    assert_eq!(
        profile.libraries,
        ["/usr/local/cuda/lib64/stubs", "/usr/local/cuda/lib64"]
    );
    assert_eq!(
        profile.path,
        ["/usr/local/cuda/nvvm/bin", "/usr/local/cuda/bin"]
    );
    assert_eq!(profile.ld_library_path, ["/usr/local/cuda/lib"]);
}

proptest! {
    #[test]
    fn no_text_panics(text in ".{0,80}") {
        let _ = (Version::parse(&text), Arch::parse(&text), DriverRelease::parse(&text), Part::of_file_name(&text), LibraryName::parse(&text));
        let _ = profile::evaluate(&text, Path::new("/x"));
        let _ = jittrace_model::toolkit::version_in_json(&text, Part::Nvcc);
    }

    #[test]
    fn versions_come_back(major in 0_u32..1000, minor in 0_u32..1000, patch in proptest::option::of(0_u32..100_000)) {
        let version = Version { major, minor, patch };
        prop_assert_eq!(Version::parse(&version.to_string()), Some(version));
    }

    #[test]
    fn no_object_panics(mut bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        if let Some(head) = bytes.get_mut(..6) { head.copy_from_slice(b"\x7fELF\x02\x01"); }
        let context = jittrace_model::toolkit::Context { files: &jittrace_model::toolkit::NoFiles, owner: None };
        for name in ["/a/lib64/libcudart.so.12", "/a/bin/nvcc", "/a/libcuda.so.1", "/a/libcudnn.so.9"] {
            let _ = jittrace_model::toolkit::identify(Path::new(name), &bytes, &context);
        }
    }
}

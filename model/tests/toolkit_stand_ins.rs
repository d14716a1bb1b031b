//! Files that no NVIDIA package made — scripts, tiny libraries, copies under other names — are known for what they
//! are, as far as they show it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use jittrace_model::distribution::Index;
use jittrace_model::toolkit::{
    Certainty, Context, DriverKind, Identity, LocalFiles, Part, Reading, ToolkitKind, Version,
    VersionFrom, identify,
};
use std::path::{Path, PathBuf};
use std::process::Command;

struct Tree(tempfile::TempDir);

impl Tree {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }
    fn path(&self, path: &str) -> PathBuf {
        let path = self.0.path().canonicalize().unwrap().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }
    fn write(&self, path: &str, text: &str) -> PathBuf {
        let path = self.path(path);
        std::fs::write(&path, text).unwrap();
        path
    }
    /// A shared library from C code; `None`, with a visible reason, where there is no C compiler.
    fn library(&self, path: &str, soname: &str, code: &str) -> Option<PathBuf> {
        let source = self.write("source.c", code);
        let path = self.path(path);
        let built = Command::new("cc")
            .args(["-shared", "-fPIC", &format!("-Wl,-soname,{soname}"), "-o"])
            .args([&path, &source])
            .status();
        match built {
            Ok(status) if status.success() && cfg!(target_arch = "x86_64") => Some(path),
            other => {
                eprintln!("SKIPPED: no C compiler for x86-64 here ({other:?})");
                None
            }
        }
    }
}

fn known(path: &Path) -> Identity {
    known_with(path, &Index::new())
}

fn known_with(path: &Path, index: &Index) -> Identity {
    let bytes = std::fs::read(path).unwrap();
    identify(
        path,
        &bytes,
        &Context {
            files: &LocalFiles,
            owner: index.owner(path),
        },
    )
}

#[test]
fn a_script_must_be_asked() {
    let tree = Tree::new();
    let path = tree.write("usr/bin/nvcc", "#!/bin/sh\nPATH=/usr/lib/nvidia-cuda-toolkit/bin:$PATH\nexec /usr/lib/nvidia-cuda-toolkit/bin/nvcc \"$@\"\n");
    let mut nvcc = known(&path);
    assert!(nvcc.is_script && nvcc.needs_probe);
    assert_eq!((nvcc.part, nvcc.version), (Part::Nvcc, None));
    assert_eq!(
        nvcc.hands_over_to.as_deref(),
        Some("/usr/lib/nvidia-cuda-toolkit/bin/nvcc")
    );
    nvcc.learn(Reading {
        version: Version::exact(12, 4, 131),
        from: VersionFrom::Probe,
        certainty: Certainty::Certain,
    });
    assert_eq!(
        (nvcc.version, nvcc.needs_probe),
        (Some(Version::exact(12, 4, 131)), false)
    );
}

#[test]
fn a_directory_name_is_a_guess() {
    let tree = Tree::new();
    let nvcc = known(&tree.write("cuda-12.8/bin/nvcc", "#!/bin/sh\n"));
    assert_eq!(
        (nvcc.version, nvcc.version_from, nvcc.certainty),
        (
            Some(Version::release(12, 8)),
            Some(VersionFrom::DirectoryName),
            Some(Certainty::Guess)
        )
    );
    assert!(nvcc.needs_probe);
    let root = nvcc.root.unwrap();
    assert!(root.path.ends_with("cuda-12.8") && root.kind == ToolkitKind::System);
    tree.write(
        "cuda-12.8/version.json",
        r#"{"cuda":{"version":"12.8.1"},"cuda_nvcc":{"version":"12.8.93"}}"#,
    );
    let nvcc = known(&tree.path("cuda-12.8/bin/nvcc"));
    assert_eq!(
        (nvcc.version, nvcc.version_from),
        (
            Some(Version::exact(12, 8, 93)),
            Some(VersionFrom::VersionJson)
        )
    );
}

#[test]
fn one_directory_of_two_releases() {
    let tree = Tree::new();
    let nvcc = tree.write("site-packages/nvidia/cu13/bin/nvcc", "#!/bin/sh\n");
    let header = tree.write(
        "site-packages/nvidia/cu13/include/cuda_runtime_api.h",
        "#define CUDART_VERSION 13000\n",
    );
    for (name, version, file) in [
        ("nvidia_cuda_nvcc", "13.3.33", "nvidia/cu13/bin/nvcc"),
        (
            "nvidia_cuda_runtime",
            "13.0.96",
            "nvidia/cu13/include/cuda_runtime_api.h",
        ),
    ] {
        tree.write(
            &format!("site-packages/{name}-{version}.dist-info/RECORD"),
            &format!("{file},,\n"),
        );
    }
    let mut index = Index::new();
    index.add_site_packages(tree.path("site-packages/x").parent().unwrap(), &LocalFiles);
    let (nvcc, header) = (known_with(&nvcc, &index), known_with(&header, &index));
    assert_eq!(
        (nvcc.version, nvcc.version_from),
        (
            Some(Version::exact(13, 3, 33)),
            Some(VersionFrom::WheelMetadata)
        )
    );
    assert_eq!(
        (header.version, header.version_from),
        (
            Some(Version::exact(13, 0, 96)),
            Some(VersionFrom::WheelMetadata)
        )
    );
    assert_eq!(nvcc.root, header.root);
    assert_eq!(nvcc.root.unwrap().kind, ToolkitKind::Wheel);
}

#[test]
fn routes_that_disagree_are_kept() {
    let tree = Tree::new();
    let header = tree.write(
        "site-packages/nvidia/cu13/include/cuda_runtime_api.h",
        "#define CUDART_VERSION 13030\n",
    );
    tree.write(
        "site-packages/nvidia_cuda_runtime-13.0.96.dist-info/RECORD",
        "nvidia/cu13/include/cuda_runtime_api.h,,\n",
    );
    let mut index = Index::new();
    index.add_site_packages(tree.path("site-packages/x").parent().unwrap(), &LocalFiles);
    let header = known_with(&header, &index);
    assert_eq!(
        (header.version, header.version_from),
        (Some(Version::release(13, 3)), Some(VersionFrom::CudartH))
    );
    let (trusted, other) = header.disagreement().unwrap();
    assert_eq!(
        (trusted.from, other.from),
        (VersionFrom::CudartH, VersionFrom::WheelMetadata)
    );
    let fact = header.to_fact();
    assert_eq!(
        (
            fact.part.as_deref(),
            fact.version_from.as_deref(),
            fact.readings.len()
        ),
        (Some("headers"), Some("cudart-h"), 2)
    );
}

#[test]
fn tiny_runtimes_and_their_code() {
    let tree = Tree::new();
    let code = "int cudaRuntimeGetVersion(int*v){*v=12080;return 0;}";
    let Some(path) = tree.library("wheel/libcudart-0a1b2c3d.so.12", "libcudart.so.12", code) else {
        return;
    };
    let cudart = known(&path);
    assert_eq!(
        (cudart.part, cudart.version, cudart.version_from),
        (
            Part::Cudart,
            Some(Version::release(12, 8)),
            Some(VersionFrom::CudartImmediate)
        )
    );
    assert_eq!(
        (cudart.renamed.as_deref(), cudart.soname.as_deref()),
        (Some("0a1b2c3d"), Some("libcudart.so.12"))
    );
    let code = "int nvrtcVersion(int*a,int*b){*a=12;*b=9;return 0;}";
    let nvrtc = known(
        &tree
            .library("env/lib/libnvrtc.so.12", "libnvrtc.so.12", code)
            .unwrap(),
    );
    assert_eq!(
        (nvrtc.version, nvrtc.version_from),
        (
            Some(Version::release(12, 9)),
            Some(VersionFrom::CodeImmediate)
        )
    );
    let code =
        "int __nvJitLinkCreate_12_1(void){return 0;} int __nvJitLinkComplete_12_9(void){return 0;}";
    let linker = known(
        &tree
            .library("l/libnvJitLink.so.12", "libnvJitLink.so.12", code)
            .unwrap(),
    );
    assert_eq!(
        (linker.version, linker.version_from),
        (
            Some(Version::release(12, 9)),
            Some(VersionFrom::NvjitlinkSymbols)
        )
    );
    let code = "int __nvJitLinkComplete_12_9(void); int cusparseGetProperty(void){return __nvJitLinkComplete_12_9();}";
    let user = known(
        &tree
            .library("l/libcusparse.so.12", "libcusparse.so.12", code)
            .unwrap(),
    );
    assert_eq!(user.needs_nvjitlink, Some(Version::release(12, 9)));
    assert_eq!(user.to_fact().needs, ["__nvJitLinkCreate_12_9"]);
    let code = "const char* nccl=\"NCCL version 2.27.3+cuda12.9\"; const char*shm=\"/cudart.shm.%x.%x.%llx\";";
    let nccl = known(
        &tree
            .library("l/libnccl.so.2", "libnccl.so.2", code)
            .unwrap(),
    );
    assert_eq!(
        (nccl.version, nccl.compiled_with, nccl.static_cudart),
        (
            Some(Version::exact(2, 27, 3)),
            Some(Version::release(12, 9)),
            true
        )
    );
    let code = "unsigned long cudnnGetVersion(void){return 91002;}";
    let cudnn = known(
        &tree
            .library("l/libcudnn_ops.so.9", "libcudnn_ops.so.9", code)
            .unwrap(),
    );
    assert_eq!(
        (cudnn.version, cudnn.cudnn_sublibrary.as_deref()),
        (Some(Version::exact(9, 10, 2)), Some("ops"))
    );
}

#[test]
fn drivers_by_where_they_lie() {
    let tree = Tree::new();
    let code = "int cuDriverGetVersion(int*v){*v=13000;return 0;}";
    let Some(host) = tree.library("host/libcuda.so.580.65.06", "libcuda.so.1", code) else {
        return;
    };
    for (link, kind, release) in [
        ("host/libcuda.so.1", DriverKind::Driver, Some("580.65.06")),
        ("compat/libcuda.so.1", DriverKind::Compat, Some("580.65.06")),
        ("wsl/lib/libcuda.so.1", DriverKind::Wsl, Some("580.65.06")),
        ("cuda/lib64/stubs/libcuda.so", DriverKind::Stub, None),
    ] {
        let path = tree.path(link);
        std::os::unix::fs::symlink(&host, &path).unwrap();
        let driver = known(&path);
        assert_eq!(
            (driver.part, driver.driver),
            (Part::Libcuda, Some(kind)),
            "{link}"
        );
        assert_eq!(
            driver
                .driver_release
                .as_ref()
                .map(|release| release.as_str()),
            release,
            "{link}"
        );
        if kind != DriverKind::Stub {
            assert_eq!(driver.version, Some(Version::release(13, 0)), "{link}");
        }
        assert_eq!(driver.variant().as_deref(), Some(kind.word()));
    }
    // A library with hundreds of the driver's functions and no room for a driver.
    let code: String = (0..300)
        .map(|n| format!("int cuFunction{n}(void){{return 34;}} "))
        .collect();
    let stub = known(
        &tree
            .library("odd/libcuda.so.1", "libcuda.so.1", &code)
            .unwrap(),
    );
    assert_eq!(stub.driver, Some(DriverKind::Stub));
}

//! Packages and what they own: wheels, conda, Debian; and what components say they were built for.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use jittrace_model::distribution::{
    Distribution, Index, Kind, built_for, read_conda_meta, read_dpkg_list, read_dpkg_status,
    read_metadata, read_record,
};
use jittrace_model::toolkit::LocalFiles;
use proptest::prelude::*;
use std::path::Path;

fn wheel(name: &str, version: &str) -> Distribution {
    Distribution {
        kind: Kind::Wheel,
        name: name.into(),
        version: version.into(),
        record: String::new(),
    }
}

#[test]
fn metadata_ends_where_the_readme_begins() {
    let found = read_metadata(
        "Metadata-Version: 2.1\nName: torch\nVersion: 2.11.0+cu130\n\nName: other\n",
        "r",
    )
    .unwrap();
    assert_eq!(
        (
            found.name.as_str(),
            found.version.as_str(),
            found.upstream_version()
        ),
        ("torch", "2.11.0+cu130", "2.11.0")
    );
    assert_eq!(read_metadata("Summary: none\n", "r"), None);
    let files: Vec<String> =
        read_record("a/b.py,sha256=x,3\n\"odd, name.so\",,\n../../bin/x,,\n").collect();
    assert_eq!(files, ["a/b.py", "odd, name.so", "../../bin/x"]);
}

#[test]
fn owners_in_one_site_packages() {
    let dir = tempfile::tempdir().unwrap();
    let site = dir.path();
    let write = |path: &str, text: &str| {
        let path = site.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write(
        "nvidia_cuda_nvcc-13.3.33.dist-info/METADATA",
        "Name: nvidia-cuda-nvcc\nVersion: 13.3.33\n",
    );
    write(
        "nvidia_cuda_nvcc-13.3.33.dist-info/RECORD",
        "nvidia/cu13/bin/nvcc,,\n",
    );
    write(
        "nvidia_cuda_runtime-13.0.96.dist-info/METADATA",
        "Name: nvidia-cuda-runtime\nVersion: 13.0.96\n",
    );
    write(
        "nvidia_cuda_runtime-13.0.96.dist-info/RECORD",
        "nvidia/cu13/include/cuda_runtime_api.h,,\n../../../bin/tool,,\n",
    );
    write("bare_one-1.2.dist-info/INSTALLER", "pip\n");
    write("bare_one/x.py", "");
    let mut index = Index::new();
    index.add_site_packages(site, &LocalFiles);
    let owner = |path: &str| {
        index
            .owner(&site.join(path))
            .map(|owner| format!("{} {}", owner.name, owner.version))
    };
    assert_eq!(
        owner("nvidia/cu13/bin/nvcc").as_deref(),
        Some("nvidia-cuda-nvcc 13.3.33")
    );
    assert_eq!(
        owner("nvidia/cu13/bin/../include/cuda_runtime_api.h").as_deref(),
        Some("nvidia-cuda-runtime 13.0.96")
    );
    assert_eq!(owner("bare_one/x.py").as_deref(), Some("bare-one 1.2"));
    assert_eq!(owner("nobody.py"), None);
    assert!(index.named("Nvidia_CUDA_nvcc").is_some());
}

#[test]
fn conda_and_debian() {
    let json = r#"{"name":"cuda-nvcc","version":"12.9.86","files":["bin/nvcc","targets/x86_64-linux/include/x.h"]}"#;
    let (package, files) = read_conda_meta(json, "r").unwrap();
    assert_eq!(
        (
            package.name.as_str(),
            files.len(),
            package.versions_its_files()
        ),
        ("cuda-nvcc", 2, true)
    );
    let status = read_dpkg_status(
        "Package: nvidia-cuda-toolkit\nStatus: install ok installed\nArchitecture: amd64\nVersion: 12.4.131~12.4.1-2\n\n\
         Package: gone\nStatus: deinstall ok config-files\nVersion: 1\n",
    );
    let package = status.package("nvidia-cuda-toolkit.list").unwrap();
    assert_eq!(package.upstream_version(), "12.4.131");
    assert!(status.package("nvidia-cuda-toolkit:amd64.list").is_some());
    assert_eq!(status.package("gone.list"), None);
    assert_eq!(
        read_dpkg_list("/.\n/usr\n/usr/bin/nvcc\n").collect::<Vec<_>>(),
        ["/usr", "/usr/bin/nvcc"]
    );
}

#[test]
fn built_for_which_cuda() {
    for (text, wanted) in [
        (
            "__version__ = '2.11.0+cu130'\ncuda: Optional[str] = '13.0'\n",
            Some("13.0"),
        ),
        ("cuda = '12.8'", Some("12.8")),
        ("cuda: Optional[str] = None\n", None),
        ("cudart = '1.0'", None),
    ] {
        assert_eq!(
            built_for::from_version_py(text)
                .map(|built| built.to_string())
                .as_deref(),
            wanted,
            "{text}"
        );
    }
    for (name, version, wanted) in [
        ("torch", "2.11.0+cu130", Some("13.0")),
        ("torch", "2.9.1+cu128", Some("12.8")),
        ("sgl-kernel", "0.3.0+cu124.post1", Some("12.4")),
        ("cupy-cuda13x", "14.2.0", Some("13")),
        ("nvidia-nccl-cu12", "2.27.3", Some("12")),
        ("torch", "2.11.0", None),
        ("cudf", "1.0", None),
    ] {
        let found =
            built_for::from_distribution(&wheel(name, version)).map(|built| built.to_string());
        assert_eq!(found.as_deref(), wanted, "{name} {version}");
    }
    assert_eq!(
        built_for::from_needed(["libc.so.6", "libcudart.so.11.0"])
            .unwrap()
            .major,
        11
    );
    assert!(built_for::from_needed(["libcudart_stub.so"]).is_none());
}

proptest! {
    #[test]
    fn no_record_panics(text in "[\\PC\n]{0,200}") {
        let _ = (read_metadata(&text, ""), read_record(&text).count(), read_conda_meta(&text, ""), read_dpkg_status(&text));
        let _ = (built_for::from_version_py(&text), built_for::from_distribution(&wheel(&text, &text)));
        let _ = Index::new().owner(Path::new(&text));
    }
}

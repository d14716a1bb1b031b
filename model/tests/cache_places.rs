//! JIT caches by their paths and side files.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use jittrace_model::cache::{
    ArtifactKind, BuiltWithFrom, Place, built_with, ninja, place_of, sglang, triton,
};
use jittrace_model::toolkit::{Files, LocalFiles, NoFiles, Version};
use proptest::prelude::*;
use std::path::Path;

fn place(path: &str, variables: &[(&str, &str)]) -> Option<Place> {
    let value = |name: &str| {
        variables
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, value)| (*value).to_owned())
    };
    place_of(Path::new(path), &value, &NoFiles)
}

#[test]
fn whose_cache() {
    let key = "O4MM644MG2WNFQ3ZUYYGY3F67BGFRE7OVGOE2LQRURGOITM7OAPQ";
    let rows: Vec<(String, &str, &str, &str)> = vec![
        (
            "/h/.cache/flashinfer/0.6.8.post1/120f/cached_ops/page/page.so".into(),
            "flashinfer",
            "/h/.cache/flashinfer",
            "0.6.8.post1/120f/cached_ops/page",
        ),
        (
            "/ws/0.6.8/90a_120f/cached_ops/norm/build.ninja".into(),
            "flashinfer",
            "/ws",
            "0.6.8/90a_120f/cached_ops/norm",
        ),
        (
            "/h/.cache/torch_extensions/py312_cu130/ext/ext.so".into(),
            "torch",
            "/h/.cache/torch_extensions",
            "py312_cu130/ext",
        ),
        (
            format!("/h/.triton/cache/{key}/k.cubin"),
            "triton",
            "/h/.triton/cache",
            key,
        ),
        (format!("/moved/{key}/k.json"), "triton", "/moved", key),
        (
            format!("/tmp/torchinductor_me/triton/0/{key}/k.cubin"),
            "triton",
            "/tmp/torchinductor_me/triton/0",
            key,
        ),
        (
            "/tmp/torchinductor_me/ab/cab.py".into(),
            "inductor",
            "/tmp/torchinductor_me",
            "ab",
        ),
        (
            "/h/.deep_gemm/cache/kernel.gemm.0a1b/kernel.cubin".into(),
            "deep_gemm",
            "/h/.deep_gemm",
            "cache/kernel.gemm.0a1b",
        ),
        (
            "/x/cache/kernel.gemm.0a1b/kernel.cu".into(),
            "deep_gemm",
            "/x/cache",
            "kernel.gemm.0a1b",
        ),
        (
            "/h/.cache/tvm-ffi/name_0123/build.ninja".into(),
            "tvm_ffi",
            "/h/.cache/tvm-ffi",
            "name_0123",
        ),
        (
            "/h/.tilelang/cache/0.1.15/linux-x86_64/k/kernel.so".into(),
            "tilelang",
            "/h/.tilelang/cache",
            "0.1.15/linux-x86_64/k",
        ),
        (
            "/h/.cache/sglang/jit/sm120f/m/build-ab/deps-cd/m.so".into(),
            "sglang",
            "/h/.cache/sglang/jit",
            "sm120f/m/build-ab/deps-cd",
        ),
        (
            "/h/.cupy/kernel_cache/ab.cubin".into(),
            "cupy",
            "/h/.cupy/kernel_cache",
            "",
        ),
        (
            "/h/.nv/ComputeCache/6/7/ab".into(),
            "driver",
            "/h/.nv/ComputeCache",
            "6/7/ab",
        ),
        ("/p/__pycache__/f.nbc".into(), "numba", "/p/__pycache__", ""),
    ];
    for (path, owner, root, key) in rows {
        let place = place(&path, &[]).unwrap_or_else(|| panic!("{path}"));
        assert_eq!(
            (
                place.owner.as_str(),
                place.root.as_str(),
                place.key.as_str()
            ),
            (owner, root, key),
            "{path}"
        );
    }
    for path in [
        "/usr/lib/libc.so.6",
        "/h/.cache/pip/x.so",
        "relative.so",
        "/",
        "",
    ] {
        assert_eq!(place(path, &[]), None, "{path}");
    }
}

#[test]
fn what_the_path_says() {
    let full = place(
        "/h/.cache/flashinfer/0.6.8.post1/90a_120f/cached_ops/page/page.so",
        &[],
    )
    .unwrap();
    assert_eq!(
        (
            full.component_version.as_deref(),
            full.arch_list_empty,
            full.kind
        ),
        (Some("0.6.8.post1"), false, ArtifactKind::Library)
    );
    assert_eq!(
        full.archs
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>(),
        ["sm_90a", "sm_120f"]
    );
    // The missing segment is the trace that an empty list of targets leaves on the disk.
    for path in [
        "/h/.cache/flashinfer/0.6.8.post1/cached_ops/page/page.so",
        "/h/.cache/flashinfer/0.6.8.post1/cached_ops",
    ] {
        assert!(place(path, &[]).unwrap().arch_list_empty, "{path}");
    }
    let jit = place("/h/.cache/sglang/jit/sm120f/m/build-ab/deps-cd/m.so", &[]).unwrap();
    assert_eq!(jit.archs[0].to_string(), "sm_120f");
}

#[test]
fn variables_move_caches() {
    let moved = place(
        "/big/tc/ABC/k.cubin",
        &[
            ("TRITON_CACHE_DIR", "/big/tc/"),
            ("TORCHINDUCTOR_CACHE_DIR", "/big"),
        ],
    )
    .unwrap();
    assert_eq!(
        (
            moved.owner.as_str(),
            moved.variable.as_deref(),
            moved.key.as_str()
        ),
        ("triton", Some("TRITON_CACHE_DIR"), "ABC")
    );
    let base = place(
        "/ws/.cache/flashinfer/0.7.4/120f/cached_ops/a/a.so",
        &[("FLASHINFER_WORKSPACE_BASE", "/ws")],
    )
    .unwrap();
    assert_eq!(
        (base.root.as_str(), base.variable.as_deref()),
        ("/ws/.cache/flashinfer", Some("FLASHINFER_WORKSPACE_BASE"))
    );
}

#[test]
fn an_unknown_cache_is_known_by_its_build_file() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("build.ninja"), "cuda_home = /c\n").unwrap();
    std::fs::write(dir.path().join("sampling.so"), "").unwrap();
    let place = place_of(&dir.path().join("sampling.so"), &|_| None, &LocalFiles).unwrap();
    assert_eq!(
        (place.owner.as_str(), Path::new(&place.root)),
        ("unknown", dir.path())
    );
    assert_eq!(
        place_of(&dir.path().join("notes.txt"), &|_| None, &LocalFiles),
        None
    );
}

const FLASHINFER: &str = "ninja_required_version = 1.3
name = page
cuda_home = /opt/cuda-13.0
cxx = c++
nvcc = $cuda_home/bin/nvcc

common_cflags = $
  -DTORCH_EXTENSION_NAME=page $
  -isystem $cuda_home/include
cuda_cflags = $common_cflags $
  -gencode=arch=compute_120f,code=sm_120f $
  -O3
ldflags = -shared -L$cuda_home/lib64 -L$cuda_home/lib64/stubs -lcudart

rule cuda_compile
  command = $nvcc --generate-dependencies-with-compile --dependency-output $out.d $cuda_cflags -c $in -o $out $cuda_post_cflags
  depfile = $out.d
rule link
  command = $cxx $in $ldflags -o $out

build /c/page.cuda.o: cuda_compile /s/page.cu
build /c/page.so: link /c/page.cuda.o
";

#[test]
fn build_files() {
    let found = ninja::read(FLASHINFER);
    assert_eq!(
        (
            found.cuda_home.as_deref(),
            found.states_cuda_home,
            found.nvcc.as_deref()
        ),
        (
            Some("/opt/cuda-13.0"),
            true,
            Some("/opt/cuda-13.0/bin/nvcc")
        )
    );
    assert_eq!(
        found
            .archs
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>(),
        ["compute_120f", "sm_120f"]
    );
    assert_eq!(
        found.library_directories,
        ["/opt/cuda-13.0/lib64", "/opt/cuda-13.0/lib64/stubs"]
    );
    assert_eq!(
        (found.includes.as_slice(), found.cxx.as_deref()),
        (&["/opt/cuda-13.0/include".to_owned()][..], Some("c++"))
    );
    assert_eq!(found.outputs, ["/c/page.cuda.o", "/c/page.so"]);

    let torch = "cxx = c++\nnvcc = /usr/local/cuda/bin/nvcc\ncuda_cflags = -gencode=arch=compute_90,code=sm_90 --expt-relaxed-constexpr\n\
        rule cuda_compile\n  command = $nvcc $cuda_cflags -c $in -o $out\n";
    let found = ninja::read(torch);
    assert_eq!(
        (found.cuda_home.as_deref(), found.states_cuda_home),
        (Some("/usr/local/cuda"), false)
    );
    assert_eq!(
        ninja::read("cuda_home = /w/cuda-13.2\n")
            .cuda_home
            .as_deref(),
        Some("/w/cuda-13.2")
    );
    assert_eq!(
        ninja::read("a$ b = 1\nbuild x$:y z: cp a\nx = $$y ${x}\n").outputs,
        ["x:y", "z"]
    );
    // A file that refers to itself ends.
    let _ = ninja::read("a = $a$a$a\na = $a$a$a\na = $a$a$a\n".repeat(200).as_str());
}

#[test]
fn side_files() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/images");
    let kernel =
        triton::read(&std::fs::read_to_string(fixtures.join("triton_kernel.json")).unwrap())
            .unwrap();
    assert_eq!(
        (
            kernel.name.as_str(),
            kernel.triton_version.as_deref(),
            kernel.arch.unwrap().to_string().as_str()
        ),
        ("k", Some("3.6.0"), "sm_120")
    );
    assert_eq!(kernel.extern_libraries.len(), 1);
    assert_eq!(
        triton::read_group(r#"{"child_paths": {"k.cubin": "/c/k.cubin"}}"#),
        ["/c/k.cubin"]
    );
    assert_eq!(triton::read(r#"{"child_paths": {}}"#), None);
    let dependencies =
        sglang::read(r#"[["toolkit","include/cuda.h","ab"],["abs","/x.h","cd"],[1]]"#);
    assert_eq!(
        (
            dependencies.len(),
            dependencies[0].root.as_str(),
            dependencies[0].path.as_str()
        ),
        (2, "toolkit", "include/cuda.h")
    );
}

#[test]
fn what_built_it() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/images");
    let answers = |name: &str, build_file: Option<&str>, known: Option<Version>| {
        let build_file = build_file.map(ninja::read);
        let bytes = LocalFiles.head(&fixtures.join(name), 1 << 20).unwrap();
        let found = built_with(&bytes, build_file.as_ref(), &|_| known);
        found
            .iter()
            .map(|one| format!("{} {one}", one.from.word()))
            .collect::<Vec<_>>()
    };
    assert_eq!(answers("k_129_120a.cubin", None, None), ["tkinfo 12.9.86"]);
    assert_eq!(
        answers("k_124_90a.cubin", None, None),
        ["image-header 12.4"]
    );
    assert_eq!(answers("k_130_multi.fatbin", None, None), ["ptx-isa 13.0"]);
    assert_eq!(
        answers("triton_kernel.json", Some(FLASHINFER), None),
        ["build.ninja 13.0"]
    );
    assert_eq!(
        answers(
            "triton_kernel.json",
            Some(FLASHINFER),
            Some(Version::exact(13, 1, 5))
        ),
        ["build.ninja 13.1.5"]
    );
    assert_eq!(BuiltWithFrom::NeededCudart.word(), "needed-cudart");
}

proptest! {
    #[test]
    fn no_text_panics(text in "[\\PC\n]{0,300}", path in "(/[a-z._0-9A-Z]{0,12}){0,8}") {
        let _ = (ninja::read(&text), triton::read(&text), triton::read_group(&text), sglang::read(&text));
        let _ = place(&path, &[("TRITON_CACHE_DIR", "/a"), ("CUDA_CACHE_PATH", "")]);
        let _ = place(&format!("{path}/cached_ops/x"), &[]);
    }
}

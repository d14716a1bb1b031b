//! Which component's cache a path lies in (the cache parts of resolution.md 1.1 to 1.17).
//!
//! A directory that a variable names is recognised by the variable, any other by the shape that the component
//! gives it. What nobody is known for is still a cache if a `build.ninja` lies beside it.

use crate::toolkit::{Arch, Files};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// What an artefact is, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ArtifactKind {
    /// `build.ninja`.
    BuildFile,
    /// A shared library that the program loads.
    Library,
    /// An object file.
    Object,
    /// GPU machine code.
    Cubin,
    /// PTX text.
    Ptx,
    /// Another intermediate form: ttir, ttgir, llir, LTO-IR.
    Ir,
    /// Source text that the component wrote.
    Source,
    /// JSON and the like about the artefact.
    Metadata,
    /// A lock.
    Lock,
    /// A log, ninja's own records included.
    Log,
    /// Something else, a directory among them.
    Other,
}

/// Where in which cache a path lies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The component whose cache it is, such as `flashinfer`; `unknown` for a directory that is only known by its
    /// `build.ninja`.
    pub owner: String,
    /// The cache's root directory.
    pub root: String,
    /// What tells the artefact from others in the cache: the path below the root, without the file's name.
    pub key: String,
    /// What the artefact is.
    pub kind: ArtifactKind,
    /// The component's version in the path, where it puts one there.
    pub component_version: Option<String>,
    /// The architectures in the path, where the component puts them there.
    pub archs: Vec<Arch>,
    /// For FlashInfer: the path has no architecture segment, which only an empty list of targets gives
    /// (resolution.md 0, point 6).
    pub arch_list_empty: bool,
    /// The variable that named the root, where one did.
    pub variable: Option<String>,
}

/// Variables that name a cache, the component, and what the component appends to it.
const VARIABLES: &[(&str, &str, &str)] = &[
    (
        "FLASHINFER_WORKSPACE_BASE",
        "flashinfer",
        ".cache/flashinfer",
    ),
    ("TORCH_EXTENSIONS_DIR", "torch", ""),
    ("TRITON_CACHE_DIR", "triton", ""),
    ("TORCHINDUCTOR_CACHE_DIR", "inductor", ""),
    ("DG_JIT_CACHE_DIR", "deep_gemm", ""),
    ("TVM_FFI_CACHE_DIR", "tvm_ffi", ""),
    ("TILELANG_CACHE_DIR", "tilelang", ""),
    ("SGLANG_JIT_CACHE_DIR", "sglang", ""),
    ("CUPY_CACHE_DIR", "cupy", ""),
    ("NUMBA_CACHE_DIR", "numba", ""),
    ("CUDA_CACHE_PATH", "driver", ""),
    ("CUTE_DSL_CACHE_DIR", "cutlass_dsl", ""),
    ("JAX_COMPILATION_CACHE_DIR", "jax", ""),
    ("PYTORCH_KERNEL_CACHE_PATH", "torch", ""),
];

/// Directory names, one after the other, that end a cache's root. The longest match from the end wins.
const SHAPES: &[(&[&str], &str)] = &[
    (&[".cache", "flashinfer"], "flashinfer"),
    (&["torch_extensions"], "torch"),
    (&[".cache", "torch", "kernels"], "torch"),
    (&[".triton", "cache"], "triton"),
    (&[".deep_gemm"], "deep_gemm"),
    (&[".cache", "tvm-ffi"], "tvm_ffi"),
    (&[".tilelang", "cache"], "tilelang"),
    (&[".cache", "sglang", "jit"], "sglang"),
    (&[".cupy", "kernel_cache"], "cupy"),
    (&[".nv", "ComputeCache"], "driver"),
    (&[".cache", "vllm"], "vllm"),
];

/// What a file in a cache is, by its name.
#[must_use]
pub fn kind_of(name: &str) -> ArtifactKind {
    if name == "build.ninja" {
        return ArtifactKind::BuildFile;
    }
    if matches!(name, ".ninja_log" | ".ninja_deps") {
        return ArtifactKind::Log;
    }
    match name.rsplit_once('.').map_or("", |(_, extension)| extension) {
        "so" => ArtifactKind::Library,
        "o" => ArtifactKind::Object,
        "cubin" | "hsaco" | "fatbin" => ArtifactKind::Cubin,
        "ptx" => ArtifactKind::Ptx,
        "ttir" | "ttgir" | "llir" | "ltoir" | "mlir" | "ll" | "bc" => ArtifactKind::Ir,
        "cu" | "cuh" | "cpp" | "cc" | "c" | "h" | "hpp" | "py" | "source" => ArtifactKind::Source,
        "json" | "nbi" | "nbc" | "d" | "yaml" => ArtifactKind::Metadata,
        "lock" => ArtifactKind::Lock,
        "log" => ArtifactKind::Log,
        _ if name == "lock" => ArtifactKind::Lock,
        _ => ArtifactKind::Other,
    }
}

/// The cache that `path` lies in; `None` for a path in none.
///
/// `variable` answers with the value that an environment variable had in the process.
#[must_use]
pub fn place_of(
    path: &Path,
    variable: &dyn Fn(&str) -> Option<String>,
    files: &dyn Files,
) -> Option<Place> {
    let text = path.to_str()?;
    let names: Vec<&str> = text.split('/').collect();
    by_variable(text, variable)
        .or_else(|| by_shape(text, &names))
        .or_else(|| by_name(text, &names))
        .or_else(|| by_build_file(path, text, files))
        .map(fill)
}

fn place(owner: &str, root: &str, path: &str) -> Place {
    let below = path
        .strip_prefix(root)
        .unwrap_or("")
        .trim_start_matches('/');
    let (key, name) = below.rsplit_once('/').unwrap_or(("", below));
    // A directory's own path is its key.
    let kind = kind_of(name);
    let key = if kind == ArtifactKind::Other && !name.contains('.') {
        below
    } else {
        key
    };
    Place {
        owner: owner.to_owned(),
        root: root.to_owned(),
        key: key.to_owned(),
        kind,
        component_version: None,
        archs: Vec::new(),
        arch_list_empty: false,
        variable: None,
    }
}

fn by_variable(path: &str, variable: &dyn Fn(&str) -> Option<String>) -> Option<Place> {
    let mut best: Option<Place> = None;
    for (name, owner, below) in VARIABLES {
        let Some(value) = variable(name) else {
            continue;
        };
        let value = value.trim_end_matches('/');
        if value.is_empty() {
            continue;
        }
        let root = if below.is_empty() {
            value.to_owned()
        } else {
            format!("{value}/{below}")
        };
        let inside = path
            .strip_prefix(root.as_str())
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        if inside
            && best
                .as_ref()
                .is_none_or(|best| best.root.len() < root.len())
        {
            best = Some(Place {
                variable: Some((*name).to_owned()),
                ..place(owner, &root, path)
            });
        }
    }
    // Inductor puts Triton's cache inside its own.
    match best {
        Some(found) if found.owner == "inductor" => {
            Some(triton_in_inductor(path, &found.root).unwrap_or(found))
        }
        best => best,
    }
}

fn triton_in_inductor(path: &str, root: &str) -> Option<Place> {
    let rest = path.strip_prefix(root)?.strip_prefix("/triton/")?;
    let device = rest.split('/').next()?;
    Some(place("triton", &format!("{root}/triton/{device}"), path))
}

fn by_shape(path: &str, names: &[&str]) -> Option<Place> {
    let mut best: Option<(usize, &str)> = None;
    for (shape, owner) in SHAPES {
        let found = names
            .windows(shape.len())
            .rposition(|window| window == *shape);
        if let Some(end) = found.map(|start| start + shape.len())
            && best.is_none_or(|(known, _)| known < end)
        {
            best = Some((end, owner));
        }
    }
    let inductor = names
        .iter()
        .rposition(|name| name.starts_with("torchinductor_"))
        .map(|at| at + 1);
    if let Some(end) = inductor.filter(|end| best.is_none_or(|(known, _)| known < *end)) {
        let root = names.get(..end)?.join("/");
        return Some(
            triton_in_inductor(path, &root).unwrap_or_else(|| place("inductor", &root, path)),
        );
    }
    let (end, owner) = best?;
    Some(place(owner, &names.get(..end)?.join("/"), path))
}

/// Artefacts whose own directory names tell, wherever the cache was moved to.
fn by_name(path: &str, names: &[&str]) -> Option<Place> {
    let (file, directories) = names.split_last()?;
    let root_before = |at: usize| directories.get(..at).map(|names| names.join("/"));
    if let Some(at) = directories.iter().rposition(|name| *name == "cached_ops") {
        // <root>/<version>/<archs>/cached_ops/<name>/, or without the architectures.
        let version =
            |name: &&str| name.starts_with(|c: char| c.is_ascii_digit()) && name.contains('.');
        let depth = [2_usize, 1].into_iter().find(|depth| {
            at.checked_sub(*depth)
                .and_then(|at| directories.get(at))
                .is_some_and(version)
        })?;
        return Some(place(
            "flashinfer",
            &root_before(at.checked_sub(depth)?)?,
            path,
        ));
    }
    let parent = directories.last()?;
    if parent.starts_with("kernel.") && file.starts_with("kernel.") {
        return Some(place(
            "deep_gemm",
            &root_before(directories.len().checked_sub(1)?)?,
            path,
        ));
    }
    let is_triton_key = parent.len() == 52
        && parent
            .bytes()
            .all(|byte| matches!(byte, b'A'..=b'Z' | b'2'..=b'7'));
    if is_triton_key {
        return Some(place(
            "triton",
            &root_before(directories.len().checked_sub(1)?)?,
            path,
        ));
    }
    if parent.starts_with("deps-")
        && directories.len() > 3
        && directories
            .get(directories.len() - 2)?
            .starts_with("build-")
    {
        return Some(place(
            "sglang",
            &root_before(directories.len().checked_sub(4)?)?,
            path,
        ));
    }
    if file.ends_with(".nbi") || file.ends_with(".nbc") {
        return Some(place("numba", &directories.join("/"), path));
    }
    if parent.ends_with("_cute_dsl") {
        return Some(place(
            "cutlass_dsl",
            &root_before(directories.len().checked_sub(1)?)?,
            path,
        ));
    }
    None
}

fn by_build_file(path: &Path, text: &str, files: &dyn Files) -> Option<Place> {
    let directory = path.parent()?;
    let built = kind_of(path.file_name()?.to_str()?);
    let artefact = matches!(
        built,
        ArtifactKind::BuildFile | ArtifactKind::Library | ArtifactKind::Object | ArtifactKind::Log
    );
    (artefact && files.exists(&directory.join("build.ninja"))).then(|| {
        let root = directory.to_string_lossy();
        place("unknown", &root, text)
    })
}

/// Adds what the key says: the component's version and the architectures.
fn fill(mut place: Place) -> Place {
    let key = place.key.clone();
    let mut parts = key.split('/').filter(|part| !part.is_empty());
    match place.owner.as_str() {
        "flashinfer" => {
            place.component_version = parts.next().map(str::to_owned);
            let segment = parts.next();
            place.arch_list_empty = matches!(segment, Some("cached_ops" | "generated"));
            if let Some(segment) =
                segment.filter(|segment| !matches!(*segment, "cached_ops" | "generated" | "cubins"))
            {
                place.archs = segment.split('_').filter_map(Arch::parse).collect();
            }
        }
        "sglang" => {
            place.archs = parts
                .next()
                .map(|tag| tag.trim_start_matches("sm"))
                .and_then(Arch::parse)
                .into_iter()
                .collect()
        }
        "tilelang" => place.component_version = parts.next().map(str::to_owned),
        _ => {}
    }
    place
}

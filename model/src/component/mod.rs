//! What is known of the components of the stack: how each finds its toolkit, what it demands, what its caches leave out.
//!
//! One small file for each component, as data. Knowledge explains what was seen and predicts what a component would do;
//! it never overrules an observation, and never makes a finding without an observed failure. Components that are not
//! listed are told by the same general rules.
//!
//! Facts are those of `resolution.md` 1, each with the package versions that it holds for.

mod bitsandbytes;
mod cuda_pathfinder;
mod cupy;
mod cutlass_dsl;
mod deep_gemm;
mod flash_attn;
mod flashinfer;
mod jax;
mod math_libraries;
mod numba_cuda;
mod plumbing;
mod sglang;
mod tilelang;
mod torch;
mod transformer_engine;
mod triton;
mod tvm_ffi;
mod vllm;

use crate::toolkit::{ComputeCapability, Version};

/// What is known of one component.
#[derive(Debug, Clone, Copy)]
pub struct Component {
    /// Its name in reports.
    pub name: &'static str,
    /// Distribution names and import names, normalized as PyPI compares them.
    pub aliases: &'static [&'static str],
    /// It loads or runs things for others: the next frame out speaks.
    pub plumbing: bool,
    /// How it finds each part, in order.
    pub searches: &'static [Search],
    /// What it refuses.
    pub gates: &'static [Gate],
    /// Variables that replace one tool.
    pub overrides: &'static [Override],
    /// Its caches.
    pub caches: &'static [JitCache],
}

/// The beginning of every entry.
const NOTHING: Component = Component {
    name: "",
    aliases: &[],
    plumbing: false,
    searches: &[],
    gates: &[],
    overrides: &[],
    caches: &[],
};

/// How a component finds one part.
#[derive(Debug, Clone, Copy)]
pub struct Search {
    /// `nvcc`, `ptxas`, `nvrtc` …
    pub part: &'static str,
    /// The package versions it holds for.
    pub versions: Versions,
    /// The places, first to last.
    pub order: &'static [Step],
}

/// One place of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// A variable that names the toolkit's root.
    Root(&'static str),
    /// A variable that names the file itself.
    File(&'static str),
    /// A walk over PATH inside the process; nothing is run.
    Path(&'static str),
    /// The program `which` is run.
    Which(&'static str),
    /// A fixed directory.
    Directory(&'static str),
    /// A file below the package's own directory.
    Bundled(&'static str),
    /// NVIDIA's wheels in site-packages.
    Wheels,
    /// The conda environment.
    Conda,
    /// Whatever of that SONAME is mapped already.
    Loaded,
    /// The dynamic loader's own search.
    Loader,
    /// The release that torch was built for, without a file.
    TorchRelease,
}

/// A range of package versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Versions {
    /// First version; empty for any.
    pub from: &'static str,
    /// First version after the range; empty for none.
    pub before: &'static str,
}

impl Versions {
    /// Every version.
    pub const ALL: Versions = Versions {
        from: "",
        before: "",
    };

    /// Whether a version lies in the range.
    #[must_use]
    pub fn contains(&self, version: &str) -> bool {
        let version = numbers(version);
        (self.from.is_empty() || version >= numbers(self.from))
            && (self.before.is_empty() || version < numbers(self.before))
    }
}

const fn from(version: &'static str) -> Versions {
    Versions {
        from: version,
        before: "",
    }
}

const fn before(version: &'static str) -> Versions {
    Versions {
        from: "",
        before: version,
    }
}

const fn between(from: &'static str, before: &'static str) -> Versions {
    Versions { from, before }
}

/// The numbers of a version, without its local part: `0.6.18.post1+cu130` is 0, 6, 18, 1.
fn numbers(version: &str) -> Vec<u32> {
    let public = version.split('+').next().unwrap_or(version);
    public
        .split(|c: char| !c.is_ascii_digit())
        .filter(|part| !part.is_empty())
        .filter_map(|part| part.parse().ok())
        .collect()
}

/// A demand on a tool's release.
#[derive(Debug, Clone, Copy)]
pub struct Gate {
    /// The part that is asked for its release.
    pub part: &'static str,
    /// The package versions it holds for.
    pub versions: Versions,
    /// GPUs it concerns: major, lowest and highest minor of the compute capability.
    pub capability: (u32, u32, u32),
    /// The lowest release that passes.
    pub needs: Version,
}

impl Gate {
    /// Whether a package version has the gate.
    #[must_use]
    pub fn holds_for(&self, version: &str) -> bool {
        self.versions.contains(version)
    }

    /// Whether it is about this GPU.
    #[must_use]
    pub fn concerns(&self, capability: ComputeCapability) -> bool {
        let (major, lowest, highest) = self.capability;
        capability.major == major && (lowest..=highest).contains(&capability.minor)
    }
}

/// A variable that replaces one tool.
#[derive(Debug, Clone, Copy)]
pub struct Override {
    /// The variable.
    pub variable: &'static str,
    /// The part it replaces.
    pub part: &'static str,
    /// File name of the tool that it replaces, where a component carries several.
    pub replaces: &'static str,
    /// The component asks another tool for the release than the one it compiles with.
    pub not_asked: bool,
}

/// A cache of compiled code.
#[derive(Debug, Clone, Copy)]
pub struct JitCache {
    /// Variable that moves it; empty for none.
    pub variable: &'static str,
    /// Where it lies without the variable.
    pub directory: &'static str,
    /// What a changed value of does not lead to another entry.
    pub not_keyed: &'static str,
}

/// Every component that is known.
pub const ALL: &[&Component] = &[
    &torch::TORCH,
    &triton::TRITON,
    &flashinfer::FLASHINFER,
    &sglang::SGLANG,
    &sglang::SGL_KERNEL,
    &vllm::VLLM,
    &deep_gemm::DEEP_GEMM,
    &tvm_ffi::TVM_FFI,
    &tilelang::TILELANG,
    &cupy::CUPY,
    &numba_cuda::NUMBA_CUDA,
    &cuda_pathfinder::CUDA_PATHFINDER,
    &cuda_pathfinder::CUDA_BINDINGS,
    &jax::JAX,
    &transformer_engine::TRANSFORMER_ENGINE,
    &cutlass_dsl::CUTLASS_DSL,
    &bitsandbytes::BITSANDBYTES,
    &flash_attn::FLASH_ATTN,
    &flash_attn::XFORMERS,
    &math_libraries::NCCL,
    &math_libraries::CUDNN,
    &math_libraries::CUBLAS,
    &plumbing::NINJA,
    &plumbing::SETUPTOOLS,
    &plumbing::PIP,
];

/// What is known of a distribution, an import name or a component.
#[must_use]
pub fn find(name: &str) -> Option<&'static Component> {
    let wanted = crate::fold::normalized(name);
    ALL.iter()
        .find(|c| c.name == wanted || c.aliases.contains(&wanted.as_str()))
        .copied()
}

/// The component's name for a distribution or import name; the name itself when it is not known.
#[must_use]
pub fn name_of(distribution: &str) -> String {
    find(distribution).map_or_else(
        || crate::fold::normalized(distribution),
        |c| c.name.to_owned(),
    )
}

/// Whether a distribution loads or runs things for others, so that the next frame out is the one that asked.
#[must_use]
pub fn is_plumbing(distribution: &str) -> bool {
    find(distribution).is_some_and(|c| c.plumbing)
}

/// The variable that replaces a tool which a component carries, by the file's name.
#[must_use]
pub fn override_of(component: &str, file_name: &str) -> Option<&'static Override> {
    find(component)?
        .overrides
        .iter()
        .find(|o| o.replaces == file_name)
}

/// Variables that replace a tool of this part, in any component.
pub fn overrides(part: &str) -> impl Iterator<Item = (&'static Component, &'static Override)> {
    ALL.iter().flat_map(move |component| {
        component
            .overrides
            .iter()
            .filter(move |o| o.part == part)
            .map(move |o| (*component, o))
    })
}

/// The usual order of CUDA_HOME, CUDA_PATH, PATH and `/usr/local/cuda`.
const USUAL: &[Step] = &[
    Step::Root("CUDA_HOME"),
    Step::Root("CUDA_PATH"),
    Step::Path("nvcc"),
    Step::Directory("/usr/local/cuda"),
];

const fn search(part: &'static str, order: &'static [Step]) -> Search {
    Search {
        part,
        versions: Versions::ALL,
        order,
    }
}

const fn replaces(variable: &'static str, part: &'static str, file_name: &'static str) -> Override {
    Override {
        variable,
        part,
        replaces: file_name,
        not_asked: false,
    }
}

/// Whether a distribution is one of the components that a report speaks of even when nobody asked for it.
pub fn is_known(distribution: &str) -> bool {
    find(distribution).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_by_distribution_and_import_name() {
        for (name, component) in [
            ("flashinfer_python", "flashinfer"),
            ("sglang-kernel", "sgl-kernel"),
            ("apache.tvm_ffi", "tvm-ffi"),
            ("jaxlib", "jax"),
            ("Some_Package", "some-package"),
        ] {
            assert_eq!(name_of(name), component, "{name}");
        }
        assert!(is_plumbing("apache-tvm-ffi") && !is_plumbing("torch"));
    }

    #[test]
    fn no_two_components_answer_to_one_name() {
        let mut names: Vec<&str> = ALL.iter().flat_map(|c| c.aliases.iter().copied()).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    #[test]
    fn ranges_compare_as_versions_do() {
        let gate = between("0.6.7", "0.7.1");
        for (version, inside) in [
            ("0.6.6", false),
            ("0.6.7.post3", true),
            ("0.6.18", true),
            ("0.7.0", true),
            ("0.7.1", false),
            ("0.10.0", false),
        ] {
            assert_eq!(gate.contains(version), inside, "{version}");
        }
    }

    #[test]
    fn the_gate_of_sm12x_has_a_lifetime() {
        let sm120 = ComputeCapability {
            major: 12,
            minor: 0,
        };
        let needs = |version: &str| {
            find("flashinfer")?
                .gates
                .iter()
                .find(|g| g.holds_for(version) && g.concerns(sm120))
                .map(|g| g.needs.to_string())
        };
        assert_eq!(needs("0.6.6"), None);
        assert_eq!(needs("0.6.18.post1").as_deref(), Some("12.9"));
        assert_eq!(needs("0.7.4").as_deref(), Some("12.8"));
    }
}

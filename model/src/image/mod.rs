//! What a compiled CUDA file is for: the architectures, PTX and compiler of fatbins, cubins, PTX texts and of the
//! libraries and objects that carry them — read without any NVIDIA tool and without decompressing.

pub mod cubin;
pub mod fatbin;
pub mod object;
pub mod ptx;

pub use cubin::{Cubin, ToolStamp};
pub use fatbin::{Compression, Entry, EntryKind, Fatbin};
pub use ptx::Ptx;

use crate::toolkit::{self, Arch, ComputeCapability, Version};
use object::Object;
use serde::{Deserialize, Serialize};

/// The kind of file that an image was read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Container {
    /// A host ELF file (library, program or object) with fatbin sections.
    HostObject,
    /// A fatbin by itself.
    Fatbin,
    /// A cubin by itself.
    Cubin,
    /// PTX text.
    Ptx,
}

/// A PTX image: what a driver must be able to compile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PtxImage {
    /// Its virtual architecture; `None` if the text breaks off before it.
    pub target: Option<Arch>,
    /// Its PTX ISA.
    pub isa: Version,
}

/// What a compiled CUDA file holds, whatever its form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageFacts {
    /// The form.
    pub container: Container,
    /// Architectures with machine code, sorted, each once.
    pub sass: Vec<Arch>,
    /// PTX images, sorted, each once.
    pub ptx: Vec<PtxImage>,
    /// What the images say of the tools that made them.
    pub stamps: Vec<ToolStamp>,
    /// The toolkit release stated by a cubin's header or a PTX text's signature.
    pub stated_toolkit: Option<Version>,
    /// The ways in which fatbin entries are stored, each once; `None` where there are no fatbins.
    pub compression: Option<Vec<Compression>>,
    /// Whether something could not be read to its end.
    pub truncated: bool,
}

/// What of an image can run on a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fit {
    /// Machine code that the GPU runs.
    Sass(Arch),
    /// No machine code, but PTX that the driver reads.
    Ptx(PtxImage),
    /// Only PTX that is newer than the driver reads (error 222).
    PtxTooNew(PtxImage),
    /// Nothing for this GPU (error 209).
    Nothing,
}

impl ImageFacts {
    /// All architectures, machine code and PTX together, as they were spelled.
    #[must_use]
    pub fn archs(&self) -> Vec<Arch> {
        self.sass
            .iter()
            .copied()
            .chain(self.ptx.iter().filter_map(|ptx| ptx.target))
            .collect()
    }

    /// What a GPU of capability `device` under a driver of CUDA release `driver` would take from it.
    #[must_use]
    pub fn fit(&self, device: ComputeCapability, driver: Option<Version>) -> Fit {
        if let Some(arch) = self
            .sass
            .iter()
            .rev()
            .find(|arch| toolkit::runs_on(**arch, device))
        {
            return Fit::Sass(*arch);
        }
        let fitting = || {
            self.ptx
                .iter()
                .rev()
                .filter(|ptx| ptx.target.is_none_or(|arch| toolkit::runs_on(arch, device)))
        };
        let readable = |ptx: &&PtxImage| {
            driver.and_then(|driver| toolkit::reads_ptx(driver, ptx.isa)) != Some(false)
        };
        match (fitting().find(readable), fitting().next()) {
            (Some(ptx), _) => Fit::Ptx(*ptx),
            (None, Some(ptx)) => Fit::PtxTooNew(*ptx),
            (None, None) => Fit::Nothing,
        }
    }
}

/// Reads a file that may hold CUDA images: a host ELF file, a fatbin, a cubin or PTX text.
///
/// `None` if it holds none.
#[must_use]
pub fn read(bytes: &[u8]) -> Option<ImageFacts> {
    match bytes.get(..4)? {
        b"\x7fELF" => match cubin::read(bytes) {
            Some(cubin) => Some(from_cubin(cubin)),
            None => from_object(&Object::parse(bytes)?),
        },
        [0x50, 0xed, 0x55, 0xba] => Some(from_fatbins(Container::Fatbin, &[fatbin::read(bytes)])),
        _ => ptx::read(bytes).map(from_ptx),
    }
}

/// Reads the fatbin sections of a host ELF file; `None` if it has none.
///
/// After a device link `.nv_fatbin` has what a GPU can run; what `__nv_relfatbin` still holds are the inputs of that link
/// (NVSHMEM's: an sm_89 and PTX that no load can use, and that cuobjdump lists with `-all` alone).
#[must_use]
pub fn from_object(object: &Object<'_>) -> Option<ImageFacts> {
    let fatbins = |name: &str| -> Vec<Fatbin> {
        object
            .sections()
            .iter()
            .filter(|section| section.name == name)
            .map(|section| fatbin::read(section.bytes))
            .collect()
    };
    let linked = fatbins(".nv_fatbin");
    let found = if linked.iter().any(|fatbin| !fatbin.entries.is_empty()) {
        linked
    } else {
        linked
            .into_iter()
            .chain(fatbins("__nv_relfatbin"))
            .collect()
    };
    (!found.is_empty()).then(|| from_fatbins(Container::HostObject, &found))
}

fn from_fatbins(container: Container, fatbins: &[Fatbin]) -> ImageFacts {
    let entries = || fatbins.iter().flat_map(|fatbin| &fatbin.entries);
    let mut sass: Vec<Arch> = entries()
        .filter(|entry| entry.kind == EntryKind::Cubin)
        .map(|entry| entry.arch)
        .collect();
    sass.sort_unstable();
    sass.dedup();
    let mut ptx: Vec<PtxImage> = entries()
        .filter(|entry| entry.kind == EntryKind::Ptx)
        .map(|entry| PtxImage {
            target: Some(entry.arch),
            isa: entry.version,
        })
        .collect();
    ptx.sort_unstable();
    ptx.dedup();
    let mut compression: Vec<Compression> = entries().map(|entry| entry.compression).collect();
    compression.sort_unstable();
    compression.dedup();
    let mut stamps: Vec<ToolStamp> = fatbins
        .iter()
        .flat_map(|fatbin| fatbin.stamps.iter().cloned())
        .collect();
    stamps.sort_unstable();
    stamps.dedup();
    ImageFacts {
        container,
        sass,
        ptx,
        stamps,
        stated_toolkit: None,
        compression: Some(compression),
        truncated: fatbins.iter().any(|fatbin| fatbin.truncated),
    }
}

fn from_cubin(cubin: Cubin) -> ImageFacts {
    ImageFacts {
        container: Container::Cubin,
        sass: vec![cubin.arch],
        ptx: Vec::new(),
        stamps: cubin.stamp.into_iter().collect(),
        stated_toolkit: cubin.toolkit,
        compression: None,
        truncated: false,
    }
}

fn from_ptx(ptx: Ptx) -> ImageFacts {
    ImageFacts {
        container: Container::Ptx,
        sass: Vec::new(),
        ptx: vec![PtxImage {
            target: ptx.target,
            isa: ptx.isa,
        }],
        stamps: Vec::new(),
        stated_toolkit: ptx.compiler,
        compression: None,
        truncated: ptx.target.is_none(),
    }
}

//! Knowing what a file of a CUDA installation is, and what follows from its version.
//!
//! [`identify`] says of a file which part it is, its version and how that is known. [`survey`] and
//! [`candidates`] find the toolkits that are present. The tables — architectures, PTX ISA, drivers — are data, each
//! in a file of its own, with the functions that ask them.
//!
//! Pure over paths and bytes; what must be asked of the disk goes through [`Files`].

mod arch;
mod capability;
mod code;
mod driver;
mod files;
mod identify;
mod installed;
mod part;
pub mod profile;
mod ptx_isa;
mod root;
mod strings;
mod version;

pub use arch::{Arch, ComputeCapability, NotAnArch, Suffix, runs_on};
pub use capability::{dropped_in, first_toolkit_for, lowest_ptx_isa_for, supports};
pub use driver::{DriverRelease, driver_cuda, first_branch_for, lowest_branch_for_major};
pub use files::{Files, LocalFiles, NoFiles};
pub use identify::{
    Certainty, Context, Identity, Reading, VersionFrom, defined_number, identify, version_in_json,
};
pub use installed::{Candidate, Places, Toolkit, candidates, survey};
pub use part::{LibraryName, Part, is_host_compiler};
pub use ptx_isa::{first_toolkit_for_ptx, ptx_isa_of, reads_ptx, toolkits_writing};
pub use root::{DriverKind, Root, ToolkitKind, root_of};
pub use strings::{version_in_build_string, version_in_tool_string};
pub use version::{NotAVersion, Version};

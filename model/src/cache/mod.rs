//! JIT caches: which component's cache a path lies in, and which toolkit its artefacts were built with.
//!
//! [`place_of`] reads the path, [`ninja`], [`triton`] and [`sglang`] the files beside the artefact, and
//! [`built_with`] gathers the evidence about the toolkit, each with how it is known.

mod built_with;
pub mod ninja;
mod place;
pub mod sglang;
pub mod triton;

pub use built_with::{BuiltWith, BuiltWithFrom, built_with};
pub use ninja::BuildFile;
pub use place::{ArtifactKind, Place, kind_of, place_of};

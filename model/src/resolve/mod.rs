//! Who resolved what: from the state of what was seen to components, tools and libraries, each with its rule.
//!
//! Everything here is observed. A rule is taken from the environment, the PATH, the build file or the loader's search
//! that was seen; knowledge of a package ([`crate::component`]) gives names, never outcomes.

pub mod asker;
mod builds;
mod caches;
mod components;
mod headers;
pub mod tool;
mod toolkits;

pub(crate) use crate::commandline::absolute;
pub use builds::builds;
pub(crate) use builds::{archs_of, is_question};
pub use caches::caches;
pub use components::components;
pub use toolkits::toolkits;

//! flash-attn and xFormers: built from source by torch's rules (resolution.md 1.14).

use super::{Component, NOTHING, USUAL, search};

/// flash-attn.
pub(super) const FLASH_ATTN: Component = Component {
    name: "flash-attn",
    aliases: &["flash-attn"],
    searches: &[search("nvcc", USUAL)],
    ..NOTHING
};

/// xFormers.
pub(super) const XFORMERS: Component = Component {
    name: "xformers",
    aliases: &["xformers"],
    searches: &[search("nvcc", USUAL)],
    ..NOTHING
};

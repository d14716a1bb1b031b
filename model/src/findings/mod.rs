//! What is wrong: one file for each kind of finding.
//!
//! A finding states a cause only as far as its evidence goes, and a healthy run has none above a note. Three rules hold
//! for all kinds: every sentence of evidence names its event; knowledge of a package explains a failure that was seen
//! and never makes one; a remedy names a path or a variable of this machine that was checked to satisfy what failed.
//!
//! To add a kind, write a file with a function of type [`Find`] and list it in `KINDS`; if other kinds follow from
//! it, add its line to `link`.

mod aftermath;
mod draft;
mod install;
mod link;
mod view;
mod words;

mod arch_list_empty;
mod arch_list_unknown;
mod arch_unsupported;
mod build_lock_stale;
mod build_tool_killed;
mod build_tool_missing;
mod cache_contended;
mod cache_corrupt;
mod cache_foreign_major;
mod cache_rebuilt;
mod cache_stale_build_file;
mod cache_stale_toolkit;
mod cache_unwritable;
mod cache_wrong_arch;
mod child_not_followed;
mod component_disabled;
mod cudart_not_found;
mod cudart_stub;
mod cudart_twice;
mod cudnn_mixed;
mod driver_service;
mod driver_too_old;
mod extension_abi;
mod gpu_not_visible;
mod handed_over;
mod host_compiler;
mod host_headers;
mod libcuda_compat;
mod libcuda_not_found;
mod libcuda_stub;
mod library_unusable;
mod no_kernel_image;
mod nvcc_built_for;
mod nvcc_missing;
mod nvcc_older;
mod nvjitlink_nvrtc;
mod nvrtc_builtins;
mod nvrtc_headers;
mod package_binary;
mod provider;
mod ptx_compiler_missing;
mod ptx_driver;
mod ptxas_override;
mod ptxas_ptx;
mod python_headers;
mod ranks_differ;
mod source_refused;
mod symbols;
mod toolkit_incomplete;
mod toolkit_mixed;
mod toolkit_root;
mod version_disagreement;

pub use draft::Draft;
pub use view::{Known, Offer, Tool, View};

use crate::{
    fold::Model,
    report::{Finding, Report},
};

/// Looks for one kind of finding, or for two that are told apart by one look.
pub type Find = fn(&View<'_>) -> Vec<Draft>;

/// All kinds. Where severity and confidence are equal, an earlier kind is reported first.
const KINDS: &[Find] = &[
    toolkit_root::find,
    nvcc_older::find,
    toolkit_mixed::find,
    nvcc_missing::find,
    build_tool_missing::find,
    libcuda_stub::find,
    libcuda_compat::find,
    cache_stale_build_file::find,
    cache_foreign_major::find,
    nvcc_built_for::find,
    symbols::find,
    extension_abi::find,
    library_unusable::find,
    cudart_stub::find,
    toolkit_incomplete::find,
    host_compiler::find,
    host_headers::find,
    python_headers::find,
    build_tool_killed::find,
    ptxas_override::find,
    ptxas_ptx::find,
    arch_unsupported::find,
    nvrtc_headers::find,
    nvrtc_builtins::find,
    nvjitlink_nvrtc::find,
    cudnn_mixed::find,
    cudart_not_found::find,
    cudart_twice::find,
    package_binary::find,
    libcuda_not_found::find,
    cache_wrong_arch::find,
    cache_corrupt::find,
    ptx_driver::find,
    no_kernel_image::find,
    driver_too_old::find,
    driver_service::find,
    gpu_not_visible::find,
    ptx_compiler_missing::find,
    cache_unwritable::find,
    build_lock_stale::find,
    cache_contended::find,
    cache_stale_toolkit::find,
    cache_rebuilt::find,
    arch_list_empty::find,
    arch_list_unknown::find,
    component_disabled::find,
    version_disagreement::find,
    ranks_differ::find,
    handed_over::find,
    child_not_followed::find,
    source_refused::find,
];

/// Everything that is wrong, the primary cause first, what follows from it last.
pub fn find(model: &Model, report: &Report) -> Vec<Finding> {
    let view = View::new(model, report);
    let mut drafts: Vec<Draft> = Vec::new();
    for draft in KINDS.iter().flat_map(|find| find(&view)) {
        match drafts.iter_mut().find(|d| is_same(d, &draft)) {
            Some(known) => known.absorb(draft),
            None => drafts.push(draft),
        }
    }
    link::link(&view, &mut drafts);
    drafts.sort_by_key(|d| {
        let f = &d.finding;
        (f.consequence_of.is_some(), f.severity, f.confidence)
    });
    drafts.into_iter().map(|d| d.finding).collect()
}

/// Whether two drafts tell the same thing of different processes, as N ranks do.
fn is_same(a: &Draft, b: &Draft) -> bool {
    a.finding.id == b.finding.id
        && a.finding.component == b.finding.component
        && a.finding.title == b.finding.title
}

//! Builds the shim and tells where it is: the command embeds it, so that one file is a whole installation.

#[path = "../preload/nested_build.rs"]
mod nested_build;

use std::path::Path;

fn main() -> Result<(), String> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let shim = nested_build::build_shim(&workspace)?;
    println!("cargo::rustc-env=JITTRACE_SHIM={}", shim.display());
    Ok(())
}

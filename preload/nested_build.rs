//! Builds the shim from another package's build script: it cannot be a member of the workspace, see its `Cargo.toml`.
//!
//! Included by `tracer/build.rs`, which embeds the shim, and by `tests/build.rs`, which loads it into small programs.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds the shim in `OUT_DIR`, with a target directory of its own so that the outer build's lock is not waited for,
/// and gives the path of the library. The outer build's flags and wrappers (clippy, coverage) are left out.
pub(crate) fn build_shim(workspace: &Path) -> Result<PathBuf, String> {
    let preload = workspace.join("preload");
    for watched in [
        "preload/src",
        "preload/build.rs",
        "preload/nested_build.rs",
        "preload/Cargo.toml",
        "preload/Cargo.lock",
        "wire/src",
        "wire/Cargo.toml",
    ] {
        println!(
            "cargo::rerun-if-changed={}",
            workspace.join(watched).display()
        );
    }
    let variable = |name: &str| {
        std::env::var(name).map_err(|_| format!("{name} is not set; build with cargo"))
    };
    let target_dir = PathBuf::from(variable("OUT_DIR")?).join("shim");
    let mut cargo = Command::new(variable("CARGO")?);
    cargo.args(["build", "--release", "--lib", "--locked"]);
    cargo
        .arg("--manifest-path")
        .arg(preload.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(&target_dir);
    let (host, target) = (variable("HOST")?, variable("TARGET")?);
    let mut products = target_dir;
    if host != target {
        cargo.args(["--target", &target]);
        products.push(&target);
    }
    for inherited in [
        "CARGO_ENCODED_RUSTFLAGS",
        "RUSTFLAGS",
        "RUSTC_WRAPPER",
        "RUSTC_WORKSPACE_WRAPPER",
        "CARGO_BUILD_TARGET",
        "CARGO_TARGET_DIR",
        "CARGO_BUILD_RUSTFLAGS",
        "CLIPPY_ARGS",
    ] {
        cargo.env_remove(inherited);
    }
    let output = cargo
        .output()
        .map_err(|error| format!("cannot run cargo for the shim: {error}"))?;
    if !output.status.success() {
        return Err(format!(
            "the shim does not build:\n{}",
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    Ok(products.join("release").join("libjittrace_preload.so"))
}

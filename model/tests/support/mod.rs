//! What several tests share: where the real stack is, and what NVIDIA's own tools say.

#![allow(dead_code, reason = "each test binary uses its own part")]

use std::path::{Path, PathBuf};
use std::process::Command;

/// The directory of the real stack, or `None` with a visible reason.
pub(crate) fn stack() -> Option<PathBuf> {
    let named = std::env::var_os("JITTRACE_STACK").map(PathBuf::from);
    let root = named
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache/jittrace/stack")))?;
    if root.join("venv/bin/python").exists() {
        return Some(root);
    }
    eprintln!(
        "SKIPPED: no real CUDA stack at {} (set JITTRACE_STACK)",
        root.display()
    );
    None
}

/// The stack's site-packages.
pub(crate) fn site_packages(stack: &Path) -> PathBuf {
    let lib = stack.join("venv/lib");
    let python = std::fs::read_dir(&lib)
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .find(|name| name.starts_with("python3"))
        .unwrap();
    lib.join(python).join("site-packages")
}

/// What a program prints, on both streams, whatever its status.
pub(crate) fn output(program: &Path, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

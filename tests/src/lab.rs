//! A directory with small programs in it, compiled for one test.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

/// A directory with small programs in it that any user may run; removed in the end.
#[derive(Debug)]
pub struct Lab {
    directory: tempfile::TempDir,
}

impl Default for Lab {
    fn default() -> Self {
        Lab::new()
    }
}

impl Lab {
    /// An empty one.
    ///
    /// # Panics
    /// The directory cannot be made.
    #[must_use]
    pub fn new() -> Lab {
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777)).unwrap();
        Lab { directory }
    }

    /// The directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Where a file of this name lies, or would lie.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// Writes a file, and makes the directories above it.
    ///
    /// # Panics
    /// It cannot be written.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.file(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// Compiles C; `flags` follow the source, `$ORIGIN` and relative paths are as in the lab's directory.
    ///
    /// # Panics
    /// It does not compile.
    pub fn cc(&self, output: &str, source: &str, flags: &[&str]) -> PathBuf {
        let target = self.file(output);
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        let file = self.write(&format!("{}.c", output.replace('/', "_")), source);
        let compiled = Command::new("cc")
            .current_dir(self.path())
            .args(["-w", "-O1", "-D_GNU_SOURCE", "-o"])
            .arg(&target)
            .arg(&file)
            .args(flags)
            .output()
            .unwrap();
        assert!(
            compiled.status.success(),
            "{output}: {}",
            String::from_utf8_lossy(&compiled.stderr)
        );
        target
    }

    /// A library whose functions have the version `version`, as the real ones have.
    ///
    /// # Panics
    /// It does not compile.
    pub fn versioned(&self, output: &str, soname: &str, version: &str, source: &str) -> PathBuf {
        let map = format!("{}.map", output.replace('/', "_"));
        let map = self.write(&map, &format!("{version} {{ global: *; }};\n"));
        let script = format!("-Wl,--version-script={}", map.display());
        let soname = format!("-Wl,-soname,{soname}");
        self.cc(output, source, &["-shared", "-fPIC", &soname, &script])
    }

    /// A stand-in for a CUDA runtime that answers 12040.
    ///
    /// # Panics
    /// It does not compile.
    pub fn cudart(&self, output: &str) -> PathBuf {
        self.cudart_of(output, 12040)
    }

    /// The same that answers with another version, of 12.x.
    ///
    /// # Panics
    /// It does not compile.
    pub fn cudart_of(&self, output: &str, version: u32) -> PathBuf {
        let source = format!("int cudaRuntimeGetVersion(int *v) {{ *v = {version}; return 0; }}");
        self.versioned(output, "libcudart.so.12", "libcudart.so.12", &source)
    }
}

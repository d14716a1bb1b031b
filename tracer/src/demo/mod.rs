//! `jittrace demo`: the founding story in seconds, on stand-ins, without a GPU and without the network.
//!
//! Toolkits and packages are small scripts that this module writes; they say so themselves. What traces them is the real
//! thing: the same binary, started twice as a user would start it.

use std::{
    fs, io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use anyhow::{Context, Result, bail};

use crate::cli::DemoArgs;

/// Plays the story.
///
/// # Errors
/// There is no Python, or the stage cannot be written.
pub fn demo(args: &DemoArgs) -> Result<ExitCode> {
    let Some(python) = find("python3") else {
        bail!(
            "the demo's stand-ins are Python scripts, and there is no python3 on PATH; install one and try again"
        );
    };
    let stage = Stage::set(args.keep.as_deref())?;
    let place = stage.directory.display();
    println!(
        "A GPU of compute capability 12.0, torch for CUDA 13.0, FlashInfer 0.6.8, and two toolkits: 12.4 is first on PATH,"
    );
    println!("13.0 is there too. (All of them stand-ins, in {place}.)\n");

    println!("$ jittrace -- python serve.py");
    stage.play(&python, None, "broken.jtrace")?;
    println!("\nThe same with the remedy:\n");
    println!("$ CUDA_HOME={place}/cuda-13.0 jittrace -- python serve.py");
    stage.play(&python, Some("cuda-13.0"), "works.jtrace")?;
    if args.keep.is_some() {
        println!(
            "\nThe traces are kept: jittrace view {place}/broken.jtrace, jittrace diff {place}/works.jtrace {place}/broken.jtrace"
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// The directory with the stand-ins; removed at the end unless it was asked for.
struct Stage {
    directory: PathBuf,
    keep: bool,
}

impl Stage {
    fn set(keep: Option<&Path>) -> Result<Stage> {
        let directory = match keep {
            Some(directory) => directory.to_owned(),
            None => std::env::temp_dir().join(format!("jittrace-demo-{}", std::process::id())),
        };
        fs::create_dir_all(&directory)
            .with_context(|| format!("cannot make the stage {}", directory.display()))?;
        let stage = Stage {
            directory: directory.canonicalize()?,
            keep: keep.is_some(),
        };
        stage
            .furnish()
            .with_context(|| format!("cannot write the stage {}", directory.display()))?;
        Ok(stage)
    }

    fn furnish(&self) -> io::Result<()> {
        for release in ["12.4", "13.0"] {
            let script = include_str!("nvcc.sh").replace("@RELEASE@", release);
            self.write(&format!("cuda-{release}/bin/nvcc"), &script, 0o755)?;
        }
        let site = "site-packages";
        for (file, text) in [
            ("torch/__init__.py", ""),
            ("torch/version.py", "cuda = '13.0'\n"),
            (
                "torch-2.11.0+cu130.dist-info/METADATA",
                "Name: torch\nVersion: 2.11.0+cu130\n",
            ),
            (
                "torch-2.11.0+cu130.dist-info/RECORD",
                "torch/__init__.py,,\ntorch/version.py,,\n",
            ),
            ("flashinfer/__init__.py", include_str!("flashinfer.py")),
            (
                "flashinfer_python-0.6.8.dist-info/METADATA",
                "Name: flashinfer-python\nVersion: 0.6.8\n",
            ),
            (
                "flashinfer_python-0.6.8.dist-info/RECORD",
                "flashinfer/__init__.py,,\n",
            ),
        ] {
            self.write(&format!("{site}/{file}"), text, 0o644)?;
        }
        self.write("serve.py", include_str!("serve.py"), 0o644)
    }

    fn write(&self, name: &str, text: &str, mode: u32) -> io::Result<()> {
        let path = self.directory.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(&path, text)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(mode))
    }

    /// Starts jittrace as a user would.
    fn play(&self, python: &Path, cuda_home: Option<&str>, trace: &str) -> Result<()> {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(["--no-tui", "-o"])
            .arg(self.directory.join(trace))
            .arg("--")
            .arg(python)
            .arg("serve.py")
            .current_dir(&self.directory)
            .env(
                "PATH",
                format!("{}/cuda-12.4/bin:{path}", self.directory.display()),
            )
            .env("PYTHONPATH", self.directory.join("site-packages"))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env_remove("CUDA_PATH");
        match cuda_home {
            Some(home) => command.env("CUDA_HOME", self.directory.join(home)),
            None => command.env_remove("CUDA_HOME"),
        };
        command.status().context("cannot start jittrace")?;
        Ok(())
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if !self.keep {
            let _ = fs::remove_dir_all(&self.directory);
        }
    }
}

/// The interpreter itself: version managers put scripts of its name on PATH, which would fill the trace.
fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|d| d.join(name))
        .filter(|p| p.is_file())
        .find_map(|candidate| {
            let asked = Command::new(candidate)
                .args(["-c", "import sys; print(sys.executable)"])
                .output()
                .ok()?;
            let interpreter = PathBuf::from(String::from_utf8_lossy(&asked.stdout).trim());
            interpreter.is_file().then_some(interpreter)
        })
}

//! Runs of programs on the real stack: torch, FlashInfer, triton and two toolkits, with a cache of their own.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use crate::{jittrace, skip, stack};

/// The real stack, and a directory for what one test makes with it.
#[derive(Debug)]
pub struct Stack {
    /// Where the stack lies.
    pub root: PathBuf,
    /// The interpreter that programs run with; that of the stack, unless a test has an environment of its own.
    pub python: PathBuf,
    /// For traces, reports and caches; removed in the end.
    pub work: tempfile::TempDir,
}

impl Stack {
    /// The stack, or a line that says that `test` is skipped.
    ///
    /// # Panics
    /// The directory for the test cannot be made.
    #[must_use]
    pub fn here(test: &str) -> Option<Stack> {
        let Some(root) = stack() else {
            skip(
                test,
                "the real stack is not here (JITTRACE_STACK, or ~/.cache/jittrace/stack)",
            );
            return None;
        };
        Some(Stack {
            python: root.join("venv/bin/python"),
            root,
            work: tempfile::tempdir().unwrap(),
        })
    }

    /// The toolkit of a release: `13.0`, `12.4`.
    #[must_use]
    pub fn toolkit(&self, release: &str) -> PathBuf {
        self.root.join("toolkits").join(format!("cuda-{release}"))
    }

    /// Where the packages of the stack are.
    #[must_use]
    pub fn packages(&self) -> PathBuf {
        self.root.join("venv/lib/python3.12/site-packages")
    }

    /// The variable that makes torch see a GPU of capability 12.0.
    #[must_use]
    pub fn fake_sm120(&self) -> (&'static str, String) {
        (
            "PYTHONPATH",
            self.root.join("fake-sm").display().to_string(),
        )
    }

    /// Sets the environment of a run: the tools of the virtual environment, a cache of its own, no toolkit but what
    /// `env` names.
    ///
    /// # Panics
    /// PATH is unset.
    pub fn dress(&self, command: &mut Command, env: &[(&str, String)]) {
        let own = self.python.parent().unwrap_or(&self.root);
        let path = format!(
            "{}:{}:{}",
            own.display(),
            self.root.join("venv/bin").display(),
            std::env::var("PATH").unwrap()
        );
        command
            .env("PATH", path)
            .env("FLASHINFER_WORKSPACE_BASE", self.work.path().join("cache"))
            .env("TRITON_CACHE_DIR", self.work.path().join("triton"))
            .env_remove("CUDA_HOME")
            .env_remove("CUDA_PATH")
            .env_remove("CUDA_VISIBLE_DEVICES")
            .env_remove("FLASHINFER_CUDA_ARCH_LIST")
            .env_remove("LD_LIBRARY_PATH")
            .env_remove("PYTHONPATH");
        command.envs(env.iter().map(|(n, v)| (*n, v.as_str())));
    }

    /// A command that traces a program of the stack's interpreter, its arguments still to come.
    #[must_use]
    pub fn tracer(&self, trace: &Path, report: &str) -> Command {
        let mut command = Command::new(jittrace());
        command
            .args(["--no-tui", "-q", "-o"])
            .arg(trace)
            .args(["--report", report, "--"])
            .arg(&self.python);
        command
    }

    /// The arguments that serve a small model on the CPU; without its port.
    ///
    /// `None` when the stack has no sglang, which is said for `test`.
    #[must_use]
    pub fn server(&self, test: &str) -> Option<Vec<String>> {
        let model = self.root.join("gpt2");
        if !model.join("config.json").exists() {
            skip(test, "the stack has no sglang (tier 3)");
            return None;
        }
        let rest = "--skip-tokenizer-init --load-format dummy --device cpu --dtype float32 --disable-overlap-schedule \
                    --mem-fraction-static 0.2 --max-total-tokens 512 --attention-backend torch_native \
                    --sampling-backend pytorch --skip-server-warmup --host 127.0.0.1 --port";
        let mut arguments = vec![
            "-m".to_owned(),
            "sglang.launch_server".to_owned(),
            "--model-path".to_owned(),
            model.display().to_string(),
        ];
        arguments.extend(rest.split_ascii_whitespace().map(str::to_owned));
        Some(arguments)
    }
}

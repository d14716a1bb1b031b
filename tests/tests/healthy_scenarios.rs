//! The scenarios of the real stack as they are when all is well: a report on them has neither an error nor a warning.
//!
//! Skips where the stack is not there; the served model, which takes minutes, is asked for by `JITTRACE_LONG=1`.

#![allow(clippy::expect_used, reason = "a test fails by panicking")]

use std::{
    fs,
    net::TcpListener,
    process::{Command, Stdio},
    time::Duration,
};

use jittrace_model::report::{Report, Severity};
use jittrace_tests::{eventually, finish, skip, stack::Stack};

/// A JIT build on a busy machine of two cores.
const PATIENCE: Duration = Duration::from_secs(400);

/// Asks FlashInfer what it resolved; with an argument, builds and loads its `page` module.
const PAGE: &str = r#"
import importlib, sys, torch
from flashinfer.jit import core
from flashinfer.jit.cpp_ext import get_cuda_version
print(torch.version.cuda, get_cuda_version(), core.current_compilation_context.TARGET_CUDA_ARCHS)
if sys.argv[1:]:
    importlib.import_module("flashinfer.jit.page").gen_page_module().build_and_load()
print("well")
"#;

/// Asks the runtimes that are named, and torch, for devices.
const DEVICES: &str = r#"
import ctypes, sys, torch
for path in sys.argv[1:]:
    lib = ctypes.CDLL(path)
    for function in ("cudaRuntimeGetVersion", "cudaDriverGetVersion", "cudaGetDeviceCount"):
        value = ctypes.c_int(-1)
        print(function, getattr(lib, function)(ctypes.byref(value)), value.value)
print("GPU" if torch.cuda.is_available() else "CPU", torch.ones(3).sum().item())
print("well")
"#;

/// Compiles a kernel for two architectures, without a GPU.
const KERNEL: &str = r#"
import triton, triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
@triton.jit
def scale(p, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(p + i, tl.load(p + i, mask=i < n) * 2.0, mask=i < n)
for cc in (120, 90):
    source = ASTSource(fn=scale, signature={"p": "*fp32", "n": "i32", "B": "constexpr"}, constexprs={(2,): 1024})
    print(cc, len(triton.compile(source, target=GPUTarget("cuda", cc, 32)).asm["cubin"]))
print("well")
"#;

/// Runs a program that must end well, and whose report must have nothing above a note.
fn is_left_in_peace(
    stack: &Stack,
    what: &str,
    program: &str,
    arguments: &[String],
    env: &[(&str, String)],
) -> Report {
    let script = stack.work.path().join("app.py");
    fs::write(&script, program).expect("the program is written");
    let report = stack.work.path().join("r.json");
    let trace = stack.work.path().join("t.jtrace");
    let mut command = stack.tracer(&trace, &format!("json={}", report.display()));
    command.arg(&script).args(arguments);
    stack.dress(&mut command, env);
    let output = finish(&mut command, PATIENCE);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.ends_with("well\n"),
        "{what}: {said}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = fs::read_to_string(&report).expect("a report was written");
    let report: Report = serde_json::from_str(&text).expect("the report reads");
    accuses_nobody(what, &report);
    report
}

fn accuses_nobody(what: &str, report: &Report) {
    let grave: Vec<_> = report
        .findings
        .iter()
        .filter(|f| f.severity != Severity::Note)
        .collect();
    assert!(grave.is_empty(), "{what}: {grave:#?}");
}

#[test]
fn one_toolkit_throughout_asked_built_and_taken_from_the_cache() {
    let Some(stack) = Stack::here("healthy builds") else {
        return;
    };
    let new = ("CUDA_HOME", stack.toolkit("13.0").display().to_string());
    let seen = stack.fake_sm120();
    is_left_in_peace(&stack, "check", PAGE, &[], &[seen, new.clone()]);
    // The same module, built for another architecture than that of the scenario `cold`.
    let hopper = ("FLASHINFER_CUDA_ARCH_LIST", "9.0a".to_owned());
    let build = ["build".to_owned()];
    let cold = is_left_in_peace(&stack, "cold", PAGE, &build, &[hopper.clone(), new.clone()]);
    assert!(cold.builds.iter().any(|b| b.tool == "nvcc"));
    let warm = is_left_in_peace(&stack, "warm", PAGE, &build, &[hopper, new]);
    assert!(warm.builds.iter().all(|b| b.tool != "nvcc"));
}

#[test]
fn a_driver_as_old_as_its_runtime_and_one_that_nobody_needs() {
    let Some(stack) = Stack::here("healthy driver") else {
        return;
    };
    let driver = stack.root.join("driver");
    if !driver.join("libcuda.so.1").exists() {
        skip("healthy driver", "the stack has no driver library");
        return;
    }
    let driver = ("LD_LIBRARY_PATH", driver.display().to_string());
    let cpu = ("CUDA_VISIBLE_DEVICES", String::new());
    let of = |release: &str, name: &str| {
        let file = stack.toolkit(release).join("lib64").join(name);
        file.display().to_string()
    };
    // torch's own runtime is of CUDA 13: on the CPU on purpose.
    let old = [of("12.4", "libcudart.so.12")];
    is_left_in_peace(
        &stack,
        "old runtime",
        DEVICES,
        &old,
        &[driver.clone(), cpu.clone()],
    );
    let new = [of("13.0", "libcudart.so.13")];
    let report = is_left_in_peace(&stack, "new runtime", DEVICES, &new, &[driver, cpu]);
    // Not silent by blindness: what was refused is told, as a note.
    assert!(
        report.findings.iter().any(|f| f.id == "driver-too-old"),
        "{:#?}",
        report.findings
    );
    // No driver at all.
    is_left_in_peace(&stack, "no driver", DEVICES, &[], &[]);
}

#[test]
fn triton_with_its_own_ptxas() {
    let Some(stack) = Stack::here("healthy triton") else {
        return;
    };
    if !stack.packages().join("triton").exists() {
        skip("healthy triton", "the stack has no triton");
        return;
    }
    let report = is_left_in_peace(&stack, "triton", KERNEL, &[], &[]);
    assert!(report.builds.iter().any(|b| b.tool.starts_with("ptxas")));
}

#[test]
fn a_served_model_with_one_toolkit() {
    if std::env::var_os("JITTRACE_LONG").is_none() {
        skip(
            "healthy serve",
            "it takes minutes; JITTRACE_LONG=1 asks for it",
        );
        return;
    }
    let Some(stack) = Stack::here("healthy serve") else {
        return;
    };
    let Some(server) = stack.server("healthy serve") else {
        return;
    };
    let port = TcpListener::bind("127.0.0.1:0")
        .and_then(|l| l.local_addr())
        .expect("a free port")
        .port();
    let report = stack.work.path().join("r.json");
    let trace = stack.work.path().join("t.jtrace");
    let log = stack.work.path().join("serve.log");
    let mut command = stack.tracer(&trace, &format!("json={}", report.display()));
    command
        .args(server)
        .arg(port.to_string())
        .stdout(fs::File::create(&log).expect("a log"))
        .stderr(Stdio::null());
    stack.dress(
        &mut command,
        &[
            stack.fake_sm120(),
            (
                "LD_LIBRARY_PATH",
                stack.root.join("driver").display().to_string(),
            ),
            ("CUDA_HOME", stack.toolkit("13.0").display().to_string()),
        ],
    );
    let mut child = command.spawn().expect("jittrace starts");
    let is_healthy = || {
        let mut curl = Command::new("curl");
        curl.args(["-fs", "-m", "5", "-o", "/dev/null"])
            .arg(format!("http://127.0.0.1:{port}/health"));
        curl.status().is_ok_and(|s| s.success())
    };
    let served = eventually(Duration::from_secs(300), is_healthy);
    // jittrace hands the signal on to the server, which ends its own.
    let told = Command::new("kill").arg(child.id().to_string()).status();
    let ended = eventually(Duration::from_secs(60), || {
        child.try_wait().is_ok_and(|s| s.is_some())
    });
    if !ended {
        let _ = child.kill();
    }
    assert!(
        served && ended && told.is_ok_and(|s| s.success()),
        "{}",
        fs::read_to_string(&log).unwrap_or_default()
    );
    let text = fs::read_to_string(&report).expect("a report was written");
    accuses_nobody(
        "serve",
        &serde_json::from_str(&text).expect("the report reads"),
    );
}

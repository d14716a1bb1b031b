//! Python frames of processes that run already: what they are doing, who waits for a compiler, who asked for a library.
//!
//! Tests of refusals need strace, which stands in for Yama.
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

use std::{
    path::PathBuf,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use jittrace_tests::{
    copy_program, eventually, is_root, jittrace,
    lab::Lab,
    python, skip,
    trace::{PATIENCE, Stepping, Trace, alone, as_nobody, base, interrupt, kernel_source},
};
use serde_json::Value;

/// Waits in a thread; then runs a compiler from `build` and loads a library from `load`, one step a line.
const PROGRAM: &str = r#"
import ctypes, os, subprocess, sys, threading
here = sys.argv[1]
def waiter():
    threading.Event().wait(60)
def build():
    subprocess.call([here + "/bin/nvcc", "--version"], stdout=open(os.devnull, "w"))
def load():
    ctypes.CDLL(here + "/libcudart.so.12")
def main():
    thread = threading.Thread(target=waiter)
    thread.daemon = True
    thread.start()
    for step in (build, load):
        print("at"); sys.stdout.flush()
        sys.stdin.readline()
        step()
    print("at"); sys.stdout.flush()
    sys.stdin.readline()
main()
"#;

/// A compiler and a library that take their time, as the real ones do: until a file is there.
const WAIT: &str = "#include <unistd.h>\n#include <stdio.h>\n\
    static void wait_for(const char *file) { for (int i = 0; i < 6000 && access(file, F_OK); i++) usleep(10000); }\n";

fn program(lab: &Lab) -> PathBuf {
    let compiled = lab.file("compiled").display().to_string();
    let loaded = lab.file("loaded").display().to_string();
    lab.cc(
        "libcudart.so.12",
        &format!(
            "{WAIT}__attribute__((constructor)) static void start(void) {{ wait_for(\"{loaded}\"); }}\n\
             int cudaRuntimeGetVersion(int *v) {{ *v = 12040; return 0; }}"
        ),
        &["-shared", "-fPIC"],
    );
    lab.cc(
        "bin/nvcc",
        &format!("{WAIT}int main(void) {{ wait_for(\"{compiled}\"); return 0; }}"),
        &[],
    );
    lab.write("program.py", PROGRAM)
}

fn functions(stack: &Value) -> Vec<&str> {
    stack["python"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|frame| base(frame, "file") == "program.py")
        .map(|frame| frame["function"].as_str().unwrap())
        .collect()
}

/// The stack that explains an event, with its delay as it must be: all that is told began after `since`.
fn explaining<'a>(trace: &'a Trace, event: &Value, since: Instant) -> &'a Value {
    let stacks = trace.kind("python-stack");
    let stack = stacks
        .iter()
        .find(|s| s["of"] == event["id"])
        .unwrap_or_else(|| {
            panic!(
                "nothing explains {event}\n{stacks:#?}\n{:#?}",
                trace.kind("note")
            )
        });
    assert_eq!(stack["inexact"], true);
    assert_eq!(stack["source"], "procfs");
    let delay = Duration::from_nanos(stack["delay_ns"].as_u64().unwrap());
    assert!(delay < since.elapsed(), "{delay:?}");
    stack
}

#[test]
fn frames_of_a_live_process_name_the_code_that_asks() {
    let test = "frames_of_a_live_process_name_the_code_that_asks";
    if !kernel_source(test) {
        return;
    }
    let _alone = alone();
    let since = Instant::now();
    let lab = Lab::new();
    let script = program(&lab);
    let mut process = Stepping::start(Command::new(python()).arg(&script).arg(lab.path()));
    assert_eq!(process.line(), "at");
    let attached = lab.attach("t.jtrace", process.pid());
    for (told, goes_on) in [
        ("/bin/nvcc\"", "compiled"),
        ("\"library-request\"", "loaded"),
    ] {
        process.step();
        let begun = eventually(PATIENCE, || {
            std::fs::read_to_string(lab.file("t.jtrace")).is_ok_and(|t| t.contains(told))
        });
        lab.write(goes_on, "");
        assert!(begun, "{told} is not told");
        assert_eq!(process.line(), "at");
    }
    let trace = attached.interrupt();
    process.step();
    assert!(process.child.wait().unwrap().success());

    assert_eq!(trace.source("python-frames"), ("active", ""));
    let starts = trace.kind("process-start");
    let start = starts.iter().find(|e| e["found"] == true).unwrap();
    assert_eq!(
        functions(explaining(&trace, start, since)),
        ["main", "<module>"]
    );
    let stacks = trace.kind("python-stack");
    let waits = |s: &&Value| s["of"].is_null() && functions(s) == ["waiter"];
    assert!(stacks.iter().any(waits), "the other thread is not told");
    // Before 3.11 a thread does not say its number, and there are two of them.
    if stacks.iter().all(|s| s["tid"] == s["pid"]) {
        skip(test, "this Python does not number its threads");
        return;
    }
    let execs = trace.kind("exec");
    let nvcc = execs.iter().find(|e| base(e, "path") == "nvcc").unwrap();
    let stack = explaining(&trace, nvcc, since);
    assert_eq!(functions(stack), ["build", "main", "<module>"]);
    assert_eq!(stack["pid"], u64::from(process.pid()));
    let requests = trace.kind("library-request");
    let request = requests
        .iter()
        .find(|e| base(e, "name") == "libcudart.so.12")
        .unwrap();
    let stack = explaining(&trace, request, since);
    assert_eq!(functions(stack), ["load", "main", "<module>"]);
}

/// Attaches as an ordinary user, under strace if it is to do something to the system calls.
fn attach_as_nobody(lab: &Lab, strace: &[&str], pid: u32) -> Trace {
    let copy = lab.file("jittrace");
    if !copy.exists() {
        copy_program(jittrace(), &copy);
    }
    let trace = lab.file("t.jtrace");
    let _ = std::fs::remove_file(&trace);
    let ordinary = |program: &str| {
        if is_root() {
            as_nobody(program)
        } else {
            Command::new(program)
        }
    };
    let copy = copy.display().to_string();
    let mut command = match strace {
        [] => ordinary(&copy),
        options => {
            let mut command = ordinary("strace");
            command.args(options).arg(&copy);
            command
        }
    };
    let mut attached = command
        .current_dir(lab.path())
        .env("HOME", lab.path())
        .args(["attach", "--report", "none", "-o"])
        .arg(&trace)
        .arg(pid.to_string())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let begun = eventually(PATIENCE, || {
        std::fs::read_to_string(&trace).is_ok_and(|t| t.contains("library-loaded"))
    });
    assert!(begun, "the attach has not begun");
    // Polling finds what has begun meanwhile.
    std::thread::sleep(Duration::from_millis(700));
    let tracer = if strace.is_empty() {
        attached.id()
    } else {
        // strace itself waits for its child.
        let children = format!("/proc/{0}/task/{0}/children", attached.id());
        let children = std::fs::read_to_string(children).unwrap();
        children.split_whitespace().next().unwrap().parse().unwrap()
    };
    interrupt(tracer);
    attached.wait().unwrap();
    Trace::read(&trace)
}

fn nobodys(lab: &Lab) -> Stepping {
    let script = program(lab);
    let interpreter = "/usr/bin/python3";
    let mut command = if is_root() {
        as_nobody(interpreter)
    } else {
        Command::new(interpreter)
    };
    let mut process = Stepping::start(command.arg(script).arg(lab.path()).current_dir(lab.path()));
    assert_eq!(process.line(), "at");
    process
}

#[test]
fn an_ordinary_user_sees_the_frames_of_an_own_process_without_stopping_it() {
    let test = "an_ordinary_user_sees_the_frames_of_an_own_process_without_stopping_it";
    if !PathBuf::from("/usr/bin/python3").exists() {
        skip(
            test,
            "there is no /usr/bin/python3, which every user may run",
        );
        return;
    }
    let since = Instant::now();
    let lab = Lab::new();
    let mut process = nobodys(&lab);
    process.step();
    let runs = eventually(PATIENCE, || {
        let children = format!("/proc/{0}/task/{0}/children", process.pid());
        std::fs::read_to_string(children).is_ok_and(|c| !c.is_empty())
    });
    assert!(runs);
    let trace = attach_as_nobody(&lab, &[], process.pid());
    lab.write("compiled", "");
    assert_eq!(trace.source("python-frames"), ("active", ""));
    let starts = trace.kind("process-start");
    let own = starts
        .iter()
        .find(|e| e["pid"] == u64::from(process.pid()))
        .unwrap();
    let frames = functions(explaining(&trace, own, since));
    assert_eq!(frames, ["build", "main", "<module>"]);
    // The compiler that runs just then is explained by the thread that waits for it.
    let nvcc = starts.iter().find(|e| base(e, "exe") == "nvcc").unwrap();
    let stack = explaining(&trace, nvcc, since);
    assert_eq!(functions(stack), ["build", "main", "<module>"]);
    assert_eq!(stack["pid"], u64::from(process.pid()));
}

#[test]
fn frames_that_may_not_be_read_are_a_refused_source() {
    let test = "frames_that_may_not_be_read_are_a_refused_source";
    let strace = Command::new("strace").arg("-V").output();
    if !strace.is_ok_and(|o| o.status.success()) || !PathBuf::from("/usr/bin/python3").exists() {
        skip(test, "there is no strace or no /usr/bin/python3");
        return;
    }
    let lab = Lab::new();
    let process = nobodys(&lab);
    let log = lab.file("strace.log");
    let log = log.display().to_string();
    let watching = ["-f", "-o", &log, "-e", "trace=ptrace,process_vm_readv"];
    let trace = attach_as_nobody(&lab, &watching, process.pid());
    assert_eq!(trace.source("python-frames"), ("active", ""));
    let calls = std::fs::read_to_string(&log).unwrap();
    assert!(calls.contains("process_vm_readv("), "nothing was read");
    assert!(!calls.contains("ptrace("), "the process was stopped");

    // Where the call is refused, py-spy seeks in /proc/PID/mem.
    let refusing: Vec<&str> = "-f -o /dev/null -e trace=process_vm_readv,lseek \
         -e inject=process_vm_readv:error=EPERM -e inject=lseek:error=EACCES"
        .split_ascii_whitespace()
        .collect();
    let trace = attach_as_nobody(&lab, &refusing, process.pid());
    let (state, reason) = trace.source("python-frames");
    assert_eq!(state, "refused");
    assert!(
        reason.contains(';') && (reason.contains("sudo") || reason.contains("host")),
        "no reason or no remedy: {reason}"
    );
    assert_eq!(trace.kind("python-stack"), Vec::<&Value>::new());
}

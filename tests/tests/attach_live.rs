//! `jittrace attach` to live processes through the kernel: what is there, what happens, and that nothing is left.
//!
//! These tests need root, BPF and a C compiler. Elsewhere they say why they are skipped.
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

use std::{
    collections::{BTreeMap, BTreeSet},
    process::Command,
    time::Duration,
};

use jittrace_tests::{
    eventually, jittrace,
    lab::Lab,
    python, skip,
    trace::{PATIENCE, Stepping, alone, base, kernel_source},
};

/// Loads a runtime library, asks it, starts children, and ends with status 3; one step a line.
const SERVER: &str = r#"
import ctypes, subprocess, sys
def step():
    print("at", flush=True)
    sys.stdin.readline()
early = ctypes.CDLL(sys.argv[1] + "/early/libcudart.so.12")
step()
lib = ctypes.CDLL("libcudart.so.12", mode=ctypes.RTLD_GLOBAL) if False else ctypes.CDLL(sys.argv[1] + "/late/libcudart.so.12")
step()
value = ctypes.c_int(-1)
lib.cudaRuntimeGetVersion(ctypes.byref(value))
try:
    ctypes.CDLL("libnvrtc.so.99")
except OSError:
    pass
subprocess.run(["/bin/sh", "-c", "exit 7"])
subprocess.run(["env", "-i", "/bin/true", "clean"])
subprocess.run([sys.argv[1] + "/static"])
step()
sys.exit(3)
"#;

#[test]
fn a_live_process_is_shown_as_it_is_and_followed_from_then_on() {
    if !kernel_source("a_live_process_is_shown_as_it_is_and_followed_from_then_on") {
        return;
    }
    let _alone = alone();
    let lab = Lab::new();
    for place in ["early", "late"] {
        lab.cudart(&format!("{place}/libcudart.so.12"));
    }
    lab.cc("static", "int main(void) { return 5; }", &["-static"]);
    let script = lab.write("server.py", SERVER);
    let mut server = Stepping::start(
        Command::new(python())
            .arg(&script)
            .arg(lab.path())
            .env("CUDA_HOME", "/opt/cuda-stand-in"),
    );
    assert_eq!(server.line(), "at");
    let attached = lab.attach("t.jtrace", server.pid());
    server.step();
    assert_eq!(server.line(), "at");
    // The probes are placed when the library is opened; this is what a server does in between.
    std::thread::sleep(Duration::from_millis(500));
    server.step();
    assert_eq!(server.line(), "at");
    server.step();
    let trace = attached.end();
    assert_eq!(server.child.wait().unwrap().code(), Some(3));

    assert_eq!(trace.source("ebpf"), ("active", ""));
    assert_eq!(trace.kind("lost"), Vec::<&serde_json::Value>::new());
    let root = u64::from(server.pid());

    // What was there: the process with its environment, and the library that it had loaded before.
    let starts = trace.kind("process-start");
    let found = starts.iter().find(|e| e["pid"] == root).unwrap();
    assert_eq!(found["found"], true);
    assert_eq!(found["env"]["CUDA_HOME"], "/opt/cuda-stand-in");
    let loads: Vec<_> = trace
        .kind("library-loaded")
        .into_iter()
        .filter(|e| base(e, "path") == "libcudart.so.12")
        .collect();
    let early = loads
        .iter()
        .find(|e| e["path"].as_str().unwrap().contains("/early/"))
        .unwrap();
    assert_eq!(
        (
            early["source"].as_str().unwrap(),
            early["explanation"].as_str().unwrap()
        ),
        ("procfs", "reconstructed")
    );

    // What happened: the load with its request and rule, the call with its answer, the failure.
    let late = loads
        .iter()
        .find(|e| e["path"].as_str().unwrap().contains("/late/"))
        .unwrap();
    assert_eq!(late["source"], "ebpf");
    assert_eq!(late["rule"], "absolute-path");
    assert_eq!(late["explanation"], "confirmed");
    let requests = trace.kind("library-request");
    let request = requests
        .iter()
        .find(|e| e["id"] == late["request"])
        .unwrap();
    assert!(
        base(&request["caller"], "object").starts_with("_ctypes"),
        "{request}"
    );
    let calls = trace.kind("call");
    let call = calls
        .iter()
        .find(|e| e["function"] == "cudaRuntimeGetVersion")
        .unwrap();
    assert_eq!(
        (&call["result"], &call["value"]),
        (&0.into(), &"12040".into())
    );
    assert!(call["object"].as_str().unwrap().contains("/late/"));
    assert!(base(&call["caller"], "object").contains("ffi"), "{call}");
    let failures = trace.kind("library-failed");
    assert!(failures.iter().any(|e| e["requested"] == "libnvrtc.so.99"));

    // Its children, whatever they are: with their parents, arguments and ends.
    let cases: [(&str, &[&str], i64); 3] = [
        ("sh", &["/bin/sh", "-c", "exit 7"], 7),
        ("true", &["/bin/true", "clean"], 0),
        ("static", &[], 5),
    ];
    for (what, argv, code) in cases {
        let start = starts
            .iter()
            .find(|e| {
                let last = e["argv"].as_array().and_then(|a| a.first());
                last.and_then(|a| a.as_str())
                    .is_some_and(|a| a.rsplit('/').next() == Some(what))
            })
            .unwrap_or_else(|| panic!("{what} is not told"));
        assert_eq!(start["ppid"], root, "{what}");
        if !argv.is_empty() {
            assert_eq!(start["argv"], serde_json::json!(argv), "{what}");
        }
        let ends = trace.kind("process-exit");
        let end = ends.iter().find(|e| e["pid"] == start["pid"]).unwrap();
        assert_eq!(end["code"], code, "{what}");
    }
    let ends = trace.kind("process-exit");
    let end = ends.iter().find(|e| e["pid"] == root).unwrap();
    assert_eq!(end["code"], 3);
}

/// Numbers of the BPF programs that are loaded.
fn programs() -> BTreeSet<u32> {
    aya::programs::loaded_programs()
        .flatten()
        .map(|program| program.id())
        .collect()
}

#[test]
fn detaching_leaves_no_probe_and_the_process_running() {
    if !kernel_source("detaching_leaves_no_probe_and_the_process_running") {
        return;
    }
    let _alone = alone();
    let lab = Lab::new();
    let before = programs();
    let mut shell = Stepping::start(Command::new("sh").args(["-c", "read a; read b; exit 4"]));
    let attached = lab.attach("t.jtrace", shell.pid());
    let during: BTreeSet<u32> = programs().difference(&before).copied().collect();
    assert!(during.len() >= 5, "{during:?}");
    let trace = attached.interrupt();
    assert!(!trace.events.is_empty());
    assert!(
        eventually(Duration::from_secs(20), || {
            programs().intersection(&during).next().is_none()
        }),
        "programs are left: {:?} of {during:?}",
        programs()
    );
    shell.step();
    shell.step();
    assert_eq!(shell.child.wait().unwrap().code(), Some(4));
}

#[test]
fn a_thousand_short_children_are_all_told_or_counted() {
    if !kernel_source("a_thousand_short_children_are_all_told_or_counted") {
        return;
    }
    let _alone = alone();
    let lab = Lab::new();
    let mut shell = Stepping::start(Command::new("sh").args([
        "-c",
        "read a; i=0; while [ $i -lt 1000 ]; do /bin/true number $i; i=$((i+1)); done",
    ]));
    let attached = lab.attach("t.jtrace", shell.pid());
    shell.step();
    let trace = attached.end();
    let numbers: BTreeSet<String> = trace
        .kind("process-start")
        .iter()
        .filter(|e| e["argv"][1] == "number")
        .map(|e| e["argv"][2].as_str().unwrap().to_owned())
        .collect();
    let lost: u64 = trace
        .kind("lost")
        .iter()
        .map(|e| e["count"].as_u64().unwrap())
        .sum();
    assert!(
        numbers.len() == 1000 || numbers.len() as u64 + lost >= 1000,
        "{} told, {lost} counted as lost",
        numbers.len()
    );
    let ended = trace
        .kind("process-exit")
        .iter()
        .filter(|e| e["code"] == 0)
        .count() as u64;
    assert!(ended + lost >= 1001, "{ended} ends, {lost} lost");
}

/// What begins between the kernel's first word and the snapshot is seen by both.
#[test]
fn what_begins_while_one_attaches_is_told_once() {
    if !kernel_source("what_begins_while_one_attaches_is_told_once") {
        return;
    }
    let _alone = alone();
    let lab = Lab::new();
    let mut shell = Command::new("sh")
        .args(["-c", "while :; do sleep 0.02 & sleep 0.02; done"])
        .spawn()
        .unwrap();
    let attached = lab.attach("t.jtrace", shell.id());
    std::thread::sleep(Duration::from_millis(800));
    shell.kill().unwrap();
    shell.wait().unwrap();
    let trace = attached.end();
    let mut told: BTreeMap<u64, usize> = BTreeMap::new();
    let starts = trace.kind("process-start");
    for start in starts.iter().filter(|e| e["argv"][0] == "sleep") {
        *told.entry(start["pid"].as_u64().unwrap()).or_default() += 1;
    }
    assert!(told.len() > 2, "{starts:?}");
    assert!(told.values().all(|times| *times == 1), "{starts:?}");
}

/// Threads that all load and unload, while they are attached to.
const THREADS: &str = r#"
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static char paths[8][512];
static int good;
static void *run(void *which) {
    for (int i = 0; i < 20; i++) {
        void *handle = dlopen(paths[((long)which + i) % 8], RTLD_NOW);
        int (*answer)(void) = handle ? dlsym(handle, "answer") : 0;
        if (answer && answer() == ((long)which + i) % 8) __atomic_add_fetch(&good, 1, __ATOMIC_RELAXED);
        if (handle) dlclose(handle);
    }
    return 0;
}
int main(int argc, char **argv) {
    char line[8];
    pthread_t threads[64];
    for (int i = 0; i < 8; i++) snprintf(paths[i], sizeof paths[i], "%s/libpart%d.so", argv[1], i);
    printf("at\n"); fflush(stdout);
    read(0, line, 1);
    for (long i = 0; i < 64; i++) pthread_create(&threads[i], 0, run, (void *)i);
    for (long i = 0; i < 64; i++) pthread_join(threads[i], 0);
    printf("%d\n", good); fflush(stdout);
    return 0;
}
"#;

#[test]
fn sixty_four_threads_load_libraries_as_if_nobody_watched() {
    if !kernel_source("sixty_four_threads_load_libraries_as_if_nobody_watched") {
        return;
    }
    let _alone = alone();
    let lab = Lab::new();
    for part in 0..8 {
        lab.cc(
            &format!("libpart{part}.so"),
            &format!("int answer(void) {{ return {part}; }}"),
            &["-shared", "-fPIC"],
        );
    }
    let program = lab.cc("threads", THREADS, &["-pthread"]);
    let mut process = Stepping::start(Command::new(program).arg(lab.path()));
    assert_eq!(process.line(), "at");
    let attached = lab.attach("t.jtrace", process.pid());
    process.step();
    assert_eq!(process.line(), "1280");
    assert_eq!(process.child.wait().unwrap().code(), Some(0));
    let trace = attached.end();
    let lost: u64 = trace
        .kind("lost")
        .iter()
        .map(|e| e["count"].as_u64().unwrap())
        .sum();
    let asked = trace
        .kind("library-request")
        .iter()
        .filter(|e| base(e, "name").starts_with("libpart"))
        .count() as u64;
    assert!(asked + lost >= 1280, "{asked} requests told, {lost} lost");
}

#[test]
fn a_process_in_another_mount_namespace_is_read_through_its_own_root() {
    let test = "a_process_in_another_mount_namespace_is_read_through_its_own_root";
    if !kernel_source(test) {
        return;
    }
    let _alone = alone();
    let lab = Lab::new();
    let library = lab.cudart("real/libcudart.so.12");
    // A private tmpfs over an empty directory: the library is there for this process alone.
    let hidden = lab.file("hidden");
    std::fs::create_dir(&hidden).unwrap();
    let script = lab.write(
        "inside.py",
        "import ctypes, sys\nlib = ctypes.CDLL(sys.argv[1])\nprint('at', flush=True)\nsys.stdin.readline()\n\
         v = ctypes.c_int()\nlib.cudaRuntimeGetVersion(ctypes.byref(v))\nprint(v.value, flush=True)\n",
    );
    let inside = format!(
        "mount -t tmpfs none {hidden} && cp {library} {hidden}/ && exec {python} {script} {hidden}/libcudart.so.12",
        hidden = hidden.display(),
        library = library.display(),
        python = python(),
        script = script.display(),
    );
    let mut process =
        Stepping::start(Command::new("unshare").args(["--mount", "sh", "-c", &inside]));
    if process.line() != "at" {
        skip(
            test,
            "unshare --mount or mounting a tmpfs does not work here",
        );
        return;
    }
    let attached = lab.attach("t.jtrace", process.pid());
    process.step();
    assert_eq!(process.line(), "12040");
    let trace = attached.end();
    let calls = trace.kind("call");
    let call = calls
        .iter()
        .find(|e| e["function"] == "cudaRuntimeGetVersion")
        .unwrap();
    assert_eq!(call["value"], "12040");
    let path = hidden.join("libcudart.so.12");
    assert_eq!(call["object"], path.to_str().unwrap());
    // Its facts are those of the file that this process sees.
    let facts = trace.kind("fact");
    assert!(
        facts
            .iter()
            .any(|f| f["about"] == "file" && f["path"] == path.to_str().unwrap()),
        "nothing is known of {}",
        path.display()
    );
}

/// Two processes that load the same path: in the mount namespace of one of them another file is there.
#[test]
fn one_path_in_two_mount_namespaces_is_two_files() {
    let test = "one_path_in_two_mount_namespaces_is_two_files";
    if !kernel_source(test) {
        return;
    }
    let _alone = alone();
    let lab = Lab::new();
    let library = lab.cudart("lib/libcudart.so.12");
    let other = lab.cudart_of("other/libcudart.so.12", 12090);
    let script = lab.write(
        "load.py",
        "import ctypes, sys\nlib = ctypes.CDLL(sys.argv[1])\nv = ctypes.c_int()\n\
         lib.cudaRuntimeGetVersion(ctypes.byref(v))\nprint(v.value, flush=True)\nsys.stdin.readline()\n",
    );
    let load = format!("{} {} {}", python(), script.display(), library.display());
    let inside = format!(
        "mount --bind {} {} && exec {load}",
        other.display(),
        library.display()
    );
    let mut shell = Stepping::start(Command::new("sh").args([
        "-c",
        &format!("read a; {load}; unshare --mount sh -c '{inside}'"),
    ]));
    let attached = lab.attach("t.jtrace", shell.pid());
    // Which file it was can be seen while its process is there.
    let told = |count: usize| {
        let text = std::fs::read_to_string(lab.file("t.jtrace")).unwrap_or_default();
        let loaded = format!("\"library-loaded\",\"path\":\"{}\"", library.display());
        text.matches(&loaded).count() >= count
    };
    for (nth, version) in [(1, "12040"), (2, "12090")] {
        shell.step();
        if shell.line() != version {
            skip(test, "unshare --mount or a bind mount does not work here");
            return;
        }
        assert!(eventually(PATIENCE, || told(nth)), "the load is not told");
    }
    shell.step();
    let trace = attached.end();
    let path = library.to_str().unwrap();
    let loads = trace.kind("library-loaded");
    let facts = trace.kind("fact");
    let mut versions = BTreeSet::new();
    for load in loads.iter().filter(|e| e["path"] == path) {
        let fact = facts
            .iter()
            .find(|f| f["path"] == path && f["ino"] == load["ino"] && f["dev"] == load["dev"])
            .unwrap_or_else(|| panic!("nothing is known of {load}: {facts:?}"));
        versions.insert(fact["version"].as_str().unwrap_or_default().to_owned());
    }
    assert_eq!(versions.len(), 2, "{loads:?}");
    // Each process has the version that it really loaded.
    let report = Command::new(jittrace())
        .args(["report", "--format", "json"])
        .arg(lab.file("t.jtrace"))
        .output()
        .unwrap();
    let report: serde_json::Value = serde_json::from_slice(&report.stdout).unwrap();
    let resolved: BTreeSet<String> = report["components"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|c| {
            c["resolved"]["cudart"]
                .as_array()
                .cloned()
                .unwrap_or_default()
        })
        .map(|r| r["version"].as_str().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(resolved, versions);
}

/// A library is probed when it is first opened; a call that was quicker than that is said to be missing.
#[test]
fn a_call_before_the_probe_is_told_to_be_missing() {
    if !kernel_source("a_call_before_the_probe_is_told_to_be_missing") {
        return;
    }
    let _alone = alone();
    let lab = Lab::new();
    let asks = "int cudaRuntimeGetVersion(int *);";
    let twice =
        "int v; cudaRuntimeGetVersion(&v); usleep(1500000); cudaRuntimeGetVersion(&v); return 0;";
    let place = lab.path().display();
    let search = [
        format!("-L{place}/needed"),
        format!("-Wl,-rpath,{place}/needed"),
    ];
    lab.cudart("needed/libcudart.so.12");
    lab.cudart("opened/libcudart.so.12");
    lab.cc(
        "needs",
        &format!("{asks} int main(void) {{ {twice} }}"),
        &[&search[0], &search[1], "-l:libcudart.so.12"],
    );
    lab.cc(
        "opens",
        &format!(
            "#include <dlfcn.h>\nint main(void) {{ void *h = dlopen(\"{place}/opened/libcudart.so.12\", RTLD_NOW); \
             int (*cudaRuntimeGetVersion)(int *) = dlsym(h, \"cudaRuntimeGetVersion\"); {twice} }}"
        ),
        &[],
    );
    let mut shell = Stepping::start(
        Command::new("sh").args(["-c", &format!("read a; {place}/needs; {place}/opens; true")]),
    );
    let attached = lab.attach("t.jtrace", shell.pid());
    shell.step();
    let trace = attached.end();
    let (calls, notes) = (trace.kind("call"), trace.kind("note"));
    for how in ["needed", "opened"] {
        let library = format!("{place}/{how}/libcudart.so.12");
        let seen = calls.iter().filter(|e| e["object"] == library).count();
        let said = notes
            .iter()
            .any(|e| e["about"] == "probed-late" && e["text"].as_str().unwrap().contains(&library));
        assert!(seen >= 1, "{how}: the later call is not told");
        assert!(seen == 2 || said, "{how}: {seen} calls told, {notes:?}");
    }
}

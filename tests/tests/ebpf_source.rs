//! What the eBPF source sees of real processes, and that they do not notice.
//!
//! These tests need root, BPF and a C compiler. Elsewhere they say why they are skipped.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

mod ebpf_support;

use std::{
    collections::{BTreeMap, BTreeSet},
    os::unix::{ffi::OsStrExt, process::ExitStatusExt},
    path::{Path, PathBuf},
    process::Command,
};

use ebpf_support::{compile, lost, session, session_with};
use jittrace::ebpf::{
    Call, Captured, Exec, Exit, FileCall, FileOperation, KernelEvent, Observation, Options,
    ReturnProbes,
};
use jittrace_tests::{eventually, trace::PATIENCE};

fn sh(script: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]);
    command
}

fn execs(told: &[Observation]) -> Vec<(&Observation, &Exec)> {
    told.iter()
        .filter_map(|observation| match &observation.event {
            KernelEvent::Exec(exec) => Some((observation, &**exec)),
            _ => None,
        })
        .collect()
}

fn exits(told: &[Observation]) -> Vec<(u32, Exit)> {
    told.iter()
        .filter_map(|observation| match observation.event {
            KernelEvent::Exit(exit) => Some((observation.task.own.tgid, exit)),
            _ => None,
        })
        .collect()
}

fn files(told: &[Observation]) -> Vec<&FileCall> {
    told.iter()
        .filter_map(|observation| match &observation.event {
            KernelEvent::File(file) => Some(&**file),
            _ => None,
        })
        .collect()
}

fn returned(told: &[Observation]) -> Vec<&Call> {
    told.iter()
        .filter_map(|observation| match &observation.event {
            KernelEvent::Returned(call) => Some(&**call),
            _ => None,
        })
        .collect()
}

fn entered(told: &[Observation]) -> Vec<&Call> {
    told.iter()
        .filter_map(|observation| match &observation.event {
            KernelEvent::Entered(call) => Some(&**call),
            _ => None,
        })
        .collect()
}

#[test]
fn a_thousand_short_children_are_all_told() {
    let Some(session) = session("a_thousand_short_children_are_all_told") else {
        return;
    };
    let (output, root) = session.run(&mut sh(
        "i=0; while [ $i -lt 1000 ]; do /bin/true arg $i; i=$((i+1)); done; exit 7",
    ));
    assert_eq!(output.status.code(), Some(7));
    let told = session.finish();
    assert_eq!(lost(&told), []);
    let forked = told
        .iter()
        .filter(|observation| {
            matches!(&observation.event, KernelEvent::Fork { .. })
                && observation.task.own.tgid == root
        })
        .count();
    assert_eq!(forked, 1000);
    let numbers: Vec<String> = execs(&told)
        .into_iter()
        .filter(|(_, exec)| exec.filename == "/bin/true")
        .map(|(observation, exec)| {
            assert_eq!(exec.parent.own.tgid, root);
            assert_ne!(observation.task.own.tgid, root);
            let argv = exec.argv.as_ref().expect("argv of a child that is gone");
            argv.last().unwrap().to_str().unwrap().to_owned()
        })
        .collect();
    let expected: Vec<String> = (0..1000).map(|i| i.to_string()).collect();
    assert_eq!(numbers, expected);
    let exits = exits(&told);
    assert_eq!(
        exits
            .iter()
            .filter(|(pid, exit)| *pid != root && *exit == Exit::Code(0))
            .count(),
        1000
    );
    assert_eq!(exits.last(), Some(&(root, Exit::Code(7))));
}

#[test]
fn execs_are_told_with_arguments_directory_and_listed_environment() {
    let Some(session) = session("execs_are_told") else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let inner = directory.path().join("a b").join("c");
    std::fs::create_dir_all(&inner).unwrap();
    let long = "x".repeat(100_000);
    let (_, root) = session.run(
        sh(r#"/bin/echo "$LONG" >/dev/null; /bin/echo one "" three >/dev/null; /nonexistent/tool --flag 2>/dev/null; true"#)
            .current_dir(&inner)
            .env("CUDA_HOME", "/opt/cuda-x")
            .env("UNLISTED_VARIABLE", "not ours to read")
            .env("LONG", &long),
    );
    let told = session.finish();
    assert_eq!(lost(&told), []);
    let execs = execs(&told);
    let shell = execs
        .iter()
        .find(|(observation, _)| observation.task.own.tgid == root)
        .unwrap()
        .1;
    assert_eq!(shell.cwd.as_deref(), Ok(inner.as_path()));
    let echo = execs
        .iter()
        .find(|(_, exec)| exec.argv.as_ref().is_ok_and(|argv| argv.len() == 4))
        .expect("the second echo")
        .1;
    assert_eq!(
        echo.argv.as_deref().unwrap(),
        ["/bin/echo", "one", "", "three"]
    );
    assert_eq!(echo.filename, "/bin/echo");
    let exe = std::fs::metadata("/bin/echo").unwrap();
    assert_eq!(echo.exe.inode, std::os::unix::fs::MetadataExt::ino(&exe));
    // The environment lies behind 100 kB of LONG in this one: told by the process, or missing with its reason.
    match &echo.env {
        Ok(env) => {
            assert!(
                env.contains(&("CUDA_HOME".into(), "/opt/cuda-x".into())),
                "{env:?}"
            );
            assert!(
                env.iter()
                    .all(|(name, _)| name != "UNLISTED_VARIABLE" && name != "LONG"),
                "{env:?}"
            );
        }
        Err(missing) => assert!(missing.to_string().contains("longer"), "{missing}"),
    }
    let failed: Vec<_> = told
        .iter()
        .filter_map(|observation| match &observation.event {
            KernelEvent::ExecFailed(failed) => Some(&**failed),
            _ => None,
        })
        .collect();
    let failed = failed
        .iter()
        .find(|failed| failed.filename == Ok("/nonexistent/tool".into()))
        .expect("the failed exec");
    assert_eq!(failed.errno, libc::ENOENT);
    assert_eq!(failed.argv, ["/nonexistent/tool", "--flag"]);
}

#[test]
fn environments_of_ordinary_size_are_read_whole() {
    let Some(session) = session("environments_of_ordinary_size_are_read_whole") else {
        return;
    };
    let mut command = sh("exec /bin/true");
    for i in 0..60 {
        command.env(format!("FILLER_{i}"), "y".repeat(200));
    }
    let (_, root) = session.run(
        command
            .env("ZZ", "last")
            .env("CUDA_PATH", "/opt/p")
            .env("LD_LIBRARY_PATH", "/l:/m"),
    );
    let told = session.finish();
    let execs = execs(&told);
    let last = execs
        .iter()
        .rfind(|(observation, _)| observation.task.own.tgid == root)
        .unwrap()
        .1;
    let env = last.env.as_ref().expect("12 kB of environment");
    assert!(
        env.contains(&("CUDA_PATH".into(), "/opt/p".into())),
        "{env:?}"
    );
    assert!(
        env.contains(&("LD_LIBRARY_PATH".into(), "/l:/m".into())),
        "{env:?}"
    );
    assert!(
        env.iter()
            .all(|(name, _)| !name.as_bytes().starts_with(b"FILLER")),
        "{env:?}"
    );
}

#[test]
fn ends_are_told_as_waitpid_tells_them() {
    let Some(session) = session("ends_are_told_as_waitpid_tells_them") else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let threads = compile(
        directory.path(),
        "threads.c",
        r"
        #include <pthread.h>
        #include <stdlib.h>
        #include <unistd.h>
        static void *other(void *x) { usleep(50000); exit(9); }
        int main(void) { pthread_t t; pthread_create(&t, 0, other, 0); pthread_exit(0); }
        ",
        "threads",
        &["-pthread"],
    );
    let cases: [(&str, Command); 5] = [
        ("exit 0", sh("exit 0")),
        ("exit 255", sh("exit 255")),
        ("SIGKILL", sh("kill -9 $$")),
        ("SIGSEGV", sh("ulimit -c 0; kill -SEGV $$")),
        ("the leader ends first", Command::new(threads)),
    ];
    let mut expected = Vec::new();
    for (name, mut command) in cases {
        let (output, pid) = session.run(&mut command);
        let exit = match output.status.signal() {
            Some(signal) => Exit::Signal {
                signal,
                core: output.status.core_dumped(),
            },
            None => Exit::Code(output.status.code().unwrap()),
        };
        expected.push((name, pid, exit));
    }
    assert_eq!(
        expected.last().unwrap().2,
        Exit::Code(9),
        "the program under test"
    );
    let told = exits(&session.finish());
    for (name, pid, exit) in expected {
        let told: Vec<_> = told.iter().filter(|(of, _)| *of == pid).collect();
        assert_eq!(told, [&(pid, exit)], "{name}");
    }
}

#[test]
fn a_static_child_and_one_with_a_cleared_environment_are_seen() {
    let Some(session) = session("a_static_child_and_one_with_a_cleared_environment_are_seen")
    else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let program = compile(
        directory.path(),
        "s.c",
        "int main(void) { return 4; }",
        "static-child",
        &["-static"],
    );
    let script = format!("{}; env -i /bin/true", program.display());
    session.run(&mut sh(&script));
    let told = session.finish();
    let execs = execs(&told);
    let (observation, _) = execs
        .iter()
        .find(|(_, exec)| exec.filename == program.as_os_str())
        .expect("the static child");
    assert!(exits(&told).contains(&(observation.task.own.tgid, Exit::Code(4))));
    let (_, cleared) = execs
        .iter()
        .rfind(|(_, exec)| exec.filename == "/bin/true")
        .expect("the cleared child");
    assert_eq!(cleared.env.as_deref(), Ok(&[][..]));
}

#[test]
fn files_of_caches_and_toolkits_are_told_with_their_outcome() {
    let Some(session) = session("files_of_caches_and_toolkits_are_told_with_their_outcome") else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let cache = directory.path().join(".cache/flashinfer/ops");
    let deep = cache.join("d".repeat(200));
    let script = format!(
        "mkdir -p {0}; cd {0}; : > build.ninja.tmp; mv build.ninja.tmp build.ninja; rm build.ninja; \
         cat /nonexistent/include/cuda_runtime_api.h 2>/dev/null; mkdir {1}; : > {1}/page.cubin; : > {2}/ordinary.txt",
        cache.display(),
        deep.display(),
        directory.path().display(),
    );
    session.run(&mut sh(&script));
    let told = session.finish();
    let files = files(&told);
    let find = |path: PathBuf, is: fn(FileOperation) -> bool| {
        files
            .iter()
            .find(|file| file.path.as_deref() == Ok(path.as_path()) && is(file.operation))
            .unwrap_or_else(|| panic!("{} among {files:#?}", path.display()))
    };
    let renamed = find(cache.join("build.ninja.tmp"), |operation| {
        operation == FileOperation::Rename
    });
    // Relative names, told absolute although mv has ended.
    assert_eq!(renamed.to, Some(Ok(cache.join("build.ninja"))));
    assert_eq!(renamed.outcome, Ok(0));
    let missing = find(
        "/nonexistent/include/cuda_runtime_api.h".into(),
        |operation| matches!(operation, FileOperation::Open { .. }),
    );
    assert_eq!(missing.outcome, Err(libc::ENOENT));
    find(deep.clone(), |operation| operation == FileOperation::Mkdir);
    let written = find(deep.join("page.cubin"), |operation| {
        matches!(operation, FileOperation::Open { .. })
    });
    assert!(
        matches!(written.operation, FileOperation::Open { flags } if flags & libc::O_CREAT as u64 != 0),
        "{:?}",
        written.operation
    );
    assert!(files.iter().all(|file| {
        file.path
            .as_ref()
            .is_ok_and(|path| !path.ends_with("ordinary.txt"))
    }));
}

/// A libcudart that answers 12040, with the symbol version of the real one.
fn fake_cudart(directory: &Path, name: &str) -> PathBuf {
    std::fs::write(
        directory.join("cudart.map"),
        "libcudart.so.12 { global: cuda*; local: *; };",
    )
    .unwrap();
    compile(
        directory,
        "cudart.c",
        r"
        int cudaRuntimeGetVersion(int *v) { if (!v) return 1; *v = 12040; return 0; }
        int cudaGetDeviceCount(int *n) { *n = 0; return 100; }
        ",
        name,
        &[
            "-shared",
            "-fPIC",
            "-Wl,-soname,libcudart.so.12",
            "-Wl,--version-script=cudart.map",
        ],
    )
}

/// Opens argv[1] with the flags in argv[2], waits for a line when there is argv[3], asks for the version.
const CALLER: &str = r#"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) {
    void *h = dlopen(argv[1], atoi(argv[2]));
    if (!h) { puts(dlerror()); return 1; }
    int (*version)(int *) = (int (*)(int *))dlsym(h, "cudaRuntimeGetVersion");
    int (*count)(int *) = (int (*)(int *))dlsym(h, "cudaGetDeviceCount");
    if (argc > 3) { puts("ready"); fflush(stdout); getchar(); }
    int v = 0, n = 0;
    int r = version(&v);
    int c = count(&n);
    printf("%d %d %d %d\n", r, v, c, n);
    return 0;
}
"#;

fn assert_version_call(told: &[Observation], library: &Path, pid: u32) {
    let call = told
        .iter()
        .find_map(|observation| match &observation.event {
            KernelEvent::Returned(call) if call.name() == "cudaRuntimeGetVersion" => {
                Some((observation, &**call))
            }
            _ => None,
        })
        .unwrap_or_else(|| panic!("no call of cudaRuntimeGetVersion among {told:#?}"));
    let (observation, call) = call;
    assert_eq!(observation.task.own.tgid, pid);
    assert_eq!(call.number(), Some(12040));
    assert_eq!(call.status(), Some(0));
    assert_ne!(call.return_address, 0);
    assert!(call.begin_ns < observation.time_ns);
    if let Some(object) = &call.object {
        assert_eq!(object.path, library);
    }
    let count = returned(told)
        .into_iter()
        .find(|call| call.name() == "cudaGetDeviceCount")
        .expect("the failing call");
    assert_eq!(count.status(), Some(100));
}

#[test]
fn calls_are_told_with_their_value_however_they_are_bound() {
    let Some(session) = session("calls_are_told_with_their_value_however_they_are_bound") else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let library = fake_cudart(directory.path(), "libcudart.so.12");
    let caller = compile(directory.path(), "caller.c", CALLER, "caller", &["-ldl"]);
    session.source.watch_file(&library).unwrap();
    let flags = [
        libc::RTLD_NOW,
        libc::RTLD_NOW | libc::RTLD_GLOBAL,
        libc::RTLD_LAZY | libc::RTLD_DEEPBIND,
    ];
    let mut pids = Vec::new();
    for flag in flags {
        let (output, pid) = session.run(Command::new(&caller).arg(&library).arg(flag.to_string()));
        assert_eq!(String::from_utf8_lossy(&output.stdout), "0 12040 100 0\n");
        pids.push(pid);
    }
    let told = session.finish();
    for pid in pids {
        let of_this: Vec<_> = told
            .iter()
            .filter(|observation| observation.task.own.tgid == pid)
            .cloned()
            .collect();
        assert_version_call(&of_this, &library, pid);
    }
    let watching = told
        .iter()
        .find_map(|observation| match &observation.event {
            KernelEvent::Watching(object) if object.path == library => Some(object),
            _ => None,
        });
    for function in &watching.expect("the object is announced").functions {
        assert!(
            matches!(function.returns, ReturnProbes::EveryRet(_)),
            "{function:?}"
        );
        assert!(!function.is_static);
    }
}

#[test]
fn calls_are_told_without_attach_cookies() {
    let options = Options {
        without_cookies: true,
    };
    let Some(session) = session_with("calls_are_told_without_attach_cookies", options) else {
        return;
    };
    assert!(!session.source.setup.attach_cookies);
    let directory = tempfile::tempdir().unwrap();
    let library = fake_cudart(directory.path(), "libcudart.so.12");
    let caller = compile(directory.path(), "caller.c", CALLER, "caller", &["-ldl"]);
    session.source.watch_file(&library).unwrap();
    let (_, pid) = session.run(
        Command::new(&caller)
            .arg(&library)
            .arg(libc::RTLD_NOW.to_string()),
    );
    let told = session.finish();
    assert_version_call(&told, &library, pid);
    assert!(returned(&told).iter().all(|call| call.object.is_none()));
}

/// The driver's exports jump through slots that relocations fill; the returns are those of the functions behind.
#[test]
fn returns_behind_a_table_of_functions_are_seen() {
    let Some(session) = session("returns_behind_a_table_of_functions_are_seen") else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let library = compile(
        directory.path(),
        "cuda.c",
        r#"
        static int driver(int *v) { if (!v) return 1; *v = 13010; return 0; }
        static int load(void **m, const void *image) { return ((const char *)image)[0] == '.' ? 222 : 209; }
        __attribute__((visibility("hidden"))) int (*driver_slot)(int *) = driver;
        __attribute__((visibility("hidden"))) int (*load_slot)(void **, const void *) = load;
        int cuDriverGetVersion(int *v) { return driver_slot(v); }
        int cuModuleLoadData(void **m, const void *image) { return load_slot(m, image); }
        "#,
        "libcuda.so.1",
        &["-shared", "-fPIC", "-O2", "-Wl,-soname,libcuda.so.1"],
    );
    let program = compile(
        directory.path(),
        "user.c",
        r#"
        #include <stdio.h>
        int cuDriverGetVersion(int *); int cuModuleLoadData(void **, const void *);
        int main(void) {
            int v = 0; void *m;
            cuDriverGetVersion(&v);
            printf("%d %d\n", v, cuModuleLoadData(&m, ".version 9.9\n.target sm_120\n"));
            return 0;
        }
        "#,
        "user",
        &["-L.", "-l:libcuda.so.1", "-Wl,-rpath,$ORIGIN"],
    );
    session.source.watch_file(&library).unwrap();
    let (output, _) = session.run(&mut Command::new(&program));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "13010 222\n");
    let told = session.finish();
    assert_eq!(lost(&told), []);
    let calls: Vec<_> = returned(&told)
        .into_iter()
        .map(|call| (call.name(), call.status(), call.number()))
        .collect();
    assert_eq!(
        calls,
        [
            ("cuDriverGetVersion", Some(0), Some(13010)),
            ("cuModuleLoadData", Some(222), None)
        ]
    );
    let load = returned(&told).into_iter().next_back().unwrap();
    let (_, image) = load.image().expect("the image that was passed");
    assert!(
        image.starts_with(b".version 9.9\n.target sm_120\n\0"),
        "{image:?}"
    );
    let watched: Vec<_> = told
        .iter()
        .filter_map(|observation| match &observation.event {
            KernelEvent::Watching(object) if object.path == library => {
                Some(object.functions.clone())
            }
            _ => None,
        })
        .flatten()
        .collect();
    assert!(
        watched.len() == 2
            && watched
                .iter()
                .all(|one| matches!(one.returns, ReturnProbes::EveryRet(_))),
        "{watched:?}"
    );
    // The table may be rewritten, so the entries are told too.
    assert_eq!(entered(&told).len(), 2);
}

#[test]
fn a_statically_linked_copy_is_found_in_the_symbol_table() {
    let Some(session) = session("a_statically_linked_copy_is_found_in_the_symbol_table") else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let program = compile(
        directory.path(),
        "own.c",
        r#"
        #include <stdio.h>
        __attribute__((noinline)) static int cudaRuntimeGetVersion(int *v) { __asm__ volatile(""); *v = 13010; return 0; }
        int main(void) { int v = 0; cudaRuntimeGetVersion(&v); printf("%d\n", v); return 0; }
        "#,
        "own",
        &["-static"],
    );
    session.source.watch_file(&program).unwrap();
    let (output, _) = session.run(&mut Command::new(&program));
    assert_eq!(output.stdout, b"13010\n");
    let told = session.finish();
    let calls = returned(&told);
    let call = calls
        .iter()
        .find(|call| call.name() == "cudaRuntimeGetVersion")
        .expect("the call of the static copy");
    assert_eq!(call.number(), Some(13010));
    assert!(
        call.object
            .as_ref()
            .unwrap()
            .functions
            .iter()
            .all(|function| function.is_static)
    );
}

#[test]
fn a_library_that_appears_later_is_probed_when_it_is_opened() {
    let Some(session) = session("a_library_that_appears_later_is_probed_when_it_is_opened") else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let library = fake_cudart(directory.path(), "libcudart.so.12");
    let caller = compile(directory.path(), "caller.c", CALLER, "caller", &["-ldl"]);
    let mut launched = session.launch(
        Command::new(&caller)
            .arg(&library)
            .arg(libc::RTLD_NOW.to_string())
            .arg("wait"),
    );
    let pid = launched.child.id();
    // The first call comes a while after the load, as in a program that imports before it asks.
    session.wait_for_probes(&library);
    launched.line();
    assert!(launched.end().success());
    assert_version_call(&session.finish(), &library, pid);
}

/// A live process whose library has been deleted and replaced: the mapped inode is probed, not the new file.
#[test]
fn a_running_process_is_attached_to_and_its_deleted_library_is_the_one_that_is_probed() {
    let name = "a_running_process_is_attached_to";
    let Some(session) = session(name) else { return };
    let directory = tempfile::tempdir().unwrap();
    let library = fake_cudart(directory.path(), "libcudart.so.12");
    let caller = compile(directory.path(), "caller.c", CALLER, "caller", &["-ldl"]);
    let script = format!("{} {} 2 wait; true", caller.display(), library.display());
    let mut shell = sh(&script)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut ready = [0; 6];
    std::io::Read::read_exact(shell.stdout.as_mut().unwrap(), &mut ready).unwrap();
    std::fs::remove_file(&library).unwrap();
    std::fs::write(&library, b"another file").unwrap();

    let followed = session.source.follow_tree(shell.id()).unwrap();
    let [shell_pid, child] = followed.as_slice() else {
        panic!("shell and child, got {followed:?}")
    };
    assert_eq!(*shell_pid, shell.id());
    let refused = session.source.watch_process(*child).unwrap();
    assert!(refused.is_empty(), "{refused:?}");
    std::io::Write::write_all(shell.stdin.as_mut().unwrap(), b"\n").unwrap();
    let output = shell.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "0 12040 100 0\n");
    let told = session.finish();
    assert_version_call(&told, &library, *child);
    assert_eq!(
        exits(&told),
        [(*child, Exit::Code(0)), (*shell_pid, Exit::Code(0))]
    );
}

/// `app` opens `libfoo.so` by its own RUNPATH; libfoo's constructor opens `libbar.so` by libfoo's RUNPATH, which only
/// the loader's knowledge of the caller can find.
fn runpath_program(directory: &Path) -> PathBuf {
    compile(
        directory,
        "bar.c",
        r#"
        #define _GNU_SOURCE
        #include <dlfcn.h>
        int which(void) { return 2; }
        int next_of_bar(void) { int (*next)(void) = (int (*)(void))dlsym(RTLD_NEXT, "which"); return next ? next() : -1; }
        "#,
        "lib/nv/libbar.so",
        &["-shared", "-fPIC"],
    );
    compile(
        directory,
        "foo.c",
        r#"
        #include <dlfcn.h>
        #include <stdio.h>
        __attribute__((constructor)) static void start(void) {
            void *h = dlopen("libbar.so", RTLD_NOW);
            printf("bar %s\n", h ? "found" : dlerror());
        }
        "#,
        "lib/libfoo.so",
        &["-shared", "-fPIC", "-Wl,-rpath,$ORIGIN/nv"],
    );
    compile(
        directory,
        "app.c",
        r#"
        #include <dlfcn.h>
        #include <stdio.h>
        int main(void) {
            void *h = dlopen("libfoo.so", RTLD_NOW);
            printf("foo %s\n", h ? "found" : dlerror());
            printf("none %s\n", dlopen("libnone.so.1", RTLD_NOW) ? "found" : dlerror());
            return 0;
        }
        "#,
        "app",
        &["-ldl", "-Wl,-rpath,$ORIGIN/lib"],
    )
}

fn c_library() -> PathBuf {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines()
        .find_map(|line| {
            line.rsplit(' ')
                .next()
                .filter(|path| path.contains("/libc.so") || path.contains("/libc-2"))
        })
        .map(PathBuf::from)
        .expect("this test is linked to libc")
}

#[test]
fn probed_dlopen_still_finds_its_caller_and_tells_request_candidates_and_outcome() {
    let Some(session) = session("probed_dlopen_still_finds_its_caller") else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let app = runpath_program(directory.path());
    session.source.watch_file(&c_library()).unwrap();
    let bare = Command::new(&app)
        .env_remove("LD_LIBRARY_PATH")
        .output()
        .unwrap();
    let (traced, pid) = session.run(&mut Command::new(&app));
    let bare = String::from_utf8_lossy(&bare.stdout).into_owned();
    assert!(
        bare.starts_with("bar found\nfoo found\nnone libnone.so.1: cannot open"),
        "{bare}"
    );
    assert_eq!(String::from_utf8_lossy(&traced.stdout), bare);
    let told = session.finish();
    assert_eq!(lost(&told), []);

    let name = |call: &Call| match &call.captured[0] {
        Captured::Text { text, .. } => text.to_str().unwrap().to_owned(),
        other => format!("{other:?}"),
    };
    // A literal that is not paged in at the entry is told by the return, which has the same beginning.
    let named_at_return = |begin: u64| {
        returned(&told)
            .into_iter()
            .find(|call| call.begin_ns == begin)
            .map(name)
    };
    let requests: Vec<(String, u64)> = entered(&told)
        .into_iter()
        .map(|call| match &call.captured[0] {
            Captured::Text { .. } => (name(call), call.begin_ns),
            _ => (named_at_return(call.begin_ns).unwrap(), call.begin_ns),
        })
        .collect();
    assert_eq!(
        requests
            .iter()
            .map(|(name, _)| name.as_str())
            .collect::<Vec<_>>(),
        ["libfoo.so", "libbar.so", "libnone.so.1"]
    );
    let outcomes: Vec<(String, bool, Option<PathBuf>)> = returned(&told)
        .into_iter()
        .map(|call| {
            let loaded = match &call.captured[1] {
                Captured::Text { text, .. } => Some(PathBuf::from(text)),
                _ => None,
            };
            (name(call), call.result != Some(0), loaded)
        })
        .collect();
    let loaded = |path: &str| Some(directory.path().join(path).canonicalize().unwrap());
    // The inner request ends first.
    assert_eq!(
        outcomes
            .into_iter()
            .map(|(name, found, path)| (
                name,
                found,
                path.map(|path| path.canonicalize().unwrap_or(path))
            ))
            .collect::<Vec<_>>(),
        [
            ("libbar.so".to_owned(), true, loaded("lib/nv/libbar.so")),
            ("libfoo.so".to_owned(), true, loaded("lib/libfoo.so")),
            ("libnone.so.1".to_owned(), false, None),
        ]
    );
    // Every file that the loader tried belongs to the request that it was tried for.
    let began = |wanted: &str| {
        requests
            .iter()
            .find(|(name, _)| name == wanted)
            .map(|(_, begin)| *begin)
    };
    let candidates = |request: &str, ending: &str| {
        files(&told)
            .into_iter()
            .filter(|file| file.loading.is_some() && file.loading == began(request))
            .filter(|file| {
                file.path
                    .as_ref()
                    .is_ok_and(|path| path.as_os_str().as_bytes().ends_with(ending.as_bytes()))
            })
            .map(|file| file.outcome.is_ok())
            .collect::<Vec<_>>()
    };
    assert_eq!(candidates("libfoo.so", "/lib/libfoo.so"), [true]);
    assert_eq!(candidates("libbar.so", "/nv/libbar.so"), [true]);
    assert_eq!(candidates("libfoo.so", "/libbar.so"), [] as [bool; 0]);
    let missed = candidates("libnone.so.1", "/libnone.so.1");
    assert!(
        missed.len() >= 2 && missed.iter().all(|found| !found),
        "{missed:?}"
    );
    // The caller of each request lies in the object that made it.
    assert!(entered(&told).iter().all(|call| call.return_address != 0));
    assert!(told.iter().all(|observation| {
        !matches!(observation.event, KernelEvent::Entered(_)) || observation.task.own.tgid == pid
    }));
}

#[test]
fn sixty_four_threads_in_dlopen_and_a_throwing_program_behave_as_without_probes() {
    let Some(session) = session("sixty_four_threads_in_dlopen") else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let library = compile(
        directory.path(),
        "l.c",
        "int l(void) { return 1; }",
        "libl.so",
        &["-shared", "-fPIC"],
    );
    let program = compile(
        directory.path(),
        "many.cc",
        r#"
        #include <atomic>
        #include <cstdio>
        #include <dlfcn.h>
        #include <stdexcept>
        #include <thread>
        #include <vector>
        static std::atomic<int> good, bad, caught;
        // A watched name whose body throws: a return probe of the kernel's would abort the program here.
        extern "C" __attribute__((noinline)) int nvrtcCompileProgram(void *, int n, const char **) {
            if (n > 1) throw std::runtime_error("thrown");
            return n;
        }
        int main(int, char **argv) {
            std::vector<std::thread> threads;
            for (int i = 0; i < 64; i++) threads.emplace_back([&] {
                for (int k = 0; k < 20; k++) {
                    void *h = dlopen(argv[1], RTLD_NOW);
                    if (h) { good++; dlclose(h); } else bad++;
                    try { nvrtcCompileProgram(nullptr, 2, nullptr); } catch (std::exception &) { caught++; }
                }
            });
            for (auto &t : threads) t.join();
            std::printf("%d %d %d\n", good.load(), bad.load(), caught.load());
        }
        "#,
        "many",
        &["-ldl", "-pthread", "-rdynamic"],
    );
    session.source.watch_file(&c_library()).unwrap();
    session.source.watch_file(&program).unwrap();
    let (output, _) = session.run(Command::new(&program).arg(&library));
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "1280 0 1280\n",
        "{:?}",
        output.status
    );
    let told = session.finish();
    // What a thrown call leaves behind must not be paired with another call, and nothing else may be lost.
    let losses: u64 = lost(&told).iter().map(|(_, count)| count).sum();
    let opened = returned(&told)
        .into_iter()
        .filter(|call| {
            call.name() == "dlopen"
                && call
                    .texts()
                    .next()
                    .is_some_and(|text| text == library.as_os_str())
        })
        .count() as u64;
    assert_eq!(opened + losses, 1280, "{:?}", lost(&told));
    let came_back = returned(&told)
        .into_iter()
        .filter(|call| call.name() == "nvrtcCompileProgram")
        .count();
    assert_eq!(came_back, 0, "every call threw");
}

/// Names of our programs that are loaded in the kernel, and how many links hold any program.
fn in_kernel() -> (BTreeMap<u32, String>, BTreeSet<u32>) {
    let programs = aya::programs::loaded_programs()
        .filter_map(|program| {
            let program = program.ok()?;
            Some((program.id(), program.name_as_str()?.to_owned()))
        })
        .collect();
    let links = aya::programs::loaded_links()
        .filter_map(|link| Some(link.ok()?.id()))
        .collect();
    (programs, links)
}

/// `int3`
const BREAKPOINT: u8 = 0xcc;

fn first_byte_of_dlopen() -> u8 {
    // SAFETY: a symbol that libc exports, and its code, which may be read.
    unsafe {
        let dlopen = libc::dlsym(libc::RTLD_DEFAULT, c"dlopen".as_ptr());
        assert!(!dlopen.is_null());
        dlopen.cast::<u8>().read_volatile()
    }
}

#[test]
fn detaching_leaves_nothing() {
    let mounted_before = std::fs::read_to_string("/proc/self/mountinfo")
        .unwrap()
        .contains(" tracefs ");
    let (programs_before, links_before) = in_kernel();
    let Some(session) = session("detaching_leaves_nothing") else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let library = fake_cudart(directory.path(), "libcudart.so.12");
    session.source.watch_file(&library).unwrap();
    session.source.watch_file(&c_library()).unwrap();
    let (mut programs, mut links) = in_kernel();
    programs.retain(|id, _| !programs_before.contains_key(id));
    links.retain(|id| !links_before.contains(id));
    for program in ["process_exec", "file_enter", "call_entry"] {
        assert!(
            programs.values().any(|name| name == program),
            "{program} among {programs:?}"
        );
    }
    assert!(!links.is_empty());
    assert_eq!(
        first_byte_of_dlopen(),
        BREAKPOINT,
        "the probe is a breakpoint in our own mapping of libc"
    );
    session.finish();
    // Another tracer of this machine may be just about to detach, or have a breakpoint of its own there.
    let nothing_left = || {
        let (programs_after, links_after) = in_kernel();
        let another = programs_after.values().any(|name| name == "call_entry");
        !programs.keys().any(|id| programs_after.contains_key(id))
            && links.is_disjoint(&links_after)
            && (another || first_byte_of_dlopen() != BREAKPOINT)
    };
    assert!(
        eventually(PATIENCE, nothing_left),
        "{programs:?} and {links:?} of {:?}, and dlopen begins with {:#x}",
        in_kernel(),
        first_byte_of_dlopen()
    );
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert_eq!(
        mounts.contains(" tracefs "),
        mounted_before,
        "tracefs is read without mounting it for others"
    );
}

/// In another pid namespace a process has two numbers; both are told, and it is found by the tracer's.
#[test]
fn both_views_of_a_pid_namespace_are_told() {
    let Some(session) = session("both_views_of_a_pid_namespace_are_told") else {
        return;
    };
    // The gate that starts it is a shell too, with these words among its arguments: only the whole command line is this one.
    let shell_inside = ["/bin/sh", "-c", "/bin/echo $$ >&2; /bin/true; exit 3"];
    let mut inside = Command::new("unshare");
    inside
        .args(["--pid", "--fork", "--mount-proc"])
        .args(shell_inside);
    let (output, _) = session.run(&mut inside);
    let told = session.finish();
    if output.status.code() != Some(3) {
        eprintln!(
            "skipped: unshare does not work here: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        return;
    }
    let execs = execs(&told);
    let (shell, _) = execs
        .iter()
        .find(|(_, exec)| exec.argv.as_ref().is_ok_and(|argv| argv == &shell_inside))
        .expect("the shell inside");
    assert_eq!(shell.task.inner.tgid, 1);
    assert!(shell.task.own.tgid > 1);
    assert!(exits(&told).contains(&(shell.task.own.tgid, Exit::Code(3))));
}

/// The tracer itself may run in a pid namespace (a privileged container): it then knows processes by its own numbers.
#[test]
fn a_tracer_inside_a_pid_namespace_uses_its_own_numbers() {
    let Some(session) = session("a_tracer_inside_a_pid_namespace_uses_its_own_numbers") else {
        return;
    };
    // The inner test takes the same lock in its own process; end this session first.
    session.finish();
    let exe = std::env::current_exe().unwrap();
    let output = Command::new("unshare")
        .args(["--pid", "--fork", "--mount-proc"])
        .arg(exe)
        .args([
            "--exact",
            "ends_are_told_as_waitpid_tells_them",
            "--nocapture",
        ])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    if text.contains("unshare:") {
        eprintln!("skipped: unshare does not work here: {text}");
        return;
    }
    assert!(output.status.success(), "{text}");
    assert!(
        text.contains("1 passed") && !text.contains("skipped"),
        "{text}"
    );
}

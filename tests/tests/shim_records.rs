//! What the shim writes down, seen on small programs.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use jittrace_tests::{
    has,
    lab::Lab,
    python,
    shim::{SHIM, Session, name_of},
    skip,
};
use jittrace_wire::OPTIONS_VARIABLE;
use jittrace_wire::record::Record;
use std::path::Path;
use std::process::Command;

macro_rules! fixture {
    ($name:literal) => {
        include_str!(concat!("../fixtures/shim/", $name))
    };
}

fn traced(
    lab: &Lab,
    program: &str,
    arguments: &[&str],
) -> (jittrace_tests::shim::Outcome, Session) {
    lab.traced(&|command: &mut Command| {
        *command = lab.command(program);
        command.args(arguments);
    })
}

/// A libcuda of a few lines, reached through cuGetProcAddress and dlsym.
const DRIVER: &str = r#"
#include <string.h>
int cuInit(unsigned flags) { return flags ? 1 : 0; }
int cuDriverGetVersion(int *v) { *v = 13000; return 0; }
int cuDeviceGetAttribute(int *v, int attribute, int device) { *v = attribute == 75 ? 12 : attribute == 76 ? 1 : 7; return 0; }
int cuModuleLoadData(void **module, const void *image) { return *(const char *)image == '/' ? 222 : 209; }
int cuLibraryLoadData(void **l, const void *i, void *a, void *b, unsigned n, void *c, void *d, unsigned m) { return n == 5 && m == 9 ? 0 : 1; }
int cuLinkAddData_v2(void *s, int t, void *d, unsigned long z, const char *n, unsigned c, void *o, void **v) { return c == 3 && v == (void **)8 ? 0 : 1; }
int cuMemAlloc(void) { return 2; }
int cuGetProcAddress_v2(const char *name, void **address, int version, unsigned long flags, void *status) {
    *address = !strcmp(name, "cuInit") ? (void *)cuInit : !strcmp(name, "cuDriverGetVersion") ? (void *)cuDriverGetVersion
        : !strcmp(name, "cuMemAlloc") ? (void *)cuMemAlloc : 0;
    return *address ? 0 : 500;
}
"#;

const DRIVER_USER: &str = r#"
#include <dlfcn.h>
#include <stdio.h>
int main(void) {
    void *driver = dlopen("./libcuda.so.1", RTLD_NOW);
    int (*get)(const char *, void **, int, unsigned long, void *) = dlsym(driver, "cuGetProcAddress_v2");
    int (*init)(unsigned), (*version)(int *), (*alloc)(void), value = 0; void *none;
    printf("%d\n", get("cuInit", (void **)&init, 12080, 0, 0));
    printf("%d\n", init(0)); printf("%d\n", init(1));
    printf("%d\n", get("cuDriverGetVersion", (void **)&version, 12080, 0, 0));
    printf("%d\n", version(&value)); printf("%d\n", value);
    printf("%d\n", get("cuMemAlloc", (void **)&alloc, 12080, 0, 0)); printf("%d\n", alloc());
    printf("%d\n", get("cuNope", &none, 12080, 0, 0));
    printf("same %d\n", (void *)init == dlsym(driver, "cuInit"));
    int (*attribute)(int *, int, int) = dlsym(driver, "cuDeviceGetAttribute");
    for (int i = 74; i < 77; i++) { attribute(&value, i, 0); printf("%d\n", value); }
    int (*load)(void **, const void *) = dlsym(driver, "cuModuleLoadData"); void *module;
    printf("%d\n", load(&module, "//\n.version 9.2\n.target sm_120a, texmode\n"));
    static unsigned char cubin[64] = {0x7f, 'E', 'L', 'F', 2, 1, 1, 51, 7}; cubin[48] = 90;
    printf("%d\n", load(&module, cubin));
    static struct { unsigned magic; unsigned short version, header; unsigned long size;
        struct { unsigned short kind, x; unsigned header; unsigned long size; unsigned y, z, w, arch; unsigned long pad[4]; } a, b; } fatbin =
        {0xba55ed50, 1, 16, 128, {2, 0, 64, 0, 0, 0, 0, 90}, {1, 0, 64, 0, 0, 0, 0, 120}};
    static struct { unsigned magic, version; void *data, *name; } wrapper = {0x466243b1, 1, &fatbin};
    int (*library)(void **, const void *, void *, void *, unsigned, void *, void *, unsigned) = dlsym(driver, "cuLibraryLoadData");
    printf("%d\n", library(&module, &wrapper, 0, 0, 5, 0, 0, 9));
    int (*add)(void *, int, const void *, unsigned long, const char *, unsigned, void *, void **) = dlsym(driver, "cuLinkAddData_v2");
    printf("%d\n", add(0, 1, ".version 8.7\n.target sm_90\n", 27, "x", 3, 0, (void **)8));
}"#;

#[test]
fn the_driver_is_watched_through_pointers() {
    let lab = Lab::new();
    lab.cc(
        "libcuda.so.1",
        DRIVER,
        &["-shared", "-fPIC", "-Wl,-soname,libcuda.so.1"],
    );
    let program = lab.cc("user", DRIVER_USER, &["-ldl"]);
    let (outcome, session) = lab.same("driver", &|command| *command = lab.command(&program));
    assert!(outcome.status.success(), "{outcome:?}");
    let calls = session.all(|_, record| match record {
        Record::Call(call) => Some(format!(
            "{} {} {:?} {}{}",
            call.function.value,
            call.result.unwrap_or(-1),
            call.value,
            call.image.value,
            call.detail.value
        )),
        _ => None,
    });
    assert_eq!(
        calls,
        [
            "cuInit 0 None ",
            "cuInit 1 None ",
            "cuDriverGetVersion 0 Some(13000) ",
            "cuDeviceGetAttribute 0 Some(12) compute-capability-major device=0",
            "cuDeviceGetAttribute 0 Some(1) compute-capability-minor device=0",
            "cuModuleLoadData 222 None ptx version=9.2 target=sm_120a",
            "cuModuleLoadData 209 None cubin sm_90",
            "cuLibraryLoadData 0 None fatbin sm_90 ptx:sm_120",
            "cuLinkAddData_v2 0 None ptx version=8.7 target=sm_90",
        ]
    );
    let asked = session.all(|_, record| match record {
        Record::SymbolLookup(lookup) if lookup.call.value.starts_with("cuGetProc") => Some((
            lookup.name.value.to_owned(),
            lookup.result,
            lookup.version,
            lookup.thunk != 0,
        )),
        _ => None,
    });
    let expected = [
        ("cuInit", 0, true),
        ("cuDriverGetVersion", 0, true),
        ("cuNope", 500, false),
    ];
    assert_eq!(
        asked,
        expected.map(|(name, result, thunk)| (name.to_owned(), Some(result), 12080, thunk))
    );
    let counted = session.all(|_, record| match record {
        Record::Count(count) => Some((count.what.value.to_owned(), count.total, count.not_logged)),
        _ => None,
    });
    assert_eq!(counted, [("cuGetProcAddress".to_owned(), 1, 1)]);
}

#[test]
fn every_request_for_a_library_has_its_outcome() {
    let lab = Lab::new();
    lab.cc("inner.so", "int inner;", &["-shared", "-fPIC"]);
    lab.cc(
        "dep.so",
        "int dep;",
        &["-shared", "-fPIC", "-Wl,-soname,dep.so"],
    );
    let outer = "#include <dlfcn.h>\n__attribute__((constructor)) void c(void) { dlopen(\"./inner.so\", RTLD_NOW); }\nextern int dep; int *p = &dep;";
    lab.cc(
        "outer.so",
        outer,
        &["-shared", "-fPIC", "dep.so", "-Wl,-rpath,$ORIGIN", "-ldl"],
    );
    let source = r#"
        #include <dlfcn.h>
        int main(void) {
            void *outer = dlopen("./outer.so", RTLD_NOW);
            dlopen("./outer.so", RTLD_NOW | RTLD_NOLOAD);
            dlopen("libnope.so", RTLD_NOW); dlerror();
            dlclose(outer);
            dlopen(0, RTLD_NOW);
            dlclose(outer);
            dlopen("libm.so.6", RTLD_NOW);
        }"#;
    let program = lab.cc("requests", source, &["-ldl"]);
    let (_, session) = lab.same("requests", &|command| *command = lab.command(&program));
    let mut story = Vec::new();
    let mut names = std::collections::HashMap::new();
    for (header, record) in session.records() {
        match record {
            Record::DlRequest(request) => {
                names.insert(
                    u64::from(header.sequence),
                    request.name.get().unwrap_or("NULL").to_owned(),
                );
                story.push(format!("request {}", request.name.get().unwrap_or("NULL")));
            }
            Record::ObjectLoaded(loaded) if loaded.how.value != "start" => {
                let request = names.get(&loaded.request).map_or("none", String::as_str);
                for object in loaded.objects.iter() {
                    assert!(object.inode != 0);
                    story.push(format!(
                        "  {} {} for {request}",
                        loaded.how.value,
                        object.path.rsplit('/').next().unwrap()
                    ));
                }
            }
            Record::DlSettled(settled) => story.push(format!(
                "settled {} by {} {}",
                names[&settled.request],
                settled.by.value,
                name_of(settled.path)
            )),
            Record::DlError(error) => story.push(format!(
                "error of {}: {}",
                names[&error.request], error.text.value
            )),
            Record::DlClose(close) => story.push(format!("close {}", name_of(close.path))),
            Record::DlUnloaded(unloaded) => {
                story.push(format!("unloaded {}", unloaded.objects.iter().count()))
            }
            _ => {}
        }
    }
    assert_eq!(
        story,
        [
            "request ./outer.so",
            "  init dep.so for ./outer.so",
            "  init outer.so for ./outer.so",
            "request ./inner.so",
            "  init inner.so for ./inner.so",
            "settled ./inner.so by next ",
            "settled ./outer.so by next ",
            "request ./outer.so",
            "settled ./outer.so by next ",
            "request libnope.so",
            "error of libnope.so: libnope.so: cannot open shared object file: No such file or directory",
            "close outer.so",
            "request NULL",
            "settled NULL by handle outer.so",
            "close outer.so",
            "unloaded 2",
            "request libm.so.6",
            "  init libm.so.6 for libm.so.6",
            "settled libm.so.6 by next ",
        ]
    );
}

#[test]
fn execs_are_told_with_what_becomes_of_them() {
    let lab = Lab::new();
    let program = lab.cc("environment", fixture!("environment.c"), &[]);
    lab.cc("static", "int main(void) { return 0; }", &["-static"]);
    let keep = ["+LD_PRELOAD", "+JITTRACE_SESSION", "+PATH"];
    /// Target, its environment, what is told about it, why it is not followed, whether it speaks.
    type Case<'c> = (&'c str, &'c [&'c str], &'c str, &'c [&'c str], bool);
    let cases: &[Case<'_>] = &[
        ("/usr/bin/env", &keep, "followed", &[], true),
        (
            "/usr/bin/env",
            &["A=B"],
            "cleared",
            &["cleared-environment"],
            false,
        ),
        (
            "/usr/bin/env",
            &["+JITTRACE_SESSION"],
            "restored",
            &[],
            true,
        ),
        (
            "/usr/bin/env",
            &["+JITTRACE_SESSION", "LD_PRELOAD=libm.so.6"],
            "restored",
            &[],
            true,
        ),
        ("./static", &keep, "followed", &["static"], false),
        ("/nonexistent", &["A=B"], "cleared", &[], false),
    ];
    for (target, variables, environment, not_followed, child_speaks) in cases {
        let arguments: Vec<&str> = std::iter::once(*target)
            .chain(variables.iter().copied())
            .collect();
        let (outcome, session) = traced(&lab, program.to_str().unwrap(), &arguments);
        let attempts = session.all(|_, record| match record {
            Record::ExecAttempt(attempt) => Some((
                attempt.path.value.to_owned(),
                attempt.environment.value.to_owned(),
            )),
            _ => None,
        });
        assert_eq!(
            attempts,
            [((*target).to_owned(), (*environment).to_owned())],
            "{variables:?}"
        );
        let reasons = session.all(|_, record| match record {
            Record::NotFollowed(not) => Some(not.reason.value.to_owned()),
            _ => None,
        });
        assert_eq!(reasons, *not_followed, "{target} {variables:?}");
        let starts = session.all(|_, record| matches!(record, Record::Start(_)).then_some(()));
        assert_eq!(
            starts.len(),
            1 + usize::from(*child_speaks),
            "{target} {variables:?}"
        );
        if *environment == "restored" {
            let theirs = if variables.len() > 1 {
                ":libm.so.6"
            } else {
                ""
            };
            assert!(
                outcome
                    .stdout
                    .contains(&format!("LD_PRELOAD={SHIM}{theirs}\n")),
                "{}",
                outcome.stdout
            );
        }
        if *target == "/nonexistent" {
            let failures = session.all(|_, record| match record {
                Record::ExecFailed(failed) => Some(failed.errno),
                _ => None,
            });
            assert_eq!(failures, [2]);
        }
    }
}

/// A loader that would complain about the shim, or fail for it, does not get to see it.
#[test]
fn our_entry_is_taken_from_programs_that_cannot_load_it() {
    let lab = Lab::new();
    let loader = lab.file("ld-musl-x86_64.so.1");
    let real = Command::new("sh")
        .args([
            "-c",
            "ls /lib64/ld-linux-x86-64.so.2 /lib/ld-linux-aarch64.so.1 2>/dev/null",
        ])
        .output()
        .unwrap();
    let real = String::from_utf8_lossy(&real.stdout)
        .lines()
        .next()
        .unwrap()
        .to_owned();
    std::os::unix::fs::symlink(real, &loader).unwrap();
    let show = "#include <stdio.h>\n#include <stdlib.h>\nint main(void) { char *p = getenv(\"LD_PRELOAD\"); puts(p ? p : \"(unset)\"); }";
    let program = lab.cc(
        "musl",
        show,
        &[&format!("-Wl,--dynamic-linker={}", loader.display())],
    );
    let mut thirty_two = std::fs::read(&program).unwrap();
    thirty_two[4] = 1;
    std::fs::write(lab.file("thirty-two"), thirty_two).unwrap();
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(lab.file("thirty-two"), executable).unwrap();
    for (preload, command, left, reason) in [
        (None, "exec ./musl", "(unset)", "musl"),
        (Some("libm.so.6"), "exec ./musl", "libm.so.6", "musl"),
        (
            None,
            // Kernels differ in whether they look at the class; what counts is that the entry was taken out.
            "./thirty-two 2>/dev/null || echo '(unset)'",
            "(unset)",
            "32-bit",
        ),
    ] {
        let (outcome, session) = lab.traced(&|shell| {
            *shell = lab.command("sh");
            shell.args(["-c", command]);
            if let Some(preload) = preload {
                shell.env("LD_PRELOAD", preload);
            }
        });
        assert_eq!(outcome.stdout, format!("{left}\n"), "{command}");
        let told = session.all(|_, record| match record {
            Record::ExecAttempt(attempt) if attempt.environment.value == "dropped" => {
                Some("dropped".to_owned())
            }
            Record::NotFollowed(not) => Some(not.reason.value.to_owned()),
            _ => None,
        });
        assert_eq!(told, ["dropped", reason], "{command}");
    }
}

#[test]
fn a_cleared_environment_is_followed_when_asked() {
    let lab = Lab::new();
    let (outcome, session) = lab.traced(&|command| {
        *command = lab.command("sh");
        command
            .args(["-c", "env -i /usr/bin/env"])
            .env(OPTIONS_VARIABLE, "another,follow-clean-env");
    });
    assert!(outcome.stdout.contains("JITTRACE_SESSION="), "{outcome:?}");
    let starts = session.all(|_, record| match record {
        Record::Start(start) => Some(name_of(start.exe).to_owned()),
        _ => None,
    });
    assert_eq!(starts.last().map(String::as_str), Some("env"), "{starts:?}");
}

#[test]
fn credentials_do_not_leave_the_program() {
    let lab = Lab::new();
    let (_, session) = lab.traced(&|command| {
        *command = lab.command("sh");
        command.args([
            "-c",
            "true; /bin/true --api-key=hunter2 --token hunter2 https://u:hunter2@host/",
        ]);
        command
            .env("SGLANG_API_KEY", "hunter2")
            .env("CUDA_HOME", "/opt/cuda")
            .env("SOMETHING", "hunter2");
    });
    let text = session.bytes();
    let in_command_line = session.all(|_, record| match record {
        Record::Start(start) if name_of(start.exe) == "true" => Some((
            start
                .argv
                .iter()
                .map(|argument| argument.value.to_owned())
                .collect::<Vec<_>>(),
            start
                .env
                .iter()
                .any(|entry| entry.value == "CUDA_HOME=/opt/cuda"),
        )),
        _ => None,
    });
    assert_eq!(
        in_command_line[0].0[1..],
        [
            "--api-key=*******",
            "--token",
            "*******",
            "https://*********@host/"
        ]
    );
    assert!(in_command_line[0].1);
    assert_eq!(
        text.windows(7).filter(|seven| seven == b"hunter2").count(),
        0
    );
}

/// Interpreters to be tried: those of pyenv that the shim's contract names.
fn interpreters() -> Vec<(String, String)> {
    let root = std::env::var("PYENV_ROOT")
        .unwrap_or_else(|_| format!("{}/.pyenv", std::env::var("HOME").unwrap_or_default()));
    let mut found = Vec::new();
    for wanted in ["3.9.", "3.10.", "3.11.", "3.12.", "3.13."] {
        let versions = std::fs::read_dir(format!("{root}/versions"))
            .into_iter()
            .flatten()
            .flatten();
        let names = versions.map(|entry| entry.file_name().to_string_lossy().into_owned());
        match names.filter(|name| name.starts_with(wanted)).max() {
            Some(name) => found.push((name.clone(), format!("{root}/versions/{name}/bin/python3"))),
            None => skip(
                "interpreters",
                &format!("no Python {wanted}x under {root}/versions"),
            ),
        }
    }
    found
}

#[test]
fn the_python_stack_of_every_supported_version_is_taken() {
    let lab = Lab::new();
    let source = fixture!("cudart.c").replace("VERSION", "12040");
    lab.versioned(
        "libcudart.so.12",
        "libcudart.so.12",
        "libcudart.so.12",
        &source,
    );
    let script = r#"import ctypes, subprocess, threading
def load(): return ctypes.CDLL("./libcudart.so.12")
def ask(library):
    value = ctypes.c_int()
    library.cudaRuntimeGetVersion(ctypes.byref(value))
    return value.value
def start(): subprocess.run(["/bin/true"])
def several():
    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
try: raise KeyError("pending")
except KeyError: print(ask(load()))
start()
several()
"#;
    std::fs::write(lab.file("script.py"), script).unwrap();
    for (version, interpreter) in interpreters() {
        let (outcome, session) = lab.same(&version, &|command| {
            *command = lab.command(&interpreter);
            command.arg("script.py");
        });
        assert_eq!(outcome.stdout, "12040\n", "{version}");
        let stack = |frames: jittrace_wire::record::List<'_, jittrace_wire::record::Frame<'_>>| {
            frames
                .iter()
                .map(|frame| {
                    format!(
                        "{}:{}:{}",
                        frame.file.rsplit('/').next().unwrap(),
                        frame.line,
                        frame.function
                    )
                })
                .collect::<Vec<_>>()
        };
        let requests = session.all(|_, record| match record {
            Record::DlRequest(request) if request.name.value == "./libcudart.so.12" => {
                Some(stack(request.python))
            }
            _ => None,
        });
        assert_eq!(
            requests,
            [["script.py:2:load", "script.py:13:<module>"]],
            "{version}"
        );
        let lookups = session.all(|_, record| match record {
            Record::SymbolLookup(lookup) => Some(stack(lookup.python)),
            _ => None,
        });
        assert_eq!(
            lookups,
            [["script.py:5:ask", "script.py:13:<module>"]],
            "{version}"
        );
        // Who started a program is told by the parent: with the fork, or with the attempt when there is no fork.
        let forks: std::collections::HashMap<_, _> = session
            .all(|header, record| match record {
                Record::Fork(fork) => Some((
                    (u64::from(header.pid), u64::from(header.sequence)),
                    stack(fork.python),
                )),
                _ => None,
            })
            .into_iter()
            .collect();
        let attempts = session.all(|_, record| match record {
            Record::ExecAttempt(attempt) if attempt.fork != 0 => {
                forks.get(&(attempt.ppid, attempt.fork)).cloned()
            }
            Record::ExecAttempt(attempt) => Some(stack(attempt.python)),
            _ => None,
        });
        assert_eq!(attempts.len(), 5, "{version}");
        assert_eq!(
            attempts[0],
            ["script.py:7:start", "script.py:14:<module>"],
            "{version}"
        );
        for attempt in &attempts[1..] {
            assert_eq!(attempt[0], "script.py:7:start", "{version}");
        }
    }
}

#[test]
fn without_the_gil_no_stack_is_taken_and_nothing_waits() {
    // A thread without the GIL holds a mutex and asks for a version; the main thread has the GIL and waits for the mutex.
    let lab = Lab::new();
    let source = fixture!("cudart.c").replace("VERSION", "12040");
    lab.versioned(
        "libcudart.so.12",
        "libcudart.so.12",
        "libcudart.so.12",
        &source,
    );
    let library = r#"
        #include <pthread.h>
        #include <unistd.h>
        int cudaRuntimeGetVersion(int *);
        static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; static volatile int held;
        static void *other(void *x) { int v; pthread_mutex_lock(&mutex); held = 1; usleep(300000); cudaRuntimeGetVersion(&v); pthread_mutex_unlock(&mutex); return 0; }
        int wait_with_gil(void) { pthread_t t; pthread_create(&t, 0, other, 0); while (!held) usleep(1000); pthread_mutex_lock(&mutex); pthread_mutex_unlock(&mutex); pthread_join(t, 0); return 7; }"#;
    lab.cc(
        "waits.so",
        library,
        &[
            "-shared",
            "-fPIC",
            "libcudart.so.12",
            "-Wl,-rpath,$ORIGIN",
            "-lpthread",
        ],
    );
    let (outcome, session) = lab.same("GIL", &|command| {
        *command = lab.command(python());
        command.args([
            "-c",
            "import ctypes; print(ctypes.PyDLL('./waits.so').wait_with_gil())",
        ]);
    });
    assert_eq!(outcome.stdout, "7\n");
    let stacks = session.all(|_, record| match record {
        Record::Call(call) => Some(call.python.is_empty()),
        _ => None,
    });
    assert_eq!(stacks, [true]);
}

#[test]
fn files_of_caches_and_toolkits_are_seen() {
    let lab = Lab::new();
    let script = r#"
import fcntl, os
os.makedirs("cache/op", exist_ok=True)
open("cache/op/build.ninja", "w").write("cuda_home = /opt/cuda-13.0\n")
open("cache/op/build.ninja", "w").write("cuda_home = /opt/cuda-12.4\n")
open("cache/op/new", "w").write("cuda_home = /opt/cuda-12.8\n")
os.rename("cache/op/new", "cache/op/build.ninja")
lock = open("cache/op.lock", "w")
fcntl.flock(lock, fcntl.LOCK_EX); fcntl.flock(lock, fcntl.LOCK_UN)
fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
for path in "cache/k.cubin", "/nonexistent/include/cuda_runtime_api.h", "plain.txt":
    try: open(path)
    except OSError: pass
os.path.exists("/nonexistent/bin/nvcc"); os.access("/nonexistent/bin/ptxas", os.X_OK)
os.symlink("/opt/cuda-12.4/bin/nvcc", "nvcc"); os.readlink("nvcc"); os.unlink("nvcc")
os.mkdir("cache/tmp"); os.rmdir("cache/tmp")
open("/proc/self/maps").close()
"#;
    std::fs::write(lab.file("files.py"), script).unwrap();
    let (_, session) = traced(&lab, &python(), &["-S", "files.py"]);
    let files = session.all(|_, record| match record {
        Record::File(file) if !file.path.value.contains("pyc") => {
            let old = if file.old_text.value.is_empty() {
                String::new()
            } else {
                format!(" was {}", file.old_text.value.trim())
            };
            let path = file
                .path
                .value
                .replace(lab.path().canonicalize().unwrap().to_str().unwrap(), "LAB");
            Some(format!(
                "{} {} {} {}{old}",
                file.interest.value, file.op.value, path, file.errno
            ))
        }
        _ => None,
    });
    for expected in [
        "cache mkdir cache/op 0",
        "build-file create cache/op/build.ninja 0",
        "build-file create cache/op/build.ninja 0 was cuda_home = /opt/cuda-13.0",
        "build-file rename cache/op/new 0 was cuda_home = /opt/cuda-12.4",
        "lock create cache/op.lock 0",
        "lock lock-wait LAB/cache/op.lock 0",
        "lock lock LAB/cache/op.lock 0",
        "lock unlock LAB/cache/op.lock 0",
        "cache open cache/k.cubin 2",
        "header open /nonexistent/include/cuda_runtime_api.h 2",
        "tool stat /nonexistent/bin/nvcc 2",
        "tool access /nonexistent/bin/ptxas 2",
        "tool readlink nvcc 0",
        "tool unlink nvcc 0",
        "cache mkdir cache/tmp 0",
        "cache rmdir cache/tmp 0",
        "maps open /proc/self/maps 0",
    ] {
        assert!(
            files.iter().any(|file| file == expected),
            "{expected} is missing in {files:#?}"
        );
    }
    assert!(!files.iter().any(|file| file.contains("plain.txt")));
    let origins = session.all(|_, record| match record {
        Record::File(file) if file.path.value == "cache/k.cubin" => Some(file.cwd.value.to_owned()),
        _ => None,
    });
    assert_eq!(
        origins,
        [lab.path().canonicalize().unwrap().to_str().unwrap()]
    );
    let targets = session.all(|_, record| match record {
        Record::File(file) if file.op.value == "readlink" => Some(file.second.value.to_owned()),
        _ => None,
    });
    assert_eq!(targets, ["/opt/cuda-12.4/bin/nvcc"]);
}

#[test]
fn messages_are_seen_at_both_ends() {
    let lab = Lab::new();
    let script = r#"
import subprocess, sys
tool = "import sys; sys.stderr.write('noise\\nnvcc fatal   : Unsupported gpu architecture \\'compute_120f\\'\\n')"
subprocess.run([sys.executable, "-S", "-c", tool], capture_output=True)
print("all is well", file=sys.stderr)
print("SM 12.x requires CUDA >= 12.9. --token abc", file=sys.stderr)
open("log", "w").write("nvcc fatal   : in a file\n"); open("log").read()
"#;
    std::fs::write(lab.file("messages.py"), script).unwrap();
    let (_, session) = traced(&lab, &python(), &["-S", "messages.py"]);
    let mut messages = session.all(|_, record| match record {
        Record::Message(message) => Some(format!(
            "{} {} {}",
            message.stream.value, message.pattern.value, message.text.value
        )),
        _ => None,
    });
    // Whichever of writer and reader is scheduled first writes its record first.
    messages.sort_unstable_by(|one, other| other.cmp(one));
    assert_eq!(
        messages,
        [
            "stderr unsupported-gpu-architecture nvcc fatal   : Unsupported gpu architecture 'compute_120f'",
            "stderr requires-cuda SM 12.x requires CUDA >= 12.9. --token ***",
            "pipe unsupported-gpu-architecture nvcc fatal   : Unsupported gpu architecture 'compute_120f'",
        ]
    );
}

/// However a program is started, the path told for it is the one that the kernel knows.
#[test]
fn a_start_tells_the_file_that_runs() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let lab = Lab::new();
    let program = lab.cc("real/program", fixture!("own_path.c"), &[]);
    symlink("real", lab.file("linked")).unwrap();
    symlink("../linked/./program", lab.file("real/relative")).unwrap();
    symlink(lab.file("real/relative"), lab.file("absolute")).unwrap();
    symlink("/proc/self/exe", lab.file("magic")).unwrap();
    std::fs::create_dir(lab.file("a")).unwrap();
    let script = |name: &str, interpreter: &Path| {
        let path = lab.file(name);
        std::fs::write(&path, format!("#!{} x\n", interpreter.display())).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    };
    let first = script("script", &lab.file("absolute"));
    let second = script("nested", &first);
    let loader = "/lib64/ld-linux-x86-64.so.2";
    let at = |name: &str| lab.file(name).display().to_string();
    let own = program.display().to_string();
    let cases: &[&[&str]] = &[
        &[&own],
        &[&at("absolute")],
        &[&at("linked/relative")],
        &["./real/program"],
        &["linked/../a//../real/./program"],
        &["env", "-C", "a", "../absolute"],
        &["env", "-C", "/", &own],
        &["sh", "-c", "PATH=linked; export PATH; program"],
        &[&own, &own],
        &[first.to_str().unwrap()],
        &[second.to_str().unwrap(), "y"],
        &[&own, "by-descriptor", &own],
        &[&own, "by-descriptor", "/proc/self/exe"],
        &["sh", "-c", "exec 7<real/program; exec /proc/self/fd/7"],
        &["sh", "-c", "exec 7<real/program; exec /dev/fd/7"],
        &[loader, &own],
        &["sh", "-c", "cd a; rmdir ../a; exec ../real/program"],
        &["sh", "-c", "cp real/program copy; exec ./copy"],
    ];
    for case in cases {
        let _ = std::fs::create_dir(lab.file("a"));
        let (outcome, session) = traced(&lab, case[0], &case[1..]);
        let told = session.all(|_, record| match record {
            Record::Start(start) if start.how.value == "exec" => {
                let program = start.objects.iter().next().unwrap();
                Some((start.exe.value.to_owned(), program.device, program.inode))
            }
            _ => None,
        });
        let Some((exe, device, inode)) = told.last().cloned() else {
            panic!("{case:?}: {outcome:?}")
        };
        // The loader run by hand maps the program as one more object, whose path the link map has.
        if case[0] == loader {
            let loader = std::fs::canonicalize(loader).unwrap();
            assert_eq!(exe, loader.to_str().unwrap(), "{case:?}");
            continue;
        }
        assert_eq!(exe, outcome.stdout.trim_end(), "{case:?}: {outcome:?}");
        use std::os::unix::fs::MetadataExt;
        let file = std::fs::metadata(&exe).unwrap();
        assert_eq!((device, inode), (file.dev(), file.ino()), "{case:?}");
    }
}

/// Namespaces are told where they may differ from the launcher's, and they are the process's own.
#[test]
fn a_start_in_other_namespaces_tells_which() {
    let lab = Lab::new();
    let namespaces = |program: &str, arguments: &[&str]| {
        let (outcome, session) = traced(&lab, program, arguments);
        let told = session.all(|_, record| match record {
            Record::Start(start) if name_of(start.exe) == "readlink" => {
                Some((start.pid_namespace, start.mount_namespace))
            }
            _ => None,
        });
        let numbers: Vec<u64> = outcome
            .stdout
            .lines()
            .filter_map(|line| line.split(['[', ']']).nth(1)?.parse().ok())
            .collect();
        (told, numbers, outcome)
    };
    let own = ["/proc/self/ns/pid", "/proc/self/ns/mnt"];
    let (told, numbers, _) = namespaces("readlink", &own);
    assert_eq!((told.as_slice(), numbers.len()), ([(0, 0)].as_slice(), 2));
    let readlink = "readlink /proc/self/ns/pid /proc/self/ns/mnt; :";
    let cases: &[&[&str]] = &[
        &["--mount", "sh", "-c", readlink],
        &[
            "--mount",
            "--pid",
            "--fork",
            "--mount-proc",
            "sh",
            "-c",
            readlink,
        ],
        &[
            "--mount",
            "--pid",
            "--fork",
            "--mount-proc",
            "sh",
            "-c",
            "sh -c 'sh -c \"readlink /proc/self/ns/pid /proc/self/ns/mnt; :\"; :'; :",
        ],
    ];
    for case in cases {
        let (told, inside, outcome) = namespaces("unshare", case);
        if !outcome.status.success() {
            return skip(
                "a_start_in_other_namespaces_tells_which",
                &format!("unshare does not work here: {}", outcome.stderr),
            );
        }
        assert_eq!(told, [(inside[0], inside[1])], "{case:?}");
        assert_ne!(inside[1], numbers[1], "{case:?}");
    }
    // A pid namespace alone: its first process tells.
    let (told, _, _) = namespaces(
        "unshare",
        &["--pid", "--fork", "readlink", "/proc/self/ns/mnt"],
    );
    assert!(
        matches!(told.as_slice(), [(pid, mount)] if *pid != 0 && *pid != numbers[0] && *mount == numbers[1]),
        "{told:?}"
    );
}

/// What has no room in the record of the start follows in one of its own, and nothing is told twice.
#[test]
fn objects_that_have_no_room_in_the_start_follow_it() {
    let lab = Lab::new();
    let (_, session) = lab.traced(&|command| {
        *command = lab.command("/bin/true");
        for number in 0..3 {
            command.env(format!("CUDA_{number}"), "x".repeat(2600));
        }
    });
    let told = session.all(|_, record| match record {
        Record::Start(start) => Some(start.objects.iter().map(|o| o.base).collect::<Vec<_>>()),
        Record::ObjectLoaded(loaded) if loaded.how.value == "start" => {
            Some(loaded.objects.iter().map(|o| o.base).collect())
        }
        _ => None,
    });
    let mut bases: Vec<u64> = told.concat();
    assert!(told.len() == 2 && bases.len() >= 3, "{told:?}");
    bases.sort_unstable();
    bases.dedup();
    assert_eq!(bases.len(), told.concat().len(), "{told:?}");
}

/// What a process asked for is settled by itself, not by its children, which number their records anew.
#[test]
fn requests_are_settled_by_who_made_them() {
    let lab = Lab::new();
    let source = r#"
        #include <dlfcn.h>
        #include <sys/wait.h>
        #include <unistd.h>
        int main(void) {
            void *math = dlopen("libm.so.6", RTLD_NOW);
            if (!vfork()) { access("/nonexistent/cuda.h", R_OK); _exit(0); }
            if (!fork()) { dlopen("libm.so.6", RTLD_NOW); access("/nonexistent/cuda.h", R_OK); _exit(0); }
            wait(0); wait(0);
            return dlsym(math, "cos") == 0;
        }"#;
    let program = lab.cc("asks", source, &["-ldl"]);
    let (outcome, session) = traced(&lab, program.to_str().unwrap(), &[]);
    assert!(outcome.status.success(), "{outcome:?}");
    let requests = session.all(|header, record| match record {
        Record::DlRequest(_) => Some((header.pid, header.sequence)),
        _ => None,
    });
    let mut settled = session.all(|header, record| match record {
        Record::DlSettled(settled) => Some((
            (header.pid, settled.request as u32),
            settled.by.value.to_owned(),
        )),
        _ => None,
    });
    settled.sort_by_key(|(request, _)| requests.iter().position(|known| known == request));
    let (who, by): (Vec<_>, Vec<_>) = settled.into_iter().unzip();
    assert_eq!(who, requests);
    assert_eq!(by, ["handle", "next"]);
}

/// A signal handler may jump out of the shim's work: what comes after it is recorded nevertheless.
#[test]
fn work_that_a_signal_handler_has_left_does_not_silence_the_thread() {
    let lab = Lab::new();
    let program = lab.cc("jump_out", fixture!("jump_out.c"), &["-ldl"]);
    for _ in 0..3 {
        let (outcome, session) = traced(&lab, program.to_str().unwrap(), &[]);
        assert_eq!(outcome.stdout, "done\n");
        let loads = session.all(|_, record| match record {
            Record::DlRequest(request) => Some(request.name.value.to_owned()),
            Record::ObjectLoaded(loaded) if loaded.how.value != "start" => loaded
                .objects
                .iter()
                .next()
                .map(|object| object.path.rsplit('/').next().unwrap().to_owned()),
            _ => None,
        });
        assert_eq!(loads, ["libnope-last.so", "libm.so.6", "libm.so.6"]);
    }
}

/// The clock is read in two ways, which agree.
#[test]
fn the_records_of_a_thread_go_on_in_time() {
    let lab = Lab::new();
    let source = "#include <dlfcn.h>\nint main(void) { for (int i = 0; i < 40; i++) { dlopen(\"libnope.so\", RTLD_NOW); dlerror(); } return 0; }";
    let program = lab.cc("loads", source, &["-ldl"]);
    let (_, session) = traced(&lab, program.to_str().unwrap(), &[]);
    let times = session.all(|header, _| Some(header.time));
    assert!(times.len() > 80 && times.is_sorted(), "{times:?}");
}

#[test]
fn a_start_tells_who_and_where_and_an_end_its_code() {
    let lab = Lab::new();
    let source = "#include <stdlib.h>\n#include <sys/wait.h>\n#include <unistd.h>\nint main(int c, char **v) { if (c > 1) _exit(9); if (!fork()) exit(3); wait(0); return 300; }";
    let program = lab.cc("ends", source, &[]);
    let (_, session) = traced(&lab, program.to_str().unwrap(), &[]);
    let starts = session.all(|header, record| match record {
        Record::Start(start) => Some((
            start.how.value.to_owned(),
            name_of(start.exe).to_owned(),
            start.ppid,
            header.pid,
        )),
        _ => None,
    });
    assert_eq!(starts.len(), 2);
    assert_eq!(
        (starts[0].0.as_str(), starts[0].1.as_str()),
        ("exec", "ends")
    );
    assert_eq!(
        (starts[1].0.as_str(), starts[1].2),
        ("fork", u64::from(starts[0].3))
    );
    let mut ends = session.all(|_, record| match record {
        Record::Exit(exit) => exit.code,
        _ => None,
    });
    ends.sort_unstable();
    assert_eq!(ends, [3, 300]);
    let loaded = session.all(|_, record| match record {
        Record::Start(start) if start.how.value == "exec" => Some(
            start
                .objects
                .iter()
                .map(|object| (object.path.to_owned(), object.device, object.inode))
                .collect::<Vec<_>>(),
        ),
        _ => None,
    });
    let file = std::fs::metadata(&program).unwrap();
    use std::os::unix::fs::MetadataExt;
    assert_eq!(loaded[0][0], (String::new(), file.dev(), file.ino()));
    assert!(
        loaded[0]
            .iter()
            .any(|(path, ..)| path.ends_with("libc.so.6")),
        "{loaded:?}"
    );
    let (_, session) = traced(&lab, program.to_str().unwrap(), &["x"]);
    assert_eq!(
        session.all(|_, record| match record {
            Record::Exit(exit) => Some((exit.code, exit.how.value.to_owned())),
            _ => None,
        }),
        [(Some(9), "_exit".to_owned())]
    );
}

#[test]
fn beyond_the_rate_guard_events_are_counted() {
    let lab = Lab::new();
    let source = fixture!("cudart.c").replace("VERSION", "12040");
    lab.versioned(
        "libcudart.so.12",
        "libcudart.so.12",
        "libcudart.so.12",
        &source,
    );
    let main = "int cudaGetDeviceCount(int *); int main(void) { int v; for (int i = 0; i < 5000; i++) cudaGetDeviceCount(&v); return 0; }";
    let program = lab.cc("often", main, &["libcudart.so.12", "-Wl,-rpath,$ORIGIN"]);
    let (_, session) = traced(&lab, program.to_str().unwrap(), &[]);
    assert_eq!(
        session
            .all(|_, record| matches!(record, Record::Call(_)).then_some(()))
            .len(),
        1000
    );
    let counts = session.all(|_, record| match record {
        Record::Count(count) => Some((count.what.value.to_owned(), count.total, count.not_logged)),
        _ => None,
    });
    assert_eq!(counts, [("cudaGetDeviceCount".to_owned(), 5000, 4000)]);
}

#[test]
fn many_writers_do_not_damage_one_file() {
    if !has("xargs") {
        return skip(
            "many_writers_do_not_damage_one_file",
            "xargs is not installed",
        );
    }
    let lab = Lab::new();
    let (_, session) = traced(
        &lab,
        "sh",
        &[
            "-c",
            "seq 200 | xargs -P 8 -n 1 sh -c '/bin/true; exit 0' | cat",
        ],
    );
    let mut sequences = std::collections::HashMap::<(u32, u64), Vec<u32>>::new();
    let mut starts = std::collections::HashMap::<u32, u64>::new();
    for (header, record) in session.records() {
        if matches!(record, Record::Start(_)) {
            *starts.entry(header.pid).or_default() += 1;
        }
        let life = starts.get(&header.pid).copied().unwrap_or(0);
        if header.sequence < 1 << 31 {
            sequences
                .entry((header.pid, life))
                .or_default()
                .push(header.sequence);
        }
    }
    assert!(starts.len() > 200);
    for ((pid, life), found) in sequences {
        let expected: Vec<u32> = (1..=found.len() as u32).collect();
        assert!(life == 0 || found == expected, "{pid}: {found:?}");
    }
}

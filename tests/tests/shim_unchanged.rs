//! The shim changes nothing: small programs of the kind that a naive shim breaks do the same with and without it.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use jittrace_tests::{
    has, is_root,
    lab::Lab,
    python,
    shim::{SHIM, Session, name_of},
    skip,
};
use jittrace_wire::record::{FLAG_CUT, Record};
use std::process::Command;

macro_rules! fixture {
    ($name:literal) => {
        include_str!(concat!("../fixtures/shim/", $name))
    };
}

fn runs(session: &Session) -> usize {
    session
        .all(|_, record| matches!(record, Record::Start(_)).then_some(()))
        .len()
}

#[test]
fn a_runpath_of_the_caller_still_counts() {
    let lab = Lab::new();
    lab.cc("lib/nv/libbar.so", "int bar;", &["-shared", "-fPIC"]);
    lab.cc(
        "lib/libfoo.so",
        fixture!("runpath_foo.c"),
        &[
            "-shared",
            "-fPIC",
            "-Wl,-rpath,$ORIGIN/nv,--enable-new-dtags",
            "-ldl",
        ],
    );
    let main = lab.cc(
        "main",
        fixture!("runpath_main.c"),
        &["-Wl,-rpath,$ORIGIN/lib,--enable-new-dtags", "-ldl"],
    );
    let (outcome, session) = lab.same("RUNPATH", &|command| *command = lab.command(&main));
    assert_eq!(outcome.stdout, "found libbar\n");
    assert!(runs(&session) == 1, "the shim was not there");
}

#[test]
fn rtld_next_starts_at_its_caller() {
    let lab = Lab::new();
    lab.cc(
        "libb.so",
        "const char *ident(void) { return \"B\"; }",
        &["-shared", "-fPIC"],
    );
    lab.cc(
        "liba.so",
        fixture!("next_a.c"),
        &["-shared", "-fPIC", "-ldl"],
    );
    let main = lab.cc(
        "main",
        fixture!("next_main.c"),
        &[
            "-L.",
            "-Wl,--no-as-needed",
            "-la",
            "-lb",
            "-Wl,-rpath,$ORIGIN",
        ],
    );
    let (outcome, _) = lab.same("RTLD_NEXT", &|command| *command = lab.command(&main));
    assert_eq!(outcome.stdout, "A B\n");
}

/// Programs that need nothing but themselves.
#[test]
fn programs_do_the_same() {
    let cases: &[(&str, &str, &[&str])] = &[
        ("vfork", fixture!("vfork.c"), &[]),
        ("fork_storm", fixture!("fork_storm.c"), &[]),
        ("spawn", fixture!("spawn.c"), &[]),
        ("execle", fixture!("execle.c"), &[]),
        ("close_fds", fixture!("close_fds.c"), &["-ldl"]),
        ("errors", fixture!("errors.c"), &["-ldl"]),
        ("wrong_pointers", fixture!("wrong_pointers.c"), &[]),
        ("cancel", fixture!("cancel.c"), &["-lpthread"]),
        ("fsize", fixture!("fsize.c"), &["-ldl"]),
        ("many_arguments", fixture!("many_arguments.c"), &[]),
        (
            "static",
            "int main(void) { puts(\"static\"); return 5; }",
            &["-static"],
        ),
        (
            "static-pie",
            "int main(void) { puts(\"static\"); return 6; }",
            &["-static-pie"],
        ),
        (
            "pg",
            "int main(void) { puts(\"profiled\"); return 0; }",
            &["-pg"],
        ),
        ("exit1", "int main(void) { return 1; }", &[]),
        ("exit300", "int main(void) { _exit(300); }", &[]),
        ("segv", "int main(void) { *(volatile int *)0 = 1; }", &[]),
        (
            "kill",
            "#include <signal.h>\nint main(void) { raise(9); }",
            &[],
        ),
        ("abort", "int main(void) { abort(); }", &[]),
        ("quick", "int main(void) { quick_exit(9); }", &[]),
    ];
    let lab = Lab::new();
    for (name, source, flags) in cases {
        let program = lab.cc(
            name,
            &format!("#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\n{source}"),
            flags,
        );
        let (outcome, session) = lab.same(name, &|command| *command = lab.command(&program));
        assert!(
            !outcome.stdout.contains("jittrace") && !outcome.stderr.contains("jittrace"),
            "{name}: {outcome:?}"
        );
        assert_eq!(runs(&session) == 0, name.starts_with("static"), "{name}");
    }
}

#[test]
fn threads_may_load_and_fork() {
    let lab = Lab::new();
    for number in [1, 2] {
        lab.cc(&format!("lib{number}.so"), "int x;", &["-shared", "-fPIC"]);
    }
    let program = lab.cc("threads", fixture!("threads.c"), &["-ldl", "-lpthread"]);
    let (outcome, session) = lab.same("threads", &|command| *command = lab.command(&program));
    assert_eq!(outcome.stdout, "failed 0\n");
    assert!(session.records().len() > 3000);
}

#[test]
fn no_cuda_name_becomes_present() {
    let lab = Lab::new();
    lab.cc(
        "broken.so",
        "int cuInit(unsigned); int f(void) { return cuInit(0); }",
        &["-shared", "-fPIC"],
    );
    lab.versioned(
        "libcudart.so.12",
        "libcudart.so.12",
        "libcudart.so.12",
        "void other(void) {}",
    );
    // Linked against a runtime that has the function, run with one that lacks it and is found instead.
    std::fs::create_dir(lab.file("full")).unwrap();
    lab.versioned(
        "full/libnvJitLink.so.12",
        "libnvJitLink.so.12",
        "libnvJitLink.so.12",
        "int __nvJitLinkCreate_12_9(void) { return 0; }",
    );
    lab.cc(
        "broken_versioned.so",
        "int __nvJitLinkCreate_12_9(void); int g(void) { return __nvJitLinkCreate_12_9(); }",
        &[
            "-shared",
            "-fPIC",
            "full/libnvJitLink.so.12",
            "-Wl,-rpath,$ORIGIN",
        ],
    );
    lab.versioned(
        "libnvJitLink.so.12",
        "libnvJitLink.so.12",
        "libnvJitLink.so.12",
        "int __nvJitLinkCreate_12_8(void) { return 0; }",
    );
    let program = lab.cc("weak", fixture!("weak.c"), &["-ldl"]);
    let (outcome, _) = lab.same("weak", &|command| *command = lab.command(&program));
    assert!(
        outcome.stdout.starts_with("0 0 0 0\n0 0 0\n0\n0\n"),
        "{}",
        outcome.stdout
    );
    assert!(
        outcome.stdout.contains("undefined symbol: cuInit"),
        "{}",
        outcome.stdout
    );
    assert!(
        outcome
            .stdout
            .contains("undefined symbol: __nvJitLinkCreate_12_9"),
        "{}",
        outcome.stdout
    );
}

/// Two runtimes of different majors, and two files of one SONAME, in one process.
fn majors() -> (Lab, std::path::PathBuf) {
    let lab = Lab::new();
    for (directory, major, version) in [("", 12, 12040), ("other/", 12, 12080), ("", 13, 13000)] {
        let soname = format!("libcudart.so.{major}");
        let source = fixture!("cudart.c").replace("VERSION", &version.to_string());
        lab.versioned(&format!("{directory}{soname}"), &soname, &soname, &source);
    }
    for major in [12, 13] {
        let flags = [
            "-shared",
            "-fPIC",
            &format!("libcudart.so.{major}"),
            "-Wl,-rpath,$ORIGIN",
        ];
        lab.cc(&format!("ext{major}.so"), fixture!("ext.c"), &flags);
    }
    let program = lab.cc("majors", fixture!("majors.c"), &["-ldl"]);
    (lab, program)
}

#[test]
fn every_extension_keeps_its_runtime() {
    let (lab, program) = majors();
    let (outcome, session) = lab.same("majors", &|command| *command = lab.command(&program));
    assert!(
        outcome.stdout.contains("./ext13.so 13000") && outcome.stdout.contains("./ext12.so 12040"),
        "{}",
        outcome.stdout
    );
    let calls = session.all(|_, record| match record {
        Record::Call(call) => Some((
            name_of(call.object),
            call.value,
            name_of(call.caller),
            call.thunk != 0,
        )),
        _ => None,
    });
    assert_eq!(
        calls,
        [
            ("libcudart.so.12", Some(12040), "majors", true),
            ("libcudart.so.13", Some(13000), "ext13.so", false),
            ("libcudart.so.12", Some(12040), "ext12.so", false),
            ("libcudart.so.13", Some(13000), "ext13.so", false),
            ("libcudart.so.13", Some(13000), "majors", true),
            ("libcudart.so.12", Some(12080), "majors", true),
            ("libcudart.so.12", Some(12040), "ext12.so", false),
        ]
        .map(|(object, value, caller, thunk)| (
            object,
            value,
            if caller == "majors" { "" } else { caller },
            thunk
        ))
    );
}

#[test]
fn a_global_second_copy_of_a_runtime_is_called_when_the_loader_would() {
    let lab = Lab::new();
    for (directory, version) in [("a/", 12040), ("b/", 12080)] {
        let source = fixture!("cudart.c").replace("VERSION", &version.to_string());
        lab.versioned(
            &format!("{directory}libcudart.so.12"),
            "libcudart.so.12",
            "libcudart.so.12",
            &source,
        );
    }
    lab.cc(
        "ext.so",
        fixture!("ext.c"),
        &["-shared", "-fPIC", "a/libcudart.so.12"],
    );
    let source = r#"
        #include <dlfcn.h>
        #include <stdio.h>
        int main(void) {
            dlopen("a/libcudart.so.12", RTLD_NOW | RTLD_LOCAL);
            dlopen("b/libcudart.so.12", RTLD_NOW | RTLD_GLOBAL);
            int (*version)(void) = dlsym(dlopen("./ext.so", RTLD_NOW), "version");
            printf("%d\n", version());
        }"#;
    let program = lab.cc("global", source, &["-ldl"]);
    let (outcome, _) = lab.same("global copy", &|command| *command = lab.command(&program));
    assert_eq!(outcome.stdout, "12080\n");
}

/// Wheels carry copies of the runtime with a name of their own and the symbol versions of the original.
#[test]
fn every_extension_keeps_its_copy_of_a_runtime() {
    let lab = Lab::new();
    for (name, version) in [
        ("libcudart-faf08d9a.so.12", 12040),
        ("libcudart.so.12", 12080),
    ] {
        let source = fixture!("cudart.c").replace("VERSION", &version.to_string());
        lab.versioned(name, name, "libcudart.so.12", &source);
        // What is between an extension and its runtime.
        let between = format!("lib{version}.so");
        let soname = format!("-Wl,-soname,{between}");
        let source = "#include <stdio.h>\nint between(void) { return 0; }";
        let flags = [
            "-shared",
            "-fPIC",
            &soname,
            "-Wl,--no-as-needed",
            name,
            "-Wl,-rpath,$ORIGIN",
        ];
        lab.cc(&between, source, &flags);
        let (extension, far) = (format!("{version}.so"), format!("far{version}.so"));
        let flags = ["-shared", "-fPIC", name, "-Wl,-rpath,$ORIGIN"];
        lab.cc(&extension, fixture!("ext.c"), &flags);
        let flags = [
            "-shared",
            "-fPIC",
            "-Wl,--no-as-needed",
            &between,
            name,
            "-Wl,-rpath,$ORIGIN",
        ];
        lab.cc(&far, fixture!("ext.c"), &flags);
    }
    let source = r#"
        #include <dlfcn.h>
        #include <stdio.h>
        int main(void) {
            const char *paths[] = {"./12040.so", "./12080.so", "./far12080.so", "./far12040.so", "./12040.so"};
            for (int i = 0; i < 5; i++) {
                int (*version)(void) = dlsym(dlopen(paths[i], RTLD_NOW | RTLD_LOCAL), "version");
                printf("%s %d\n", paths[i], version());
            }
        }"#;
    let program = lab.cc("copies", source, &["-ldl"]);
    let (outcome, session) = lab.same("copies", &|command| *command = lab.command(&program));
    assert_eq!(
        outcome.stdout,
        "./12040.so 12040\n./12080.so 12080\n./far12080.so 12080\n./far12040.so 12040\n./12040.so 12040\n"
    );
    let calls = session.all(|_, record| match record {
        Record::Call(call) => call.value,
        _ => None,
    });
    assert_eq!(calls, [12040, 12080, 12080, 12040, 12040]);
}

/// A library that is mapped where a global one was is not global for that.
#[test]
fn a_global_runtime_that_is_closed_is_called_no_more() {
    let lab = Lab::new();
    let versions = [
        ("a/libcudart.so.12", "libcudart.so.12", 12040),
        ("b/libcudart_b.so", "libcudart_b.so", 12080),
        ("g/libcudart_g.so", "libcudart_g.so", 12090),
    ];
    for (file, soname, version) in versions {
        let source = fixture!("cudart.c").replace("VERSION", &version.to_string());
        lab.versioned(file, soname, "libcudart.so.12", &source);
    }
    let flags = [
        "-shared",
        "-fPIC",
        "a/libcudart.so.12",
        "-Wl,-rpath,$ORIGIN/a",
    ];
    lab.cc("ext.so", fixture!("ext.c"), &flags);
    let source = r#"
        #include <dlfcn.h>
        #include <link.h>
        #include <stdio.h>
        int main(void) {
            struct link_map *map = dlopen("g/libcudart_g.so", RTLD_NOW | RTLD_GLOBAL);
            ElfW(Addr) before = map->l_addr;
            dlclose(map);
            map = dlopen("b/libcudart_b.so", RTLD_NOW | RTLD_LOCAL);
            int (*version)(void) = dlsym(dlopen("./ext.so", RTLD_NOW), "version");
            printf("%d, at the same place: %d\n", version(), map->l_addr == before);
        }"#;
    let program = lab.cc("closed", source, &["-ldl"]);
    let (outcome, _) = lab.same("closed", &|command| *command = lab.command(&program));
    assert_eq!(outcome.stdout, "12040, at the same place: 1\n");
}

#[test]
fn a_program_linked_to_the_runtime_calls_it() {
    let lab = Lab::new();
    let source = fixture!("cudart.c").replace("VERSION", "12040");
    lab.versioned(
        "libcudart.so.12",
        "libcudart.so.12",
        "libcudart.so.12",
        &source,
    );
    let main = "int version(void); int printf(const char *, ...); int main(void) { printf(\"%d\\n\", version()); }";
    for (name, flags) in [("now", "-Wl,-z,now"), ("lazy", "-Wl,-z,lazy")] {
        let program = lab.cc(
            name,
            &format!("{}\n{main}", fixture!("ext.c")),
            &["libcudart.so.12", "-Wl,-rpath,$ORIGIN", flags],
        );
        let (outcome, session) = lab.same(name, &|command| *command = lab.command(&program));
        assert_eq!(outcome.stdout, "12040\n");
        assert_eq!(
            session.all(|_, record| match record {
                Record::Call(call) => call.value,
                _ => None,
            }),
            [12040]
        );
    }
}

#[test]
fn a_library_with_initial_exec_tls_may_be_preloaded_too() {
    let lab = Lab::new();
    let tls = lab.cc("tls.so", fixture!("tls.c"), &["-shared", "-fPIC"]);
    let (outcome, session) = lab.same("tls", &|command| {
        *command = lab.command("/bin/true");
        command.env("LD_PRELOAD", &tls);
    });
    assert_eq!(outcome.stderr, "tls 7\n");
    assert_eq!(runs(&session), 1);
}

/// Sanitizers, libfaketime and their like interpose libc's functions and look the real ones up with `dlsym`: the shim
/// must not call what is not there yet.
#[test]
fn a_program_that_interposes_libc_finds_the_real_functions() {
    let lab = Lab::new();
    let source = r#"
        #include <dlfcn.h>
        #include <link.h>
        #include <stdio.h>
        #include <string.h>
        #include <time.h>
        #define REAL(name) static __typeof__(name) *real_##name; if (!real_##name) real_##name = dlsym(RTLD_NEXT, #name)
        int clock_gettime(clockid_t id, struct timespec *t) { REAL(clock_gettime); return real_clock_gettime(id, t); }
        int dl_iterate_phdr(int (*f)(struct dl_phdr_info *, size_t, void *), void *data) { REAL(dl_iterate_phdr); return real_dl_iterate_phdr(f, data); }
        size_t strlen(const char *s) { REAL(strlen); return real_strlen(s); }
        void *memcpy(void *to, const void *from, size_t n) { REAL(memcpy); return real_memcpy(to, from, n); }
        int open(const char *path, int flags, int mode) { REAL(open); return real_open(path, flags, mode); }
        ssize_t write(int fd, const void *text, size_t n) { REAL(write); return real_write(fd, text, n); }"#;
    let wrapper = lab.cc(
        "wrapper.so",
        source,
        &["-shared", "-fPIC", "-fno-builtin", "-ldl"],
    );
    for order in ["after", "linked"] {
        let flags: &[&str] = if order == "linked" {
            &["./wrapper.so"]
        } else {
            &[]
        };
        let program = lab.cc(order, fixture!("errors.c"), &[flags, &["-ldl"]].concat());
        let (outcome, session) = lab.same(order, &|command| {
            *command = lab.command(&program);
            if order == "after" {
                command.env("LD_PRELOAD", &wrapper);
            }
        });
        assert!(outcome.status.success(), "{outcome:?}");
        assert_eq!(runs(&session), 1);
    }
}

#[test]
fn the_address_sanitizer_comes_first() {
    let lab = Lab::new();
    let probe = Command::new("cc")
        .args(["-print-file-name=libasan.so"])
        .output()
        .unwrap();
    let runtime = String::from_utf8_lossy(&probe.stdout).trim().to_owned();
    if !runtime.contains('/') {
        return skip(
            "the_address_sanitizer_comes_first",
            "the compiler has no libasan",
        );
    }
    let source = "#include <stdio.h>\nint main(void) { puts(\"sanitized\"); return 0; }";
    lab.cc("asan", source, &["-fsanitize=address"]);
    lab.cc("plain", source, &[]);
    for (command, reasons) in [
        ("./asan; echo $?".to_owned(), &["sanitizer"][..]),
        (format!("LD_PRELOAD={runtime} ./plain; echo $?"), &[]),
    ] {
        let (outcome, session) = lab.same(&command, &|shell| {
            *shell = lab.command("sh");
            shell
                .args(["-c", &command])
                .env("ASAN_OPTIONS", "detect_leaks=0");
        });
        assert!(outcome.stdout.starts_with("sanitized\n"), "{outcome:?}");
        let told = session.all(|_, record| match record {
            Record::NotFollowed(not) => Some(not.reason.value.to_owned()),
            _ => None,
        });
        assert_eq!(told, *reasons, "{command}");
    }
}

#[test]
fn a_program_with_the_thread_sanitizer_runs() {
    let lab = Lab::new();
    let probe = Command::new("cc")
        .args(["-print-file-name=libtsan.so"])
        .output()
        .unwrap();
    if !String::from_utf8_lossy(&probe.stdout).contains('/') {
        return skip(
            "a_program_with_the_thread_sanitizer_runs",
            "the compiler has no libtsan",
        );
    }
    let program = lab.cc(
        "tsan",
        "#include <stdio.h>\nint main(void) { puts(\"sanitized\"); }",
        &["-fsanitize=thread"],
    );
    let (outcome, _) = lab.same("tsan", &|command| *command = lab.command(&program));
    if outcome.stdout != "sanitized\n" {
        skip(
            "a_program_with_the_thread_sanitizer_runs",
            "the thread sanitizer does not run here at all",
        );
    }
}

#[test]
fn hooks_work_before_the_shim_is_initialised() {
    let lab = Lab::new();
    // Libraries later in the list are initialised first.
    let source = r#"
        #include <dlfcn.h>
        #include <stdio.h>
        #include <unistd.h>
        __attribute__((constructor)) static void early(void) {
            fprintf(stderr, "%d %d\n", dlopen("libm.so.6", RTLD_NOW) != 0, fork() ? 1 : (_exit(0), 0));
        }"#;
    let early = lab.cc("early.so", source, &["-shared", "-fPIC", "-ldl"]);
    let (outcome, session) = lab.same("early", &|command| {
        *command = lab.command("/bin/true");
        command.env("LD_PRELOAD", &early);
    });
    assert_eq!(outcome.stderr, "1 1\n");
    let kinds = session.all(|_, record| match record {
        Record::DlRequest(_) => Some("request"),
        Record::Start(start) if start.how.value == "exec" => Some("start"),
        _ => None,
    });
    assert_eq!(kinds, ["request", "start"]);
    // A vfork child that comes first does not keep the memory that it shares.
    let source = r#"
        #include <unistd.h>
        __attribute__((constructor)) static void early(void) {
            if (!vfork()) { access("/nonexistent/cuda.h", R_OK); _exit(0); }
        }"#;
    let early = lab.cc("vforks.so", source, &["-shared", "-fPIC"]);
    let (_, session) = lab.same("vfork before", &|command| {
        *command = lab.command("/bin/true");
        command.env("LD_PRELOAD", &early);
    });
    let borrowed = session.all(|header, record| match record {
        Record::Start(_) | Record::Exit(_) => Some((header.pid, header.sequence >> 31)),
        _ => None,
    });
    let [child, start, end] = borrowed.as_slice() else {
        panic!("{borrowed:?}")
    };
    assert!(
        start.0 != child.0 && end == start && start.1 == 0,
        "{borrowed:?}"
    );
}

#[test]
fn a_setuid_program_runs_as_it_does() {
    if !is_root() {
        return skip(
            "a_setuid_program_runs_as_it_does",
            "a setuid program of another user needs root",
        );
    }
    let lab = Lab::new();
    let program = lab.cc("secure", fixture!("secure.c"), &[]);
    let prepare = format!("chown 65534 {0} && chmod 4755 {0}", program.display());
    assert!(
        Command::new("sh")
            .args(["-c", &prepare])
            .status()
            .unwrap()
            .success()
    );
    std::fs::set_permissions(
        lab.path(),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    let (outcome, session) = lab.same("setuid", &|command| {
        *command = lab.command("sh");
        command.args(["-c", "./secure; echo $?"]);
    });
    assert!(outcome.stdout.starts_with("secure 1 shim "), "{outcome:?}");
    let reasons = session.all(|_, record| match record {
        Record::NotFollowed(not) => Some(not.reason.value.to_owned()),
        _ => None,
    });
    assert_eq!(reasons, ["setuid"]);
}

#[test]
fn python_starts_programs_as_before() {
    let lab = Lab::new();
    let script = r#"
import multiprocessing, os, subprocess
def work(x): return x * x
def main():
    print(subprocess.run(["echo", "hi"], capture_output=True, text=True))
    print(subprocess.run("echo shell; exit 3", shell=True, capture_output=True, text=True))
    print(subprocess.run(["/bin/sh", "-c", "echo $A"], env={"A": "only"}, capture_output=True, text=True))
    print(subprocess.run(["env"], env={}, capture_output=True, text=True))
    try: subprocess.run(["no-such-program"])
    except FileNotFoundError as error: print(error)
    print(os.system("exit 4"), os.popen("echo popen").read())
    print(subprocess.run(["true"], close_fds=False, preexec_fn=lambda: os.write(2, b"in the child\n")))
    pid = os.fork()
    if pid == 0: os._exit(9)
    print(os.waitpid(pid, 0)[1])
    for method in "fork", "spawn", "forkserver":
        with multiprocessing.get_context(method).Pool(2) as pool: print(method, pool.map(work, range(5)))
if __name__ == "__main__": main()
"#;
    std::fs::write(lab.file("starts.py"), script).unwrap();
    let (_, session) = lab.same("python", &|command| {
        *command = lab.command(python());
        command.arg("starts.py");
    });
    assert!(runs(&session) > 10);
}

#[test]
fn ten_thousand_arguments_are_cut_with_a_mark() {
    let lab = Lab::new();
    let program = lab.cc("many", fixture!("many_arguments.c"), &[]);
    let (_, session) = lab.same("many arguments", &|command| {
        *command = lab.command(&program)
    });
    let starts = session.all(|header, record| match record {
        Record::Start(start) => Some((
            start.argc,
            header.flags & FLAG_CUT != 0,
            start.argv.iter().count() > 100,
            !start.env.is_empty(),
        )),
        _ => None,
    });
    assert_eq!(starts[1], (10_001, true, true, true));
}

#[test]
fn without_room_for_the_session_file_the_program_runs_on() {
    if !is_root() {
        return skip(
            "without_room_for_the_session_file_the_program_runs_on",
            "a full file system needs root to mount one",
        );
    }
    let lab = Lab::new();
    let disk = lab.file("disk");
    std::fs::create_dir(&disk).unwrap();
    if !Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=8k", "tmpfs"])
        .arg(&disk)
        .status()
        .is_ok_and(|status| status.success())
    {
        return skip(
            "without_room_for_the_session_file_the_program_runs_on",
            "no tmpfs may be mounted here",
        );
    }
    let run = |session: &str| {
        lab.command("timeout")
            .args([
                "60",
                "python3",
                "-c",
                "import ctypes, json, subprocess; print(subprocess.run(['echo', 'x']).returncode)",
            ])
            .env("LD_PRELOAD", SHIM)
            .env(jittrace_wire::SESSION_VARIABLE, session)
            .output()
            .unwrap()
    };
    std::fs::write(disk.join("session"), b"").unwrap();
    let full = run(disk.join("session").to_str().unwrap());
    let missing = run("/nonexistent/session");
    let _ = Command::new("umount").arg(&disk).status();
    for output in [full, missing] {
        assert!(
            output.status.success() && output.stderr.is_empty(),
            "{output:?}"
        );
        assert_eq!(output.stdout, b"x\n0\n");
    }
}

/// System calls of a program, without those of the loader before the program's own first instruction.
fn system_calls(lab: &Lab, variables: &[(&str, &str)], program: &[&str]) -> Vec<String> {
    let log = lab.file("strace");
    let mut command = lab.command("strace");
    command.args(["-f", "-o"]).arg(&log);
    for (name, value) in variables {
        command.arg("-E").arg(format!("{name}={value}"));
    }
    assert!(command.args(program).output().unwrap().status.success());
    let text = std::fs::read_to_string(&log).unwrap();
    text.lines()
        .filter_map(|line| {
            line.split_whitespace()
                .nth(1)?
                .split('(')
                .next()
                .map(str::to_owned)
        })
        .collect()
}

#[test]
fn without_a_session_there_is_not_one_system_call_more() {
    if !has("strace") {
        return skip(
            "without_a_session_there_is_not_one_system_call_more",
            "strace is not installed",
        );
    }
    let lab = Lab::new();
    // The loader's own work for a preloaded library is not ours: compare what comes after the start of the program.
    let script = "import ctypes, subprocess, os; ctypes.CDLL('libm.so.6'); subprocess.run(['/bin/true']); os.stat('/tmp')";
    let python = python();
    let main = [python.as_str(), "-S", "-E", "-c", script];
    let after_start = |calls: Vec<String>| {
        let start = calls.iter().position(|call| call == "munmap").unwrap();
        let mut counts = std::collections::BTreeMap::<String, usize>::new();
        for call in &calls[start..] {
            *counts.entry(call.clone()).or_default() += 1;
        }
        // Memory is asked for by address space layout, which differs from run to run.
        counts.retain(|name, _| {
            !matches!(
                name.as_str(),
                "brk"
                    | "mmap"
                    | "munmap"
                    | "mprotect"
                    | "rt_sigreturn"
                    | "---"
                    | "futex"
                    | "+++"
                    | "<..."
            )
        });
        counts
    };
    let empty = lab.cc("empty.so", "int empty;", &["-shared", "-fPIC"]);
    let with_empty = after_start(system_calls(
        &lab,
        &[("LD_PRELOAD", empty.to_str().unwrap())],
        &main,
    ));
    let with_shim = after_start(system_calls(&lab, &[("LD_PRELOAD", SHIM)], &main));
    assert_eq!(with_shim, with_empty);
}

#[test]
fn a_traced_true_makes_few_system_calls_more() {
    if !has("strace") {
        return skip(
            "a_traced_true_makes_few_system_calls_more",
            "strace is not installed",
        );
    }
    let lab = Lab::new();
    let empty = lab.cc("empty.so", "int empty;", &["-shared", "-fPIC"]);
    let session = lab.session();
    let bare = system_calls(
        &lab,
        &[("LD_PRELOAD", empty.to_str().unwrap())],
        &["/bin/true"],
    );
    let variables = [
        ("LD_PRELOAD", SHIM),
        (jittrace_wire::SESSION_VARIABLE, session.to_str().unwrap()),
    ];
    let traced = system_calls(&lab, &variables, &["/bin/true"]);
    let mut more = std::collections::BTreeMap::<&str, isize>::new();
    for (calls, step) in [(&traced, 1), (&bare, -1)] {
        for call in calls {
            *more.entry(call).or_default() += step;
        }
    }
    // How many mappings a library needs is its linker's business.
    more.retain(|call, count| *count != 0 && !matches!(*call, "mmap" | "mprotect"));
    let expected = [
        // Finding and keeping the session file.
        ("openat", 1),
        ("fcntl", 1),
        ("close", 1),
        ("statx", 1),
        // Where it is and who made it; the links in /bin/true, of which /bin may be one.
        ("getcwd", 1),
        ("getppid", 1),
        ("readlinkat", links_in("/bin/true")),
        // What is loaded: the program, libc, the loader.
        ("newfstatat", 3),
        // Two records: whose they are (at the beginning and the end once more), when, whether they may be written.
        ("getpid", 4),
        ("gettid", 1),
        ("clock_gettime", 2),
        ("fstat", 2),
        ("prlimit64", 2),
        ("write", 2),
        // Signals held back and let through again: at the start, as the program's own initialiser announces it and
        // another definition of that announcement is looked for, at the end.
        ("rt_sigprocmask", 8),
    ];
    assert_eq!(more, expected.into());
}

/// How many names must be looked at to follow all links of an absolute path.
fn links_in(path: &str) -> isize {
    let mut names = 0;
    let mut left: Vec<String> = path.split('/').rev().map(str::to_owned).collect();
    let mut followed = std::path::PathBuf::from("/");
    while let Some(name) = left.pop() {
        if name.is_empty() {
            continue;
        }
        names += 1;
        let next = followed.join(&name);
        match std::fs::read_link(&next) {
            Ok(target) => {
                let target = target.to_str().unwrap();
                if target.starts_with('/') {
                    followed = "/".into();
                }
                left.extend(target.split('/').rev().map(str::to_owned));
            }
            Err(_) => followed = next,
        }
    }
    names
}

#[test]
fn the_shim_runs_on_glibc_2_17_and_exports_nothing_but_hooks() {
    if !has("objdump") {
        return skip(
            "the_shim_runs_on_glibc_2_17_and_exports_nothing_but_hooks",
            "objdump is not installed",
        );
    }
    let objdump = |flag: &str| {
        String::from_utf8(
            Command::new("objdump")
                .args([flag, SHIM])
                .output()
                .unwrap()
                .stdout,
        )
        .unwrap()
    };
    let symbols = objdump("-T");
    for line in symbols.lines() {
        if let Some(version) = line.split("GLIBC_2.").nth(1) {
            let minor: u32 = version
                .split([')', ' ', '.'])
                .next()
                .unwrap()
                .parse()
                .unwrap();
            assert!(minor <= 17, "{line}");
        }
    }
    let defined: Vec<&str> = symbols
        .lines()
        .filter(|line| line.contains(".text"))
        .collect();
    for line in &defined {
        let name = line.split_whitespace().last().unwrap();
        if name.starts_with("cuda")
            || name.starts_with("nvrtc")
            || name.contains("nvJitLink")
            || name.starts_with("nvml")
        {
            assert!(
                line.contains("(lib"),
                "a CUDA name with no hidden version: {line}"
            );
        }
        assert!(
            !name.starts_with("cu") || name.starts_with("cuda"),
            "a driver name: {line}"
        );
        assert!(
            !name.contains("jittrace") && !name.contains("rust"),
            "{line}"
        );
    }
    assert!(defined.len() > 20);
    let needed: Vec<_> = objdump("-p")
        .lines()
        .filter_map(|line| {
            line.trim()
                .strip_prefix("NEEDED")
                .map(|name| name.trim().to_owned())
        })
        .collect();
    assert_eq!(needed, ["libc.so.6"]);
}

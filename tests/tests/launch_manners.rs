//! A launched command must not notice jittrace: status, signals, streams, terminal, job control (design sections 3, 4).

use std::{
    fs,
    io::Write,
    os::unix::{fs::PermissionsExt, process::ExitStatusExt},
    path::Path,
    process::{Command, Output, Stdio},
    time::Duration,
};

use jittrace_tests::{eventually, finish, jittrace};

const PATIENCE: Duration = Duration::from_secs(30);

/// `jittrace -q -o DIR/t.jtrace -- sh -c SCRIPT`
fn traced(directory: &Path, script: &str) -> Command {
    let mut command = Command::new(jittrace());
    command
        .args(["--no-tui", "--quiet", "-o"])
        .arg(directory.join("t.jtrace"))
        .args(["--", "sh", "-c", script]);
    command
}

fn bare(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn status_and_streams_are_the_commands_own() {
    let cases = [
        ("code 0", "echo out; echo err >&2"),
        ("code 1", "echo out; exit 1"),
        ("code 139", "exit 139"),
        ("code 255", "exit 255"),
        ("killed", "kill -9 $$"),
        ("terminated", "kill -15 $$"),
        ("segmentation fault", "kill -11 $$"),
        ("reads standard input", "read line; echo \"got $line\""),
        ("a pipe that closes early", "yes | head -n 2"),
        // The shim's own descriptor is as high as the limit allows, where no program looks.
        (
            "low descriptors",
            "ls /proc/self/fd | awk '$1 < 200' | wc -l",
        ),
        ("ignored signals", "grep SigIgn /proc/self/status"),
        (
            "caught and blocked signals",
            "grep -E 'Sig(Blk|Cgt)' /proc/self/status",
        ),
        (
            "process group and session",
            "test \"$(cut -d' ' -f5 /proc/$$/stat)\" = \"$(cut -d' ' -f5 /proc/$PPID/stat)\"; echo $?",
        ),
        ("limits", "ulimit -a"),
        ("umask and directory", "umask; pwd"),
        ("priority", "cut -d' ' -f19 /proc/$$/stat"),
    ];
    let directory = tempfile::tempdir().unwrap();
    for (what, script) in cases {
        let run = |mut command: Command| {
            let mut child = command
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            child.stdin.take().unwrap().write_all(b"hello\n").ok();
            child.wait_with_output().unwrap()
        };
        let bare = run(bare(script));
        let traced = run(traced(directory.path(), script));
        assert_eq!(traced.status.code(), bare.status.code(), "{what}");
        assert_eq!(traced.status.signal(), bare.status.signal(), "{what}");
        assert_eq!(text(&traced.stdout), text(&bare.stdout), "{what}");
        assert_eq!(text(&traced.stderr), text(&bare.stderr), "{what}");
    }
}

#[test]
fn an_inherited_ignored_sigpipe_stays_ignored() {
    // sh cannot change what was ignored at its start; `trap '' PIPE` in a parent makes it so.
    let directory = tempfile::tempdir().unwrap();
    let inner = format!(
        "trap '' PIPE; {} --no-tui --quiet -o {} -- grep SigIgn /proc/self/status; grep SigIgn /proc/self/status",
        jittrace().display(),
        directory.path().join("t.jtrace").display()
    );
    let output = finish(&mut bare(&inner), PATIENCE);
    let lines: Vec<String> = text(&output.stdout).lines().map(str::to_owned).collect();
    assert_eq!(lines[0], lines[1]);
    // Whoever runs the tests may ignore others as well.
    let ignored =
        u64::from_str_radix(lines[0].split_ascii_whitespace().nth(1).unwrap(), 16).unwrap();
    assert!(ignored & (1 << (libc::SIGPIPE - 1)) != 0, "{lines:?}");
}

#[test]
fn what_was_ignored_or_blocked_at_the_start_stays_so() {
    use std::os::unix::process::CommandExt;
    /// A signal that the C library keeps for itself from the first thread on.
    const OF_THE_LIBRARY: i32 = 33;
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("t.jtrace");
    let run = |words: &[&str]| {
        let mut command = Command::new(words[0]);
        command
            .args(&words[1..])
            .args(["grep", "-E", "Sig(Blk|Ign)", "/proc/self/status"]);
        // SAFETY: system calls alone, on locals.
        unsafe {
            command.pre_exec(|| {
                let ignore = [libc::SIG_IGN, 0, 0, 0];
                let none: *mut usize = std::ptr::null_mut();
                for signal in [libc::SIGUSR2, OF_THE_LIBRARY] {
                    libc::syscall(libc::SYS_rt_sigaction, signal, &raw const ignore, none, 8);
                }
                let block = 1_u64 << (libc::SIGUSR1 - 1);
                let how = libc::SIG_BLOCK;
                libc::syscall(libc::SYS_rt_sigprocmask, how, &raw const block, none, 8);
                Ok(())
            });
        }
        text(&command.output().unwrap().stdout).to_owned()
    };
    let bare = run(&["env"]);
    let told = |name: &str| {
        let line = bare.lines().find(|l| l.starts_with(name)).unwrap();
        u64::from_str_radix(line.split_ascii_whitespace().nth(1).unwrap(), 16).unwrap()
    };
    assert!(told("SigIgn") & (1 << (OF_THE_LIBRARY - 1)) != 0, "{bare}");
    assert!(told("SigBlk") & (1 << (libc::SIGUSR1 - 1)) != 0, "{bare}");
    let jittrace = jittrace().display().to_string();
    let trace = trace.display().to_string();
    // With the kernel, where it may be used, jittrace has threads before the command starts.
    for source in ["preload", "all"] {
        let words = [
            &jittrace, "--no-tui", "--quiet", "--report", "none", "--source", source, "-o", &trace,
            "--",
        ];
        assert_eq!(run(&words), bare, "{source}");
    }
}

#[test]
fn a_signal_sent_to_jittrace_reaches_the_command_once() {
    let directory = tempfile::tempdir().unwrap();
    let said = directory.path().join("said");
    let script = format!(
        "n=0; trap 'n=$((n+1)); echo $n > {0}' TERM; echo ready > {0}; i=0; while [ $i -lt 40 ]; do sleep 0.05; i=$((i+1)); done; exit 7",
        said.display()
    );
    let mut child = traced(directory.path(), &script).spawn().unwrap();
    assert!(eventually(PATIENCE, || fs::read_to_string(&said)
        .is_ok_and(|s| s.contains("ready"))));
    let pid = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-TERM", &pid])
            .status()
            .unwrap()
            .success()
    );
    assert!(eventually(PATIENCE, || fs::read_to_string(&said)
        .is_ok_and(|s| s.trim() == "1")));
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(7));
    assert_eq!(fs::read_to_string(&said).unwrap().trim(), "1");
}

#[test]
fn jittrace_stops_and_goes_on_with_its_command() {
    let directory = tempfile::tempdir().unwrap();
    let mut child = traced(directory.path(), "kill -STOP $$; exit 3")
        .spawn()
        .unwrap();
    let stat = format!("/proc/{}/stat", child.id());
    let state = || {
        let text = fs::read_to_string(&stat).unwrap_or_default();
        text.rsplit(") ")
            .next()
            .and_then(|rest| rest.chars().next())
    };
    assert!(
        eventually(PATIENCE, || state() == Some('T')),
        "jittrace did not stop"
    );
    assert!(
        Command::new("kill")
            .args(["-CONT", &child.id().to_string()])
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(child.wait().unwrap().code(), Some(3));
}

#[test]
fn a_killed_jittrace_leaves_the_command_running_and_a_readable_trace() {
    let directory = tempfile::tempdir().unwrap();
    let done = directory.path().join("done");
    let go = directory.path().join("go");
    let script = format!(
        "echo $$ > {0}/pid; while [ ! -e {1} ]; do sleep 0.05; done; /bin/true; echo done > {2}",
        directory.path().display(),
        go.display(),
        done.display()
    );
    let mut child = traced(directory.path(), &script).spawn().unwrap();
    assert!(eventually(PATIENCE, || directory
        .path()
        .join("pid")
        .exists()));
    let trace = directory.path().join("t.jtrace");
    assert!(eventually(PATIENCE, || fs::read_to_string(&trace)
        .is_ok_and(|t| t.contains("process-start"))));
    child.kill().unwrap();
    child.wait().unwrap();
    fs::write(&go, "").unwrap();
    assert!(
        eventually(PATIENCE, || done.exists()),
        "the command did not go on"
    );
    let text = fs::read_to_string(&trace).unwrap();
    let mut reader = jittrace_model::log::Reader::new(text.as_bytes()).unwrap();
    let mut events = 0;
    while reader.next_event().unwrap().is_some() {
        events += 1;
    }
    assert!(events > 0 && reader.skipped_count() == 0);
}

#[test]
fn own_failures_have_their_own_statuses_and_one_sentence() {
    let directory = tempfile::tempdir().unwrap();
    let plain = directory.path().join("plain");
    fs::write(&plain, "no program").unwrap();
    let trace = directory.path().join("t.jtrace");
    let refused = directory.path().join("no/such/directory/t.jtrace");
    let run = |output: &Path, program: &str| -> Output {
        finish(
            Command::new(jittrace())
                .args(["--no-tui", "-o"])
                .arg(output)
                .args(["--", program]),
            PATIENCE,
        )
    };
    for (output, program, status, says) in [
        (&trace, "/no/such/program", 127, "/no/such/program"),
        (&trace, "no-such-program-anywhere", 127, "PATH"),
        (&trace, plain.to_str().unwrap(), 126, "chmod +x"),
        (&refused, "true", 125, "-o FILE"),
    ] {
        let output = run(output, program);
        assert_eq!(output.status.code(), Some(status), "{program}");
        let stderr = text(&output.stderr);
        assert!(
            stderr.starts_with("jittrace: ") && stderr.contains(says),
            "{program}: {stderr}"
        );
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
        assert!(output.stdout.is_empty());
    }
    fs::write(&plain, b"\x7fELF of nowhere").unwrap();
    fs::set_permissions(&plain, fs::Permissions::from_mode(0o755)).unwrap();
    let output = run(&trace, plain.to_str().unwrap());
    assert_eq!(output.status.code(), Some(126));
    assert!(text(&output.stderr).contains("no program of this machine"));
    let usage = finish(
        Command::new(jittrace()).args(["--no-such-option"]),
        PATIENCE,
    );
    assert_eq!(usage.status.code(), Some(2));
}

#[test]
fn the_report_goes_to_stderr_and_says_where_the_trace_is() {
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("t-%p.jtrace");
    let output = finish(
        Command::new(jittrace())
            .args(["--no-tui", "-o"])
            .arg(&trace)
            .args(["--", "echo", "mine"]),
        PATIENCE,
    );
    assert_eq!(text(&output.stdout), "mine\n");
    let stderr = text(&output.stderr);
    let last = stderr.lines().last().unwrap();
    let path = last
        .strip_prefix("jittrace: trace in ")
        .unwrap_or_else(|| panic!("{stderr}"));
    assert!(Path::new(path).exists() && !path.contains('%'), "{path}");
}

#[test]
fn a_trace_is_written_without_a_home_and_from_a_directory_that_is_read_only() {
    // Root writes everywhere; the directory's mode counts for others only, so /proc stands for a read-only place.
    let state = tempfile::tempdir().unwrap();
    let output = finish(
        Command::new(jittrace())
            .args(["--no-tui", "--", "true"])
            .current_dir("/proc")
            .env_remove("HOME")
            .env("XDG_STATE_HOME", state.path()),
        PATIENCE,
    );
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(
        fs::read_dir(state.path().join("jittrace")).unwrap().count(),
        1
    );
}

#[test]
fn no_session_directory_is_left_behind() {
    let temporary = tempfile::tempdir().unwrap();
    let output = finish(
        traced(temporary.path(), "true")
            .env("TMPDIR", temporary.path())
            .env_remove("XDG_RUNTIME_DIR"),
        PATIENCE,
    );
    assert!(output.status.success());
    let left: Vec<_> = fs::read_dir(temporary.path())
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    assert_eq!(left, ["t.jtrace"]);
}

#[test]
fn a_command_that_the_shim_cannot_reach_still_runs_undisturbed() {
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("s.c");
    let program = directory.path().join("static");
    fs::write(
        &source,
        "int puts(const char*); int main(void){puts(\"static\");return 4;}",
    )
    .unwrap();
    let built = Command::new("cc")
        .args(["-static", "-o"])
        .arg(&program)
        .arg(&source)
        .status();
    if !built.is_ok_and(|s| s.success()) {
        jittrace_tests::skip(
            "a_command_that_the_shim_cannot_reach_still_runs_undisturbed",
            "cc -static does not work here",
        );
        return;
    }
    let report = directory.path().join("r.json");
    let output = finish(
        Command::new(jittrace())
            .args(["--no-tui", "-q", "--source", "preload", "-o"])
            .arg(directory.path().join("t.jtrace"))
            .arg(format!("--report=json={}", report.display()))
            .arg("--")
            .arg(&program),
        PATIENCE,
    );
    assert_eq!(output.status.code(), Some(4));
    assert_eq!(text(&output.stdout), "static\n");
    assert!(output.stderr.is_empty(), "{}", text(&output.stderr));
    let report: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(&report).unwrap()).unwrap();
    assert_eq!(report["sources"][0]["state"], "refused");
    assert!(
        report["processes"][0]["followed"]["reason"]
            .as_str()
            .unwrap()
            .contains("statically linked")
    );
}

/// What a command leaves behind goes on as if jittrace had never been there: also what it starts later.
#[test]
fn what_outlives_the_command_starts_programs_in_peace() {
    let directory = tempfile::tempdir().unwrap();
    let temporary = directory.path().join("tmp");
    fs::create_dir(&temporary).unwrap();
    let sessions = || fs::read_dir(&temporary).unwrap().count();
    let run = |script: &str| {
        let mut command = traced(directory.path(), script);
        command
            .env("TMPDIR", &temporary)
            .env_remove("XDG_RUNTIME_DIR")
            .current_dir(directory.path());
        assert!(finish(&mut command, PATIENCE).status.success());
    };
    run("true");
    assert_eq!(
        sessions(),
        0,
        "nothing stays of a command that leaves nothing"
    );

    run(
        "(while [ ! -e go ]; do sleep 0.05; done; /bin/echo late; touch done) >said 2>&1 </dev/null &",
    );
    fs::write(directory.path().join("go"), "").unwrap();
    assert!(eventually(PATIENCE, || directory
        .path()
        .join("done")
        .exists()));
    let said = fs::read_to_string(directory.path().join("said")).unwrap();
    assert_eq!(said, "late\n");
    assert_eq!(sessions(), 1, "the shim is left for it");
}

#[test]
fn a_script_without_an_interpreter_line_is_the_shells_as_with_env() {
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("plain");
    fs::write(&script, "echo \"$0 $#\"; exit 5\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let arguments = [script.to_str().unwrap(), "a b", "c"];
    let traced = finish(
        Command::new(jittrace())
            .args(["--no-tui", "--quiet", "-o"])
            .arg(directory.path().join("t.jtrace"))
            .arg("--")
            .args(arguments),
        PATIENCE,
    );
    let by_env = finish(Command::new("env").args(arguments), PATIENCE);
    assert_eq!(text(&traced.stdout), text(&by_env.stdout));
    assert_eq!(traced.status.code(), Some(5));
    assert_eq!(by_env.status.code(), Some(5));
}

//! The main job on the real stack: torch, FlashInfer, two toolkits, a served sglang. Skips where the stack is not there.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Mutex,
    time::Duration,
};

use jittrace_model::{
    Body,
    log::Reader,
    report::{Build, Component, Finding, Report, Resolved, Rule, Severity},
};
use jittrace_tests::{eventually, finish, jittrace, stack::Stack};

/// A JIT build on a busy machine of two cores.
const PATIENCE: Duration = Duration::from_secs(400);

/// The heavy runs take turns.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Asks FlashInfer what it resolved and loads its `page` module, as a server would.
const PAGE: &str = r#"
import importlib, torch
try:
    from flashinfer.jit import core
    from flashinfer.jit.cpp_ext import get_cuda_path, get_cuda_version
    print("torch", torch.version.cuda, "nvcc", get_cuda_version(), get_cuda_path())
    print("archs", core.current_compilation_context.TARGET_CUDA_ARCHS)
    importlib.import_module("flashinfer.jit.page").gen_page_module().build_and_load()
    print("loaded")
except Exception as e:
    print("failed", type(e).__name__, str(e).splitlines()[-1][-160:])
print(sorted({l.split()[-1] for l in open("/proc/self/maps") if "libcudart" in l}))
"#;

/// A program of the stack with its trace, `t.jtrace` in the work directory.
trait Pages {
    /// What the page program prints, untraced.
    fn bare(&self, env: &[(&str, String)]) -> String;
    /// What it prints under jittrace, and the report.
    fn traced(&self, env: &[(&str, String)]) -> (String, Report);
    /// The trace.
    fn trace(&self) -> PathBuf;
}

impl Pages for Stack {
    fn bare(&self, env: &[(&str, String)]) -> String {
        let mut command = Command::new(&self.python);
        command.args(["-c", PAGE]);
        self.dress(&mut command, env);
        String::from_utf8_lossy(&finish(&mut command, PATIENCE).stdout).into_owned()
    }

    fn traced(&self, env: &[(&str, String)]) -> (String, Report) {
        let report = self.work.path().join("r.json");
        let mut command = self.tracer(&self.trace(), &format!("json={}", report.display()));
        command.args(["-c", PAGE]);
        self.dress(&mut command, env);
        let output = finish(&mut command, PATIENCE);
        let report = serde_json::from_str(&fs::read_to_string(report).unwrap()).unwrap();
        (String::from_utf8_lossy(&output.stdout).into_owned(), report)
    }

    fn trace(&self) -> PathBuf {
        self.work.path().join("t.jtrace")
    }
}

fn component<'a>(report: &'a Report, name: &str) -> &'a Component {
    let found = report.components.iter().find(|c| c.name == name);
    found.unwrap_or_else(|| {
        panic!(
            "no component {name}: {:?}",
            report
                .components
                .iter()
                .map(|c| &c.name)
                .collect::<Vec<_>>()
        )
    })
}

fn resolved<'a>(report: &'a Report, name: &str, part: &str) -> &'a [Resolved] {
    component(report, name)
        .resolved
        .get(part)
        .map_or(&[], Vec::as_slice)
}

/// Findings above a note that are no consequences of another.
fn faults(report: &Report) -> Vec<&Finding> {
    report
        .findings
        .iter()
        .filter(|f| f.severity != Severity::Note && f.consequence_of.is_none())
        .collect()
}

fn ids(findings: &[&Finding]) -> Vec<String> {
    findings.iter().map(|f| f.id.clone()).collect()
}

#[test]
fn check_names_the_old_nvcc_its_rule_who_asked_and_the_remedy() {
    let Some(stack) = Stack::here("check") else {
        return;
    };
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(|e| e.into_inner());
    let old = stack.toolkit("12.4");
    let new = stack.toolkit("13.0");
    let path_with = |first: &Path| {
        format!(
            "{}:{}:{}",
            first.join("bin").display(),
            stack.root.join("venv/bin").display(),
            std::env::var("PATH").unwrap()
        )
    };
    let runs = [
        (
            Rule::Path,
            vec![stack.fake_sm120(), ("PATH", path_with(&old))],
        ),
        (
            Rule::CudaHome,
            vec![
                stack.fake_sm120(),
                ("PATH", path_with(&new)),
                ("CUDA_HOME", old.display().to_string()),
            ],
        ),
    ];
    for (rule, env) in runs {
        let (said, report) = stack.traced(&env);
        assert_eq!(
            said,
            stack.bare(&env),
            "{rule:?}: the program says what it says untraced"
        );
        assert!(said.contains("sm75 or higher"), "{said}");
        let nvcc = &resolved(&report, "flashinfer", "nvcc")[0];
        assert_eq!(nvcc.path, old.join("bin/nvcc").display().to_string());
        assert!(nvcc.version.as_deref().unwrap().starts_with("12.4"));
        assert_eq!(nvcc.rule, rule);
        let by = nvcc.requested_by.as_deref().unwrap();
        assert!(
            by.contains("get_cuda_version") && by.contains("flashinfer/jit/cpp_ext.py"),
            "{by}"
        );
        assert_eq!(
            component(&report, "torch").built_for.cuda.as_deref(),
            Some("13.0")
        );
        let faults = faults(&report);
        assert_eq!(ids(&faults), ["nvcc-older-than-required"], "{rule:?}");
        let finding = faults[0];
        assert_eq!(finding.severity, Severity::Error);
        assert_eq!(
            finding.confidence,
            jittrace_model::report::Confidence::Proven,
            "{:?}",
            finding.missing
        );
        let told = format!("{} {:?}", finding.cause, finding.evidence);
        assert!(told.contains("SM 12.x requires CUDA >= 12.9"), "{told}");
        assert!(
            finding
                .remedy
                .iter()
                .any(|r| r.contains(&new.display().to_string())),
            "{:?}",
            finding.remedy
        );
    }
}

fn tools_below<'a>(report: &'a Report, root: &Build) -> Vec<&'a Build> {
    let mut below: BTreeSet<u32> = BTreeSet::from([root.id]);
    report
        .builds
        .iter()
        .filter(|b| b.parent.is_some_and(|p| below.contains(&p)) && below.insert(b.id))
        .collect()
}

#[test]
fn cold_warm_and_mixed_builds_tell_what_was_built_with_what() {
    let Some(stack) = Stack::here("cold") else {
        return;
    };
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(|e| e.into_inner());
    let old = stack.toolkit("12.4").display().to_string();
    let new = stack.toolkit("13.0").display().to_string();

    // Cold: a real build by the new toolkit. Nothing is wrong with it.
    let (said, report) = stack.traced(&[stack.fake_sm120(), ("CUDA_HOME", new.clone())]);
    assert!(said.contains("loaded"), "{said}");
    assert_eq!(ids(&faults(&report)), [""; 0]);
    let ninja = report.builds.iter().find(|b| b.tool == "ninja").unwrap();
    assert_eq!(ninja.started_by.as_deref(), Some("flashinfer"));
    let below = tools_below(&report, ninja);
    for tool in ["nvcc", "cicc", "ptxas", "fatbinary", "cudafe++"] {
        let runs: Vec<&&Build> = below.iter().filter(|b| b.tool == tool).collect();
        assert_eq!(runs.len(), 2, "{tool}");
        assert!(
            runs.iter()
                .all(|b| b.exit.is_some_and(|e| e.is_success()) && b.duration_ns.is_some()),
            "{tool}"
        );
        assert!(
            runs.iter()
                .all(|b| b.version.as_deref().is_some_and(|v| v.starts_with("13.0"))),
            "{tool}"
        );
    }
    assert!(
        below
            .iter()
            .filter(|b| b.tool == "ptxas")
            .all(|b| b.archs == ["sm_120f"])
    );
    let artifact = |report: &Report| {
        let all = report.caches.iter().flat_map(|c| &c.artifacts);
        all.clone()
            .find(|a| a.path.ends_with("/page.so"))
            .cloned()
            .unwrap()
    };
    let page = artifact(&report);
    assert!(page.built && page.loaded);
    assert!(
        page.built_with.as_deref().unwrap().starts_with("13.0"),
        "{page:?}"
    );
    assert!(page.needed.iter().any(|n| n == "libcudart.so.13"));
    let size = fs::metadata(stack.trace()).unwrap().len();
    assert!(
        size <= 400 * 1024,
        "the trace of a cold build has {size} bytes"
    );

    // Warm, with the old toolkit named: no compile, and what was built by the new one is loaded.
    let warm = [
        ("FLASHINFER_CUDA_ARCH_LIST", "12.0f".to_owned()),
        ("CUDA_HOME", old.clone()),
    ];
    let (said, report) = stack.traced(&warm);
    assert!(said.contains("loaded"), "{said}");
    assert!(
        report.builds.iter().all(|b| b.tool != "nvcc"),
        "{:?}",
        report.builds
    );
    let page = artifact(&report);
    assert!(
        !page.built && page.loaded && page.built_with.as_deref().unwrap().starts_with("13.0"),
        "{page:?}"
    );
    assert!(
        report
            .findings
            .iter()
            .any(|f| f.id == "cache-stale-toolkit"),
        "{:?}",
        report.findings
    );

    // Mixed: built by the old toolkit in a process of the new one, it misses its runtime …
    let mixed = [
        ("FLASHINFER_CUDA_ARCH_LIST", "9.0".to_owned()),
        ("CUDA_HOME", old.clone()),
    ];
    let (said, report) = stack.traced(&mixed);
    assert!(said.contains("libcudart.so.12"), "{said}");
    assert_eq!(
        ids(&faults(&report)),
        ["nvcc-differs-from-built-for"],
        "{:?}",
        report.findings
    );
    let missing = report.findings.iter().find(|f| f.id == "cudart-not-found");
    let missing = missing.unwrap_or_else(|| panic!("{:?}", report.findings));
    assert!(
        missing.consequence_of.is_some() && missing.cause.contains("page.so"),
        "{missing:?}"
    );

    // … and with the old directory on the path there are two in one process.
    let mut two = mixed.to_vec();
    two.push(("LD_LIBRARY_PATH", format!("{old}/lib64")));
    let (said, report) = stack.traced(&two);
    assert!(said.contains("loaded"), "{said}");
    let finding = report
        .findings
        .iter()
        .find(|f| f.id == "cudart-two-majors")
        .unwrap_or_else(|| panic!("{:?}", report.findings));
    let told = format!("{} {:?}", finding.cause, finding.evidence);
    assert!(
        told.contains("page.so") && told.contains("libcudart.so.13"),
        "{told}"
    );
}

/// libcudart, libcuda and libnvrtc files mapped in a process, by `/proc`.
fn mapped_now(pid: u32) -> BTreeSet<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    text.lines()
        .filter_map(|l| l.split_ascii_whitespace().nth(5))
        .filter(|p| is_of_interest(p))
        .map(str::to_owned)
        .collect()
}

fn is_of_interest(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    ["libcudart", "libcuda.so", "libnvrtc.", "libnvrtc-"]
        .iter()
        .any(|stem| name.starts_with(stem))
}

/// The same by the trace, unloads taken into account.
fn mapped_by_trace(trace: &Path) -> BTreeMap<u32, BTreeSet<String>> {
    let file = std::io::BufReader::new(fs::File::open(trace).unwrap());
    let mut reader = Reader::new(file).unwrap();
    let mut mapped: BTreeMap<u32, BTreeMap<String, String>> = BTreeMap::new();
    while let Some(event) = reader.next_event().unwrap() {
        match event.body {
            Body::ProcessStart(start) if start.forked => {
                let parents = mapped.get(&start.ppid).cloned().unwrap_or_default();
                mapped.insert(event.pid, parents);
            }
            Body::ProcessStart(_) => {
                mapped.insert(event.pid, BTreeMap::new());
            }
            Body::LibraryLoaded(loaded) if is_of_interest(&loaded.path) => {
                mapped
                    .entry(event.pid)
                    .or_default()
                    .insert(loaded.path, loaded.realpath);
            }
            Body::LibraryUnloaded(unloaded) => {
                mapped.entry(event.pid).or_default().remove(&unloaded.path);
            }
            _ => {}
        }
    }
    mapped
        .into_iter()
        .map(|(pid, files)| (pid, files.into_values().collect()))
        .collect()
}

#[test]
fn a_served_sglang_is_traced_whole_and_stays_undisturbed() {
    let Some(stack) = Stack::here("serve") else {
        return;
    };
    let Some(server) = stack.server("serve") else {
        return;
    };
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(|e| e.into_inner());
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let log = stack.work.path().join("serve.log");
    let report = stack.work.path().join("r.json");
    let mut command = stack.tracer(&stack.trace(), &format!("json={}", report.display()));
    command
        .args(server)
        .arg(port.to_string())
        .stdout(fs::File::create(&log).unwrap())
        .stderr(Stdio::null());
    let old = stack.toolkit("12.4").display().to_string();
    stack.dress(
        &mut command,
        &[
            stack.fake_sm120(),
            (
                "LD_LIBRARY_PATH",
                stack.root.join("driver").display().to_string(),
            ),
            ("CUDA_HOME", old.clone()),
        ],
    );
    let mut child = command.spawn().unwrap();
    // However the test ends, the server does not stay.
    let _server = Reaper(child.id());
    let get = |path: &str, body: Option<&str>| {
        let mut curl = Command::new("curl");
        curl.args(["-s", "-f", "-m", "20"]);
        if let Some(body) = body {
            curl.args(["-H", "content-type: application/json", "-d", body]);
        }
        let output = curl.arg(format!("http://127.0.0.1:{port}{path}")).output();
        output
            .ok()
            .filter(|o| o.status.success())
            .map(|o| String::from_utf8_lossy(&o.stdout).into_owned())
    };
    let healthy = eventually(Duration::from_secs(300), || {
        get("/health", None).is_some() || child.try_wait().is_ok_and(|s| s.is_some())
    });
    let tail = || {
        fs::read_to_string(&log)
            .unwrap_or_default()
            .lines()
            .rev()
            .take(15)
            .collect::<Vec<_>>()
            .join("\n")
    };
    assert!(
        healthy && child.try_wait().unwrap().is_none(),
        "the server did not become healthy:\n{}",
        tail()
    );
    let answer = get("/generate", Some(GENERATE));
    assert!(
        answer.as_deref().is_some_and(|a| a.contains("output_ids")),
        "{answer:?}\n{}",
        tail()
    );

    // Every process of it is in the trace, and what the trace says is mapped is what is mapped.
    let live: Vec<u32> = descendants(child.id());
    assert!(live.len() >= 3, "{live:?}");
    let agrees = || {
        let by_trace = mapped_by_trace(&stack.trace());
        live.iter().all(|pid| {
            by_trace
                .get(pid)
                .is_some_and(|files| *files == mapped_now(*pid))
        })
    };
    assert!(
        eventually(Duration::from_secs(20), agrees),
        "{:#?}\n{:#?}",
        mapped_by_trace(&stack.trace()),
        live.iter().map(|p| (p, mapped_now(*p))).collect::<Vec<_>>()
    );

    attached_while_it_serves(&stack, &live, || {
        let answer: serde_json::Value =
            serde_json::from_str(&get("/generate", Some(GENERATE))?).ok()?;
        answer["output_ids"].as_array().map(Vec::len)
    });

    // Stopping jittrace's command stops all of it, and the trace is whole although sglang kills its own with SIGKILL.
    assert!(
        Command::new("kill")
            .arg(live[0].to_string())
            .status()
            .unwrap()
            .success()
    );
    let ended = eventually(Duration::from_secs(60), || {
        child.try_wait().is_ok_and(|s| s.is_some())
    });
    assert!(ended, "the server did not stop");
    assert!(
        eventually(Duration::from_secs(10), || live
            .iter()
            .all(|pid| is_gone(*pid))),
        "{live:?}"
    );
    let report: Report = serde_json::from_str(&fs::read_to_string(report).unwrap()).unwrap();
    for pid in &live {
        assert!(
            report
                .processes
                .iter()
                .any(|p| p.pid == *pid && p.end.is_some()),
            "{pid} is not in the report, or has no end"
        );
    }
    let nvcc = &resolved(&report, "flashinfer", "nvcc")[0];
    assert!(
        nvcc.path.starts_with(&old) && nvcc.rule == Rule::CudaHome && nvcc.pids.len() >= 3,
        "{nvcc:?}"
    );
    let cudarts: BTreeSet<&str> = report
        .components
        .iter()
        .flat_map(|c| c.resolved.get("cudart").into_iter().flatten())
        .map(|r| r.realpath.as_str())
        .collect();
    assert!(
        cudarts.iter().any(|p| p.ends_with("libcudart.so.12")) && cudarts.len() >= 3,
        "{cudarts:?}"
    );
}

/// A request that is always answered alike.
const GENERATE: &str = r#"{"input_ids":[1,5,9],"sampling_params":{"max_new_tokens":4,"temperature":0,"ignore_eos":true}}"#;

/// A library that is mapped: role, file, version and the rule that led to it.
type MappedLibrary = (String, String, Option<String>, Rule);

/// The libraries of a report that living processes have mapped now.
fn living_libraries(report: &Report, live: &[u32]) -> BTreeSet<MappedLibrary> {
    let mapped: BTreeSet<String> = live.iter().flat_map(|pid| mapped_now(*pid)).collect();
    let resolved = report.components.iter().flat_map(|c| &c.resolved);
    resolved
        .flat_map(|(role, entries)| entries.iter().map(move |e| (role, e)))
        .filter(|(_, e)| e.pids.iter().any(|p| live.contains(p)) && mapped.contains(&e.realpath))
        .map(|(role, e)| (role.clone(), e.realpath.clone(), e.version.clone(), e.rule))
        .collect()
}

/// Whether a snapshot can tell this as the launch trace does: a request for what was there already leaves nothing in a
/// memory map.
fn shows_in_a_snapshot(library: &MappedLibrary) -> bool {
    library.3 != Rule::AlreadyLoaded
}

/// Whether only the rule differs, because the name that was asked for is not known: what no object needs was opened by
/// some name, and a snapshot knows the path alone.
fn is_without_its_name(library: &MappedLibrary, launched: &BTreeSet<MappedLibrary>) -> bool {
    let (role, file, version, rule) = library;
    *rule == Rule::AbsolutePath
        && launched
            .iter()
            .any(|l| (&l.0, &l.1, &l.2) == (role, file, version))
}

/// Attaches to the serving processes: the snapshot says of them what the launch trace says, and the server answers as
/// before. One server start serves both tests.
fn attached_while_it_serves(stack: &Stack, live: &[u32], answer: impl Fn() -> Option<usize>) {
    let before = answer();
    assert!(before.is_some(), "the server does not answer");
    let trace = stack.work.path().join("a.jtrace");
    let attached = stack.work.path().join("a.json");
    let mut attach = Command::new(jittrace())
        .args(["attach", "--no-tui", "-q", "-o"])
        .arg(&trace)
        .arg(format!("--report=json={}", attached.display()))
        .arg(live[0].to_string())
        .spawn()
        .unwrap();
    let _attach = Reaper(attach.id());
    let is_whole = || {
        // The header is the first to be there.
        let has_begun = fs::read_to_string(&trace).is_ok_and(|text| text.contains('\n'));
        has_begun && {
            let seen = mapped_by_trace(&trace);
            live.iter().all(|pid| {
                seen.get(pid)
                    .is_some_and(|files| *files == mapped_now(*pid))
            })
        }
    };
    assert!(
        eventually(Duration::from_secs(120), is_whole),
        "{:#?}",
        mapped_by_trace(&trace)
    );
    assert_eq!(answer(), before);
    assert!(
        Command::new("kill")
            .args(["-INT", &attach.id().to_string()])
            .status()
            .unwrap()
            .success()
    );
    assert!(attach.wait().unwrap().success());
    assert_eq!(answer(), before);
    assert!(live.iter().all(|pid| !is_gone(*pid)));

    let launched = Command::new(jittrace())
        .args(["report", "--format", "json"])
        .arg(stack.trace())
        .output()
        .unwrap();
    let launched: Report = serde_json::from_slice(&launched.stdout).unwrap();
    let attached: Report = serde_json::from_str(&fs::read_to_string(attached).unwrap()).unwrap();
    for report in [&launched, &attached] {
        assert!(report.components.iter().all(|c| !c.name.is_empty()));
    }
    let (mut launched, mut attached) = (
        living_libraries(&launched, live),
        living_libraries(&attached, live),
    );
    launched.retain(shows_in_a_snapshot);
    attached
        .retain(|library| launched.contains(library) || !is_without_its_name(library, &launched));
    assert_eq!(attached, launched);
    assert!(
        launched.iter().any(|(role, ..)| role == "cudart"),
        "{launched:?}"
    );
}

fn descendants(root: u32) -> Vec<u32> {
    let mut all = vec![root];
    let mut at = 0;
    while let Some(pid) = all.get(at).copied() {
        at += 1;
        let tasks = fs::read_dir(format!("/proc/{pid}/task"))
            .into_iter()
            .flatten()
            .flatten();
        for task in tasks {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            all.extend(
                children
                    .split_ascii_whitespace()
                    .filter_map(|p| p.parse::<u32>().ok()),
            );
        }
    }
    all.remove(0);
    all
}

/// Ends a process and its descendants when dropped.
struct Reaper(u32);

impl Drop for Reaper {
    fn drop(&mut self) {
        for pid in descendants(self.0).into_iter().chain([self.0]) {
            if !is_gone(pid) {
                let _ = Command::new("kill").args(["-9", &pid.to_string()]).status();
            }
        }
    }
}

fn is_gone(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ")
        .next()
        .is_none_or(|rest| rest.is_empty() || rest.starts_with('Z') || rest.starts_with('X'))
}

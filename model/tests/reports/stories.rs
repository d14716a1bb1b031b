//! Reports as real runs give them, to draw and to compare: the founding story and the cases that diffs are judged by.

use indexmap::IndexMap;
use jittrace_model::{
    log::{Host, SourceState, SourceStatus},
    report::*,
};

pub(crate) const OLD: &str = "/opt/toolkits/cuda-12.4";
pub(crate) const NEW: &str = "/opt/toolkits/cuda-13.0";
const SITE: &str = "/srv/venv/lib/python3.12/site-packages";

fn exit(code: i32) -> Option<Exit> {
    Some(Exit {
        code: Some(code),
        signal: None,
    })
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

pub(crate) fn candidate(path: &str, rule: Rule, outcome: Outcome) -> Candidate {
    Candidate {
        path: path.to_owned(),
        rule,
        outcome,
    }
}

pub(crate) fn resolved(
    path: &str,
    version: &str,
    toolkit: &str,
    rule: Rule,
    detail: &str,
    events: &[u64],
) -> Resolved {
    Resolved {
        path: path.to_owned(),
        realpath: path.to_owned(),
        version: some(version),
        version_from: some("tool-string"),
        toolkit: some(toolkit),
        rule,
        rule_detail: detail.to_owned(),
        candidates: vec![candidate(path, rule, Outcome::Chosen)],
        events: events.to_vec(),
        pids: vec![4711],
        ..Resolved::default()
    }
}

fn component(
    name: &str,
    version: &str,
    built_for: Option<&str>,
    parts: Vec<(&str, Resolved)>,
) -> Component {
    let mut all: IndexMap<String, Vec<Resolved>> = IndexMap::new();
    for (part, entry) in parts {
        all.entry(part.to_owned()).or_default().push(entry);
    }
    Component {
        name: name.to_owned(),
        version: some(version),
        distribution: some(name),
        path: Some(format!("{SITE}/{name}")),
        built_for: BuiltFor {
            cuda: built_for.map(str::to_owned),
            from: built_for.map(|_| "torch/version.py".to_owned()),
        },
        resolved: all,
        caches: Vec::new(),
    }
}

fn toolkit(id: &str, root: &str, version: &str, kind: &str, used: bool) -> Toolkit {
    let nvcc = ToolkitPart {
        path: format!("{root}/bin/nvcc"),
        version: some(version),
        version_from: some("tool-string"),
    };
    Toolkit {
        id: id.to_owned(),
        root: root.to_owned(),
        version: some(version),
        kind: kind.to_owned(),
        used,
        parts: [("nvcc".to_owned(), nvcc)].into(),
    }
}

fn process(pid: u32, ppid: u32, argv: &[&str], start: u64, end: u64, code: i32) -> ProcessEntry {
    ProcessEntry {
        pid,
        ppid,
        argv: argv.iter().map(|a| (*a).to_owned()).collect(),
        exe: argv.first().map(|a| (*a).to_owned()).unwrap_or_default(),
        start,
        end: Some(end),
        exit: exit(code),
        followed: Followed::Yes(true),
        replaced: false,
    }
}

fn torch() -> Component {
    let wheel = |file: &str| format!("{SITE}/nvidia/cu13/lib/{file}");
    let took = |file: &str, version: &str, event: u64| {
        let mut entry = resolved(
            &wheel(file),
            version,
            "wheel-13.0",
            Rule::Rpath,
            "$ORIGIN/../../nvidia/cu13/lib of libtorch_cuda.so",
            &[event],
        );
        entry.requested_by = Some(format!("{SITE}/torch/lib/libtorch_cuda.so"));
        entry.explanation = Some(Explanation::Confirmed);
        entry
    };
    component(
        "torch",
        "2.11.0+cu130",
        Some("13.0"),
        vec![
            ("cudart", took("libcudart.so.13", "13.0.96", 101)),
            ("nvrtc", took("libnvrtc.so.13", "13.0.88", 102)),
            ("nvjitlink", took("libnvJitLink.so.13", "13.0.88", 103)),
            ("cublas", took("libcublas.so.13", "13.1.0", 104)),
        ],
    )
}

fn base(command: &[&str]) -> Report {
    Report {
        schema: SCHEMA.to_owned(),
        version: "0.1.0".to_owned(),
        host: Host {
            name: "gpu17".into(),
            kernel: "6.18.0".into(),
            os: "Debian GNU/Linux 12".into(),
            libc: "glibc 2.36".into(),
            machine: "x86_64".into(),
            cpus: 16,
            ..Host::default()
        },
        command: command.iter().map(|a| (*a).to_owned()).collect(),
        exit: exit(0),
        duration_ns: 4_240_000_000,
        sources: vec![
            SourceStatus {
                name: "preload".into(),
                state: SourceState::Active,
                reason: None,
            },
            SourceStatus {
                name: "procfs".into(),
                state: SourceState::Active,
                reason: None,
            },
        ],
        gpus: vec![Gpu {
            index: 0,
            name: "NVIDIA RTX PRO 6000".into(),
            compute_capability: some("12.0"),
            from: "call".into(),
        }],
        driver: Driver {
            version: some("580.65.06"),
            cuda: some("13.0"),
        },
        toolkits: vec![
            toolkit("cuda-12.4", OLD, "12.4.131", "system", true),
            toolkit("cuda-13.0", NEW, "13.0.88", "system", false),
            toolkit(
                "wheel-13.0",
                &format!("{SITE}/nvidia/cu13"),
                "13.0.96",
                "wheel",
                true,
            ),
        ],
        processes: vec![process(
            4711,
            4000,
            &["python", "serve.py"],
            0,
            4_240_000_000,
            0,
        )],
        environment: [(
            "PATH".to_owned(),
            format!("{OLD}/bin:/srv/venv/bin:/usr/bin"),
        )]
        .into(),
        ..Report::default()
    }
}

fn flashinfer(nvcc: Resolved) -> Component {
    component("flashinfer", "0.6.8.post1", None, vec![("nvcc", nvcc)])
}

fn asked_nvcc(root: &str, version: &str, rule: Rule, detail: &str) -> Resolved {
    let mut entry = resolved(
        &format!("{root}/bin/nvcc"),
        version,
        &format!("cuda-{}", &version[..4]),
        rule,
        detail,
        &[412, 413],
    );
    entry.requested_by = some("get_cuda_version in flashinfer/jit/cpp_ext.py:78");
    for directory in 0..12 {
        let missing = candidate(
            &format!("/opt/bin{directory}/nvcc"),
            Rule::Path,
            Outcome::Missing,
        );
        entry.candidates.insert(0, missing);
    }
    entry
}

/// sm_120 and an old nvcc first on PATH (case D01, `sm120-scenario.sh check`).
pub(crate) fn founding() -> Report {
    let mut report = base(&[
        "python",
        "-m",
        "sglang.launch_server",
        "--model-path",
        "gpt2",
        "--attention-backend",
        "flashinfer",
    ]);
    report.exit = exit(1);
    if let Some(first) = report.processes.first_mut() {
        first.exit = exit(1);
    }
    report.processes.push(process(
        4720,
        4711,
        &["which", "nvcc"],
        900_000_000,
        903_000_000,
        0,
    ));
    report.processes.push(process(
        4721,
        4711,
        &["/opt/toolkits/cuda-12.4/bin/nvcc", "--version"],
        910_000_000,
        930_000_000,
        0,
    ));
    report.components = vec![
        flashinfer(asked_nvcc(
            OLD,
            "12.4.131",
            Rule::Path,
            "PATH entry 1: /opt/toolkits/cuda-12.4/bin, CUDA_HOME unset",
        )),
        torch(),
    ];
    report.findings = vec![
        Finding {
            id: "nvcc-older-than-required".into(),
            severity: Severity::Error,
            component: some("flashinfer"),
            title: "flashinfer asked nvcc 12.4, and for SM 12.x it requires 12.9 or newer".into(),
            cause: "flashinfer takes the CUDA version from `nvcc --version`, not from torch (built for 13.0). With CUDA_HOME and CUDA_PATH unset it ran the first nvcc on PATH, which is 12.4.131 in /opt/toolkits/cuda-12.4. Its rule for compute capability 12.0 needs 12.9, so it compiled nothing.".into(),
            evidence: vec![
                Evidence { event: 412, text: "exec /opt/toolkits/cuda-12.4/bin/nvcc --version".into() },
                Evidence { event: 418, text: "\"Failed to get device capability: SM 12.x requires CUDA >= 12.9.\" on stderr".into() },
            ],
            remedy: vec!["export CUDA_HOME=/opt/toolkits/cuda-13.0 (nvcc 13.0.88, what torch was built for)".into()],
            confidence: Confidence::Proven,
            consequences: vec!["arch-list-empty".into()],
            ..Finding::default()
        },
        Finding {
            id: "arch-list-empty".into(),
            severity: Severity::Error,
            component: some("flashinfer"),
            title: "no architecture was left to compile for; the message about sm75 is a consequence".into(),
            cause: "The exception was swallowed and the list of architectures stayed empty.".into(),
            evidence: vec![Evidence { event: 420, text: "\"RuntimeError: FlashInfer requires GPUs with sm75 or higher\" on stderr".into() }],
            consequence_of: some("nvcc-older-than-required"),
            confidence: Confidence::Proven,
            ..Finding::default()
        },
        Finding {
            id: "version-disagreement".into(),
            severity: Severity::Note,
            component: some("flashinfer"),
            title: "flashinfer's nvcc is 12.4, torch was built for 13.0".into(),
            evidence: vec![Evidence { event: 412, text: "nvcc 12.4".into() }],
            confidence: Confidence::Proven,
            ..Finding::default()
        },
    ];
    report
}

/// The same with CUDA_HOME pointing at the new toolkit: builds, and all is well.
pub(crate) fn healthy() -> Report {
    let mut report = base(&[
        "python",
        "-m",
        "sglang.launch_server",
        "--model-path",
        "gpt2",
        "--attention-backend",
        "flashinfer",
    ]);
    report.environment.insert("CUDA_HOME".into(), NEW.into());
    report.components = vec![
        flashinfer(asked_nvcc(
            NEW,
            "13.0.88",
            Rule::CudaHome,
            "CUDA_HOME=/opt/toolkits/cuda-13.0",
        )),
        torch(),
    ];
    for toolkit in &mut report.toolkits {
        toolkit.used = toolkit.id != "cuda-12.4";
    }
    let cached = cache_path("page.so");
    report.builds = compile(&cached, NEW);
    report.caches = vec![cache(0, 1, 1, &cached, "13.0", true)];
    report
        .processes
        .extend(report.builds.clone().iter().map(|build| {
            let argv: Vec<&str> = build.argv.iter().map(String::as_str).collect();
            process(
                build.pid,
                4711,
                &argv,
                build.start_ns,
                build.start_ns + build.duration_ns.unwrap_or(0),
                0,
            )
        }));
    report
}

fn cache_path(name: &str) -> String {
    let stem = name.trim_end_matches(".so");
    format!("/home/u/.cache/flashinfer/0.6.8.post1/120f/cached_ops/{stem}/{name}")
}

fn cache(
    hits: u64,
    misses: u64,
    builds: u64,
    artifact: &str,
    built_with: &str,
    built: bool,
) -> Cache {
    Cache {
        directory: "/home/u/.cache/flashinfer".into(),
        owner: "flashinfer".into(),
        hits,
        misses,
        builds,
        artifacts: vec![Artifact {
            path: artifact.to_owned(),
            built_with: some(built_with),
            built_with_from: some("build.ninja"),
            archs: vec!["sm_120f".into()],
            needed: vec!["libcudart.so.13".into()],
            loaded: true,
            built,
            events: vec![900],
        }],
        filesystem: None,
    }
}

fn compile(output: &str, root: &str) -> Vec<Build> {
    let build =
        |id: u32, parent: Option<u32>, tool: &str, argv: &[&str], start: u64, took: u64| Build {
            id,
            parent,
            tool: tool.to_owned(),
            path: format!("{root}/bin/{tool}"),
            version: some("13.0.88"),
            argv: argv.iter().map(|a| (*a).to_owned()).collect(),
            cwd: "/home/u/.cache/flashinfer".into(),
            output: some(output),
            archs: vec!["sm_120f".into()],
            started_by: some("flashinfer"),
            pid: 5000 + id,
            start_ns: start * 1_000_000,
            exit: exit(0),
            duration_ns: Some(took * 1_000_000),
            message: None,
            why: None,
            events: vec![500 + u64::from(id)],
        };
    vec![
        build(1, None, "ninja", &["ninja", "-v", "-C", "page"], 1000, 2900),
        build(
            2,
            Some(1),
            "nvcc",
            &[
                "nvcc",
                "-gencode=arch=compute_120f,code=sm_120f",
                "-c",
                "page.cu",
            ],
            1010,
            1900,
        ),
        build(
            3,
            Some(2),
            "cicc",
            &["cicc", "--arch", "compute_120f", "page.ii"],
            1300,
            900,
        ),
        build(
            4,
            Some(2),
            "ptxas",
            &["ptxas", "-arch=sm_120f", "page.ptx"],
            2250,
            400,
        ),
        build(
            5,
            Some(1),
            "nvcc",
            &[
                "nvcc",
                "-gencode=arch=compute_120f,code=sm_120f",
                "-c",
                "bindings.cu",
            ],
            1020,
            1500,
        ),
        build(
            6,
            Some(5),
            "ptxas",
            &["ptxas", "-arch=sm_120f", "bindings.ptx"],
            2000,
            300,
        ),
        build(
            7,
            Some(1),
            "c++",
            &["c++", "-shared", "-o", "page.so"],
            3000,
            800,
        ),
    ]
}

/// A warm cache and another toolkit: loads what 13.0 built, no compiler runs (`sm120-scenario.sh warm`, case D16).
pub(crate) fn warm() -> Report {
    let mut report = healthy();
    report.environment.insert("CUDA_HOME".into(), OLD.into());
    report
        .environment
        .insert("FLASHINFER_CUDA_ARCH_LIST".into(), "12.0f".into());
    report.components = vec![
        flashinfer(asked_nvcc(
            OLD,
            "12.4.131",
            Rule::CudaHome,
            "CUDA_HOME=/opt/toolkits/cuda-12.4",
        )),
        torch(),
    ];
    report.builds = Vec::new();
    report.caches = vec![cache(1, 0, 0, &cache_path("page.so"), "13.0", false)];
    report.findings = vec![Finding {
        id: "cache-stale-toolkit".into(),
        severity: Severity::Warning,
        component: some("flashinfer"),
        title: "page.so came from the cache, built with 13.0; CUDA_HOME=12.4 had no effect on it"
            .into(),
        cause: "The cache is keyed by version and architecture, not by toolkit.".into(),
        evidence: vec![Evidence {
            event: 900,
            text: "page.so loaded; its build.ninja names /opt/toolkits/cuda-13.0".into(),
        }],
        remedy: vec!["rm -r /home/u/.cache/flashinfer/0.6.8.post1/120f/cached_ops/page".into()],
        confidence: Confidence::Proven,
        ..Finding::default()
    }];
    report
}

/// The same upgrade story from the other end: an older FlashInfer with the old nvcc and a warm cache works.
pub(crate) fn before_upgrade() -> Report {
    let mut report = founding();
    report.exit = exit(0);
    report
        .findings
        .retain(|finding| finding.severity == Severity::Note);
    if let Some(component) = report.components.first_mut() {
        component.version = some("0.6.6");
    }
    let path = "/home/u/.cache/flashinfer/0.6.6/120a/cached_ops/page/page.so";
    report.caches = vec![cache(1, 0, 0, path, "13.0", false)];
    report
}

/// JAX's cuSPARSE and the nvJitLink that LD_LIBRARY_PATH put in its way (case D06).
pub(crate) fn nvjitlink(shadowed: bool) -> Report {
    let mut report = base(&["python3", "app.py"]);
    report.toolkits = vec![
        toolkit("cuda-12.1", "/opt/cuda-12.1", "12.1", "system", shadowed),
        toolkit(
            "wheel-12.9",
            &format!("{SITE}/nvidia/nvjitlink"),
            "12.9",
            "wheel",
            !shadowed,
        ),
    ];
    let own = format!("{SITE}/nvidia/cusparse/lib/../../nvjitlink/lib/libnvJitLink.so.12");
    let other = "/opt/cuda-12.1/lib64/libnvJitLink.so.12";
    let (path, version, toolkit, rule, detail) = match shadowed {
        true => (
            other,
            "12.1",
            "cuda-12.1",
            Rule::LdLibraryPath,
            "/opt/cuda-12.1/lib64",
        ),
        false => (
            own.as_str(),
            "12.9",
            "wheel-12.9",
            Rule::Runpath,
            "$ORIGIN/../../nvjitlink/lib of libcusparse.so.12",
        ),
    };
    let mut entry = resolved(path, version, toolkit, rule, detail, &[31]);
    entry.requested_by = Some(format!("{SITE}/nvidia/cusparse/lib/libcusparse.so.12"));
    if shadowed {
        report
            .environment
            .insert("LD_LIBRARY_PATH".into(), "/opt/cuda-12.1/lib64".into());
        entry
            .candidates
            .push(candidate(&own, Rule::Runpath, Outcome::NotTried));
        report.findings = vec![Finding {
            id: "library-shadowed-by-ld-library-path".into(),
            severity: Severity::Error,
            component: some("nvidia-cusparse-cu12"),
            title: "libcusparse.so.12 got libnvJitLink.so.12 of CUDA 12.1 from LD_LIBRARY_PATH instead of its own 12.9".into(),
            cause: "LD_LIBRARY_PATH precedes RUNPATH; that copy lacks __nvJitLinkComplete_12_9.".into(),
            evidence: vec![Evidence { event: 31, text: "libnvJitLink.so.12 mapped from /opt/cuda-12.1/lib64".into() }],
            remedy: vec!["unset LD_LIBRARY_PATH".into()],
            confidence: Confidence::Proven,
            ..Finding::default()
        }];
    } else {
        entry
            .candidates
            .insert(0, candidate(other, Rule::LdLibraryPath, Outcome::Missing));
    }
    report.components = vec![component(
        "nvidia-cusparse-cu12",
        "12.5.4",
        None,
        vec![("nvjitlink", entry)],
    )];
    report
}

/// The cuda-compat libcuda of an image in front of the host's (case D14).
pub(crate) fn libcuda(compat: bool) -> Report {
    let mut report = base(&["python3", "app.py"]);
    let (path, version, kind) = match compat {
        true => (
            "/usr/local/cuda/compat/libcuda.so.575.57.08",
            "575.57.08",
            "compat-12.9",
        ),
        false => (
            "/usr/lib/x86_64-linux-gnu/libcuda.so.580.65.06",
            "580.65.06",
            "driver-13.0",
        ),
    };
    report.components = vec![component(
        "app.py",
        "",
        None,
        vec![(
            "libcuda",
            resolved(
                path,
                version,
                kind,
                Rule::LdSoCache,
                "/etc/ld.so.cache",
                &[12],
            ),
        )],
    )];
    if compat {
        report.exit = exit(1);
        report.findings = vec![Finding {
            id: "libcuda-compat".into(),
            severity: Severity::Error,
            component: some("app.py"),
            title: "libcuda.so.1 is the image's cuda-compat copy 575.57.08, the kernel module is 580.65.06: cuInit 803".into(),
            evidence: vec![Evidence { event: 12, text: "libcuda mapped".into() }],
            confidence: Confidence::Proven,
            ..Finding::default()
        }];
    }
    report
}

/// A full rebuild because the toolkit was spelled another way (case D15).
pub(crate) fn respelled(service: bool) -> Report {
    let mut report = base(&["python3", "app.py"]);
    let root = if service {
        "/opt/cuda"
    } else {
        "/opt/cuda-13.2"
    };
    let mut nvcc = resolved(
        &format!("{root}/bin/nvcc"),
        "13.2",
        "cuda-13.2",
        Rule::Path,
        &format!("PATH entry 1: {root}/bin"),
        &[7],
    );
    nvcc.realpath = "/opt/cuda-13.2/bin/nvcc".into();
    report
        .environment
        .insert("PATH".into(), format!("{root}/bin:/usr/bin"));
    report.components = vec![component("app.py", "", None, vec![("nvcc", nvcc)])];
    let built = format!("{root}/build");
    report.caches = vec![cache(
        if service { 0 } else { 1 },
        u64::from(service),
        u64::from(service),
        "/w/cache/0.o",
        "13.2",
        service,
    )];
    for cache in &mut report.caches {
        cache.owner = "app.py".into();
    }
    if service {
        report.builds = compile(&built, root);
        for build in &mut report.builds {
            build.started_by = some("app.py");
        }
        report.findings = vec![Finding {
            id: "cache-rebuilt-without-change".into(),
            severity: Severity::Warning,
            component: some("app.py"),
            title: "3 compiles without a real change: cuda_home was /opt/cuda-13.2 and is /opt/cuda now, the same directory".into(),
            evidence: vec![Evidence { event: 7, text: "build.ninja rewritten".into() }],
            confidence: Confidence::Proven,
            ..Finding::default()
        }];
    }
    report
}

/// Every story, with its name.
pub(crate) fn all() -> Vec<(&'static str, Report)> {
    vec![
        ("founding", founding()),
        ("healthy", healthy()),
        ("warm", warm()),
        ("before upgrade", before_upgrade()),
        ("nvjitlink shadowed", nvjitlink(true)),
        ("nvjitlink", nvjitlink(false)),
        ("libcuda compat", libcuda(true)),
        ("libcuda", libcuda(false)),
        ("login shell", respelled(false)),
        ("service", respelled(true)),
        ("stale first", stale(false)),
        ("stale second", stale(true)),
        ("full", full()),
    ]
}

/// A report in which no field is absent.
pub(crate) fn full() -> Report {
    let mut report = healthy();
    report.attached = Some(7);
    report.host.container = some("docker");
    report.host.namespaces = [("pid".to_owned(), "4026531836".to_owned())].into();
    if let Some(source) = report.sources.first_mut() {
        source.reason = some("asked for");
    }
    report.condensed = Some(Condensed {
        processes: [("cc1plus".to_owned(), 40)].into(),
        entries: 90,
    });
    report.lost = vec![LostEntry {
        what: "calls".into(),
        count: 3,
        reason: "rate guard".into(),
    }];
    if let Some(nvcc) = report
        .components
        .first_mut()
        .and_then(|c| c.resolved.get_mut("nvcc"))
        .and_then(|n| n.first_mut())
    {
        nvcc.explanation = Some(Explanation::Confirmed);
    }
    if let Some(cache) = report.caches.first_mut() {
        cache.filesystem = some("nfs");
    }
    if let Some(build) = report.builds.first_mut() {
        build.message = some("ninja: build stopped");
        build.parent = None;
    }
    if let Some(process) = report.processes.first_mut() {
        process.replaced = true;
        process.followed = Followed::No {
            reason: "static".into(),
        };
    }
    report.findings = founding().findings;
    if let Some(finding) = report.findings.first_mut() {
        finding.consequence_of = some("x");
        finding.missing = vec!["the nvcc call".into()];
    }
    report.notes = vec!["the trace was cut off".into()];
    report.traces = vec!["a.jtrace".into(), "b.jtrace".into()];
    if let Some(build) = report.builds.first_mut() {
        build.why = some("rebuilt since /s/page.cu is newer than /c/page.cuda.o, by 2 min 5 s");
    }
    report
}

/// Another CUDA_HOME to no effect: the cache has no toolkit in its key (case D16).
pub(crate) fn stale(second: bool) -> Report {
    let mut report = base(&["python3", "app.py"]);
    let home = if second {
        "/opt/cuda-13.2"
    } else {
        "/opt/cuda-13.0"
    };
    report.environment.insert("CUDA_HOME".into(), home.into());
    let artifact = "/w/cache/0.6.9/90a/sampling/sampling.so";
    report.caches = vec![cache(
        u64::from(second),
        u64::from(!second),
        u64::from(!second),
        artifact,
        "13.0",
        !second,
    )];
    let mut app = component("app.py", "", None, Vec::new());
    if second {
        report.findings = vec![Finding {
            id: "cache-stale-toolkit".into(),
            severity: Severity::Warning,
            component: some("app.py"),
            title: format!(
                "sampling.so came from the cache, built with 13.0; CUDA_HOME={home} had no effect on it"
            ),
            evidence: vec![Evidence {
                event: 900,
                text: "sampling.so opened".into(),
            }],
            remedy: vec!["rm -r /w/cache/0.6.9/90a/sampling".into()],
            confidence: Confidence::Proven,
            ..Finding::default()
        }];
    } else {
        report.builds = compile(artifact, home);
        let nvcc = resolved(
            "/opt/cuda-13.0/bin/nvcc",
            "13.0",
            "cuda-13.0",
            Rule::CudaHome,
            "CUDA_HOME=/opt/cuda-13.0",
            &[4],
        );
        app.resolved.insert("nvcc".into(), vec![nvcc]);
    }
    report.components = vec![app];
    report
}

/// Events that go with the founding story, for pages that show them.
pub(crate) fn events() -> Vec<jittrace_model::Event> {
    use jittrace_model::event::*;
    let body = |number: u64| match number {
        1 => Body::ProcessStart(Box::new(ProcessStart {
            exe: "/srv/venv/bin/python".into(),
            argv: vec!["python".into(), "-m".into(), "sglang.launch_server".into()],
            ..ProcessStart::default()
        })),
        412 | 413 => Body::Exec(Box::new(Exec {
            call: "posix_spawn".into(),
            path: format!("{OLD}/bin/nvcc"),
            argv: vec![format!("{OLD}/bin/nvcc"), "--version".into()],
            ..Exec::default()
        })),
        418 | 420 => Body::Message(Box::new(Message {
            stream: "stderr".into(),
            text: "Failed to get device capability: SM 12.x requires CUDA >= 12.9.".into(),
            pattern: "requires-cuda".into(),
        })),
        n if n % 7 == 0 => Body::Call(Box::new(Call {
            function: "cudaRuntimeGetVersion".into(),
            value: some("13000"),
            result: Some(0),
            object: Some(format!("{SITE}/nvidia/cu13/lib/libcudart.so.13")),
            count: 1,
            ..Call::default()
        })),
        n if n % 5 == 0 => Body::LibraryLoaded(Box::new(LibraryLoaded {
            path: format!("{SITE}/nvidia/cu13/lib/libcublas.so.13"),
            rule: Rule::Rpath,
            rule_detail: "$ORIGIN/../../nvidia/cu13/lib".into(),
            ..LibraryLoaded::default()
        })),
        n => Body::File(Box::new(FileAccess {
            path: format!("/home/u/.cache/flashinfer/{n}/build.ninja"),
            errno: if n % 3 == 0 { 2 } else { 0 },
            ..FileAccess::default()
        })),
    };
    (1..=950)
        .map(|id| Event {
            id,
            t: id * 4_400_000,
            pid: 4711,
            tid: 4711,
            source: Source::Preload,
            same_as: None,
            body: body(id),
        })
        .collect()
}

//! Traces written by hand: the events of a story, in the order in which they would come.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test file tells other stories"
)]
#![allow(clippy::expect_used, reason = "a test fails by panicking")]

use jittrace_model::{
    Body, Event, EventId, Model,
    event::{
        CacheFact, Call, Candidate, DirectoryFact, DistributionFact, DriverFact, Exec, ExecFailed,
        Fact, FileAccess, FileFact, FileOp, Frame, Image, LibraryFailed, LibraryLoaded,
        LibraryRequest, Message, Outcome, ProcessExit, ProcessStart, Rule, Source, ToolkitFact,
    },
    log::{Header, SourceState, SourceStatus},
    report::{Finding, Report, Severity},
};

/// A trace under construction. Each event comes one millisecond after the one before.
#[derive(Default)]
pub struct Trace {
    header: Header,
    events: Vec<Event>,
    now: u64,
}

pub const PYTHON: u32 = 100;

impl Trace {
    /// A trace whose first process is `python3 app.py` with these variables.
    pub fn python(env: &[(&str, &str)]) -> Self {
        let mut trace = Trace::default();
        trace.process(
            PYTHON,
            1,
            "/usr/bin/python3",
            &["python3", "/w/app.py"],
            env,
        );
        trace
    }

    fn put(&mut self, pid: u32, body: Body) -> EventId {
        let id = self.events.len() as u64 + 1;
        self.now += 1_000_000;
        self.events.push(Event {
            id,
            t: self.now,
            pid,
            tid: pid,
            source: Source::Preload,
            same_as: None,
            body,
        });
        id
    }

    /// The next events come that much later.
    pub fn wait(&mut self, seconds: u64) {
        self.now += seconds * 1_000_000_000;
    }

    pub fn source(&mut self, name: &str, state: SourceState, reason: &str) {
        self.header.sources.push(SourceStatus {
            name: name.to_owned(),
            state,
            reason: Some(reason.to_owned()),
        });
    }

    pub fn process(
        &mut self,
        pid: u32,
        ppid: u32,
        exe: &str,
        argv: &[&str],
        env: &[(&str, &str)],
    ) -> EventId {
        self.put(
            pid,
            Body::ProcessStart(Box::new(ProcessStart {
                ppid,
                exe: exe.to_owned(),
                argv: argv.iter().map(|a| (*a).to_owned()).collect(),
                cwd: "/w".to_owned(),
                env: env
                    .iter()
                    .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))
                    .collect(),
                ..ProcessStart::default()
            })),
        )
    }

    /// A child that could not be watched.
    pub fn unseen(&mut self, pid: u32, exe: &str, argv: &[&str], reason: &str) {
        self.put(
            pid,
            Body::ProcessStart(Box::new(ProcessStart {
                ppid: PYTHON,
                exe: exe.to_owned(),
                argv: argv.iter().map(|a| (*a).to_owned()).collect(),
                not_followed: Some(reason.to_owned()),
                ..ProcessStart::default()
            })),
        );
    }

    /// A tool run from start to end by `ppid`, with the parent's environment.
    pub fn tool(
        &mut self,
        pid: u32,
        ppid: u32,
        path: &str,
        arguments: &[&str],
        code: i32,
    ) -> EventId {
        let id = self.tool_begins(pid, ppid, path, arguments);
        self.exit(pid, code);
        id
    }

    pub fn tool_begins(&mut self, pid: u32, ppid: u32, path: &str, arguments: &[&str]) -> EventId {
        self.tool_asked_by(pid, ppid, path, arguments, "/w/app.py", None)
    }

    pub fn tool_asked_by(
        &mut self,
        pid: u32,
        ppid: u32,
        path: &str,
        arguments: &[&str],
        file: &str,
        distribution: Option<&str>,
    ) -> EventId {
        let mut argv = vec![path];
        argv.extend(arguments);
        let python = if ppid == PYTHON {
            vec![frame(file, distribution)]
        } else {
            Vec::new()
        };
        self.put(
            pid,
            Body::Exec(Box::new(Exec {
                call: "execve".to_owned(),
                path: path.to_owned(),
                argv: argv.iter().map(|a| (*a).to_owned()).collect(),
                python,
                ..Exec::default()
            })),
        );
        let env: Vec<(String, String)> = self.env_of(ppid);
        let env: Vec<(&str, &str)> = env.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        self.process(pid, ppid, path, &argv, &env)
    }

    fn env_of(&self, pid: u32) -> Vec<(String, String)> {
        self.events
            .iter()
            .rev()
            .find_map(|e| match &e.body {
                Body::ProcessStart(start) if e.pid == pid => Some(
                    start
                        .env
                        .iter()
                        .map(|(n, v)| (n.clone(), v.clone()))
                        .collect(),
                ),
                _ => None,
            })
            .unwrap_or_default()
    }

    pub fn exit(&mut self, pid: u32, code: i32) -> EventId {
        self.put(
            pid,
            Body::ProcessExit(ProcessExit {
                code: Some(code),
                ..ProcessExit::default()
            }),
        )
    }

    pub fn killed(&mut self, pid: u32, signal: i32) -> EventId {
        self.put(
            pid,
            Body::ProcessExit(ProcessExit {
                signal: Some(signal),
                ..ProcessExit::default()
            }),
        )
    }

    pub fn exec_failed(&mut self, pid: u32, path: &str, errno: i32) -> EventId {
        self.put(
            pid,
            Body::ExecFailed(Box::new(ExecFailed {
                path: path.to_owned(),
                argv: vec![path.to_owned()],
                errno,
                python: vec![frame("/w/app.py", None)],
                ..ExecFailed::default()
            })),
        )
    }

    /// A sentence, filed under the pattern that the shim would file it under.
    pub fn says(&mut self, pid: u32, text: &str) -> EventId {
        let found = jittrace_wire::messages::find(text.as_bytes());
        let pattern = found.map(|(found, _)| found.pattern);
        self.put(
            pid,
            Body::Message(Box::new(Message {
                stream: "stderr".to_owned(),
                text: text.to_owned(),
                pattern: pattern
                    .unwrap_or_else(|| panic!("the shim would not record {text:?}"))
                    .to_owned(),
            })),
        )
    }

    pub fn loaded(
        &mut self,
        pid: u32,
        path: &str,
        rule: Rule,
        by: &str,
        change: impl FnOnce(&mut LibraryLoaded),
    ) -> EventId {
        let mut loaded = LibraryLoaded {
            path: path.to_owned(),
            realpath: path.to_owned(),
            requested: Some(name(path).to_owned()),
            requested_by: Some(by.to_owned()).filter(|b| !b.is_empty()),
            rule,
            ..LibraryLoaded::default()
        };
        change(&mut loaded);
        self.put(pid, Body::LibraryLoaded(Box::new(loaded)))
    }

    pub fn load_failed(
        &mut self,
        pid: u32,
        requested: &str,
        error: &str,
        change: impl FnOnce(&mut LibraryFailed),
    ) -> EventId {
        let mut failed = LibraryFailed {
            requested: requested.to_owned(),
            error: error.to_owned(),
            python: vec![frame("/w/app.py", None)],
            ..LibraryFailed::default()
        };
        change(&mut failed);
        self.put(pid, Body::LibraryFailed(Box::new(failed)))
    }

    pub fn requests(&mut self, pid: u32, requested: &str) -> EventId {
        self.put(
            pid,
            Body::LibraryRequest(Box::new(LibraryRequest {
                name: requested.to_owned(),
                call: "dlopen".to_owned(),
                python: vec![frame("/w/app.py", None)],
                ..LibraryRequest::default()
            })),
        )
    }

    pub fn call(
        &mut self,
        pid: u32,
        function: &str,
        result: i64,
        change: impl FnOnce(&mut Call),
    ) -> EventId {
        let mut call = Call {
            function: function.to_owned(),
            result: Some(result),
            count: 1,
            ..Call::default()
        };
        change(&mut call);
        self.put(pid, Body::Call(Box::new(call)))
    }

    /// The driver states a CUDA release.
    pub fn driver_says(&mut self, number: &str) {
        self.call(PYTHON, "cuDriverGetVersion", 0, |c| {
            c.value = Some(number.to_owned());
        });
    }

    /// The compute capability was asked for.
    pub fn capability(&mut self, major: u32, minor: u32) {
        for (attribute, value) in [("major", major), ("minor", minor)] {
            self.call(PYTHON, "cuDeviceGetAttribute", 0, |c| {
                c.args = vec![
                    format!("compute-capability-{attribute}"),
                    "device=0".to_owned(),
                ];
                c.value = Some(value.to_string());
            });
        }
    }

    pub fn image(&mut self, result: i64, image: Image) {
        self.call(PYTHON, "cuModuleLoadData", result, |c| {
            c.image = Some(image)
        });
    }

    pub fn file(&mut self, pid: u32, op: FileOp, path: &str, errno: i32) -> EventId {
        self.file_with(pid, op, path, errno, |_| {})
    }

    pub fn file_with(
        &mut self,
        pid: u32,
        op: FileOp,
        path: &str,
        errno: i32,
        change: impl FnOnce(&mut FileAccess),
    ) -> EventId {
        let mut access = FileAccess {
            op,
            path: path.to_owned(),
            errno,
            python: if pid == PYTHON {
                vec![frame("/w/app.py", None)]
            } else {
                Vec::new()
            },
            ..FileAccess::default()
        };
        change(&mut access);
        self.put(pid, Body::File(Box::new(access)))
    }

    fn fact(&mut self, fact: Fact) -> EventId {
        self.put(0, Body::Fact(Box::new(fact)))
    }

    pub fn is(&mut self, path: &str, part: &str, version: &str) -> EventId {
        self.is_with(path, part, version, |_| {})
    }

    pub fn is_with(
        &mut self,
        path: &str,
        part: &str,
        version: &str,
        change: impl FnOnce(&mut FileFact),
    ) -> EventId {
        let mut fact = FileFact {
            path: path.to_owned(),
            realpath: path.to_owned(),
            part: Some(part.to_owned()).filter(|p| !p.is_empty()),
            version: Some(version.to_owned()).filter(|v| !v.is_empty()),
            version_from: Some("tool-string".to_owned()),
            ..FileFact::default()
        };
        change(&mut fact);
        self.fact(Fact::File(Box::new(fact)))
    }

    /// A toolkit that is there, with nvcc and ptxas.
    pub fn toolkit(&mut self, root: &str, version: &str) -> EventId {
        let parts = ["nvcc", "ptxas"]
            .iter()
            .map(|p| ((*p).to_owned(), format!("{root}/bin/{p}")))
            .collect();
        self.fact(Fact::Toolkit(ToolkitFact {
            root: root.to_owned(),
            version: Some(version.to_owned()),
            version_from: Some("version-json".to_owned()),
            kind: "system".to_owned(),
            found_by: "default directory".to_owned(),
            parts,
        }))
    }

    /// torch, built for a CUDA release.
    pub fn torch(&mut self, cuda: &str) -> EventId {
        self.distribution("torch", "2.11.0", Some(cuda))
    }

    pub fn distribution(&mut self, name: &str, version: &str, built_for: Option<&str>) -> EventId {
        self.fact(Fact::Distribution(DistributionFact {
            name: name.to_owned(),
            version: version.to_owned(),
            path: format!("/v/site-packages/{name}-{version}.dist-info"),
            built_for: built_for.map(str::to_owned),
            built_for_from: built_for.map(|_| "torch/version.py".to_owned()),
        }))
    }

    pub fn cached(&mut self, path: &str, change: impl FnOnce(&mut CacheFact)) -> EventId {
        let mut fact = CacheFact {
            path: path.to_owned(),
            directory: "/c/flashinfer".to_owned(),
            owner: "flashinfer".to_owned(),
            key: "k".to_owned(),
            ..CacheFact::default()
        };
        change(&mut fact);
        self.fact(Fact::Cache(Box::new(fact)))
    }

    pub fn on_network(&mut self, path: &str) {
        self.fact(Fact::Directory(DirectoryFact {
            path: path.to_owned(),
            filesystem: "nfs4".to_owned(),
            network: true,
            writable: Some(true),
            ..DirectoryFact::default()
        }));
    }

    pub fn mounted_noexec(&mut self, path: &str) {
        self.fact(Fact::Directory(DirectoryFact {
            path: path.to_owned(),
            filesystem: "tmpfs".to_owned(),
            noexec: true,
            ..DirectoryFact::default()
        }));
    }

    pub fn kernel_module(&mut self, version: &str) {
        self.fact(Fact::Driver(DriverFact {
            version: Some(version.to_owned()),
            cuda: None,
            from: "proc".to_owned(),
        }));
    }

    pub fn report(&self) -> Report {
        let mut model = Model::new(self.header.clone());
        for event in &self.events {
            model.apply(event.clone());
        }
        model.report()
    }

    pub fn findings(&self) -> Vec<Finding> {
        self.report().findings
    }

    /// The first finding is this one, of this severity, and says all of `facts`.
    #[track_caller]
    pub fn finds(&self, id: &str, severity: Severity, facts: &[&str]) -> Finding {
        let findings = self.findings();
        let Some(first) = findings.first() else {
            panic!("nothing was found, expected {id}");
        };
        assert_eq!(first.id, id, "{findings:#?}");
        assert_eq!(first.severity, severity, "{first:#?}");
        let words = words(first);
        for fact in facts {
            assert!(words.contains(fact), "{fact:?} is not in\n{words}");
        }
        let ids: Vec<EventId> = self.events.iter().map(|e| e.id).collect();
        for line in &first.evidence {
            assert!(ids.contains(&line.event), "no event backs {:?}", line.text);
        }
        assert!(!first.evidence.is_empty(), "{first:#?}");
        first.clone()
    }

    /// Neither an error nor a warning.
    #[track_caller]
    pub fn silent(&self) {
        let grave: Vec<Finding> = self
            .findings()
            .into_iter()
            .filter(|f| f.severity != Severity::Note)
            .collect();
        assert!(grave.is_empty(), "{grave:#?}");
    }

    /// Nothing graver than a note, and this note among them.
    #[track_caller]
    pub fn notes(&self, id: &str) {
        self.silent();
        let findings = self.findings();
        assert!(findings.iter().any(|f| f.id == id), "{findings:#?}");
    }
}

pub fn words(finding: &Finding) -> String {
    let mut words = vec![finding.title.clone(), finding.cause.clone()];
    words.extend(finding.evidence.iter().map(|e| e.text.clone()));
    words.extend(finding.remedy.iter().cloned());
    words.join("\n")
}

pub fn frame(file: &str, distribution: Option<&str>) -> Frame {
    Frame {
        file: file.to_owned(),
        line: 7,
        function: "f".to_owned(),
        distribution: distribution.map(str::to_owned),
    }
}

pub fn candidate(path: &str, rule: Rule, outcome: Outcome) -> Candidate {
    Candidate {
        path: path.to_owned(),
        rule,
        outcome,
    }
}

fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

//! A trace may be as long as it likes: what the fold keeps of it does not grow with the days that are alike, and what
//! happened once in the middle of them is told as if nothing had been around it.
//!
//! Everything here is counted (entries, bytes of the heap), never timed.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

use jittrace_model::{
    Model,
    event::*,
    log::Header,
    report::{Finding, Severity},
};

/// Counts the bytes that this thread holds.
struct Counting;

thread_local! {
    static HELD: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every request goes to the system's allocator as it came; only numbers are kept beside it, in a thread-local
// that needs no allocation and no destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.with(|held| held.set(held.get().wrapping_add(layout.size())));
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.with(|held| held.set(held.get().wrapping_sub(layout.size())));
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn held() -> usize {
    HELD.with(Cell::get)
}

/// Where a fold counts as long here, so that a few thousand events are a long trace.
const LONG: usize = 4_000;

const SERVER: u32 = 10;

/// A server and what it does all day.
struct Day {
    model: Model,
    next: u64,
    t: u64,
    pid: u32,
}

impl Day {
    fn new(keeping: usize) -> Day {
        let header = Header {
            jittrace: 1,
            command: vec!["python".into(), "serve.py".into()],
            ..Header::default()
        };
        let mut day = Day {
            model: Model::new(header).keeping(keeping),
            next: 1,
            t: 0,
            pid: 1000,
        };
        day.start(SERVER, 1, "/usr/bin/python3.12", &["python", "serve.py"]);
        day
    }

    fn tell(&mut self, pid: u32, body: Body) -> u64 {
        let id = self.next;
        self.next += 1;
        self.t += 50_000_000;
        self.model.apply(Event {
            id,
            t: self.t,
            pid,
            tid: pid,
            source: Source::Preload,
            same_as: None,
            body,
        });
        id
    }

    fn start(&mut self, pid: u32, ppid: u32, exe: &str, argv: &[&str]) {
        let env = [("CUDA_HOME", "/opt/cuda-13.0"), ("PATH", "/usr/bin:/bin")];
        self.tell(
            pid,
            Body::ProcessStart(Box::new(ProcessStart {
                ppid,
                exe: exe.into(),
                argv: argv.iter().map(|a| (*a).to_owned()).collect(),
                cwd: "/srv".into(),
                env: env
                    .iter()
                    .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                    .collect(),
                ..ProcessStart::default()
            })),
        );
    }

    fn end(&mut self, pid: u32, code: i32) {
        self.tell(
            pid,
            Body::ProcessExit(ProcessExit {
                code: Some(code),
                ..ProcessExit::default()
            }),
        );
    }

    fn open(&mut self, pid: u32, path: &str, op: FileOp, errno: i32) {
        self.tell(
            pid,
            Body::File(Box::new(FileAccess {
                op,
                path: path.into(),
                errno,
                python: vec![Frame {
                    file: "/srv/serve.py".into(),
                    line: 7,
                    function: "work".into(),
                    distribution: None,
                }],
                ..FileAccess::default()
            })),
        );
    }

    /// Runs a program as a child: attempt, start, a few files, end.
    fn run(&mut self, parent: u32, exe: &str, argv: &[&str], files: &[&str], code: i32) -> u32 {
        self.pid += 1;
        let pid = self.pid;
        self.tell(
            parent,
            Body::Exec(Box::new(Exec {
                call: "posix_spawn".into(),
                path: exe.into(),
                argv: argv.iter().map(|a| (*a).to_owned()).collect(),
                child: Some(pid),
                ..Exec::default()
            })),
        );
        self.start(pid, parent, exe, argv);
        for file in files {
            self.open(pid, file, FileOp::Open, 0);
        }
        self.end(pid, code);
        pid
    }

    /// One round: a build below ninja, a lock, a library, a few calls.
    fn round(&mut self) {
        self.pid += 1;
        let ninja = self.pid;
        let n = self.next;
        self.start(ninja, SERVER, "/usr/bin/ninja", &["ninja", "-C", "/srv/op"]);
        let temporary = format!("/tmp/tmpxft_{n:08x}/op.ii");
        for _ in 0..3 {
            self.run(
                ninja,
                "/opt/cuda-13.0/bin/nvcc",
                &["nvcc", "-c", "op.cu", "-o", &temporary],
                &["/opt/cuda-13.0/include/cuda.h", &temporary],
                0,
            );
        }
        self.end(ninja, 0);
        let lock = "/srv/.cache/op.lock";
        for op in [FileOp::LockWait, FileOp::Locked, FileOp::Unlock] {
            self.open(SERVER, lock, op, 0);
        }
        let request = self.tell(
            SERVER,
            Body::LibraryRequest(Box::new(LibraryRequest {
                name: "libcudart.so.13".into(),
                ..LibraryRequest::default()
            })),
        );
        self.tell(
            SERVER,
            Body::LibraryLoaded(Box::new(LibraryLoaded {
                path: "/opt/cuda-13.0/lib64/libcudart.so.13".into(),
                requested: Some("libcudart.so.13".into()),
                request: Some(request),
                rule: Rule::LdSoCache,
                ..LibraryLoaded::default()
            })),
        );
        for _ in 0..10 {
            self.tell(
                SERVER,
                Body::Call(Box::new(Call {
                    function: "cudaRuntimeGetVersion".into(),
                    result: Some(0),
                    value: Some("13000".into()),
                    duration_ns: Some(n),
                    count: 1,
                    ..Call::default()
                })),
            );
        }
        self.tell(
            SERVER,
            Body::Lost(Lost {
                what: "records".into(),
                count: 1,
                reason: "the buffer was full".into(),
            }),
        );
    }

    fn rounds(&mut self, count: usize) {
        for _ in 0..count {
            self.round();
        }
    }
}

#[test]
fn what_is_kept_does_not_grow_with_days_that_are_alike() {
    let before = held();
    let mut day = Day::new(LONG);
    let mut most = [(0, 0); 2];
    // As many rounds again must not need more than the first did.
    for most in &mut most {
        for _ in 0..40 {
            day.rounds(25);
            most.0 = most.0.max(day.model.entries());
            most.1 = most.1.max(held() - before);
        }
    }
    assert!(day.model.event_count() > 60_000);
    let [first, second] = most;
    assert!(first.0 <= LONG, "{} entries are kept", first.0);
    assert!(second.0 <= first.0, "{first:?}, then {second:?}");
    assert!(
        second.1 <= first.1 + first.1 / 20,
        "{} bytes, then {}",
        first.1,
        second.1
    );
    let report = day.model.report();
    let condensed = report.condensed.unwrap();
    assert_eq!(
        report.processes.len() as u64 + condensed.process_count(),
        1 + 2000 * 4,
        "every run is listed or counted"
    );
    assert_eq!(report.lost.len(), 1);
    assert_eq!(report.lost[0].count, 2000, "losses add up");
    assert!(report.notes.iter().any(|n| n.starts_with("a long trace: ")));
}

#[test]
fn an_ordinary_trace_is_kept_whole() {
    let mut day = Day::new(LONG);
    day.rounds(100);
    let mut whole = Day::new(usize::MAX);
    whole.rounds(100);
    assert_eq!(day.model.report(), whole.model.report());
    assert_eq!(day.model.report().condensed, None);
}

/// What is told of a trace, without numbers of events and without how often it happened.
fn told(model: &Model) -> Vec<(String, Severity, Option<String>)> {
    let key = |f: &Finding| (f.id.clone(), f.severity, f.component.clone());
    model.report().findings.iter().map(key).collect()
}

#[test]
fn what_happened_once_is_told_as_in_a_short_trace() {
    let fault = |day: &mut Day| {
        // A lock that a killed build left behind, and a worker that gave up on it.
        let worker = 500;
        day.start(
            worker,
            SERVER,
            "/usr/bin/python3.12",
            &["python", "build.py"],
        );
        day.open(worker, "/srv/.cache/stale.lock", FileOp::Create, 17);
        day.t += 60_000_000_000;
        day.end(worker, 1);
        // A compile that failed, among many that did not.
        day.run(
            SERVER,
            "/opt/cuda-13.0/bin/nvcc",
            &["nvcc", "-c", "op.cu", "-o", "other.o"],
            &[],
            1,
        );
    };
    let mut short = Day::new(usize::MAX);
    short.rounds(2);
    fault(&mut short);
    short.rounds(2);
    let mut long = Day::new(LONG);
    long.rounds(1000);
    fault(&mut long);
    long.rounds(1000);
    let (short, long) = (short.model, long.model);
    assert!(long.condensed().process_count() > 7000);
    assert!(
        told(&short).iter().any(|(id, ..)| id == "build-lock-stale"),
        "{:?}",
        told(&short)
    );
    assert_eq!(told(&long), told(&short));
    let failed = |model: &Model| {
        let builds = model.report().builds;
        builds
            .iter()
            .filter(|b| b.exit.is_some_and(|e| !e.is_success()))
            .count()
    };
    assert_eq!(failed(&long), 1);
    // Who a process belongs to stays true when the list becomes shorter.
    for process in long.processes() {
        assert_eq!(long.process(process.index).map(|p| p.id), Some(process.id));
        let parent = process.parent.and_then(|p| long.process(p));
        if process.id > 1 {
            assert_eq!(parent.map(|p| p.pid), Some(process.what.ppid));
        }
        assert!(
            long.exec_of(process)
                .is_none_or(|e| e.what.child == Some(process.pid))
        );
    }
    assert!(long.execs_without_start().next().is_none());
    for library in long.libraries() {
        let request = library.what.request.unwrap();
        assert!(long.request(request).is_some_and(|r| r.id == request));
    }
}

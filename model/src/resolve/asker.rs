//! Who asked: the component behind a call, a load or an exec.
//!
//! The nearest Python frame outside the standard library and the plumbing (ctypes, subprocess, loaders that others
//! use) decides by the distribution that owns its file; else the owner of the calling object; else the script. A
//! process that nobody's frames explain was asked for by whoever asked for its parent: that is how a `ptxas` below
//! `sh`, `nvcc`, `sh` and `ninja` belongs to the component that ran ninja.

use crate::{
    commandline, component,
    event::{Caller, Frame},
    fold::{Model, Process},
};

use super::{absolute, tool};

/// Who asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Asker {
    /// Component name: `flashinfer`, a distribution, or a script.
    pub component: String,
    /// The distribution, when one owns the frame or object.
    pub distribution: Option<String>,
    /// The script or object, when no distribution owns it.
    pub path: Option<String>,
    /// The frame that decided, or the nearest one that is not standard library.
    pub frame: Option<Frame>,
}

impl Asker {
    /// The frame or object in words: `get_cuda_version in flashinfer/jit/cpp_ext.py:98`.
    pub fn sentence(&self) -> Option<String> {
        match &self.frame {
            Some(frame) => Some(frame_sentence(frame)),
            None => self.path.clone(),
        }
    }
}

/// A frame in words.
pub fn frame_sentence(frame: &Frame) -> String {
    let file = after_site_packages(&frame.file).unwrap_or(&frame.file);
    match (frame.function.as_str(), frame.line) {
        ("<module>" | "", 0) => file.to_owned(),
        ("<module>" | "", line) => format!("{file}:{line}"),
        (function, 0) => format!("{function} in {file}"),
        (function, line) => format!("{function} in {file}:{line}"),
    }
}

/// The part of a path below `site-packages` or `dist-packages`.
pub fn after_site_packages(path: &str) -> Option<&str> {
    ["/site-packages/", "/dist-packages/"]
        .iter()
        .filter_map(|marker| {
            path.rfind(marker)
                .and_then(|at| path.get(at + marker.len()..))
        })
        .next()
}

/// Whether a frame's file is Python's own.
fn is_standard_library(file: &str) -> bool {
    if file.starts_with("<frozen") || file == "<string>" {
        return true;
    }
    if after_site_packages(file).is_some() {
        return false;
    }
    // …/lib/python3.12/subprocess.py, …/lib/python3.12/ctypes/__init__.py, …/lib/python312.zip/…
    file.split("/lib/python3").nth(1).is_some_and(|rest| {
        rest.split_once('/').is_some_and(|(version, _)| {
            version
                .chars()
                .all(|c| c.is_ascii_digit() || matches!(c, '.' | 'z' | 'i' | 'p' | 't'))
        })
    })
}

/// The component that a list of frames (innermost first) speaks for.
pub fn of_frames(frames: &[Frame]) -> Option<Asker> {
    let own = frames.iter().filter(|f| !is_standard_library(&f.file));
    let mut nearest = None;
    for frame in own {
        nearest.get_or_insert(frame);
        let owner = frame.distribution.as_deref();
        if owner.is_some_and(component::is_plumbing) {
            continue;
        }
        return Some(of_frame(frame));
    }
    nearest.map(of_frame)
}

fn of_frame(frame: &Frame) -> Asker {
    if let Some(distribution) = &frame.distribution {
        return Asker {
            component: component::name_of(distribution),
            distribution: Some(distribution.clone()),
            path: None,
            frame: Some(frame.clone()),
        };
    }
    // A package without a RECORD is still called by its folder.
    let package = after_site_packages(&frame.file)
        .and_then(|rest| rest.split('/').next())
        .map(|top| component::name_of(top.trim_end_matches(".py")));
    Asker {
        component: package.unwrap_or_else(|| script_name(&frame.file)),
        distribution: None,
        path: Some(frame.file.clone()),
        frame: Some(frame.clone()),
    }
}

fn script_name(file: &str) -> String {
    file.rsplit('/').next().unwrap_or(file).to_owned()
}

/// The component that owns an object file, when one does: its distribution, or the cache it lies in.
pub fn of_object(model: &Model, object: &str) -> Option<Asker> {
    if let Some(fact) = model.cache_fact(object) {
        return Some(Asker {
            component: fact.what.owner.clone(),
            path: Some(object.to_owned()),
            ..Asker::default()
        });
    }
    let distribution = model.file(object)?.what.distribution.clone()?;
    Some(Asker {
        component: component::name_of(&distribution),
        distribution: Some(distribution),
        path: Some(object.to_owned()),
        frame: None,
    })
}

/// Who asked for something inside a process, by frames first, then by the calling object, then by the process.
pub fn of_call(
    model: &Model,
    python: &[Frame],
    caller: Option<&Caller>,
    process: Option<usize>,
) -> Asker {
    if let Some(asker) = of_frames(python) {
        return asker;
    }
    let owner = caller.and_then(|caller| match &caller.distribution {
        Some(distribution) => Some(Asker {
            component: component::name_of(distribution),
            distribution: Some(distribution.clone()),
            path: Some(caller.object.clone()),
            frame: None,
        }),
        None => of_object(model, &caller.object),
    });
    owner
        .or_else(|| {
            process
                .and_then(|i| model.process(i))
                .map(|p| of_program(model, p))
        })
        .unwrap_or_default()
}

/// Who asked for a library: the owner of the object that needs it, else whoever asked for that object. A part of a
/// toolkit (libcudart, which opens libcuda) acts for whoever called it.
pub fn of_library(
    model: &Model,
    requested_by: Option<&str>,
    python: &[Frame],
    process: Option<usize>,
) -> Asker {
    let owner = requested_by
        .filter(|object| !is_python_itself(object))
        .and_then(|object| of_object(model, object));
    let is_part = requested_by
        .and_then(|object| model.file(object))
        .is_some_and(|fact| fact.what.part.is_some());
    owner
        .filter(|_| !is_part)
        .or_else(|| of_frames(python))
        .or_else(|| requested_by.and_then(|object| of_object(model, object)))
        .unwrap_or_else(|| of_call(model, python, None, process))
}

/// Whether an object belongs to the interpreter: `_ctypes.cpython-312-….so`, `libpython3.12.so`, `python3.12`.
pub(crate) fn is_python_itself(object: &str) -> bool {
    let name = object.rsplit('/').next().unwrap_or(object);
    object.contains("/lib-dynload/")
        || name.starts_with("libpython")
        || name.starts_with("python")
        || name.contains(".cpython-") && is_standard_library(object)
}

/// Who asked for a process to run. Where no frames tell, a build below a JIT cache belongs to the owner of that cache.
pub fn of_process(model: &Model, process: &Process) -> Asker {
    let mut at = Some(process);
    let mut of_cache = None;
    // Parent links always lead to an earlier image, so this ends.
    while let Some(process) = at {
        let frames = match model.exec_of(process) {
            Some(exec) => &exec.what.python,
            None => &process.asked_by,
        };
        if let Some(asker) = of_frames(frames) {
            return asker;
        }
        of_cache = of_cache.or_else(|| of_build_directory(model, process));
        let parent = process.parent.and_then(|i| model.process(i));
        match parent {
            Some(parent) if is_tool(parent.name()) => at = Some(parent),
            _ => return of_cache.unwrap_or_else(|| of_program(model, parent.unwrap_or(process))),
        }
    }
    Asker::default()
}

/// The owner of the JIT cache in which a build system works.
fn of_build_directory(model: &Model, process: &Process) -> Option<Asker> {
    if tool::Kind::of(process.name()) != Some(tool::Kind::BuildSystem) {
        return None;
    }
    let command = commandline::parse(&process.what.argv);
    let directory = match &command.directory {
        Some(changed) => absolute(&process.what.cwd, changed),
        None => process.what.cwd.clone(),
    };
    let owner = model.cache_owner(&directory)?;
    Some(Asker {
        component: owner.to_owned(),
        path: Some(directory),
        ..Asker::default()
    })
}

/// Whether the command line of a Python process says nothing of its own: a worker of `multiprocessing`, or a title
/// that setproctitle wrote over the arguments and padded with empty ones.
fn is_worker(argv: &[String]) -> bool {
    let rewritten = argv.len() > 1 && argv.iter().skip(1).all(String::is_empty);
    rewritten
        || argv
            .iter()
            .skip_while(|argument| *argument != "-c")
            .nth(1)
            .is_some_and(|code| code.starts_with("from multiprocessing."))
}

/// The component that a program is: a module or script run by Python, a distribution's entry point, or itself. A
/// worker is what started it.
fn of_program(model: &Model, process: &Process) -> Asker {
    let is_python = |process: &Process| process.name().starts_with("python");
    let mut process = process;
    // Parent links always lead to an earlier image, so this ends.
    while is_python(process)
        && is_worker(&process.what.argv)
        && let Some(parent) = process.parent.and_then(|i| model.process(i))
        && is_python(parent)
    {
        process = parent;
    }
    if is_python(process) {
        let mut arguments = process.what.argv.iter().skip(1).filter(|a| !a.is_empty());
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "-m" => {
                    let module = arguments.next().cloned().unwrap_or_default();
                    let top = module.split('.').next().unwrap_or_default();
                    return Asker {
                        component: component::name_of(top),
                        ..Asker::default()
                    };
                }
                "-c" | "-" => break,
                "-X" | "-W" => {
                    arguments.next();
                }
                option if option.starts_with('-') => {}
                script => {
                    return Asker {
                        component: script_name(script),
                        path: Some(script.to_owned()),
                        ..Asker::default()
                    };
                }
            }
        }
    }
    of_object(model, &process.program)
        .or_else(|| of_outermost(&process.doing))
        .unwrap_or_else(|| Asker {
            component: process.name().to_owned(),
            path: Some(process.program.clone()),
            ..Asker::default()
        })
}

/// What a Python process that was found running is, when its command line does not say: the code that its main thread
/// began in.
fn of_outermost(frames: &[Frame]) -> Option<Asker> {
    frames
        .iter()
        .rev()
        .find(|frame| !is_standard_library(&frame.file))
        .map(of_frame)
}

/// Whether a program is a build tool, a compiler or a shell: it acts for whoever ran it.
pub fn is_tool(name: &str) -> bool {
    tool::Kind::of(name).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(file: &str, distribution: Option<&str>) -> Frame {
        Frame {
            file: file.into(),
            line: 3,
            function: "f".into(),
            distribution: distribution.map(Into::into),
        }
    }

    #[test]
    fn the_standard_library_is_told_by_its_place() {
        for file in [
            "/usr/lib/python3.12/subprocess.py",
            "/opt/py/lib/python3.13/ctypes/__init__.py",
            "<frozen importlib._bootstrap>",
            "<string>",
        ] {
            assert!(is_standard_library(file), "{file}");
        }
        for file in [
            "/usr/lib/python3/dist-packages/x.py",
            "/v/lib/python3.12/site-packages/torch/__init__.py",
            "/home/me/app.py",
            "<stdin>",
        ] {
            assert!(!is_standard_library(file), "{file}");
        }
    }

    #[test]
    fn the_nearest_owned_frame_decides() {
        let frames = [
            frame("/usr/lib/python3.12/subprocess.py", None),
            frame(
                "/v/lib/python3.12/site-packages/flashinfer/jit/cpp_ext.py",
                Some("flashinfer-python"),
            ),
            frame(
                "/v/lib/python3.12/site-packages/sglang/srt/x.py",
                Some("sglang"),
            ),
        ];
        let asker = of_frames(&frames).unwrap();
        assert_eq!(asker.component, "flashinfer");
        assert_eq!(
            asker.sentence().unwrap(),
            "f in flashinfer/jit/cpp_ext.py:3"
        );
    }

    #[test]
    fn a_loader_that_others_use_speaks_for_them() {
        let frames = [
            frame(
                "/v/lib/python3.12/site-packages/tvm_ffi/module.py",
                Some("apache-tvm-ffi"),
            ),
            frame(
                "/v/lib/python3.12/site-packages/flashinfer/jit/core.py",
                Some("flashinfer-python"),
            ),
        ];
        assert_eq!(of_frames(&frames).unwrap().component, "flashinfer");
        assert_eq!(of_frames(&frames[..1]).unwrap().component, "tvm-ffi");
    }

    /// A server that renamed itself, with a compiler that it waits for, as a snapshot finds them.
    #[test]
    fn frames_of_a_snapshot_name_who_runs_and_who_asked() {
        let lines = [
            r#"{"jittrace":1,"version":"0","command":[]}"#,
            r#"{"id":1,"t":1,"pid":7,"tid":7,"source":"procfs","kind":"process-start","ppid":1,"exe":"/v/bin/python3.12","argv":["serve::worker"],"cwd":"/","env":{},"found":true}"#,
            r#"{"id":2,"t":2,"pid":7,"tid":7,"source":"procfs","kind":"python-stack","of":1,"delay_ns":5,"inexact":true,"python":[
                {"file":"/v/lib/python3.12/selectors.py","line":1,"function":"select"},
                {"file":"/v/lib/python3.12/site-packages/torch/x.py","line":1,"function":"f","distribution":"torch"},
                {"file":"/v/lib/python3.12/site-packages/sglang/w.py","line":1,"function":"run","distribution":"sglang"},
                {"file":"<string>","line":1,"function":"<module>"}]}"#,
            r#"{"id":3,"t":3,"pid":9,"tid":9,"source":"procfs","kind":"process-start","ppid":7,"exe":"/c/bin/nvcc","argv":["nvcc"],"cwd":"/","env":{},"found":true}"#,
            r#"{"id":4,"t":4,"pid":7,"tid":8,"source":"procfs","kind":"python-stack","of":3,"delay_ns":5,"inexact":true,"python":[
                {"file":"/v/lib/python3.12/subprocess.py","line":1,"function":"run"},
                {"file":"/v/lib/python3.12/site-packages/flashinfer/jit/core.py","line":1,"function":"build","distribution":"flashinfer-python"}]}"#,
        ];
        let text: String = lines.iter().map(|l| l.replace('\n', "") + "\n").collect();
        let mut reader = crate::log::Reader::new(text.as_bytes()).unwrap();
        let mut model = Model::new(reader.header().clone());
        while let Some(event) = reader.next_event().unwrap() {
            model.apply(event);
        }
        let [server, compiler] = model.processes() else {
            panic!("two processes: {:?}", model.processes())
        };
        assert_eq!(of_process(&model, server).component, "sglang");
        assert_eq!(of_process(&model, compiler).component, "flashinfer");
        assert_eq!(
            of_call(&model, &[], None, Some(server.index)).component,
            "sglang"
        );
    }

    #[test]
    fn a_script_is_a_component_too() {
        assert_eq!(
            of_frames(&[frame("/tmp/x/app.py", None)])
                .unwrap()
                .component,
            "app.py"
        );
    }

    #[test]
    fn a_worker_says_nothing_of_its_own() {
        let argv = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
        for worker in [
            &["sglang::scheduler", "", "", ""][..],
            &[
                "/v/bin/python3",
                "-B",
                "-c",
                "from multiprocessing.spawn import spawn_main; spawn_main()",
            ],
            &[
                "python3",
                "-c",
                "from multiprocessing.resource_tracker import main;main(29)",
            ],
        ] {
            assert!(is_worker(&argv(worker)), "{worker:?}");
        }
        for own in [
            &["python3"][..],
            &["python3", "-m", "sglang.launch_server"],
            &["python3", "-c", "import torch"],
            &["python3", "app.py", ""],
        ] {
            assert!(!is_worker(&argv(own)), "{own:?}");
        }
    }
}

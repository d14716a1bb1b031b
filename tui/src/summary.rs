//! An event in one line: what a person would say of it, the telling part first.

use jittrace_model::{
    Body, Event,
    event::{Fact, FileOp, Frame},
    report::phrase,
};

use crate::text;

/// The file or program that an event is about; its toolkit is shown left of the line.
pub fn file(event: &Event) -> Option<&str> {
    match &event.body {
        Body::ProcessStart(start) => Some(&start.exe),
        Body::Exec(exec) => Some(&exec.path),
        Body::ExecFailed(failed) => Some(&failed.path),
        Body::LibraryLoaded(loaded) => Some(&loaded.path),
        Body::LibraryUnloaded(unloaded) => Some(&unloaded.path),
        Body::Call(call) => call.object.as_deref(),
        Body::File(access) => Some(&access.path),
        Body::Fact(fact) => match fact.as_ref() {
            Fact::File(fact) => Some(&fact.path),
            Fact::ToolOutput(fact) => Some(&fact.path),
            Fact::Cache(fact) => Some(&fact.path),
            _ => None,
        },
        _ => None,
    }
}

/// The event in one line that takes at most `room` columns; paths are shortened in their middle.
pub fn line(event: &Event, room: usize, ellipsis: &str) -> String {
    let (lead, path, rest) = parts(event);
    let (lead, rest) = (text::clean(&lead), text::clean(&rest));
    let path = text::clean(path);
    let wanted = text::width(&path);
    let fixed = text::width(&lead) + usize::from(!lead.is_empty());
    // The rest gives way first, down to a third of the room; then the path is shortened.
    let rest_room = text::width(&rest) + usize::from(!rest.is_empty());
    let path_room = if fixed + wanted + rest_room <= room {
        wanted
    } else {
        let spare = room.saturating_sub(fixed);
        // A name that is cut in its middle tells less than a rest that is cut at its end.
        let name = (text::width(text::base(&path)) + "…/".chars().count()).min(spare);
        wanted.min(
            spare
                .saturating_sub(rest_room.min(spare / 3))
                .max(spare / 2)
                .max(name),
        )
    };
    let mut out = String::new();
    for piece in [
        lead.as_ref(),
        text::fit_path(&path, path_room, ellipsis).as_ref(),
        rest.as_ref(),
    ] {
        if !piece.is_empty() {
            if !out.is_empty() {
                out.push(' ');
            }
            out.push_str(piece);
        }
    }
    text::fit(&out, room, ellipsis).into_owned()
}

/// All the words of an event that a search should find. The environment is left out: nearly every process inherits
/// the same one, so that it would match everywhere (`env.NAME:value` asks for it).
pub fn haystack(event: &Event) -> String {
    let (lead, path, rest) = parts(event);
    let mut out = format!("{} {lead} {path} {rest}", event.body.kind());
    let mut add = |word: &str| {
        if !word.is_empty() {
            out.push(' ');
            out.push_str(word);
        }
    };
    let frames: &[Frame] = match &event.body {
        Body::Exec(b) => &b.python,
        Body::ExecFailed(b) => &b.python,
        Body::LibraryRequest(b) => &b.python,
        Body::LibraryLoaded(b) => {
            for word in [&b.requested, &b.requested_by].into_iter().flatten() {
                add(word);
            }
            add(&b.realpath);
            add(&b.rule_detail);
            &b.python
        }
        Body::LibraryFailed(b) => {
            for word in [&b.requested_by, &b.missing, &b.missing_for]
                .into_iter()
                .flatten()
            {
                add(word);
            }
            &b.python
        }
        Body::Call(b) => {
            if let Some(log) = &b.log {
                add(log);
            }
            if let Some(caller) = &b.caller {
                add(&caller.object);
            }
            &b.python
        }
        Body::File(b) => &b.python,
        Body::PythonStack(b) => &b.python,
        Body::Other(b) => {
            add(&serde_json::Value::Object(b.fields.clone()).to_string());
            &[]
        }
        _ => &[],
    };
    for frame in frames {
        add(&frame.file);
        add(&frame.function);
        add(frame.distribution.as_deref().unwrap_or_default());
    }
    out
}

/// Verb, path, rest.
fn parts(event: &Event) -> (String, &str, String) {
    match &event.body {
        Body::ProcessStart(b) => (
            if b.found { "runs" } else { "starts" }.to_owned(),
            &b.exe,
            text::arguments(&b.argv),
        ),
        Body::ProcessExit(b) => (
            match (b.code, b.signal) {
                (Some(code), _) => format!("ended with code {code}"),
                (None, Some(signal)) => format!("died of {}", phrase::signal_name(signal)),
                (None, None) if b.unread.is_none() => "ended".to_owned(),
                (None, None) => String::new(),
            },
            "",
            b.unread.clone().unwrap_or_default(),
        ),
        Body::Exec(b) => (b.call.clone(), &b.path, text::arguments(&b.argv)),
        Body::ExecFailed(b) => (errno(b.errno), &b.path, text::arguments(&b.argv)),
        Body::LibraryRequest(b) => (
            if b.call.is_empty() {
                "dlopen".to_owned()
            } else {
                b.call.clone()
            },
            &b.name,
            by(b.caller.as_ref().map(|c| c.object.as_str()), &b.python),
        ),
        Body::LibraryLoaded(b) => (
            String::new(),
            &b.path,
            format!(
                "{} {}",
                match b.rule_detail.is_empty() {
                    true => format!("by {}", b.rule.word()),
                    false => format!("by {} ({})", b.rule.word(), text::base(&b.rule_detail)),
                },
                by(b.requested_by.as_deref(), &b.python)
            )
            .trim_end()
            .to_owned(),
        ),
        Body::LibraryFailed(b) => (String::new(), &b.requested, b.error.clone()),
        Body::LibraryUnloaded(b) => ("unmapped".to_owned(), &b.path, String::new()),
        Body::Call(b) => {
            let mut rest = String::new();
            if !b.args.is_empty() {
                rest.push_str(&format!("({}) ", b.args.join(", ")));
            }
            if let Some(value) = &b.value {
                rest.push_str(&format!("= {value} "));
            }
            if let Some(result) = b.result.filter(|r| *r != 0) {
                rest.push_str(&format!("failed with {result} "));
            }
            if let Some(image) = &b.image {
                rest.push_str(&format!("{} ", image.kind));
                for (name, value) in [("PTX", &image.ptx_version), ("target", &image.target)] {
                    if let Some(value) = value {
                        rest.push_str(&format!("{name} {value} "));
                    }
                }
                rest.push_str(&image.archs.join(" "));
                rest.push(' ');
            }
            if b.count > 1 {
                rest.push_str(&format!("×{} ", b.count));
            }
            rest.push_str(&by(b.caller.as_ref().map(|c| c.object.as_str()), &b.python));
            (b.function.clone(), "", rest.trim_end().to_owned())
        }
        Body::Message(b) => (format!("{}:", b.stream), "", b.text.clone()),
        Body::File(b) => (
            match b.errno {
                0 => verb(b.op).to_owned(),
                error => format!("{} {}", verb(b.op), errno(error)),
            },
            &b.path,
            match (&b.to, b.wait_ns) {
                (Some(to), _) => format!("to {to}"),
                (None, Some(wait)) => format!("after {}", text::duration(wait)),
                _ => by(None, &b.python),
            },
        ),
        Body::PythonStack(b) => ("frames".to_owned(), "", by(None, &b.python)),
        Body::Fact(fact) => match fact.as_ref() {
            Fact::File(f) => (
                f.part.clone().unwrap_or_else(|| "file".to_owned()),
                &f.path,
                match (&f.version, &f.version_from) {
                    (Some(version), Some(from)) => {
                        format!("{version} (from {})", crate::why::version_from(from))
                    }
                    (Some(version), None) => version.clone(),
                    _ => String::new(),
                },
            ),
            Fact::Distribution(f) => (
                format!("{} {}", f.name, f.version),
                "",
                f.built_for
                    .as_ref()
                    .map(|cuda| format!("built for CUDA {cuda}"))
                    .unwrap_or_default(),
            ),
            Fact::Toolkit(f) => (
                format!("toolkit {} {}", f.kind, f.version.as_deref().unwrap_or("?")),
                &f.root,
                f.found_by.clone(),
            ),
            Fact::Gpu(f) => (
                format!("GPU {}", f.index),
                "",
                format!(
                    "{} compute capability {}",
                    f.name,
                    f.compute_capability.as_deref().unwrap_or("?")
                ),
            ),
            Fact::Driver(f) => (
                "driver".to_owned(),
                "",
                format!(
                    "{} CUDA {}",
                    f.version.as_deref().unwrap_or("?"),
                    f.cuda.as_deref().unwrap_or("?")
                ),
            ),
            Fact::ToolOutput(f) => ("output of".to_owned(), &f.path, f.text.clone()),
            Fact::Directory(f) => ("directory".to_owned(), &f.path, f.filesystem.clone()),
            Fact::Cache(f) => (
                "artefact".to_owned(),
                &f.path,
                f.built_with
                    .as_ref()
                    .map(|v| format!("built with {v}"))
                    .unwrap_or_default(),
            ),
            Fact::Other => ("fact".to_owned(), "", String::new()),
        },
        Body::Lost(b) => (format!("lost {} {}", b.count, b.what), "", b.reason.clone()),
        Body::Note(b) => (String::new(), "", b.text.clone()),
        Body::Other(b) => (b.kind.clone(), "", String::new()),
    }
}

fn by(object: Option<&str>, python: &[Frame]) -> String {
    match (python.first(), object) {
        (Some(_), _) => format!("for {}", asker(python)),
        (None, Some(object)) if !object.is_empty() => format!("for {}", text::base(object)),
        _ => String::new(),
    }
}

/// The nearest frame that a distribution owns, else the nearest.
pub fn asker(python: &[Frame]) -> String {
    python
        .iter()
        .find(|f| f.distribution.is_some())
        .or_else(|| python.first())
        .map(jittrace_model::resolve::asker::frame_sentence)
        .unwrap_or_default()
}

fn verb(op: FileOp) -> &'static str {
    match op {
        FileOp::Open => "open",
        FileOp::Create => "create",
        FileOp::Stat => "stat",
        FileOp::Rename => "rename",
        FileOp::Unlink => "remove",
        FileOp::Mkdir => "mkdir",
        FileOp::List => "list",
        FileOp::LockWait => "waits for lock",
        FileOp::Locked => "locked",
        FileOp::Unlock => "unlocked",
        FileOp::Other => "file",
    }
}

/// An error number in words.
pub fn errno(number: i32) -> String {
    let word = match number {
        1 => "EPERM",
        2 => "ENOENT",
        8 => "ENOEXEC",
        11 => "EAGAIN",
        13 => "EACCES",
        17 => "EEXIST",
        20 => "ENOTDIR",
        21 => "EISDIR",
        26 => "ETXTBSY",
        28 => "ENOSPC",
        30 => "EROFS",
        40 => "ELOOP",
        other => return format!("errno {other}"),
    };
    word.to_owned()
}

//! Which fields of an event are text that may hold a credential.
//!
//! Every kind is taken apart by name, without `..`: a field that is added later does not compile until somebody has
//! decided whether it is masked.

use serde_json::Value;

use super::Redactor;
use crate::{
    event::{
        Body, CacheFact, Call, Caller, Candidate, Claimed, DirectoryFact, DistributionFact,
        DriverFact, Event, Exec, ExecFailed, Fact, FileAccess, FileFact, Frame, GpuFact, Image,
        LibraryFailed, LibraryLoaded, LibraryRequest, LibraryUnloaded, Lost, Message, Note,
        OtherKind, ProcessExit, ProcessStart, PythonStack, Reading, ToolOutputFact, ToolkitFact,
    },
    log::{Header, Host, SourceStatus},
};

impl Redactor {
    /// Masks every text of an event.
    pub fn event(&mut self, event: &mut Event) {
        match &mut event.body {
            Body::ProcessStart(body) => self.process_start(body),
            Body::ProcessExit(ProcessExit {
                code: _,
                signal: _,
                unread,
            }) => self.optional(unread),
            Body::Exec(body) => self.exec(body),
            Body::ExecFailed(body) => self.exec_failed(body),
            Body::LibraryRequest(body) => self.library_request(body),
            Body::LibraryLoaded(body) => self.library_loaded(body),
            Body::LibraryFailed(body) => self.library_failed(body),
            Body::LibraryUnloaded(LibraryUnloaded { path }) => self.text(path),
            Body::Call(body) => self.call(body),
            Body::Message(body) => {
                let Message {
                    stream: _,
                    text,
                    pattern: _,
                } = &mut **body;
                self.text(text);
            }
            Body::File(body) => self.file(body),
            Body::PythonStack(body) => {
                let PythonStack {
                    of: _,
                    python,
                    delay_ns: _,
                    inexact: _,
                } = &mut **body;
                self.frames(python);
            }
            Body::Fact(body) => self.fact(body),
            Body::Lost(Lost {
                what: _,
                count: _,
                reason,
            }) => self.text(reason),
            Body::Note(Note { about: _, text }) => self.text(text),
            Body::Other(body) => {
                let OtherKind { kind: _, fields } = &mut **body;
                for (name, value) in fields {
                    self.json(name, value);
                }
            }
        }
    }

    /// Masks every text of a trace's first line.
    pub fn header(&mut self, header: &mut Header) {
        let Header {
            jittrace: _,
            version: _,
            command,
            attached: _,
            started_unix_ns: _,
            host,
            sources,
        } = header;
        self.argv(command);
        let Host {
            name,
            kernel: _,
            os: _,
            libc: _,
            machine: _,
            cpus: _,
            container,
            namespaces: _,
        } = host;
        self.text(name);
        self.optional(container);
        for SourceStatus {
            name: _,
            state: _,
            reason,
        } in sources
        {
            self.optional(reason);
        }
    }

    fn process_start(&mut self, body: &mut ProcessStart) {
        let ProcessStart {
            ppid: _,
            forked: _,
            env_inherited: _,
            exe,
            argv,
            cwd,
            env,
            host_pid: _,
            inner_pid: _,
            uid: _,
            found: _,
            not_followed,
            unread,
        } = body;
        // The environment first: what it teaches is masked in the arguments as well.
        self.environment(env);
        self.argv(argv);
        self.text(exe);
        self.text(cwd);
        self.optional(not_followed);
        unread.values_mut().for_each(|reason| self.text(reason));
    }

    fn exec(&mut self, body: &mut Exec) {
        let Exec {
            call: _,
            path,
            argv,
            python,
            caller,
            ppid: _,
            child: _,
            not_followed,
        } = body;
        self.text(path);
        self.argv(argv);
        self.frames(python);
        self.caller(caller);
        self.optional(not_followed);
    }

    fn exec_failed(&mut self, body: &mut ExecFailed) {
        let ExecFailed {
            path,
            argv,
            errno: _,
            call: _,
            python,
            caller,
            ppid: _,
            tried,
        } = body;
        self.text(path);
        self.argv(argv);
        self.frames(python);
        self.caller(caller);
        self.texts(tried);
    }

    fn library_request(&mut self, body: &mut LibraryRequest) {
        let LibraryRequest {
            name,
            call: _,
            flags: _,
            caller,
            python,
        } = body;
        self.text(name);
        self.caller(caller);
        self.frames(python);
    }

    fn library_loaded(&mut self, body: &mut LibraryLoaded) {
        let LibraryLoaded {
            path,
            realpath,
            soname,
            requested,
            requested_by,
            request: _,
            rule: _,
            rule_detail,
            explanation: _,
            candidates,
            python,
            dev: _,
            ino: _,
            at_start: _,
        } = body;
        self.text(path);
        self.text(realpath);
        self.optional(soname);
        self.optional(requested);
        self.optional(requested_by);
        self.text(rule_detail);
        self.candidates(candidates);
        self.frames(python);
    }

    fn library_failed(&mut self, body: &mut LibraryFailed) {
        let LibraryFailed {
            requested,
            requested_by,
            request: _,
            error,
            candidates,
            missing,
            missing_for,
            claimed,
            python,
        } = body;
        if let Some(Claimed { path, distribution }) = claimed {
            self.text(path);
            self.text(distribution);
        }
        self.text(requested);
        self.optional(requested_by);
        self.text(error);
        self.candidates(candidates);
        self.optional(missing);
        self.optional(missing_for);
        self.frames(python);
    }

    fn call(&mut self, body: &mut Call) {
        let Call {
            function: _,
            object,
            result: _,
            value,
            caller,
            duration_ns: _,
            python,
            python_at_lookup: _,
            args,
            image,
            log,
            count: _,
        } = body;
        self.optional(object);
        self.optional(value);
        self.caller(caller);
        self.frames(python);
        self.argv(args);
        if let Some(Image {
            kind: _,
            ptx_version: _,
            target: _,
            archs: _,
            file,
        }) = image
        {
            self.optional(file);
        }
        self.optional(log);
    }

    fn file(&mut self, body: &mut FileAccess) {
        let FileAccess {
            op: _,
            path,
            errno: _,
            to,
            old_text,
            wait_ns: _,
            python,
        } = body;
        self.text(path);
        self.optional(to);
        self.optional(old_text);
        self.frames(python);
    }

    fn fact(&mut self, fact: &mut Fact) {
        match fact {
            Fact::File(fact) => self.file_fact(fact),
            Fact::Distribution(DistributionFact {
                name: _,
                version: _,
                path,
                built_for: _,
                built_for_from,
            }) => {
                self.text(path);
                self.optional(built_for_from);
            }
            Fact::Toolkit(ToolkitFact {
                root,
                version: _,
                version_from: _,
                kind: _,
                found_by,
                parts,
            }) => {
                self.text(root);
                self.text(found_by);
                parts.values_mut().for_each(|path| self.text(path));
            }
            Fact::Gpu(GpuFact {
                index: _,
                name: _,
                compute_capability: _,
                from: _,
            })
            | Fact::Driver(DriverFact {
                version: _,
                cuda: _,
                from: _,
            })
            | Fact::Other => {}
            Fact::ToolOutput(ToolOutputFact {
                path,
                argv,
                text,
                from: _,
            }) => {
                self.text(path);
                self.argv(argv);
                self.text(text);
            }
            Fact::Directory(DirectoryFact {
                path,
                filesystem: _,
                network: _,
                writable: _,
                noexec: _,
            }) => self.text(path),
            Fact::Cache(fact) => self.cache_fact(fact),
        }
    }

    fn file_fact(&mut self, fact: &mut FileFact) {
        let FileFact {
            path,
            realpath,
            dev: _,
            ino: _,
            size: _,
            mtime: _,
            part: _,
            variant: _,
            version: _,
            version_from: _,
            readings,
            toolkit,
            toolkit_kind: _,
            distribution: _,
            soname,
            needed,
            rpath,
            runpath,
            build_id: _,
            archs: _,
            ptx_isa: _,
            needs: _,
            static_cudart: _,
            script: _,
            unread,
        } = fact;
        self.text(path);
        self.text(realpath);
        for Reading {
            version,
            from: _,
            certainty: _,
        } in readings
        {
            self.text(version);
        }
        self.optional(toolkit);
        self.optional(soname);
        self.texts(needed);
        self.optional(rpath);
        self.optional(runpath);
        unread.values_mut().for_each(|reason| self.text(reason));
    }

    fn cache_fact(&mut self, fact: &mut CacheFact) {
        let CacheFact {
            path,
            directory,
            owner,
            key,
            built_with: _,
            built_with_from: _,
            cuda_home,
            nvcc,
            archs: _,
            needed,
            mtime: _,
            size: _,
        } = fact;
        self.text(path);
        self.text(directory);
        self.text(owner);
        self.text(key);
        self.optional(cuda_home);
        self.optional(nvcc);
        self.texts(needed);
    }

    fn json(&mut self, name: &str, value: &mut Value) {
        match value {
            Value::String(text) => self.value(name, text),
            Value::Array(values) => values.iter_mut().for_each(|value| self.json(name, value)),
            Value::Object(fields) => fields
                .iter_mut()
                .for_each(|(name, value)| self.json(name, value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn frames(&mut self, frames: &mut [Frame]) {
        for Frame {
            file,
            line: _,
            function: _,
            distribution: _,
        } in frames
        {
            self.text(file);
        }
    }

    fn caller(&mut self, caller: &mut Option<Caller>) {
        if let Some(Caller {
            object,
            offset: _,
            distribution: _,
        }) = caller
        {
            self.text(object);
        }
    }

    fn candidates(&mut self, candidates: &mut [Candidate]) {
        for Candidate {
            path,
            rule: _,
            outcome: _,
        } in candidates
        {
            self.text(path);
        }
    }

    fn texts(&mut self, texts: &mut [String]) {
        texts.iter_mut().for_each(|text| self.text(text));
    }

    fn optional(&mut self, text: &mut Option<String>) {
        if let Some(text) = text {
            self.text(text);
        }
    }
}

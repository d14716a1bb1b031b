//! What every kind asks of a trace: which tools ran, what was said, what failed, what else the machine has.
//!
//! Each answer carries the event that it rests on, so that a kind can only say what was seen.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use crate::{
    event::{Call, EventId, FileAccess, Frame, Message},
    fold::{Loaded, Model, Process, ProcessIndex, Seen, normalized},
    report::{Build, Exit, Report, phrase},
    resolve::{
        archs_of,
        asker::{self, Asker},
        is_question,
        tool::{self, Found, Kind},
    },
    toolkit::{Arch, ComputeCapability, Part, Version},
};

/// A version, and how it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// The version.
    pub version: Version,
    /// The event that tells it.
    pub event: EventId,
    /// How: `tool-string`, `probe`, `cuda-h` …
    pub from: String,
}

impl Known {
    /// How it is known, in words.
    pub fn how(&self) -> &str {
        phrase::version_from(&self.from)
    }
}

/// One run of a build tool.
#[derive(Debug, Clone)]
pub struct Tool<'a> {
    /// Its process image.
    pub process: &'a Process,
    /// What it does.
    pub kind: Kind,
    /// It was asked something (`--version`) and built nothing.
    pub only_asked: bool,
    /// Architectures on its command line.
    pub archs: Vec<Arch>,
    /// Its version.
    pub version: Option<Known>,
}

impl Tool<'_> {
    /// `nvcc 12.8`, or the name alone.
    pub fn named(&self) -> String {
        match &self.version {
            Some(known) => format!("{} {}", self.process.name(), known.version.without_patch()),
            None => self.process.name().to_owned(),
        }
    }

    /// Its path.
    pub fn path(&self) -> &str {
        &self.process.program
    }
}

/// Something the machine has that would do instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// Root of its toolkit; empty when none is known.
    pub root: String,
    /// The file.
    pub path: String,
    /// Its version.
    pub version: Version,
    /// The event that tells of it.
    pub event: EventId,
    /// `system`, `wheel` …
    pub kind: String,
    /// The distribution that owns it.
    pub owner: Option<String>,
}

/// A model, its report so far, and the questions that kinds ask of them.
#[derive(Debug)]
pub struct View<'a> {
    /// What was seen.
    pub model: &'a Model,
    /// What it means, all but the findings.
    pub report: &'a Report,
    tools: Vec<Tool<'a>>,
    /// What was said, without the source lines that tracebacks repeat.
    messages: Vec<&'a Seen<Message>>,
    joined: bool,
    tool_of: HashMap<ProcessIndex, usize>,
    /// Positions in the model's calls, by function: kinds ask for few of very many.
    calls_of: BTreeMap<&'a str, Vec<usize>>,
    /// Positions in the model's libraries, by process.
    libraries_of: HashMap<Option<ProcessIndex>, Vec<usize>>,
    /// Positions in the model's uses of files, by path.
    uses_of: HashMap<&'a str, Vec<usize>>,
}

impl<'a> View<'a> {
    /// Gathers what the kinds share.
    pub fn new(model: &'a Model, report: &'a Report) -> Self {
        let mut view = View {
            model,
            report,
            tools: Vec::new(),
            messages: without_echoes(model.messages()),
            joined: model
                .processes()
                .iter()
                .any(|p| crate::report::phrase::trace_of(p.pid) > 0),
            tool_of: HashMap::new(),
            calls_of: BTreeMap::new(),
            libraries_of: HashMap::new(),
            uses_of: HashMap::new(),
        };
        for (at, call) in model.calls().iter().enumerate() {
            view.calls_of
                .entry(&call.what.function)
                .or_default()
                .push(at);
        }
        for (at, library) in model.libraries().iter().enumerate() {
            view.libraries_of
                .entry(library.process)
                .or_default()
                .push(at);
        }
        for (at, access) in model.accesses().iter().enumerate() {
            view.uses_of.entry(&access.what.path).or_default().push(at);
        }
        for process in model.processes() {
            let Some(kind) = Kind::of(process.name()).filter(|k| *k != Kind::Shell) else {
                continue;
            };
            let arguments = process.arguments();
            view.tool_of.insert(process.index, view.tools.len());
            view.tools.push(Tool {
                process,
                kind,
                only_asked: is_question(kind, process),
                archs: archs_of(arguments)
                    .iter()
                    .filter_map(|a| Arch::parse(a))
                    .collect(),
                version: view.version_of_process(process),
            });
        }
        view
    }

    /// Whether the model is of several traces.
    pub fn is_joined(&self) -> bool {
        self.joined
    }

    /// Every run of a build tool, in order of start.
    pub fn tools(&self) -> &[Tool<'a>] {
        &self.tools
    }

    /// Runs of one kind of tool.
    pub fn tools_of(&self, kind: Kind) -> impl Iterator<Item = &Tool<'a>> {
        self.tools.iter().filter(move |t| t.kind == kind)
    }

    /// The tool whose run a build of the report is.
    pub fn tool_of_build(&self, build: &Build) -> Option<&Tool<'a>> {
        let began = *build.events.first()?;
        let at = self
            .tools
            .binary_search_by_key(&began, |tool| tool.process.id)
            .ok();
        at.and_then(|at| self.tools.get(at)).or_else(|| {
            self.tools
                .iter()
                .find(|t| t.process.pid == build.pid && t.process.start == build.start_ns)
        })
    }

    /// The tool that a process image is.
    pub fn tool(&self, process: ProcessIndex) -> Option<&Tool<'a>> {
        self.tool_of.get(&process).and_then(|i| self.tools.get(*i))
    }

    /// By which rule a tool was found.
    pub fn found(&self, tool: &Tool<'_>) -> Found {
        tool::rule_of(self.model, tool.process)
    }

    /// Who asked for a tool. A tool that a package carries is the package's, whoever ran it.
    pub fn asker(&self, tool: &Tool<'_>) -> Asker {
        let mut asker = asker::of_process(self.model, tool.process);
        if let Some(owner) = self.carrier(tool.path())
            && asker.distribution.is_none()
        {
            asker.component = owner;
        }
        asker
    }

    /// The package that carries a file as part of itself: `triton` for `…/site-packages/triton/…/ptxas`. The wheels of
    /// a toolkit are nobody's in this sense.
    pub fn carrier(&self, path: &str) -> Option<String> {
        let below = asker::after_site_packages(path)?;
        let top = below.split('/').next().filter(|top| *top != "nvidia")?;
        Some(crate::component::name_of(top))
    }

    /// The version of a running tool. What it printed of itself counts for more than what its directory is called.
    fn version_of_process(&self, process: &Process) -> Option<Known> {
        let file = self.version_of(&process.program).or_else(|| {
            (!process.is_script())
                .then(|| self.version_of(&process.what.exe))
                .flatten()
        });
        match file {
            Some(known) if !is_guess(&known.from) => Some(known),
            guess => self.printed(process).or(guess),
        }
    }

    /// The release that a process printed of itself, heard from it or from whoever read its pipe.
    fn printed(&self, process: &Process) -> Option<Known> {
        let answers = |m: &&Seen<Message>| {
            let own = m.process == Some(process.index);
            let heard = m.t >= process.start
                && m.t
                    <= process
                        .end
                        .unwrap_or(u64::MAX)
                        .saturating_add(2_000_000_000)
                && m.what.stream == "pipe"
                && process.parent == m.process;
            own || heard && is_asked(process)
        };
        let said = self
            .model
            .messages()
            .iter()
            .filter(|m| m.what.pattern == "toolkit-release")
            .find(answers)?;
        Some(Known {
            version: release_in(&said.what.text)?,
            event: said.id,
            from: "printed by it".to_owned(),
        })
    }

    /// The version of a file.
    pub fn version_of(&self, path: &str) -> Option<Known> {
        let guess = match self.model.file(path) {
            Some(fact) => fact
                .what
                .version
                .as_deref()
                .and_then(Version::parse)
                .map(|version| Known {
                    version,
                    event: fact.id,
                    from: fact.what.version_from.clone().unwrap_or_default(),
                }),
            None => None,
        };
        if let Some(known) = guess.as_ref().filter(|k| !is_guess(&k.from)) {
            return Some(known.clone());
        }
        let printed = self
            .model
            .tool_outputs()
            .iter()
            .rfind(|o| o.what.path == path)
            .and_then(|o| Some((o, release_in(&o.what.text)?)));
        if let Some((output, version)) = printed {
            return Some(Known {
                version,
                event: output.id,
                from: output.what.from.clone(),
            });
        }
        if guess.is_some() {
            return guess;
        }
        // A toolkit that is only known to be there: its release is that of the tool.
        self.model.toolkits().iter().find_map(|toolkit| {
            let is_part = toolkit.what.parts.iter().any(|(part, at)| {
                at == path && matches!(part.as_str(), "nvcc" | "ptxas" | "headers")
            });
            let version = toolkit.what.version.as_deref().and_then(Version::parse)?;
            is_part.then(|| Known {
                version,
                event: toolkit.id,
                from: toolkit.what.version_from.clone().unwrap_or_default(),
            })
        })
    }

    /// The part that a file is: `cudart`, `libcuda` …; empty when it is none.
    pub fn part_of(&self, path: &str) -> &str {
        match self.model.file(path).and_then(|f| f.what.part.as_deref()) {
            Some(part) => part,
            None => match Part::of_file_name(super::words::name(path)) {
                Part::Other => "",
                part => part.name(),
            },
        }
    }

    /// The file without symbolic links, as far as a fact tells.
    pub fn real<'b>(&'b self, path: &'b str) -> &'b str {
        match self.model.file(path) {
            Some(fact) if !fact.what.realpath.is_empty() => &fact.what.realpath,
            _ => path,
        }
    }

    // ---- what was said ------------------------------------------------------------------------------------------

    /// All that was said, in order, without the source lines that a traceback shows above the sentence itself.
    pub fn messages(&self) -> impl DoubleEndedIterator<Item = &'a Seen<Message>> + use<'a, '_> {
        self.messages.iter().copied()
    }

    /// Messages of these patterns, in order.
    pub fn said<'b>(
        &'b self,
        patterns: &'b [&str],
    ) -> impl Iterator<Item = &'a Seen<Message>> + use<'a, 'b> {
        self.messages()
            .filter(move |m| patterns.contains(&m.what.pattern.as_str()))
    }

    /// Messages whose text holds all of `words`, whatever their case.
    pub fn said_with<'b>(
        &'b self,
        words: &'b [&str],
    ) -> impl Iterator<Item = &'a Seen<Message>> + use<'a, 'b> {
        self.messages().filter(move |m| {
            let text = m.what.text.to_ascii_lowercase();
            words.iter().all(|w| text.contains(&w.to_ascii_lowercase()))
        })
    }

    /// Who said something and what: `nvcc said "…"`, `app.py read from a tool "…"`.
    pub fn said_by(&self, message: &Seen<Message>) -> String {
        let text = super::words::quoted(&message.what.text);
        let speaker = message
            .process
            .and_then(|p| self.model.process(p))
            .map(|p| match Kind::of(p.name()) {
                Some(_) => p.name().to_owned(),
                None => asker::of_call(self.model, &[], None, Some(p.index)).component,
            })
            .filter(|name| !name.is_empty() && !name.starts_with(['<', '-']))
            .unwrap_or_else(|| "the program".to_owned());
        match message.what.stream.as_str() {
            // What a tool wrote is heard where it is read.
            "pipe" => format!("{speaker} read from a tool {text}"),
            _ => format!("{speaker} said {text}"),
        }
    }

    /// Whether a message came from a process, from one below it or from one above it.
    pub fn concerns(&self, message: &Seen<Message>, process: ProcessIndex) -> bool {
        message.process.is_some_and(|p| self.related(p, process))
    }

    // ---- processes ----------------------------------------------------------------------------------------------

    /// Whether one process image descends from the other, or both are one.
    pub fn related(&self, a: ProcessIndex, b: ProcessIndex) -> bool {
        self.descends(a, b) || self.descends(b, a)
    }

    /// Whether `process` is `ancestor` or runs below it.
    pub fn descends(&self, process: ProcessIndex, ancestor: ProcessIndex) -> bool {
        self.line(process).any(|p| p.index == ancestor)
    }

    /// A process image and those above it, nearest first.
    pub fn line(&self, process: ProcessIndex) -> impl Iterator<Item = &'a Process> + use<'a> {
        let model = self.model;
        // Parent links lead to earlier images, so this ends.
        std::iter::successors(model.process(process), move |p| {
            p.parent.and_then(|i| model.process(i))
        })
    }

    /// How a process ended, whatever programs it ran in between.
    pub fn exit_of(&self, process: ProcessIndex) -> Option<Exit> {
        let mut at = self.model.process(process)?;
        while let Some(next) = at.replaced_by.and_then(|i| self.model.process(i)) {
            at = next;
        }
        at.exit
    }

    /// The event of a process's end.
    pub fn exit_event(&self, process: ProcessIndex) -> Option<EventId> {
        let mut at = self.model.process(process)?;
        while let Some(next) = at.replaced_by.and_then(|i| self.model.process(i)) {
            at = next;
        }
        at.exit_event
    }

    /// Whether a process ended by a failure of its own: not by being told to stop.
    pub fn failed(&self, process: ProcessIndex) -> bool {
        self.exit_of(process).is_some_and(is_failure)
    }

    /// The process itself or the nearest one above it that failed.
    pub fn failed_line(&self, process: ProcessIndex) -> Option<&'a Process> {
        self.line(process).find(|p| self.failed(p.index))
    }

    /// The non-tool process for which a tool ran.
    pub fn origin(&self, process: &'a Process) -> &'a Process {
        tool::origin(self.model, process).unwrap_or(process)
    }

    /// A variable as the process for which a tool ran had it.
    pub fn env(&self, process: &'a Process, name: &str) -> Option<&'a str> {
        self.origin(process)
            .env(name)
            .or_else(|| process.env(name))
            .filter(|v| !v.is_empty())
    }

    // ---- libraries ----------------------------------------------------------------------------------------------

    /// Libraries mapped in a process image, those that were unmapped again included.
    pub fn loaded(
        &self,
        process: Option<ProcessIndex>,
    ) -> impl Iterator<Item = &'a Seen<Loaded>> + use<'a, '_> {
        let libraries = self.model.libraries();
        self.libraries_of
            .get(&process)
            .into_iter()
            .flatten()
            .filter_map(move |at| libraries.get(*at))
    }

    /// Libraries of one part in a process image.
    pub fn loaded_part<'b>(
        &'b self,
        process: Option<ProcessIndex>,
        part: &'b str,
    ) -> impl Iterator<Item = &'a Seen<Loaded>> + use<'a, 'b> {
        self.loaded(process)
            .filter(move |l| self.part_of(&l.what.path) == part)
    }

    /// The Python code that asked for a library.
    pub fn python(&self, loaded: &'a Loaded) -> &'a [Frame] {
        self.model.python_of(&loaded.python, loaded.request)
    }

    /// Whether an object asked on behalf of itself, by DT_NEEDED, and not for Python code that called dlopen.
    pub fn is_own_need(&self, loaded: &Loaded) -> bool {
        loaded.requested_by.as_deref().is_some_and(|by| {
            !asker::is_python_itself(by)
                && loaded
                    .requested
                    .as_deref()
                    .is_some_and(|requested| !requested.contains('/'))
                && self.model.file(by).is_none_or(|f| {
                    f.what.needed.is_empty()
                        || loaded
                            .requested
                            .as_ref()
                            .is_some_and(|r| f.what.needed.contains(r))
                })
        })
    }

    /// Uses of one file by its path, in order.
    pub fn uses_of(
        &self,
        path: &str,
    ) -> impl DoubleEndedIterator<Item = &'a Seen<Arc<FileAccess>>> + use<'a, '_> {
        let accesses = self.model.accesses();
        self.uses_of
            .get(path)
            .into_iter()
            .flatten()
            .filter_map(move |at| accesses.get(*at))
    }

    // ---- calls --------------------------------------------------------------------------------------------------

    /// Calls of functions whose names begin with one of `names`.
    pub fn calls<'b>(
        &'b self,
        names: &'b [&str],
    ) -> impl Iterator<Item = &'a Seen<Arc<Call>>> + use<'a, 'b> {
        let mut places: Vec<usize> = self
            .calls_of
            .iter()
            .filter(|(function, _)| names.iter().any(|n| function.starts_with(n)))
            .flat_map(|(_, places)| places.iter().copied())
            .collect();
        places.sort_unstable();
        let calls = self.model.calls();
        places.into_iter().filter_map(move |at| calls.get(at))
    }

    /// The CUDA release that the driver in a process states, or that the host's driver has.
    pub fn driver_cuda(&self, process: Option<ProcessIndex>) -> Option<Known> {
        let asked = self
            .calls(&["cuDriverGetVersion", "cudaDriverGetVersion"])
            .filter(|c| c.what.result == Some(0))
            .filter_map(|c| {
                Some((
                    c,
                    release_of(c.what.value.as_deref()?).filter(|v| v.major > 0)?,
                ))
            });
        let mut any = None;
        for (call, version) in asked {
            let known = Known {
                version,
                event: call.id,
                from: call.what.function.clone(),
            };
            if call.process == process {
                return Some(known);
            }
            any.get_or_insert(known);
        }
        any.or_else(|| {
            self.model.drivers().iter().find_map(|d| {
                Some(Known {
                    version: Version::parse(d.what.cuda.as_deref()?)?,
                    event: d.id,
                    from: d.what.from.clone(),
                })
            })
        })
    }

    /// Compute capabilities that were asked for or looked up, each with the event that tells it.
    pub fn capabilities(&self) -> Vec<(ComputeCapability, EventId)> {
        let mut found: Vec<(ComputeCapability, EventId)> = Vec::new();
        let mut add = |capability: ComputeCapability, event: EventId| {
            if capability.major > 0 && found.iter().all(|(known, _)| *known != capability) {
                found.push((capability, event));
            }
        };
        let mut majors: HashMap<(u32, &str), u32> = HashMap::new();
        for call in self.calls(&["cuDeviceGetAttribute", "cudaGetDeviceProperties"]) {
            if call.what.result.is_some_and(|r| r != 0) {
                continue;
            }
            let Some(value) = call.what.value.as_deref() else {
                continue;
            };
            if call.what.function.starts_with("cudaGetDeviceProperties") {
                if let Some(arch) = Arch::parse(value) {
                    add(arch.capability(), call.id);
                }
                continue;
            }
            let Ok(number) = value.parse::<u32>() else {
                continue;
            };
            match attribute(&call.what) {
                Some(75) => {
                    majors.insert((call.pid, device(&call.what)), number);
                }
                Some(76) => {
                    if let Some(&major) = majors.get(&(call.pid, device(&call.what))) {
                        let capability = ComputeCapability {
                            major,
                            minor: number,
                        };
                        add(capability, call.id);
                    }
                }
                _ => {}
            }
        }
        for gpu in self.model.gpus() {
            let told = gpu.what.compute_capability.as_deref().and_then(Arch::parse);
            if let Some(arch) = told {
                add(arch.capability(), gpu.id);
            }
        }
        found
    }

    /// The distribution that owns a file, `name version`: by its RECORD, else the one of these names beside the tree
    /// whose version is of the file's release.
    pub fn owner_of(&self, path: &str, names: &[&str], release: Version) -> Option<String> {
        let recorded = self
            .model
            .file(path)
            .and_then(|f| f.what.distribution.as_deref());
        if let Some(owner) = recorded {
            let version = self
                .model
                .distribution(owner.split(' ').next().unwrap_or(owner))
                .map(|d| d.what.version.clone())
                .filter(|v| !owner.contains(v.as_str()));
            return Some(match version {
                Some(version) => format!("{owner} {version}"),
                None => owner.to_owned(),
            });
        }
        let (site, _) = path.split_once("/nvidia/")?;
        self.model
            .distributions()
            .iter()
            .find(|d| {
                let name = normalized(&d.what.name);
                names
                    .iter()
                    .any(|n| name == *n || name.starts_with(&format!("{n}-cu")))
                    && tool::under(&d.what.path, site)
                    && Version::parse(&d.what.version).is_some_and(|v| v.same_release(release))
            })
            .map(|d| format!("{} {}", d.what.name, d.what.version))
    }

    // ---- what else there is ------------------------------------------------------------------------------------

    /// The CUDA release that a component was built for, by its own distribution, else by torch's.
    pub fn built_for(&self, component: &str) -> Option<(String, Known)> {
        let says = |name: &str| {
            self.model.distributions().iter().find_map(|d| {
                let is_it = crate::component::name_of(&d.what.name) == name;
                let version = d.what.built_for.as_deref().and_then(Version::parse);
                version.filter(|_| is_it).map(|version| {
                    let from = d.what.built_for_from.clone().unwrap_or_default();
                    (
                        d.what.name.clone(),
                        Known {
                            version,
                            event: d.id,
                            from,
                        },
                    )
                })
            })
        };
        says(component).or_else(|| says("torch"))
    }

    /// The best file of this part that the machine has and whose version suits, other than `not`.
    ///
    /// The release that torch was built for comes first, then toolkits that are installed for everybody, then the
    /// newest.
    pub fn offer(&self, part: &str, not: &str, suits: impl Fn(Version) -> bool) -> Option<Offer> {
        let wanted = self
            .built_for("torch")
            .map(|(_, known)| known.version.without_patch());
        let mut offers: Vec<Offer> = self.offers(part);
        offers
            .retain(|o| o.path != not && self.real(&o.path) != self.real(not) && suits(o.version));
        offers.sort_by_key(|o| {
            (
                wanted != Some(o.version.without_patch()),
                o.kind != "system",
                std::cmp::Reverse(o.version),
                o.path.clone(),
            )
        });
        offers.into_iter().next()
    }

    /// Everything of a part that the machine is known to have.
    pub fn offers(&self, part: &str) -> Vec<Offer> {
        let mut offers: Vec<Offer> = Vec::new();
        for toolkit in self.model.toolkits() {
            let Some(path) = toolkit.what.parts.get(part) else {
                continue;
            };
            let Some(version) = self
                .version_of(path)
                .map(|k| k.version)
                .or_else(|| toolkit.what.version.as_deref().and_then(Version::parse))
            else {
                continue;
            };
            offers.push(Offer {
                root: toolkit.what.root.clone(),
                path: path.clone(),
                version,
                event: toolkit.id,
                kind: toolkit.what.kind.clone(),
                owner: self.owner_of(path, wheels_of(part), version),
            });
        }
        let mut files: Vec<_> = self.model.files().collect();
        files.sort_by_key(|f| f.id);
        for file in files {
            let fact = &file.what;
            let is_it = fact.part.as_deref() == Some(part);
            let Some(version) = fact
                .version
                .as_deref()
                .and_then(Version::parse)
                .filter(|_| is_it)
            else {
                continue;
            };
            if offers.iter().any(|o| o.path == fact.path) {
                continue;
            }
            offers.push(Offer {
                root: fact.toolkit.clone().unwrap_or_default(),
                path: fact.path.clone(),
                version,
                event: file.id,
                kind: fact.toolkit_kind.clone().unwrap_or_default(),
                owner: fact.distribution.clone(),
            });
        }
        offers
    }
}

/// The wheels that carry a part.
fn wheels_of(part: &str) -> &'static [&'static str] {
    match part {
        "nvcc" | "ptxas" | "fatbinary" => &["nvidia-cuda-nvcc"],
        "cudart" | "headers" => &["nvidia-cuda-runtime"],
        "nvrtc" => &["nvidia-cuda-nvrtc"],
        "nvjitlink" => &["nvidia-nvjitlink"],
        "cudnn" => &["nvidia-cudnn"],
        "cublas" => &["nvidia-cublas"],
        _ => &[],
    }
}

/// Whether a way of knowing is no more than a guess.
fn is_guess(from: &str) -> bool {
    matches!(from, "directory-name" | "")
}

/// Whether a run only asked for the release.
fn is_asked(process: &Process) -> bool {
    process
        .arguments()
        .iter()
        .any(|a| matches!(a.as_str(), "--version" | "-V"))
}

/// Whether an end is a failure, and not an answer to Ctrl-C, `kill` or a supervisor.
pub(super) fn is_failure(exit: Exit) -> bool {
    const TOLD_TO_STOP: &[i32] = &[1, 2, 9, 15];
    match (exit.code, exit.signal) {
        (_, Some(signal)) => !TOLD_TO_STOP.contains(&signal) && signal != 13,
        (Some(code), _) => code != 0 && !TOLD_TO_STOP.iter().any(|s| code == 128 + s),
        _ => false,
    }
}

/// An ending in words.
pub(super) fn exit_words(exit: Exit) -> String {
    match (exit.code, exit.signal) {
        (_, Some(signal)) => format!("ended by signal {signal}"),
        (Some(code), _) => format!("exit status {code}"),
        _ => "ended".to_owned(),
    }
}

/// The attribute number of a `cuDeviceGetAttribute` call, in each way that sources write it: `75`,
/// `compute-capability-major device=0`.
fn attribute(call: &Call) -> Option<u32> {
    let words = call
        .args
        .iter()
        .flat_map(|argument| argument.split([' ', '=']));
    words.into_iter().find_map(|word| {
        let word = word.to_ascii_lowercase().replace('_', "-");
        if word.ends_with("capability-major") {
            Some(75)
        } else if word.ends_with("capability-minor") {
            Some(76)
        } else {
            word.parse().ok().filter(|n| matches!(n, 75 | 76))
        }
    })
}

/// The device of a `cuDeviceGetAttribute` call.
fn device(call: &Call) -> &str {
    call.args
        .iter()
        .flat_map(|argument| argument.split(' '))
        .find_map(|word| word.strip_prefix("device="))
        .unwrap_or_default()
}

/// A CUDA release as calls give it: `12090` or `12.9`.
pub(super) fn release_of(value: &str) -> Option<Version> {
    match value.trim().parse::<u32>() {
        Ok(number) => Version::from_cuda_number(number),
        Err(_) => Version::parse(value),
    }
}

/// The release in what a tool prints of itself: `… release 12.8, V12.8.93`.
pub(super) fn release_in(text: &str) -> Option<Version> {
    crate::toolkit::version_in_tool_string(text)
        .or_else(|| Version::parse(text.split("release ").nth(1)?))
}

/// Messages without those that only show the code which says them, where the sentence itself was heard too.
fn without_echoes(messages: &[Seen<Message>]) -> Vec<&Seen<Message>> {
    let is_heard_otherwise = |echo: &Seen<Message>| {
        messages.iter().any(|m| {
            m.pid == echo.pid
                && m.what.pattern == echo.what.pattern
                && !super::words::is_source_line(&m.what.text)
        })
    };
    messages
        .iter()
        .filter(|m| !super::words::is_source_line(&m.what.text) || !is_heard_otherwise(m))
        .collect()
}

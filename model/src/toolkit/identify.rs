//! What a file is: part, version, installation — and by which evidence each is known.
//!
//! Every way of knowing a version gives a [`Reading`] of its own. They are kept side by side, since two that
//! disagree (a wheel's metadata and the code in its file) are a finding.

use super::code::{self, Constant};
use super::driver::{DriverRelease, driver_cuda};
use super::files::text;
use super::part::LibraryName;
use super::root::{DriverKind, Root, ToolkitKind, driver_kind_of_path, root_of};
use super::{Files, Part, Version, profile, strings};
use crate::distribution::Distribution;
use crate::elf::{Binding, ElfFacts, dynamic_symbols};
use crate::event::FileFact;
use crate::image::object::Object;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The way by which a version is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VersionFrom {
    /// `Cuda compilation tools, release 13.0, V13.0.88` in the file.
    ToolString,
    /// `Build cuda_13.0.r13.0/…` in the file.
    BuildString,
    /// `CUDA_VERSION` in `cuda.h`.
    CudaH,
    /// `CUDART_VERSION` in `cuda_runtime_api.h`.
    CudartH,
    /// The constant in `cudaRuntimeGetVersion`'s code.
    CudartImmediate,
    /// The constant in another version function's code.
    CodeImmediate,
    /// `libcudart.so.12.8.90`.
    FileName,
    /// A directory named `cuda-12.8`.
    DirectoryName,
    /// The wheel that owns the file.
    WheelMetadata,
    /// The conda package that owns the file.
    CondaMeta,
    /// The Debian package that owns the file.
    DebianPackage,
    /// The highest `__nvJitLinkCreate_M_N` that the file exports.
    NvjitlinkSymbols,
    /// The `__nvrtc_builtins__M_N_…` that the file exports.
    BuiltinsSymbols,
    /// The toolkit's `version.json`.
    VersionJson,
    /// The toolkit's `version.txt`.
    VersionTxt,
    /// `NCCL version 2.27.3+cuda12.9` in the file.
    NcclString,
    /// The CUDA release that the driver's branch belongs to.
    DriverBranch,
    /// What the tool printed when the program asked it.
    VersionOutput,
    /// What the tool printed when the collector asked it.
    Probe,
    /// What the function returned to the program.
    Call,
}

impl VersionFrom {
    /// The word that traces and reports use, such as `tool-string`.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::ToolString => "tool-string",
            Self::BuildString => "build-string",
            Self::CudaH => "cuda-h",
            Self::CudartH => "cudart-h",
            Self::CudartImmediate => "cudart-immediate",
            Self::CodeImmediate => "code-immediate",
            Self::FileName => "file-name",
            Self::DirectoryName => "directory-name",
            Self::WheelMetadata => "wheel-metadata",
            Self::CondaMeta => "conda-meta",
            Self::DebianPackage => "debian-package",
            Self::NvjitlinkSymbols => "nvjitlink-symbols",
            Self::BuiltinsSymbols => "builtins-symbols",
            Self::VersionJson => "version-json",
            Self::VersionTxt => "version-txt",
            Self::NcclString => "nccl-string",
            Self::DriverBranch => "driver-branch",
            Self::VersionOutput => "version-output",
            Self::Probe => "probe",
            Self::Call => "call",
        }
    }
}

/// How sure an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Certainty {
    /// A name that anyone may give.
    Guess,
    /// A record beside the file, which may belong to another release.
    Likely,
    /// The file's own content.
    Certain,
}

impl Certainty {
    /// `certain`, `likely` or `guess`.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Certain => "certain",
            Self::Likely => "likely",
            Self::Guess => "guess",
        }
    }
}

/// One way by which a version was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// The version.
    pub version: Version,
    /// The way.
    pub from: VersionFrom,
    /// How sure it is.
    pub certainty: Certainty,
}

/// What is known around the file, besides its path and bytes.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// Answers about the files next to it.
    pub files: &'a dyn Files,
    /// The distribution that owns it, where one is known.
    pub owner: Option<&'a Distribution>,
}

/// What a file is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The file, as it was asked for.
    pub path: String,
    /// The same without symbolic links, where that could be asked.
    pub realpath: Option<String>,
    /// Which part of a toolkit it is.
    pub part: Part,
    /// cuDNN's sub-library: `ops`, `graph`, … ; empty names the umbrella library.
    pub cudnn_sublibrary: Option<String>,
    /// For libcuda: installed, compat, stub or WSL.
    pub driver: Option<DriverKind>,
    /// For driver libraries: the driver's release, such as 580.65.06.
    pub driver_release: Option<DriverRelease>,
    /// The best version known. For libcuda it is the CUDA release of its driver.
    pub version: Option<Version>,
    /// How it is known.
    pub version_from: Option<VersionFrom>,
    /// How sure it is.
    pub certainty: Option<Certainty>,
    /// Every way that gave an answer, most trusted first.
    pub readings: Vec<Reading>,
    /// The CUDA release that the file says it was compiled with (NCCL).
    pub compiled_with: Option<Version>,
    /// The installation that the path as spelled belongs to. nvcc goes by this one.
    pub root: Option<Root>,
    /// The installation that the real file lies in, where it is another.
    pub real_root: Option<Root>,
    /// nvcc's `nvcc.profile`, evaluated.
    pub profile: Option<profile::Profile>,
    /// Whether it is a script, such as Debian's `/usr/bin/nvcc`.
    pub is_script: bool,
    /// The program that the script hands over to, where it names one by its full path.
    pub hands_over_to: Option<String>,
    /// Whether its version can only be learnt by asking it (`FILE --version`).
    pub needs_probe: bool,
    /// Whether libcudart is linked into it. Normal for NCCL; such a copy cannot be interposed.
    pub static_cudart: bool,
    /// The hash in a renamed copy's file name (`faf08d9a` in `libcudart.faf08d9a.so.13`).
    pub renamed: Option<String>,
    /// DT_SONAME.
    pub soname: Option<String>,
    /// The lowest nvJitLink release whose symbols it needs.
    pub needs_nvjitlink: Option<Version>,
}

impl Identity {
    /// Two readings that cannot both be true of this file: the trusted one and the first that contradicts it.
    /// Guesses are not held against the file.
    #[must_use]
    pub fn disagreement(&self) -> Option<(&Reading, &Reading)> {
        let trusted = self.readings.first()?;
        let other = self.readings.iter().find(|reading| {
            reading.certainty > Certainty::Guess && !reading.version.same_release(trusted.version)
        })?;
        Some((trusted, other))
    }

    /// Adds what was learnt later (a `--version` output, a call's answer) and weighs the readings again.
    pub fn learn(&mut self, reading: Reading) {
        self.readings.push(reading);
        self.weigh();
    }

    /// Orders the readings and chooses the best: the most trusted one, or one that says the same with a patch
    /// level.
    fn weigh(&mut self) {
        let mut seen = Vec::new();
        self.readings.retain(|reading| {
            let new = !seen.contains(&(reading.version, reading.from));
            seen.push((reading.version, reading.from));
            new
        });
        self.readings
            .sort_by_key(|reading| std::cmp::Reverse(reading.certainty));
        let Some(trusted) = self.readings.first() else {
            return;
        };
        let finer = self
            .readings
            .iter()
            .filter(|reading| {
                reading.certainty > Certainty::Guess && reading.version.agrees_with(trusted.version)
            })
            .find(|reading| reading.version.patch.is_some());
        let best = finer.unwrap_or(trusted);
        self.version = Some(best.version);
        self.version_from = Some(best.from);
        self.certainty = Some(trusted.certainty.max(best.certainty));
        self.needs_probe = self.is_script && trusted.certainty < Certainty::Certain;
    }

    /// As the trace file keeps it. Device, inode, size and time are the collector's to add.
    #[must_use]
    pub fn to_fact(&self) -> FileFact {
        FileFact {
            path: self.path.clone(),
            realpath: self.realpath.clone().unwrap_or_default(),
            part: (self.part != Part::Other).then(|| self.part.name().to_owned()),
            variant: self.variant(),
            version: self.version.map(|version| version.to_string()),
            version_from: self.version_from.map(|from| from.word().to_owned()),
            readings: self
                .readings
                .iter()
                .map(|reading| crate::event::Reading {
                    version: reading.version.to_string(),
                    from: reading.from.word().to_owned(),
                    certainty: reading.certainty.word().to_owned(),
                })
                .collect(),
            toolkit: self.root.as_ref().map(|root| root.path.clone()),
            toolkit_kind: self.root.as_ref().map(|root| root.kind.word().to_owned()),
            soname: self.soname.clone(),
            needs: self
                .needs_nvjitlink
                .map(|v| format!("__nvJitLinkCreate_{}_{}", v.major, v.minor))
                .into_iter()
                .collect(),
            static_cudart: self.static_cudart,
            script: self.is_script,
            ..FileFact::default()
        }
    }

    /// Finer than the part: `stub`, `compat`, `driver`, `wsl`, or cuDNN's sub-library.
    #[must_use]
    pub fn variant(&self) -> Option<String> {
        let driver = self.driver.map(|driver| driver.word().to_owned());
        driver.or_else(|| {
            self.cudnn_sublibrary
                .clone()
                .filter(|name| !name.is_empty())
        })
    }
}

impl ToolkitKind {
    /// `system`, `wheel`, `conda`, `bundled`, `compat` or `stub`.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Wheel => "wheel",
            Self::Conda => "conda",
            Self::Bundled => "bundled",
            Self::Compat => "compat",
            Self::Stub => "stub",
        }
    }
}

impl DriverKind {
    /// `driver`, `compat`, `stub` or `wsl`.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Driver => "driver",
            Self::Compat => "compat",
            Self::Stub => "stub",
            Self::Wsl => "wsl",
        }
    }
}

/// Says what the file at `path` with the content `bytes` is.
///
/// `bytes` may be a map of a file of any size: only headers, symbol names and read-only data are looked at.
#[must_use]
pub fn identify(path: &Path, bytes: &[u8], context: &Context<'_>) -> Identity {
    let realpath = context.files.realpath(path);
    let real = realpath.as_deref().unwrap_or(path);
    let (part, name) = name_of(path, real);
    let library = LibraryName::parse(&name);
    let object = Object::parse(bytes);
    let elf = object.as_ref().and_then(|_| ElfFacts::parse(bytes).ok());
    let is_script = bytes.starts_with(b"#!");
    let root = root_of(path, part, context.files);
    let real_root = realpath
        .as_deref()
        .and_then(|real| root_of(real, part, context.files))
        .filter(|real| Some(real) != root.as_ref());
    let profile_text = (part == Part::Nvcc)
        .then(|| {
            path.parent()
                .and_then(|here| Some((here, text(context.files, &here.join("nvcc.profile"))?)))
        })
        .flatten();
    let mut identity = Identity {
        path: path.to_string_lossy().into_owned(),
        realpath: realpath
            .as_deref()
            .map(|real| real.to_string_lossy().into_owned()),
        part,
        cudnn_sublibrary: (part == Part::Cudnn)
            .then(|| {
                library.map(|library| {
                    library
                        .stem
                        .trim_start_matches("cudnn")
                        .trim_start_matches('_')
                        .to_owned()
                })
            })
            .flatten(),
        driver: None,
        driver_release: None,
        version: None,
        version_from: None,
        certainty: None,
        readings: Vec::new(),
        compiled_with: None,
        root,
        real_root,
        profile: profile_text.map(|(here, text)| profile::evaluate(&text, here)),
        is_script,
        hands_over_to: is_script.then(|| handed_over(bytes)).flatten(),
        needs_probe: is_script,
        static_cudart: false,
        renamed: library.and_then(|library| library.hash).map(str::to_owned),
        soname: elf.as_ref().and_then(|elf| elf.soname.clone()),
        needs_nvjitlink: None,
    };
    if let Some(object) = &object {
        read_object(&mut identity, object, bytes);
    }
    read_header_text(&mut identity, &name, bytes);
    read_names(&mut identity, library, real);
    if part == Part::Libcuda {
        read_driver(&mut identity, object.as_ref(), path, real, bytes.len());
    }
    read_owner(&mut identity, context.owner);
    read_root(&mut identity, context.files);
    identity.weigh();
    identity
}

/// The part and the file name that told it: the name asked for, else the real file's.
fn name_of(path: &Path, real: &Path) -> (Part, String) {
    let name = |path: &Path| {
        path.file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default()
    };
    let asked = name(path);
    match Part::of_file_name(&asked) {
        Part::Other => {
            let real = name(real);
            match Part::of_file_name(&real) {
                Part::Other => (Part::Other, asked),
                part => (part, real),
            }
        }
        part => (part, asked),
    }
}

impl Identity {
    fn add(&mut self, version: Version, from: VersionFrom, certainty: Certainty) {
        self.readings.push(Reading {
            version,
            from,
            certainty,
        });
    }
}

fn read_object(identity: &mut Identity, object: &Object<'_>, bytes: &[u8]) {
    use Certainty::{Certain, Likely};
    let part = identity.part;
    let stored = |name| code::constants(object, name);
    if part.is_tool()
        || matches!(
            part,
            Part::Nvrtc | Part::Nvjitlink | Part::Nvvm | Part::Nvptxcompiler
        )
    {
        if let Some(version) = strings::tool_version(object) {
            identity.add(version, VersionFrom::ToolString, Certain);
        } else if let Some(version) = strings::build_version(object) {
            identity.add(version, VersionFrom::BuildString, Certain);
        }
    }
    match part {
        Part::Cudart => {
            let numbers = stored("cudaRuntimeGetVersion")
                .into_iter()
                .filter_map(|constant| match constant {
                    Constant::Stored(number) => Version::from_cuda_number(number),
                    Constant::Returned(_) => None,
                });
            if let Some(version) = only(numbers) {
                identity.add(version, VersionFrom::CudartImmediate, Certain);
            }
        }
        Part::Nvrtc | Part::Nvjitlink if identity.readings.is_empty() => {
            let function = if part == Part::Nvrtc {
                "nvrtcVersion"
            } else {
                "nvJitLinkVersion"
            };
            let numbers: Vec<u32> = stored(function)
                .into_iter()
                .filter_map(|constant| match constant {
                    Constant::Stored(number) if number < 100 => Some(number),
                    _ => None,
                })
                .collect();
            if let [major, minor] = numbers.as_slice()
                && (7..100).contains(major)
            {
                identity.add(
                    Version::release(*major, *minor),
                    VersionFrom::CodeImmediate,
                    Likely,
                );
            }
        }
        Part::Cudnn => {
            let numbers =
                stored("cudnnGetVersion")
                    .into_iter()
                    .filter_map(|constant| match constant {
                        Constant::Returned(number) => Version::from_cudnn_number(number),
                        Constant::Stored(_) => None,
                    });
            if let Some(version) = only(numbers) {
                identity.add(version, VersionFrom::CodeImmediate, Certain);
            }
        }
        Part::Nccl => {
            if let Some((version, cuda)) = strings::nccl_version(object) {
                identity.add(version, VersionFrom::NcclString, Certain);
                identity.compiled_with = cuda;
            }
        }
        _ => {}
    }
    if part == Part::Nvjitlink
        && let Some(version) = highest_symbol(bytes, "__nvJitLink", Binding::Defined)
    {
        identity.add(version, VersionFrom::NvjitlinkSymbols, Certain);
    }
    if part == Part::NvrtcBuiltins
        && let Some(version) = highest_symbol(bytes, "__nvrtc_builtins__", Binding::Defined)
    {
        identity.add(version, VersionFrom::BuiltinsSymbols, Certain);
    }
    if part == Part::Nvrtc && identity.readings.is_empty()
        || matches!(
            part,
            Part::Cusparse
                | Part::Cusolver
                | Part::Cufft
                | Part::Cublas
                | Part::CublasLt
                | Part::Other
        )
    {
        identity.needs_nvjitlink = highest_symbol(bytes, "__nvJitLink", Binding::Undefined);
    }
    let is_runtime =
        matches!(part, Part::Cudart | Part::CudartStatic | Part::CudartStub) || part.is_of_driver();
    identity.static_cudart = !is_runtime && strings::has_static_cudart(object);
}

/// The one value that all say; `None` if there is none, or if they differ.
fn only(mut versions: impl Iterator<Item = Version>) -> Option<Version> {
    let first = versions.next()?;
    versions.all(|version| version == first).then_some(first)
}

/// The highest `M_N` that ends (or follows the prefix of) the symbols with this prefix:
/// `__nvJitLinkCreate_12_9`, `__nvrtc_builtins__12_8_…`.
fn highest_symbol(bytes: &[u8], prefix: &str, wanted: Binding) -> Option<Version> {
    let symbols = dynamic_symbols(bytes, prefix, 4096);
    let mine = symbols.iter().filter(|(_, binding)| *binding == wanted);
    mine.filter_map(|(name, _)| version_in_symbol(name.strip_prefix(prefix)?))
        .max()
}

/// The first two numbers that stand side by side between underscores.
fn version_in_symbol(text: &str) -> Option<Version> {
    let words: Vec<&str> = text.split('_').take(32).collect();
    let number = |word: &str| -> Option<u32> {
        ((1..=3).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_digit()))
            .then(|| word.parse().ok())
            .flatten()
    };
    words.windows(2).find_map(|pair| match pair {
        [major, minor] => Some(Version::release(number(major)?, number(minor)?)),
        _ => None,
    })
}

/// `CUDA_VERSION` and `CUDART_VERSION` in a header's text.
fn read_header_text(identity: &mut Identity, name: &str, bytes: &[u8]) {
    if identity.part != Part::Headers {
        return;
    }
    let text = String::from_utf8_lossy(bytes.get(..bytes.len().min(4 << 20)).unwrap_or(bytes));
    let (macro_name, from) = match name {
        "cuda.h" => ("CUDA_VERSION", VersionFrom::CudaH),
        _ => ("CUDART_VERSION", VersionFrom::CudartH),
    };
    if let Some(version) = defined_number(&text, macro_name).and_then(Version::from_cuda_number) {
        identity.add(version, from, Certainty::Certain);
    }
}

/// The number in `#define NAME NUMBER`.
#[must_use]
pub fn defined_number(text: &str, name: &str) -> Option<u32> {
    text.lines().find_map(|line| {
        let rest = line
            .trim_start()
            .strip_prefix('#')?
            .trim_start()
            .strip_prefix("define")?;
        let mut words = rest.split_ascii_whitespace();
        (words.next()? == name).then_some(())?;
        words.next()?.parse().ok()
    })
}

/// Versions in the file's own name and in the name of a directory above it.
fn read_names(identity: &mut Identity, library: Option<LibraryName<'_>>, real: &Path) {
    let real_name = real
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let real_library = LibraryName::parse(&real_name);
    let suffixes = library
        .iter()
        .chain(real_library.iter())
        .map(|library| library.suffix);
    if identity.part.is_of_driver() {
        identity.driver_release = suffixes.into_iter().find_map(DriverRelease::parse);
        return;
    }
    for suffix in suffixes {
        // libcudart.so.11.0 names the SONAME; since 12 that is a major alone, and so is never taken for a version.
        if let Some(version) = Version::parse(suffix) {
            let certainty = if version.patch.is_some() || identity.part == Part::NvrtcBuiltins {
                Certainty::Likely
            } else {
                Certainty::Guess
            };
            identity.add(version, VersionFrom::FileName, certainty);
        }
    }
    if !identity.part.is_numbered_as_cuda() {
        return;
    }
    let spelled = PathBuf::from(&identity.path);
    for path in [spelled.as_path(), real] {
        let named = path.components().rev().skip(1).find_map(|component| {
            let name = component.as_os_str().to_str()?;
            Version::parse(
                name.strip_prefix("cuda-")
                    .or_else(|| name.strip_prefix("cuda_"))?,
            )
        });
        if let Some(version) = named {
            identity.add(version, VersionFrom::DirectoryName, Certainty::Guess);
            return;
        }
    }
}

/// Below this many bytes, a library that exports this many functions of the driver cannot hold a driver.
const STUB_SIZE: usize = 2 << 20;
const STUB_EXPORTS: usize = 200;

fn read_driver(
    identity: &mut Identity,
    object: Option<&Object<'_>>,
    path: &Path,
    real: &Path,
    size: usize,
) {
    let mut kind = driver_kind_of_path(path);
    if kind == DriverKind::Driver {
        kind = driver_kind_of_path(real);
    }
    if let Some(object) = object {
        let functions = || {
            object
                .symbols()
                .filter(|symbol| symbol.defined && symbol.name.starts_with("cu"))
                .take(STUB_EXPORTS)
        };
        if kind == DriverKind::Driver && size < STUB_SIZE && functions().count() == STUB_EXPORTS {
            kind = DriverKind::Stub;
        }
        if kind != DriverKind::Stub {
            if identity.driver_release.is_none() {
                identity.driver_release = strings::driver_release(object);
            }
            if let Some(version) = strings::tool_version(object) {
                // The PTX compiler inside the driver is of the driver's CUDA release.
                identity.add(
                    version.without_patch(),
                    VersionFrom::ToolString,
                    Certainty::Likely,
                );
            }
            let numbers = code::constants(object, "cuDriverGetVersion")
                .into_iter()
                .filter_map(|constant| match constant {
                    Constant::Stored(number) => Version::from_cuda_number(number),
                    Constant::Returned(_) => None,
                });
            if let Some(version) = only(numbers) {
                identity.add(version, VersionFrom::CodeImmediate, Certainty::Likely);
            }
        }
    }
    if let Some(version) = identity
        .driver_release
        .as_ref()
        .and_then(|release| driver_cuda(release.branch()))
    {
        identity.add(version, VersionFrom::DriverBranch, Certainty::Likely);
    }
    identity.driver = Some(kind);
    if kind == DriverKind::Stub {
        // A link-time stub is of some toolkit, and of no driver.
        identity.driver_release = None;
    }
}

fn read_owner(identity: &mut Identity, owner: Option<&Distribution>) {
    let Some(owner) = owner else { return };
    if !owner.versions_its_files() {
        return;
    }
    let from = match owner.kind {
        crate::distribution::Kind::Wheel => VersionFrom::WheelMetadata,
        crate::distribution::Kind::Conda => VersionFrom::CondaMeta,
        crate::distribution::Kind::Debian => VersionFrom::DebianPackage,
    };
    if let Some(version) = Version::parse(owner.upstream_version()) {
        identity.add(version, from, Certainty::Likely);
    }
}

/// What the toolkit's root directory says.
fn read_root(identity: &mut Identity, files: &dyn Files) {
    let Some(root) = identity.root.clone() else {
        return;
    };
    if !matches!(root.kind, ToolkitKind::System)
        || !(identity.part.is_numbered_as_cuda() || identity.part.version_json_key().is_some())
    {
        return;
    }
    let directory = Path::new(&root.path);
    if let Some(version) = text(files, &directory.join("version.json"))
        .and_then(|json| version_in_json(&json, identity.part))
    {
        identity.add(version, VersionFrom::VersionJson, Certainty::Likely);
    } else if let Some(version) = text(files, &directory.join("version.txt"))
        .and_then(|text| Version::parse(text.trim().strip_prefix("CUDA Version")?))
    {
        identity.add(version, VersionFrom::VersionTxt, Certainty::Likely);
    }
}

/// A part's version in the text of a toolkit's `version.json`; for parts numbered as CUDA that have no line of
/// their own, the release of the whole.
#[must_use]
pub fn version_in_json(json: &str, part: Part) -> Option<Version> {
    let json: serde_json::Value = serde_json::from_str(json).ok()?;
    let of = |key: &str| Version::parse(json.get(key)?.get("version")?.as_str()?);
    let own = part.version_json_key().and_then(of);
    own.or_else(|| {
        if part.is_numbered_as_cuda() {
            of("cuda").map(Version::without_patch)
        } else {
            None
        }
    })
}

/// The program in a script's last `exec /full/path …`.
fn handed_over(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes.get(..bytes.len().min(1 << 16)).unwrap_or(bytes));
    let mut program = text.lines().filter_map(|line| {
        let program = line
            .trim()
            .strip_prefix("exec ")?
            .split_ascii_whitespace()
            .next()?
            .trim_matches(['"', '\'']);
        (program.starts_with('/') && !program.contains('$')).then(|| program.to_owned())
    });
    program.next_back()
}

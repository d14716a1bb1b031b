//! The version strings that NVIDIA's tools and libraries carry in their read-only data.

use super::Version;
use super::driver::DriverRelease;
use crate::image::object::Object;
use memchr::memmem::Finder;

/// How much read-only data of one file is searched, at most.
const MAX_SEARCH: usize = 512 << 20;
/// How many hits of a marker are looked at.
const MAX_HITS: usize = 64;

const TOOL_MARKER: &str = "Cuda compilation tools, release ";

/// The version in a line such as `Cuda compilation tools, release 13.0, V13.0.88`, with its patch level where the
/// line has the `V` part.
#[must_use]
pub fn version_in_tool_string(text: &str) -> Option<Version> {
    let (_, rest) = text.split_once(TOOL_MARKER)?;
    let release = Version::parse(rest)?;
    let exact = rest
        .split_once(", V")
        .and_then(|(_, exact)| Version::parse(exact))
        .filter(|exact| exact.same_release(release));
    Some(exact.unwrap_or(release))
}

/// The release that a toolkit file was built for, from `Build cuda_13.0.r13.0/compiler.36424714_0`.
#[must_use]
pub fn version_in_build_string(text: &str) -> Option<Version> {
    let (_, rest) = text.split_once("Build cuda_")?;
    let (_, release) = rest.split_once(".r")?;
    Version::parse(release)
}

/// The first answer that `read` gives for the text at an occurrence of `marker` in the read-only data.
fn first<T>(object: &Object<'_>, marker: &str, read: impl Fn(&str) -> Option<T>) -> Option<T> {
    let finder = Finder::new(marker);
    let mut budget = MAX_SEARCH;
    for data in object.read_only_data() {
        let data = data.get(..data.len().min(budget)).unwrap_or(data);
        budget = budget.saturating_sub(data.len());
        for at in finder.find_iter(data).take(MAX_HITS) {
            let line = data
                .get(at..data.len().min(at.saturating_add(160)))
                .unwrap_or(&[]);
            let end = line
                .iter()
                .position(|byte| matches!(byte, 0 | b'\n'))
                .unwrap_or(line.len());
            let line = String::from_utf8_lossy(line.get(..end).unwrap_or(line));
            if let Some(answer) = read(&line) {
                return Some(answer);
            }
        }
    }
    None
}

pub(crate) fn tool_version(object: &Object<'_>) -> Option<Version> {
    first(object, TOOL_MARKER, version_in_tool_string)
}

pub(crate) fn build_version(object: &Object<'_>) -> Option<Version> {
    first(object, "Build cuda_", version_in_build_string)
}

/// NCCL's own version and the toolkit that it was compiled with: `NCCL version 2.27.3+cuda12.9`.
pub(crate) fn nccl_version(object: &Object<'_>) -> Option<(Version, Option<Version>)> {
    first(object, "NCCL version ", |line| {
        let rest = line.strip_prefix("NCCL version ")?;
        let version = Version::parse(rest)?;
        Some((
            version,
            rest.split_once("+cuda")
                .and_then(|(_, cuda)| Version::parse(cuda)),
        ))
    })
}

/// The driver's release in `Version 550.163.01. Copyright`.
pub(crate) fn driver_release(object: &Object<'_>) -> Option<DriverRelease> {
    first(object, "Version ", |line| {
        let (release, _) = line.strip_prefix("Version ")?.split_once(". Copyright")?;
        DriverRelease::parse(release)
    })
}

/// The SONAMEs-to-be and messages that a statically linked runtime leaves even in a stripped file
/// (resolution.md 2.9).
pub(crate) fn has_static_cudart(object: &Object<'_>) -> bool {
    first(object, "/cudart.shm.%", |_| Some(())).is_some()
}

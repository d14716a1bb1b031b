//! What a host's dynamic loader was built with and what its processor can do: the constants of the search.
//!
//! They are data, so that a trace read on another machine, or a process in a container with another libc, is explained
//! with the constants of *its* loader.

use serde::{Deserialize, Serialize};

/// What of the processor matters to a library search.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Processor {
    /// x86-64 microarchitecture level, 1 to 4; 0 where there is no such thing.
    pub level: u8,
    /// The name that glibc 2.26 to 2.36 gives the platform: `haswell`, `xeon_phi`, else what the kernel says.
    pub platform: String,
    /// Legacy capability names, from the lowest bit up: `x86_64`, `avx512_1`.
    pub capabilities: Vec<String>,
}

impl Processor {
    /// Reads the text of `/proc/cpuinfo`; `machine` is the ELF machine number (62 for x86-64).
    ///
    /// glibc takes the `haswell` platform and `avx512_1` only on Intel processors.
    #[must_use]
    pub fn from_cpuinfo(cpuinfo: &str, machine: u16) -> Self {
        if machine != goblin::elf::header::EM_X86_64 {
            let platform = if machine == goblin::elf::header::EM_AARCH64 {
                "aarch64"
            } else {
                ""
            };
            return Self {
                level: 0,
                platform: platform.to_owned(),
                capabilities: Vec::new(),
            };
        }
        let field = |wanted: &str| {
            cpuinfo
                .lines()
                .filter_map(|line| line.split_once(':'))
                .find(|(name, _)| name.trim() == wanted)
        };
        let flags: Vec<&str> = field("flags")
            .map(|(_, flags)| flags.split_whitespace().collect())
            .unwrap_or_default();
        let has = |wanted: &[&str]| wanted.iter().all(|flag| flags.contains(flag));
        const V2: &[&str] = &[
            "cx16", "lahf_lm", "popcnt", "pni", "sse4_1", "sse4_2", "ssse3",
        ];
        const V3: &[&str] = &[
            "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave",
        ];
        const V4: &[&str] = &["avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"];
        let level = match (has(V2), has(V3), has(V4)) {
            (true, true, true) => 4,
            (true, true, false) => 3,
            (true, false, _) => 2,
            (false, ..) => 1,
        };
        let mut platform = "x86_64";
        let mut capabilities = vec!["x86_64".to_owned()];
        if field("vendor_id").is_some_and(|(_, vendor)| vendor.trim() == "GenuineIntel") {
            if has(&["avx512cd", "avx512er", "avx512pf"]) {
                platform = "xeon_phi";
            } else {
                if has(&["avx512cd", "avx512bw", "avx512dq", "avx512vl"]) && !has(&["avx512er"]) {
                    capabilities.push("avx512_1".to_owned());
                }
                if has(&["avx2", "fma", "bmi1", "bmi2", "abm", "movbe", "popcnt"]) {
                    platform = "haswell";
                }
            }
        }
        Self {
            level,
            platform: platform.to_owned(),
            capabilities,
        }
    }
}

/// The constants of one dynamic loader on one machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct System {
    /// Default directories, in order, without trailing slash: Debian `/lib/x86_64-linux-gnu`, …; Fedora `/lib64`, ….
    pub default_directories: Vec<String>,
    /// What `$LIB` stands for: Debian `lib/x86_64-linux-gnu`, Fedora `lib64`.
    pub lib: String,
    /// What `$PLATFORM` stands for.
    pub platform: String,
    /// Usable `glibc-hwcaps` subdirectories, the best first (`x86-64-v4`, …). Empty before glibc 2.33.
    pub glibc_hwcaps: Vec<String>,
    /// What is tried in every directory of a search path, in order, as a path to put between directory and name. The
    /// last is the empty string, the directory itself. Duplicates are kept: the loader has a slot for each.
    pub subdirectories: Vec<String>,
    /// Flags of the cache entries that count: 0x303 for x86-64, 0xa03 for AArch64.
    pub cache_flags: i32,
    /// Legacy capability bits that a cache entry may ask for.
    pub legacy_hwcap_mask: u64,
}

impl System {
    /// The constants of glibc `version` (2, 36) for an ELF machine, on a processor.
    ///
    /// `default_directories` and `lib` come from the loader file where it could be read
    /// ([`default_directories_in`]), else from [`usual_default_directories`].
    #[must_use]
    pub fn glibc(
        version: (u32, u32),
        machine: u16,
        processor: &Processor,
        default_directories: Vec<String>,
    ) -> Self {
        let aarch64 = machine == goblin::elf::header::EM_AARCH64;
        let glibc_hwcaps: Vec<String> = if version >= (2, 33) {
            (2..=processor.level.min(4))
                .rev()
                .map(|level| format!("x86-64-v{level}"))
                .collect()
        } else {
            Vec::new()
        };
        let mut subdirectories: Vec<String> = glibc_hwcaps
            .iter()
            .map(|name| format!("glibc-hwcaps/{name}"))
            .collect();
        if version < (2, 37) {
            subdirectories.extend(legacy_subdirectories(processor));
        }
        subdirectories.push(String::new());
        let lib = default_directories
            .iter()
            .find_map(|directory| {
                directory
                    .strip_prefix('/')
                    .filter(|lib| lib.starts_with("lib"))
            })
            .unwrap_or("lib")
            .to_owned();
        Self {
            default_directories,
            lib,
            platform: processor.platform.clone(),
            glibc_hwcaps,
            subdirectories,
            cache_flags: if aarch64 { 0xa03 } else { 0x303 },
            legacy_hwcap_mask: legacy_hwcap_mask(processor),
        }
    }
}

/// The legacy bits of a cache entry that this processor satisfies: one for each capability, and "tls".
fn legacy_hwcap_mask(processor: &Processor) -> u64 {
    const TLS: u64 = 1 << 63;
    processor.capabilities.iter().fold(TLS, |mask, name| {
        mask | match name.as_str() {
            "x86_64" => 0b10,
            "avx512_1" => 0b100,
            _ => 0,
        }
    })
}

/// Until glibc 2.36: every combination of `tls`, the platform and the capabilities, the most special first.
///
/// With n names there are 2ⁿ slots, the last of which, the directory itself, is left out here. Where platform and
/// capability have the same name (`x86_64` on AMD) some are alike; they stay separate slots.
fn legacy_subdirectories(processor: &Processor) -> Vec<String> {
    let mut names: Vec<&str> = processor.capabilities.iter().map(String::as_str).collect();
    if !processor.platform.is_empty() {
        names.push(&processor.platform);
    }
    names.push("tls");
    // A host has at most four such names; more could only come from a damaged trace.
    names.truncate(8);
    let mut combinations = Vec::new();
    for chosen in (1..1usize << names.len()).rev() {
        let parts: Vec<&str> = names
            .iter()
            .enumerate()
            .rev()
            .filter(|(bit, _)| chosen >> bit & 1 == 1)
            .map(|(_, name)| *name)
            .collect();
        combinations.push(parts.join("/"));
    }
    combinations
}

/// The default directories that are compiled into the dynamic loader whose file content is `bytes`.
///
/// They stand in its read-only data as strings one after another, each with a trailing slash. None when no such run is
/// found (a loader of another make, such as musl's).
#[must_use]
pub fn default_directories_in(bytes: &[u8]) -> Option<Vec<String>> {
    // The loader is 200 to 300 KB; a file of another size is none.
    let bytes = bytes.get(..bytes.len().min(4 << 20))?;
    let mut run: Vec<String> = Vec::new();
    let mut best: Option<Vec<String>> = None;
    let keep = |run: &mut Vec<String>, best: &mut Option<Vec<String>>| {
        if run.len() > best.as_ref().map_or(1, Vec::len) {
            *best = Some(std::mem::take(run));
        }
        run.clear();
    };
    for text in bytes.split(|&byte| byte == 0) {
        let directory = std::str::from_utf8(text).ok().filter(|text| {
            text.len() < 200
                && (text.starts_with("/lib")
                    || text.starts_with("/usr/lib")
                    || text.contains("/lib/"))
                && text.starts_with('/')
                && text.ends_with('/')
                && text
                    .chars()
                    .all(|c| c.is_ascii_graphic() && c != ':' && c != '%')
        });
        match directory {
            Some(directory) => run.push(directory.trim_end_matches('/').to_owned()),
            None => keep(&mut run, &mut best),
        }
    }
    keep(&mut run, &mut best);
    best
}

/// The default directories that distributions use, for a loader file that cannot be read.
///
/// `multiarch` says whether `/lib/<triplet>` exists on the host, as on Debian and its children.
#[must_use]
pub fn usual_default_directories(machine: u16, multiarch: bool) -> Vec<String> {
    let triplet = if machine == goblin::elf::header::EM_AARCH64 {
        "aarch64-linux-gnu"
    } else {
        "x86_64-linux-gnu"
    };
    let names: &[&str] = if multiarch { &[triplet, ""] } else { &["64"] };
    names
        .iter()
        .flat_map(|name| {
            let lib = match *name {
                "" => "lib".to_owned(),
                "64" => "lib64".to_owned(),
                triplet => format!("lib/{triplet}"),
            };
            [format!("/{lib}"), format!("/usr/{lib}")]
        })
        .collect()
}

//! Cubins: the architecture and the compiler of a file of GPU machine code (resolution.md 2.8).

use super::object::{EM_CUDA, Object, text_at, u16_at, u32_at};
use crate::toolkit::{Arch, Suffix, Version};
use serde::{Deserialize, Serialize};

const OLD_ABI: u8 = 51;
const OLD_FLAG_A: u32 = 0x800;
const NEW_FLAG_A: u32 = 0x8;
const NOTE_TKINFO: u32 = 2000;
const NOTE_CUINFO: u32 = 1000;

/// What `.note.nv.tkinfo` says of the tool that wrote a cubin.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ToolStamp {
    /// The tool, such as `ptxas`.
    pub tool: String,
    /// Its exact version, such as 13.0.88.
    pub version: Option<Version>,
    /// Its build, such as `Build cuda_13.0.r13.0/compiler.36424714_0`.
    pub build: String,
    /// The options that it was given, such as `-arch sm_120f -m 64`.
    pub options: String,
}

impl ToolStamp {
    /// The architecture among the options, with its suffix.
    #[must_use]
    pub fn arch(&self) -> Option<Arch> {
        let mut words = self.options.split_ascii_whitespace();
        while let Some(word) = words.next() {
            let value = match word.split_once('=') {
                Some(("-arch" | "--gpu-name", value)) => Some(value),
                None if matches!(word, "-arch" | "--gpu-name") => words.next(),
                _ => None,
            };
            if let Some(arch) = value.and_then(Arch::parse) {
                return Some(arch);
            }
        }
        None
    }
}

/// What a cubin says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cubin {
    /// Its architecture. The suffix comes from the tool's options or the header's flag.
    pub arch: Arch,
    /// Whether the suffix is known: cubins of 13.x state it only in [`Cubin::stamp`], and `f` is in no flag.
    pub suffix_known: bool,
    /// The toolkit release that it states: the old ABI's `e_version`, or `.note.nv.cuinfo`.
    pub toolkit: Option<Version>,
    /// The tool that wrote it, in cubins of the new ABI.
    pub stamp: Option<ToolStamp>,
}

/// Reads a cubin; `None` if `bytes` are no ELF file for CUDA GPUs.
#[must_use]
pub fn read(bytes: &[u8]) -> Option<Cubin> {
    let object = Object::parse(bytes)?;
    if object.machine != EM_CUDA {
        return None;
    }
    let notes = |name| object.section(name).map(|section| section.bytes);
    let stamp = notes(".note.nv.tkinfo")
        .and_then(|bytes| note(bytes, NOTE_TKINFO))
        .and_then(tool_stamp);
    let old = object.os_abi == OLD_ABI || object.abi_version <= 7;
    let (number, flag_a) = if old {
        (object.flags & 0xff, object.flags & OLD_FLAG_A != 0)
    } else {
        (object.flags >> 8 & 0xff, object.flags & NEW_FLAG_A != 0)
    };
    let toolkit = if old {
        // 10 × major + minor: 124 is 12.4.
        (object.version >= 20).then(|| Version::release(object.version / 10, object.version % 10))
    } else {
        let stated = notes(".note.nv.cuinfo")
            .and_then(|bytes| note(bytes, NOTE_CUINFO))
            .and_then(|note| u16_at(note, 4));
        stated
            .filter(|n| *n >= 20)
            .map(|n| Version::release(u32::from(n) / 10, u32::from(n) % 10))
    };
    let optioned = stamp
        .as_ref()
        .and_then(ToolStamp::arch)
        .filter(|arch| arch.number() == number);
    let suffix = match (optioned, flag_a) {
        (Some(arch), _) => arch.suffix,
        (None, true) => Suffix::A,
        (None, false) => Suffix::None,
    };
    // In the old ABI the flag is the whole truth; it knew no `f`.
    let suffix_known = old || optioned.is_some() || flag_a;
    Some(Cubin {
        arch: Arch::real(number, suffix),
        suffix_known,
        toolkit,
        stamp,
    })
}

/// The content of the first ELF note of this type.
fn note(bytes: &[u8], wanted: u32) -> Option<&[u8]> {
    let mut at: usize = 0;
    for _ in 0..64 {
        let name = usize::try_from(u32_at(bytes, at)?).ok()?;
        let size = usize::try_from(u32_at(bytes, at.checked_add(4)?)?).ok()?;
        let kind = u32_at(bytes, at.checked_add(8)?)?;
        let content = at
            .checked_add(12)?
            .checked_add(name.checked_next_multiple_of(4)?)?;
        if kind == wanted {
            return bytes.get(content..content.checked_add(size)?);
        }
        at = content.checked_add(size.checked_next_multiple_of(4)?)?;
    }
    None
}

/// Six words, then a table of strings: word 2 is the offset of the tool's name, 3 its version line, 4 its build
/// line, 5 its options.
fn tool_stamp(note: &[u8]) -> Option<ToolStamp> {
    let strings = note.get(24..)?;
    let text = |word: usize| -> Option<&str> {
        text_at(strings, usize::try_from(u32_at(note, word * 4)?).ok()?)
    };
    let release = text(3)?;
    Some(ToolStamp {
        tool: text(2)?.to_owned(),
        version: crate::toolkit::version_in_tool_string(release),
        build: text(4).unwrap_or_default().to_owned(),
        options: text(5).unwrap_or_default().trim().to_owned(),
    })
}

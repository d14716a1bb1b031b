//! The fatbin container: which architectures and PTX a compiled CUDA file carries (resolution.md 2.7).
//!
//! Only the entry headers are read. They state kind, architecture, suffix, PTX ISA and compression in the clear,
//! so nothing is decompressed and, in a mapped file, most pages are never touched.

use super::cubin::{self, ToolStamp};
use super::object::{u16_at, u32_at, u64_at};
use crate::toolkit::{Arch, Suffix, Version};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

const MAGIC: u32 = 0xBA55_ED50;
const MAGIC_BYTES: [u8; 4] = MAGIC.to_le_bytes();
/// How many entries are read from one file, at most; the largest library seen has some hundred thousand.
const MAX_ENTRIES: u64 = 4_000_000;
/// How many different entries are kept.
const MAX_KINDS: usize = 512;
const MAX_STAMPS: usize = 32;

const FLAG_DEBUG: u64 = 0x2;
const FLAG_LZ4: u64 = 0x2000;
const FLAG_ZSTD: u64 = 0x8000;
const FLAG_A: u64 = 0x10_0000;
const FLAG_F: u64 = 0x20_0000;

/// What an entry holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EntryKind {
    /// PTX text, for the driver to compile.
    Ptx,
    /// A cubin: machine code.
    Cubin,
    /// Another image, such as LTO-IR.
    Other,
}

/// How an entry's payload is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compression {
    /// As it is.
    None,
    /// LZ4, the default up to 12.8.
    Lz4,
    /// Zstandard, the default since 13.0.
    Zstd,
    /// Compressed, by a method that the flags do not name.
    Unknown,
}

/// A kind of entry found in a file, and how often.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// PTX, cubin or other.
    pub kind: EntryKind,
    /// Its target: virtual for PTX.
    pub arch: Arch,
    /// For PTX the ISA that the compiler wrote, for a cubin its ABI version (1.7 old, 1.8 new).
    pub version: Version,
    /// How it is stored.
    pub compression: Compression,
    /// Compiled for debugging (`-G`).
    pub debug: bool,
    /// How many entries are like this.
    pub count: u64,
}

/// What the fatbins of one file hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fatbin {
    /// How many fatbins were found.
    pub containers: u64,
    /// The different entries, sorted by kind and architecture.
    pub entries: Vec<Entry>,
    /// What uncompressed cubins say of the tool that made them.
    pub stamps: Vec<ToolStamp>,
    /// Whether something could not be read to its end: a torn container, or more than is looked at.
    pub truncated: bool,
}

type Key = (EntryKind, Arch, Version, Compression, bool);

/// Reads all fatbins in `bytes`: a raw fatbin file, or the section `.nv_fatbin` or `__nv_relfatbin` of an object.
#[must_use]
pub fn read(bytes: &[u8]) -> Fatbin {
    let mut found = Fatbin::default();
    let mut kinds: BTreeMap<Key, u64> = BTreeMap::new();
    let mut budget = MAX_ENTRIES;
    let mut at = 0;
    while let Some(start) = next_container(bytes, at) {
        let Some(end) = read_container(bytes, start, &mut kinds, &mut found, &mut budget) else {
            found.truncated = true;
            // Torn: look for another one behind this header.
            at = start.saturating_add(16);
            if budget == 0 {
                break;
            }
            continue;
        };
        found.containers += 1;
        at = end;
    }
    found.entries = kinds
        .into_iter()
        .map(|((kind, arch, version, compression, debug), count)| Entry {
            kind,
            arch,
            version,
            compression,
            debug,
            count,
        })
        .collect();
    found
}

/// The next header at or after `from`. Containers follow each other 8-aligned; what lies between is padding.
fn next_container(bytes: &[u8], from: usize) -> Option<usize> {
    let aligned = from.checked_next_multiple_of(8)?;
    if u32_at(bytes, aligned) == Some(MAGIC) {
        return Some(aligned);
    }
    let mut from = from;
    loop {
        let found = memchr::memmem::find(bytes.get(from..)?, &MAGIC_BYTES)?.checked_add(from)?;
        if found % 8 == 0 && u16_at(bytes, found.checked_add(4)?) == Some(1) {
            return Some(found);
        }
        from = found.checked_add(4)?;
    }
}

/// Reads one container; the offset behind it, or `None` if it is torn.
fn read_container(
    bytes: &[u8],
    start: usize,
    kinds: &mut BTreeMap<Key, u64>,
    found: &mut Fatbin,
    budget: &mut u64,
) -> Option<usize> {
    let header = usize::from(u16_at(bytes, start.checked_add(6)?)?);
    let total = usize::try_from(u64_at(bytes, start.checked_add(8)?)?).ok()?;
    let mut at = start.checked_add(header.max(16))?;
    let end = at.checked_add(total)?;
    if end > bytes.len() {
        return None;
    }
    while at.checked_add(64)? <= end {
        *budget = budget.checked_sub(1)?;
        let entry = bytes.get(at..end)?;
        let header = usize::try_from(u32_at(entry, 4)?).ok()?;
        let padded = usize::try_from(u64_at(entry, 8)?).ok()?;
        if header < 64 {
            return None;
        }
        note(entry, header, padded, kinds, found);
        at = at.checked_add(header)?.checked_add(padded)?;
    }
    Some(end)
}

fn note(
    entry: &[u8],
    header: usize,
    padded: usize,
    kinds: &mut BTreeMap<Key, u64>,
    found: &mut Fatbin,
) -> Option<()> {
    let kind = match u16_at(entry, 0)? {
        1 => EntryKind::Ptx,
        2 => EntryKind::Cubin,
        _ => EntryKind::Other,
    };
    let flags = u64_at(entry, 40)?;
    let suffix = match flags {
        flags if flags & FLAG_A != 0 => Suffix::A,
        flags if flags & FLAG_F != 0 => Suffix::F,
        _ => Suffix::None,
    };
    let number = u32_at(entry, 28)?;
    let arch = if kind == EntryKind::Ptx {
        Arch::virtual_(number, suffix)
    } else {
        Arch::real(number, suffix)
    };
    let version = Version::release(u32::from(u16_at(entry, 26)?), u32::from(u16_at(entry, 24)?));
    let compression = match (u32_at(entry, 16)?, flags) {
        (0, _) => Compression::None,
        (_, flags) if flags & FLAG_ZSTD != 0 => Compression::Zstd,
        (_, flags) if flags & FLAG_LZ4 != 0 => Compression::Lz4,
        _ => Compression::Unknown,
    };
    let key = (kind, arch, version, compression, flags & FLAG_DEBUG != 0);
    let is_new = !kinds.contains_key(&key);
    if is_new && kinds.len() >= MAX_KINDS {
        found.truncated = true;
        return None;
    }
    *kinds.entry(key).or_default() += 1;
    if is_new
        && kind == EntryKind::Cubin
        && compression == Compression::None
        && found.stamps.len() < MAX_STAMPS
    {
        let payload = entry.get(header..header.checked_add(padded)?)?;
        let stamp = cubin::read(payload)?.stamp?;
        if !found.stamps.contains(&stamp) {
            found.stamps.push(stamp);
        }
    }
    Some(())
}

//! `/etc/ld.so.cache`: ldconfig's index from a library's name to the files that bear it.
//!
//! Two layouts are read: the present one (`glibc-ld.so.cache1.1`, glibc 2.2 on), and the same one behind the older
//! `ld.so-1.7.0` table that ldconfig wrote for compatibility until 2.32. Since glibc 2.33 an extension section names the
//! `glibc-hwcaps` subdirectories that entries come from; it is read in the present layout only.
//!
//! The file belongs to whoever owns the host or the container image, so nothing in it is trusted: every offset is
//! checked, memory is bounded by the size of the file, and what does not fit gives an error or a missing entry.

use std::collections::HashMap;

use super::system::System;

const MAGIC_NEW: &[u8] = b"glibc-ld.so.cache1.1";
const MAGIC_OLD: &[u8] = b"ld.so-1.7.0\0";
/// Size of the header of the present layout, and of one entry.
const HEADER: usize = 48;
const ENTRY: usize = 24;
/// Old layout: header, and one entry.
const OLD_HEADER: usize = 16;
const OLD_ENTRY: usize = 12;
const EXTENSION_MAGIC: u32 = 0xeaa4_2174;
const EXTENSION_GLIBC_HWCAPS: u32 = 1;
/// Set in an entry's hwcap field when its low half is an index into the names of the extension section.
const HWCAP_EXTENSION: u64 = 1 << 62;
/// Longest name or path that is taken from the file.
const LONGEST_STRING: usize = 4096;

/// Why a cache file cannot be used; the loader then behaves as if there were none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CacheError {
    /// Neither of the known magic strings.
    #[error("not an ld.so.cache: unknown magic; run ldconfig to write it anew")]
    UnknownMagic,
    /// The number of entries does not fit into the file.
    #[error(
        "ld.so.cache is cut off: {0} entries do not fit into {1} bytes; run ldconfig to write it anew"
    )]
    Truncated(u64, usize),
}

/// One line of the cache: a name and the file that ldconfig found for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheEntry {
    /// The path of the file.
    pub path: String,
    /// Kind of library and ABI (0x303: x86-64 glibc).
    pub flags: i32,
    /// Legacy capability bits that the machine must have; 0 for nearly all entries.
    pub hwcap: u64,
    /// The `glibc-hwcaps` subdirectory that the file lies in (`x86-64-v3`).
    pub subdirectory: Option<String>,
}

/// The content of an `ld.so.cache`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LdSoCache {
    entries: HashMap<String, Vec<CacheEntry>>,
    count: usize,
}

impl LdSoCache {
    /// Reads the content of the file.
    ///
    /// # Errors
    /// When it is no such file, or shorter than it says.
    pub fn parse(bytes: &[u8]) -> Result<Self, CacheError> {
        let table = present_layout(bytes)?;
        let count = u32_at(table, 20).unwrap_or(0) as usize;
        let entries_end = count
            .checked_mul(ENTRY)
            .and_then(|length| length.checked_add(HEADER));
        if entries_end.is_none_or(|end| end > table.len()) {
            return Err(CacheError::Truncated(count as u64, table.len()));
        }
        let names = extension_names(table);
        let mut cache = Self::default();
        // A file may point any number of entries at one long string: the text kept is bounded by the file itself.
        let mut text_left = table.len().saturating_mul(4);
        for index in 0..count {
            let entry = table.get(HEADER + index * ENTRY..).unwrap_or_default();
            let (Some(flags), Some(key), Some(value), Some(low), Some(high)) = (
                u32_at(entry, 0),
                u32_at(entry, 4),
                u32_at(entry, 8),
                u32_at(entry, 16),
                u32_at(entry, 20),
            ) else {
                break;
            };
            let (Some(name), Some(path)) = (string_at(table, key), string_at(table, value)) else {
                continue;
            };
            let Some(left) = text_left.checked_sub(name.len() + path.len()) else {
                break;
            };
            text_left = left;
            let hwcap = u64::from(high) << 32 | u64::from(low);
            let subdirectory = if hwcap & HWCAP_EXTENSION != 0 {
                match names.get(low as usize) {
                    Some(name) => Some((*name).to_owned()),
                    // An entry for a subdirectory that the file does not name can never be used.
                    None => continue,
                }
            } else {
                None
            };
            cache.count += 1;
            cache
                .entries
                .entry(name.to_owned())
                .or_default()
                .push(CacheEntry {
                    path: path.to_owned(),
                    flags: flags.cast_signed(),
                    hwcap,
                    subdirectory,
                });
        }
        Ok(cache)
    }

    /// Number of usable entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are no usable entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// All entries of a name, in the order of the file.
    #[must_use]
    pub fn entries(&self, name: &str) -> &[CacheEntry] {
        self.entries.get(name).map_or(&[], Vec::as_slice)
    }

    /// The one file that the loader would try for `name` on this system.
    ///
    /// Entries of other ABIs do not count. Entries from `glibc-hwcaps` subdirectories that the processor can use go
    /// before all others, the best one first; then the first entry whose legacy capability bits the machine has.
    #[must_use]
    pub fn lookup(&self, name: &str, system: &System) -> Option<&CacheEntry> {
        let mut best: Option<(usize, &CacheEntry)> = None;
        for entry in self.entries(name) {
            if entry.flags != system.cache_flags && entry.flags != 1 {
                continue;
            }
            match &entry.subdirectory {
                Some(subdirectory) => {
                    let Some(rank) = system
                        .glibc_hwcaps
                        .iter()
                        .position(|usable| usable == subdirectory)
                    else {
                        continue;
                    };
                    if best.is_none_or(|(best_rank, _)| rank < best_rank) {
                        best = Some((rank, entry));
                    }
                }
                None => {
                    if best.is_some() {
                        break;
                    }
                    if entry.hwcap & !system.legacy_hwcap_mask != 0 {
                        continue;
                    }
                    best = Some((usize::MAX, entry));
                    if entry.flags == system.cache_flags {
                        break;
                    }
                }
            }
        }
        best.map(|(_, entry)| entry)
    }
}

/// The table of the present layout, which may follow one of the old layout.
fn present_layout(bytes: &[u8]) -> Result<&[u8], CacheError> {
    if bytes.starts_with(MAGIC_NEW) {
        return Ok(bytes);
    }
    if !bytes.starts_with(MAGIC_OLD) {
        return Err(CacheError::UnknownMagic);
    }
    let count = u64::from(u32_at(bytes, 12).unwrap_or(0));
    usize::try_from(count)
        .ok()
        .and_then(|count| {
            count
                .checked_mul(OLD_ENTRY)?
                .checked_add(OLD_HEADER)?
                .checked_next_multiple_of(8)
        })
        .and_then(|at| bytes.get(at..))
        .filter(|rest| rest.starts_with(MAGIC_NEW))
        .ok_or(CacheError::Truncated(count, bytes.len()))
}

/// The names of the `glibc-hwcaps` subdirectories, in the order that entries refer to.
fn extension_names(table: &[u8]) -> Vec<&str> {
    let read = || {
        let at = u32_at(table, 32).filter(|&at| at != 0 && at % 4 == 0)?;
        let directory = table.get(at as usize..)?;
        if u32_at(directory, 0)? != EXTENSION_MAGIC {
            return None;
        }
        let sections = directory
            .get(8..)?
            .chunks_exact(16)
            .take(u32_at(directory, 4)? as usize);
        let section = sections
            .into_iter()
            .find(|section| u32_at(section, 0) == Some(EXTENSION_GLIBC_HWCAPS))?;
        let (start, size) = (u32_at(section, 8)? as usize, u32_at(section, 12)? as usize);
        let offsets = table.get(start..start.checked_add(size)?)?;
        // A name that cannot be read keeps its place, or the later ones would be taken for it.
        Some(
            offsets
                .chunks_exact(4)
                .map(|o| {
                    u32_at(o, 0)
                        .and_then(|at| string_at(table, at))
                        .unwrap_or("")
                })
                .collect(),
        )
    };
    read().unwrap_or_default()
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(
        bytes.get(at..at.checked_add(4)?)?.try_into().ok()?,
    ))
}

fn string_at(table: &[u8], at: u32) -> Option<&str> {
    let rest = table.get(at as usize..)?;
    let bounded = rest.get(..rest.len().min(LONGEST_STRING))?;
    let end = bounded.iter().position(|&byte| byte == 0)?;
    std::str::from_utf8(bounded.get(..end)?).ok()
}

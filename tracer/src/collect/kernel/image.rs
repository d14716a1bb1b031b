//! First facts of a module image in a process's memory: what it is and what it can run on.
//!
//! The same facts as the shim tells from inside (resolution.md 2.7, 2.8), read from outside: a fat binary is walked from
//! entry to entry, whatever its size.

use std::{fs::File, os::unix::fs::FileExt};

use jittrace_model::{event::Image, image::ptx};

const FATBIN_WRAPPER: u32 = 0x4662_43b1;
const FATBIN: u32 = 0xba55_ed50;
const ELF: u32 = u32::from_le_bytes(*b"\x7fELF");

/// As much of an image's beginning as is looked at.
const HEAD: usize = 4096;
/// Most entries of a fat binary that are looked at.
const ENTRIES: usize = 64;

/// Bytes of a process: the live memory, and what the probe copied of it.
pub(crate) struct Memory<'a> {
    live: Option<File>,
    /// Where the copy begins.
    address: u64,
    copied: &'a [u8],
}

impl<'a> Memory<'a> {
    /// The memory of process `pid`, of which `copied` was at `address` when the probe fired.
    pub(crate) fn of(pid: u32, address: u64, copied: &'a [u8]) -> Memory<'a> {
        Memory {
            live: File::open(format!("/proc/{pid}/mem")).ok(),
            address,
            copied,
        }
    }

    /// Up to `most` bytes at `address`; fewer at the end of what is there.
    fn read(&self, address: u64, most: usize) -> Vec<u8> {
        if let Some(live) = &self.live {
            let mut bytes = vec![0; most];
            let to_page_end = HEAD - (address % HEAD as u64) as usize;
            for length in [most, most.min(to_page_end)] {
                let room = bytes.get_mut(..length).unwrap_or_default();
                if let Ok(read @ 1..) = live.read_at(room, address) {
                    bytes.truncate(read);
                    return bytes;
                }
            }
        }
        let from = address
            .checked_sub(self.address)
            .and_then(|from| usize::try_from(from).ok());
        from.and_then(|from| self.copied.get(from..))
            .map(|rest| rest.get(..most).unwrap_or(rest).to_vec())
            .unwrap_or_default()
    }
}

/// What the image at `address` is; `None` when it cannot be read or is none.
pub(crate) fn facts(memory: &Memory<'_>, address: u64) -> Option<Image> {
    let mut address = address;
    let mut head = memory.read(address, HEAD);
    if u32_at(&head, 0)? == FATBIN_WRAPPER {
        address = u64_at(&head, 8)?;
        head = memory.read(address, HEAD);
    }
    match u32_at(&head, 0)? {
        FATBIN => Some(Image {
            kind: "fatbin".to_owned(),
            archs: entries(memory, address, &head),
            ..Image::default()
        }),
        ELF => Some(Image {
            kind: "cubin".to_owned(),
            archs: vec![format!("sm_{}", cubin_arch(&head)?)],
            ..Image::default()
        }),
        _ => {
            let text = head.split(|byte| *byte == 0).next().unwrap_or_default();
            let ptx = ptx::read(text)?;
            Some(Image {
                kind: "ptx".to_owned(),
                ptx_version: Some(ptx.isa.to_string()),
                target: ptx
                    .target
                    .map(|arch| arch.to_string().replacen("compute_", "sm_", 1)),
                ..Image::default()
            })
        }
    }
}

/// Entries of a fat binary: kind (1 PTX, 2 cubin), size of the header, size, architecture.
fn entries(memory: &Memory<'_>, address: u64, head: &[u8]) -> Vec<String> {
    let mut archs = Vec::new();
    let header = u64::from(u16_at(head, 6).unwrap_or(16));
    let end = header.saturating_add(u64_at(head, 8).unwrap_or(0));
    let mut at = header;
    for _ in 0..ENTRIES {
        if at.saturating_add(32) > end {
            break;
        }
        let entry = memory.read(address.saturating_add(at), 64);
        let (Some(kind), Some(size_of_header), Some(size), Some(arch)) = (
            u16_at(&entry, 0),
            u32_at(&entry, 4),
            u64_at(&entry, 8),
            u32_at(&entry, 28),
        ) else {
            break;
        };
        if (10..10_000).contains(&arch) {
            let word = if kind == 1 { "compute" } else { "sm" };
            archs.push(format!("{word}_{arch}"));
        }
        if size_of_header < 32 {
            break;
        }
        at = at
            .saturating_add(u64::from(size_of_header))
            .saturating_add(size);
    }
    archs
}

/// The architecture in a cubin's `e_flags`: the low byte before CUDA 13, bits 8 to 15 since (ELF ABI version 8).
fn cubin_arch(head: &[u8]) -> Option<u32> {
    let flags = u32_at(head, 48)?;
    Some(if *head.get(8)? >= 8 {
        (flags >> 8) & 0xff
    } else {
        flags & 0xff
    })
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes: &[u8]) -> Option<Image> {
        let address = bytes.as_ptr() as u64;
        facts(&Memory::of(std::process::id(), address, bytes), address)
    }

    fn fatbin() -> Vec<u8> {
        let mut entries = Vec::new();
        for (kind, arch) in [(2_u16, 90_u32), (1, 120)] {
            let mut entry = vec![0_u8; 64 + 8];
            entry[..2].copy_from_slice(&kind.to_le_bytes());
            entry[4..8].copy_from_slice(&64_u32.to_le_bytes());
            entry[8..16].copy_from_slice(&8_u64.to_le_bytes());
            entry[28..32].copy_from_slice(&arch.to_le_bytes());
            entries.extend(entry);
        }
        let mut bytes = FATBIN.to_le_bytes().to_vec();
        bytes.extend([1, 0, 16, 0]);
        bytes.extend((entries.len() as u64).to_le_bytes());
        bytes.extend(entries);
        bytes
    }

    #[test]
    fn ptx_tells_its_version_and_target() {
        let image = of(b"//\n.version 8.7\n.target sm_120a\n.address_size 64\n\0").unwrap();
        assert_eq!(image.kind, "ptx");
        assert_eq!(image.ptx_version.as_deref(), Some("8.7"));
        assert_eq!(image.target.as_deref(), Some("sm_120a"));
    }

    #[test]
    fn fat_binaries_are_walked_also_behind_their_wrapper() {
        let bytes = fatbin();
        assert_eq!(of(&bytes).unwrap().archs, ["sm_90", "compute_120"]);
        let mut wrapper = FATBIN_WRAPPER.to_le_bytes().to_vec();
        wrapper.extend(1_u32.to_le_bytes());
        wrapper.extend((bytes.as_ptr() as u64).to_le_bytes());
        wrapper.extend(0_u64.to_le_bytes());
        assert_eq!(of(&wrapper).unwrap().archs, ["sm_90", "compute_120"]);
    }

    #[test]
    fn a_copy_is_enough_when_the_process_is_gone() {
        let bytes = fatbin();
        let gone = Memory {
            live: None,
            address: 0x1000,
            copied: &bytes,
        };
        assert_eq!(
            facts(&gone, 0x1000).unwrap().archs,
            ["sm_90", "compute_120"]
        );
        assert_eq!(facts(&gone, 0x10), None);
    }

    #[test]
    fn anything_else_is_no_image() {
        assert_eq!(of(b"\x01\x02\x03\x04\x05\x06\x07\x08"), None);
    }
}

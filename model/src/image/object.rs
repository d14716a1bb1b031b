//! The parts of an ELF file that CUDA images and tools are found in, read in place.
//!
//! Made for mapped files of more than a gigabyte: only headers, the dynamic symbol table and the sections asked
//! for are touched. 64-bit little-endian only, which is all that CUDA has on Linux. Every read is checked; a
//! broken file gives less, never a panic. What the dynamic loader reads of a file is in [`crate::elf`].

use std::ops::Range;

/// How many sections and symbols are looked at, at most.
const MAX_SECTIONS: usize = 200_000;
const MAX_SYMBOLS: usize = 2_000_000;

const SHT_DYNSYM: u32 = 11;
const SHT_NOBITS: u32 = 8;
const PT_LOAD: u32 = 1;
const SHF_EXECINSTR: u64 = 4;

/// `e_machine` of a cubin.
pub const EM_CUDA: u16 = 190;
/// `e_machine` of x86-64.
pub const EM_X86_64: u16 = 62;

/// One section header.
#[derive(Debug, Clone, Copy)]
pub struct Section<'a> {
    /// Its name; empty if it cannot be read.
    pub name: &'a str,
    /// `sh_type`.
    pub kind: u32,
    /// `sh_flags`.
    pub flags: u64,
    /// `sh_addr`.
    pub address: u64,
    /// Its bytes; empty for `.bss` and for what lies outside the file.
    pub bytes: &'a [u8],
    link: u32,
}

impl Section<'_> {
    /// Whether it holds instructions.
    #[must_use]
    pub const fn is_code(&self) -> bool {
        self.flags & SHF_EXECINSTR != 0
    }
}

/// One entry of the dynamic symbol table.
#[derive(Debug, Clone, Copy)]
pub struct Symbol<'a> {
    /// Its name, without version.
    pub name: &'a str,
    /// Its address; 0 when undefined.
    pub address: u64,
    /// Whether this object defines it (exports) or wants it (imports).
    pub defined: bool,
}

/// An ELF file and its headers.
#[derive(Debug, Clone)]
pub struct Object<'a> {
    bytes: &'a [u8],
    /// `EI_OSABI`.
    pub os_abi: u8,
    /// `EI_ABIVERSION`.
    pub abi_version: u8,
    /// `e_machine`.
    pub machine: u16,
    /// `e_version`, where old cubins state their toolkit.
    pub version: u32,
    /// `e_flags`, where cubins state their architecture.
    pub flags: u32,
    sections: Vec<Section<'a>>,
    loads: Vec<Load>,
}

#[derive(Debug, Clone, Copy)]
struct Load {
    address: u64,
    offset: u64,
    size: u64,
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(
        bytes.get(at..at.checked_add(2)?)?.try_into().ok()?,
    ))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(
        bytes.get(at..at.checked_add(4)?)?.try_into().ok()?,
    ))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(
        bytes.get(at..at.checked_add(8)?)?.try_into().ok()?,
    ))
}

/// The text that ends at the next NUL, at most 4096 bytes of it.
pub(crate) fn text_at(bytes: &[u8], at: usize) -> Option<&str> {
    let tail = bytes.get(at..)?;
    let tail = tail.get(..tail.len().min(4096))?;
    let end = memchr::memchr(0, tail).unwrap_or(tail.len());
    std::str::from_utf8(tail.get(..end)?).ok()
}

fn range(offset: u64, size: u64) -> Option<Range<usize>> {
    let start = usize::try_from(offset).ok()?;
    Some(start..start.checked_add(usize::try_from(size).ok()?)?)
}

impl<'a> Object<'a> {
    /// Reads the headers; `None` if this is no 64-bit little-endian ELF file.
    #[must_use]
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        if bytes.get(..6)? != b"\x7fELF\x02\x01" {
            return None;
        }
        let mut object = Self {
            bytes,
            os_abi: *bytes.get(7)?,
            abi_version: *bytes.get(8)?,
            machine: u16_at(bytes, 18)?,
            version: u32_at(bytes, 20)?,
            flags: u32_at(bytes, 48)?,
            sections: Vec::new(),
            loads: Vec::new(),
        };
        object.read_loads();
        object.read_sections();
        Some(object)
    }

    fn read_loads(&mut self) {
        let (Some(offset), Some(size), Some(count)) = (
            u64_at(self.bytes, 32),
            u16_at(self.bytes, 54),
            u16_at(self.bytes, 56),
        ) else {
            return;
        };
        for index in 0..u64::from(count) {
            let Some(at) = offset
                .checked_add(index.saturating_mul(u64::from(size)))
                .and_then(|at| usize::try_from(at).ok())
            else {
                return;
            };
            let Some(header) = at.checked_add(56).and_then(|end| self.bytes.get(at..end)) else {
                return;
            };
            if u32_at(header, 0) != Some(PT_LOAD) {
                continue;
            }
            if let (Some(offset), Some(address), Some(size)) =
                (u64_at(header, 8), u64_at(header, 16), u64_at(header, 32))
            {
                self.loads.push(Load {
                    address,
                    offset,
                    size,
                });
            }
        }
    }

    fn read_sections(&mut self) {
        let bytes = self.bytes;
        let (Some(offset), Some(size), Some(count), Some(names)) = (
            u64_at(bytes, 40),
            u16_at(bytes, 58),
            u16_at(bytes, 60),
            u16_at(bytes, 62),
        ) else {
            return;
        };
        let size = usize::from(size);
        if size < 64 || offset == 0 {
            return;
        }
        let header = |index: usize| -> Option<&'a [u8]> {
            let at = usize::try_from(offset)
                .ok()?
                .checked_add(index.checked_mul(size)?)?;
            bytes.get(at..at.checked_add(64)?)
        };
        let content = |header: &[u8]| -> &'a [u8] {
            if u32_at(header, 4) == Some(SHT_NOBITS) {
                return &[];
            }
            u64_at(header, 24)
                .zip(u64_at(header, 32))
                .and_then(|(offset, size)| range(offset, size))
                .and_then(|range| bytes.get(range))
                .unwrap_or(&[])
        };
        // Objects made with -ffunction-sections exceed 65,279 sections: then the first header carries the counts.
        let first = header(0);
        let count = match count {
            0 => first
                .and_then(|first| u64_at(first, 32))
                .and_then(|n| usize::try_from(n).ok())
                .unwrap_or(0),
            count => usize::from(count),
        };
        let names_index = match names {
            0xffff => first
                .and_then(|first| u32_at(first, 40))
                .and_then(|n| usize::try_from(n).ok())
                .unwrap_or(0),
            names => usize::from(names),
        };
        let names = header(names_index).map_or(&[][..], content);
        for index in 0..count.min(MAX_SECTIONS) {
            let Some(header) = header(index) else { return };
            let name = u32_at(header, 0)
                .and_then(|at| text_at(names, usize::try_from(at).ok()?))
                .unwrap_or("");
            self.sections.push(Section {
                name,
                kind: u32_at(header, 4).unwrap_or(0),
                flags: u64_at(header, 8).unwrap_or(0),
                address: u64_at(header, 16).unwrap_or(0),
                bytes: content(header),
                link: u32_at(header, 40).unwrap_or(0),
            });
        }
    }

    /// All sections, in the order of the file.
    #[must_use]
    pub fn sections(&self) -> &[Section<'a>] {
        &self.sections
    }

    /// The first section of this name.
    #[must_use]
    pub fn section(&self, name: &str) -> Option<&Section<'a>> {
        self.sections.iter().find(|section| section.name == name)
    }

    /// The read-only data, where the tools keep their version strings. A file without section headers gives its
    /// whole self.
    #[must_use]
    pub fn read_only_data(&self) -> Vec<&'a [u8]> {
        if self.sections.is_empty() {
            return vec![self.bytes];
        }
        let constant = |section: &&Section<'a>| {
            section.name.starts_with(".rodata") || section.name.starts_with(".lrodata")
        };
        self.sections
            .iter()
            .filter(constant)
            .map(|section| section.bytes)
            .collect()
    }

    /// The code at a virtual address, to the end of its segment.
    #[must_use]
    pub fn code_at(&self, address: u64) -> Option<&'a [u8]> {
        let load = self.loads.iter().find(|load| {
            address
                .checked_sub(load.address)
                .is_some_and(|into| into < load.size)
        })?;
        let into = address.checked_sub(load.address)?;
        self.bytes.get(range(
            load.offset.checked_add(into)?,
            load.size.checked_sub(into)?,
        )?)
    }

    /// The dynamic symbols; empty for a file whose section headers were stripped.
    pub fn symbols(&self) -> impl Iterator<Item = Symbol<'a>> + '_ {
        let table = self
            .sections
            .iter()
            .find(|section| section.kind == SHT_DYNSYM);
        let names = table.and_then(|table| self.linked(table)).unwrap_or(&[]);
        let entries = table.map_or(&[][..], |table| table.bytes);
        entries
            .chunks_exact(24)
            .take(MAX_SYMBOLS)
            .filter_map(move |entry| {
                let name = text_at(names, usize::try_from(u32_at(entry, 0)?).ok()?)?;
                (!name.is_empty()).then_some(Symbol {
                    name,
                    address: u64_at(entry, 8)?,
                    defined: u16_at(entry, 6)? != 0,
                })
            })
    }

    /// The address of an exported function.
    #[must_use]
    pub fn export(&self, name: &str) -> Option<u64> {
        self.symbols()
            .find(|symbol| symbol.defined && symbol.name == name)
            .map(|symbol| symbol.address)
    }

    fn linked(&self, section: &Section<'a>) -> Option<&'a [u8]> {
        self.sections
            .get(usize::try_from(section.link).ok()?)
            .map(|section| section.bytes)
    }
}

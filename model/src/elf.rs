//! What an ELF file says about itself: its name, its needs, where it wants them looked for, and which versions it
//! speaks.
//!
//! [`ElfFacts::parse`] reads the file header, the program headers and what the dynamic segment points to, and nothing
//! else: a library of a gigabyte costs a few pages when the slice is a memory map. It follows the *segments*, as the
//! dynamic loader does, not the sections, which a stripped file may lack. Every length that comes from the file is
//! bounded, so that a damaged or hostile file gives an error or fewer facts, never a panic and never much memory.
//!
//! [`ElfError`] keeps apart what the dynamic loader treats apart: a file of another class or machine is passed over
//! during a search, a file that is too short or malformed ends it (mechanisms.md 4b).

use goblin::container::{Container, Ctx, Endian};
use goblin::elf::Elf;
use goblin::elf::dynamic::{
    DT_FLAGS, DT_FLAGS_1, DT_NEEDED, DT_NULL, DT_RPATH, DT_RUNPATH, DT_SONAME, DT_STRSZ, DT_STRTAB,
    DT_VERDEF, DT_VERDEFNUM, DT_VERNEED, DT_VERNEEDNUM,
};
use goblin::elf::header::{EI_CLASS, ELFCLASS32, ELFCLASS64, ELFMAG, Header};
use goblin::elf::program_header::{PT_DYNAMIC, PT_INTERP, PT_LOAD, PT_NOTE, ProgramHeader};
use goblin::elf::section_header::{SHN_UNDEF, SHT_DYNSYM};
use serde::{Deserialize, Serialize};

/// Longest name or path read from a string table; `PATH_MAX` is 4096, an RPATH may list several.
const LONGEST_STRING: usize = 64 * 1024;
/// Most entries read of any list in the file; the longest seen in real CUDA libraries are a few dozen.
const MOST_ENTRIES: usize = 4096;
/// Total text kept of one file, over all its lists.
const MOST_TEXT: usize = 1 << 20;

/// Do not search the default directories for this object's needs (`ld -z nodefaultlib`).
pub const DF_1_NODEFLIB: u64 = 0x800;
/// The object stays mapped although it is closed (`ld -z nodelete`).
pub const DF_1_NODELETE: u64 = 0x8;
/// The file is a position-independent executable.
pub const DF_1_PIE: u64 = 0x0800_0000;

/// `ET_EXEC`: an executable at a fixed address.
const ET_EXEC: u16 = 2;
/// `ET_DYN`: a shared object or a position-independent executable.
const ET_DYN: u16 = 3;

/// Why a file gives no [`ElfFacts`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ElfError {
    /// Shorter than an ELF header; the dynamic loader says "file too short" and gives up the search.
    #[error("file too short for an ELF header ({0} bytes)")]
    TooShort(usize),
    /// The magic number is another; the dynamic loader says "invalid ELF header" and gives up the search.
    #[error("not an ELF file")]
    NotElf,
    /// The magic number is right, the rest of the header or the dynamic segment is not.
    #[error("malformed ELF file: {0}")]
    Malformed(&'static str),
}

/// Width of addresses in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// `ELFCLASS32`.
    Elf32,
    /// `ELFCLASS64`.
    Elf64,
}

/// What the header says the file is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// `ET_EXEC`: an executable at a fixed address.
    Executable,
    /// `ET_DYN`: a shared object, or an executable that is position-independent.
    Shared,
    /// Anything else (`ET_REL`, `ET_CORE`): nothing that the dynamic loader accepts.
    Other,
}

/// The versions that an object requires of one library (`.gnu.version_r`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequiredVersions {
    /// SONAME of the library that must define them.
    pub library: String,
    /// Version names, in file order: `GLIBC_2.17`, `libnvJitLink.so.12`, …
    pub versions: Vec<String>,
}

/// What the headers and the dynamic segment of one ELF file say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ElfFacts {
    /// 32 or 64 bit.
    pub class: Class,
    /// Whether multi-byte fields are big endian.
    #[serde(default, skip_serializing_if = "is_false")]
    pub big_endian: bool,
    /// `e_machine`: 62 is x86-64, 183 is AArch64, 190 is an NVIDIA cubin.
    pub machine: u16,
    /// Executable or shared object.
    pub kind: Kind,
    /// Whether there is a dynamic segment; a shared object without one cannot be loaded.
    pub dynamic: bool,
    /// `DT_SONAME`: the name under which others need it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub soname: Option<String>,
    /// `DT_NEEDED`, in file order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needed: Vec<String>,
    /// `DT_RPATH`, unexpanded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rpath: Option<String>,
    /// `DT_RUNPATH`, unexpanded. Where it is present the loader ignores the RPATH.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runpath: Option<String>,
    /// `DT_FLAGS`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub flags: u64,
    /// `DT_FLAGS_1`; see [`DF_1_NODEFLIB`], [`DF_1_NODELETE`], [`DF_1_PIE`].
    #[serde(default, skip_serializing_if = "is_zero")]
    pub flags_1: u64,
    /// `PT_INTERP`: the dynamic loader that the kernel is to start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interpreter: Option<String>,
    /// GNU build id, in lower-case hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build_id: Option<String>,
    /// Versions that the object defines (`.gnu.version_d`), without the base entry that repeats the SONAME.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub defined_versions: Vec<String>,
    /// Versions that the object requires of others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub required_versions: Vec<RequiredVersions>,
}

fn is_false(value: &bool) -> bool {
    !value
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}

impl ElfFacts {
    /// Reads the facts of the file whose content is `bytes`, usually a memory map.
    ///
    /// # Errors
    /// When the header cannot be that of an ELF file, or tables that it names lie outside the file. A dynamic segment
    /// whose strings are damaged gives fewer facts and no error.
    pub fn parse(bytes: &[u8]) -> Result<Self, ElfError> {
        let file = Layout::of(bytes)?;
        let header = &file.header;
        let dynamic = file.dynamic();
        let mut strings = Strings {
            file: &file,
            table: dynamic.strings,
            left: MOST_TEXT,
        };
        let soname = dynamic.soname.and_then(|at| strings.at(at));
        let needed = dynamic
            .needed
            .iter()
            .filter_map(|&at| strings.at(at))
            .collect();
        let rpath = dynamic.rpath.and_then(|at| strings.at(at));
        let runpath = dynamic.runpath.and_then(|at| strings.at(at));
        let defined_versions = file.defined_versions(&dynamic, &mut strings);
        let required_versions = file.required_versions(&dynamic, &mut strings);
        Ok(Self {
            class: file.class,
            big_endian: !file.ctx.le.is_little(),
            machine: header.e_machine,
            kind: match header.e_type {
                ET_EXEC => Kind::Executable,
                ET_DYN => Kind::Shared,
                _ => Kind::Other,
            },
            dynamic: dynamic.present,
            soname,
            needed,
            rpath,
            runpath,
            flags: dynamic.flags,
            flags_1: dynamic.flags_1,
            interpreter: file.interpreter(),
            build_id: file.build_id(),
            defined_versions,
            required_versions,
        })
    }

    /// Whether this is an executable that runs without a dynamic loader, so that no preload reaches it.
    #[must_use]
    pub fn is_static(&self) -> bool {
        let executable = self.kind == Kind::Executable || self.flags_1 & DF_1_PIE != 0;
        executable && self.interpreter.is_none() && self.needed.is_empty()
    }

    /// Whether default directories are closed to this object's needs (`-z nodefaultlib`).
    #[must_use]
    pub fn ignores_default_directories(&self) -> bool {
        self.flags_1 & DF_1_NODEFLIB != 0
    }

    /// The RPATH that counts: none where there is a RUNPATH.
    #[must_use]
    pub fn effective_rpath(&self) -> Option<&str> {
        if self.runpath.is_some() {
            None
        } else {
            self.rpath.as_deref()
        }
    }

    /// The greatest `PREFIX<major>.<minor>…` among the defined versions: for `GLIBC_` on libc.so.6 the glibc release.
    ///
    /// ```
    /// # use jittrace_model::elf::ElfFacts;
    /// # let libc: ElfFacts = serde_json::from_value(serde_json::json!({"class": "elf64", "machine": 62,
    /// #     "kind": "shared", "dynamic": true, "defined_versions": ["GLIBC_2.9", "GLIBC_2.36", "GLIBC_PRIVATE"]})).unwrap();
    /// assert_eq!(libc.greatest_defined_version("GLIBC_"), Some(vec![2, 36]));
    /// ```
    #[must_use]
    pub fn greatest_defined_version(&self, prefix: &str) -> Option<Vec<u32>> {
        self.defined_versions
            .iter()
            .filter_map(|version| version.strip_prefix(prefix))
            .filter_map(|numbers| numbers.split('.').map(|n| n.parse().ok()).collect())
            .max()
    }
}

/// `STB_WEAK` of the ELF specification: the binding of a symbol that may be absent.
const STB_WEAK: u8 = 2;

/// Whether a symbol is defined in the object or wanted from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Binding {
    /// The object has it.
    Defined,
    /// Another object must have it.
    Undefined,
    /// Another object may have it: a weak reference.
    Optional,
}

/// Names of dynamic symbols that begin with `prefix`, at most `most`, in file order.
///
/// For what a version can only be read from: `__nvJitLinkCreate_13_0` in libnvJitLink and its consumers
/// (resolution.md 2.6). Costs one pass over the dynamic symbol table; a file whose section headers are stripped
/// gives none.
#[must_use]
pub fn dynamic_symbols(bytes: &[u8], prefix: &str, most: usize) -> Vec<(String, Binding)> {
    let Ok(file) = Layout::of(bytes) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    let Some((symbols, names)) = file.dynamic_symbol_sections() else {
        return found;
    };
    let entry = if file.class == Class::Elf64 { 24 } else { 16 };
    let mut text = MOST_TEXT;
    for symbol in symbols.chunks_exact(entry) {
        if found.len() >= most || text == 0 {
            break;
        }
        let (info_at, section_at) = if file.class == Class::Elf64 {
            (4, 6)
        } else {
            (12, 14)
        };
        let (Some(name_at), Some(info), Some(section)) = (
            file.u32_in(symbol, 0),
            symbol.get(info_at),
            file.u16_in(symbol, section_at),
        ) else {
            break;
        };
        let Some(name) = names.get(name_at as usize..) else {
            continue;
        };
        if !name.starts_with(prefix.as_bytes()) {
            continue;
        }
        let Some(name) = c_string(name) else { continue };
        text = text.saturating_sub(name.len());
        let binding = match (u32::from(section) == SHN_UNDEF, info >> 4) {
            (false, _) => Binding::Defined,
            (true, STB_WEAK) => Binding::Optional,
            (true, _) => Binding::Undefined,
        };
        found.push((name, binding));
    }
    found
}

/// Text up to the next NUL; none when there is none within [`LONGEST_STRING`].
fn c_string(bytes: &[u8]) -> Option<String> {
    let bounded = bytes.get(..bytes.len().min(LONGEST_STRING))?;
    let end = bounded.iter().position(|&b| b == 0)?;
    Some(String::from_utf8_lossy(bounded.get(..end)?).into_owned())
}

/// The file, its header and its segments.
struct Layout<'a> {
    bytes: &'a [u8],
    header: Header,
    class: Class,
    ctx: Ctx,
    segments: Vec<ProgramHeader>,
}

/// The entries of the dynamic segment that matter here: offsets into the string table, addresses, flags.
#[derive(Default)]
struct Dynamic {
    present: bool,
    strings: Option<(u64, u64)>,
    soname: Option<u64>,
    needed: Vec<u64>,
    rpath: Option<u64>,
    runpath: Option<u64>,
    flags: u64,
    flags_1: u64,
    defined: Option<(u64, u64)>,
    required: Option<(u64, u64)>,
}

impl<'a> Layout<'a> {
    fn of(bytes: &'a [u8]) -> Result<Self, ElfError> {
        // 52 bytes is the smaller of the two header sizes.
        let ident = bytes.get(..52).ok_or(ElfError::TooShort(bytes.len()))?;
        if ident.get(..4) != Some(ELFMAG.as_slice()) {
            return Err(ElfError::NotElf);
        }
        let (class, container) = match ident.get(EI_CLASS) {
            Some(&ELFCLASS32) => (Class::Elf32, Container::Little),
            Some(&ELFCLASS64) => (Class::Elf64, Container::Big),
            _ => return Err(ElfError::Malformed("unknown class")),
        };
        if class == Class::Elf64 && bytes.len() < 64 {
            return Err(ElfError::TooShort(bytes.len()));
        }
        let header =
            Elf::parse_header(bytes).map_err(|_| ElfError::Malformed("unreadable header"))?;
        let endian = header.endianness().unwrap_or(Endian::Little);
        let ctx = Ctx::new(container, endian);
        let expected = if class == Class::Elf64 { 56 } else { 32 };
        if header.e_phnum > 0 && header.e_phentsize != expected {
            return Err(ElfError::Malformed("program headers of an unexpected size"));
        }
        let at = usize::try_from(header.e_phoff)
            .map_err(|_| ElfError::Malformed("program headers outside the file"))?;
        let length = usize::from(header.e_phnum) * usize::from(expected);
        if at.checked_add(length).is_none_or(|end| end > bytes.len()) {
            return Err(ElfError::Malformed("program headers outside the file"));
        }
        let segments = ProgramHeader::parse(bytes, at, usize::from(header.e_phnum), ctx)
            .map_err(|_| ElfError::Malformed("unreadable program headers"))?;
        Ok(Self {
            bytes,
            header,
            class,
            ctx,
            segments,
        })
    }

    fn slice(&self, at: u64, length: u64) -> Option<&'a [u8]> {
        let start = usize::try_from(at).ok()?;
        let end = start.checked_add(usize::try_from(length).ok()?)?;
        self.bytes.get(start..end)
    }

    /// As much of the range as the file has: a truncated file still names what is there.
    fn slice_to_end(&self, at: u64, length: u64) -> Option<&'a [u8]> {
        let start = usize::try_from(at).ok()?;
        let rest = self.bytes.get(start..)?;
        rest.get(
            ..rest
                .len()
                .min(usize::try_from(length).unwrap_or(usize::MAX)),
        )
    }

    fn u16_in(&self, bytes: &[u8], at: usize) -> Option<u16> {
        let field: [u8; 2] = bytes.get(at..at.checked_add(2)?)?.try_into().ok()?;
        Some(if self.ctx.le.is_little() {
            u16::from_le_bytes(field)
        } else {
            u16::from_be_bytes(field)
        })
    }

    fn u32_in(&self, bytes: &[u8], at: usize) -> Option<u32> {
        let field: [u8; 4] = bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
        Some(if self.ctx.le.is_little() {
            u32::from_le_bytes(field)
        } else {
            u32::from_be_bytes(field)
        })
    }

    /// An address-sized field.
    fn word_in(&self, bytes: &[u8], at: usize) -> Option<u64> {
        if self.class == Class::Elf32 {
            return self.u32_in(bytes, at).map(u64::from);
        }
        let field: [u8; 8] = bytes.get(at..at.checked_add(8)?)?.try_into().ok()?;
        Some(if self.ctx.le.is_little() {
            u64::from_le_bytes(field)
        } else {
            u64::from_be_bytes(field)
        })
    }

    /// Where in the file the loader would find what it maps at `address`, and how much of it the file holds there.
    fn file_range(&self, address: u64) -> Option<(u64, u64)> {
        self.segments
            .iter()
            .filter(|s| s.p_type == PT_LOAD)
            .find_map(|segment| {
                let into = address.checked_sub(segment.p_vaddr)?;
                let left = segment.p_filesz.checked_sub(into)?;
                (left > 0).then_some((segment.p_offset.checked_add(into)?, left))
            })
    }

    fn at_address(&self, address: u64) -> Option<&'a [u8]> {
        let (at, length) = self.file_range(address)?;
        self.slice_to_end(at, length)
    }

    fn dynamic(&self) -> Dynamic {
        let mut dynamic = Dynamic::default();
        let Some(segment) = self.segments.iter().find(|s| s.p_type == PT_DYNAMIC) else {
            return dynamic;
        };
        let Some(entries) = self.slice_to_end(segment.p_offset, segment.p_filesz) else {
            return dynamic;
        };
        dynamic.present = true;
        let word = if self.class == Class::Elf64 { 8 } else { 4 };
        let (mut table, mut table_size) = (None, None);
        let (mut defined, mut defined_count) = (None, 0);
        let (mut required, mut required_count) = (None, 0);
        for entry in entries.chunks_exact(2 * word).take(16 * MOST_ENTRIES) {
            let (Some(tag), Some(value)) = (self.word_in(entry, 0), self.word_in(entry, word))
            else {
                break;
            };
            match tag {
                DT_NULL => break,
                DT_NEEDED if dynamic.needed.len() < MOST_ENTRIES => dynamic.needed.push(value),
                DT_SONAME => dynamic.soname = Some(value),
                DT_RPATH => dynamic.rpath = Some(value),
                DT_RUNPATH => dynamic.runpath = Some(value),
                DT_FLAGS => dynamic.flags = value,
                DT_FLAGS_1 => dynamic.flags_1 = value,
                DT_STRTAB => table = Some(value),
                DT_STRSZ => table_size = Some(value),
                DT_VERDEF => defined = Some(value),
                DT_VERDEFNUM => defined_count = value,
                DT_VERNEED => required = Some(value),
                DT_VERNEEDNUM => required_count = value,
                _ => {}
            }
        }
        dynamic.strings = table.and_then(|address| {
            let (at, length) = self.file_range(address)?;
            Some((at, table_size.unwrap_or(length).min(length)))
        });
        dynamic.defined = defined.map(|address| (address, defined_count));
        dynamic.required = required.map(|address| (address, required_count));
        dynamic
    }

    fn interpreter(&self) -> Option<String> {
        let segment = self.segments.iter().find(|s| s.p_type == PT_INTERP)?;
        c_string(self.slice(segment.p_offset, segment.p_filesz)?)
    }

    fn build_id(&self) -> Option<String> {
        const NT_GNU_BUILD_ID: u32 = 3;
        for segment in self.segments.iter().filter(|s| s.p_type == PT_NOTE) {
            let align: usize = if segment.p_align == 8 { 8 } else { 4 };
            let Some(mut notes) = self.slice_to_end(segment.p_offset, segment.p_filesz) else {
                continue;
            };
            for _ in 0..MOST_ENTRIES {
                let (Some(name_size), Some(size), Some(kind)) = (
                    self.u32_in(notes, 0),
                    self.u32_in(notes, 4),
                    self.u32_in(notes, 8),
                ) else {
                    break;
                };
                let name_size = name_size as usize;
                let size = size as usize;
                let Some(start) = 12usize
                    .checked_add(name_size)
                    .and_then(|n| n.checked_next_multiple_of(align))
                else {
                    break;
                };
                let Some(end) = start.checked_add(size) else {
                    break;
                };
                if kind == NT_GNU_BUILD_ID
                    && notes.get(12..12 + 4) == Some(b"GNU\0")
                    && name_size == 4
                    && size <= 64
                {
                    return notes.get(start..end).map(hexadecimal);
                }
                let Some(rest) = end
                    .checked_next_multiple_of(align)
                    .and_then(|next| notes.get(next..))
                else {
                    break;
                };
                notes = rest;
            }
        }
        None
    }

    fn defined_versions(&self, dynamic: &Dynamic, strings: &mut Strings<'_>) -> Vec<String> {
        const VER_FLG_BASE: u16 = 1;
        let mut versions = Vec::new();
        let Some((address, count)) = dynamic.defined else {
            return versions;
        };
        let Some(mut entry) = self.at_address(address) else {
            return versions;
        };
        for _ in 0..count.min(MOST_ENTRIES as u64) {
            let (Some(flags), Some(aux), Some(next)) = (
                self.u16_in(entry, 2),
                self.u32_in(entry, 12),
                self.u32_in(entry, 16),
            ) else {
                break;
            };
            let name = entry
                .get(aux as usize..)
                .and_then(|aux| self.u32_in(aux, 0));
            if flags & VER_FLG_BASE == 0
                && let Some(name) = name.and_then(|at| strings.at(u64::from(at)))
            {
                versions.push(name);
            }
            match entry.get(next as usize..) {
                Some(rest) if next > 0 => entry = rest,
                _ => break,
            }
        }
        versions
    }

    fn required_versions(
        &self,
        dynamic: &Dynamic,
        strings: &mut Strings<'_>,
    ) -> Vec<RequiredVersions> {
        let mut required = Vec::new();
        let mut left = MOST_ENTRIES;
        let Some((address, count)) = dynamic.required else {
            return required;
        };
        let Some(mut entry) = self.at_address(address) else {
            return required;
        };
        for _ in 0..count.min(MOST_ENTRIES as u64) {
            let (Some(aux_count), Some(library), Some(aux), Some(next)) = (
                self.u16_in(entry, 2),
                self.u32_in(entry, 4),
                self.u32_in(entry, 8),
                self.u32_in(entry, 12),
            ) else {
                break;
            };
            let mut versions = Vec::new();
            let mut version = entry.get(aux as usize..);
            for _ in 0..usize::from(aux_count).min(left) {
                let Some(this) = version else { break };
                let (Some(name), Some(following)) = (self.u32_in(this, 8), self.u32_in(this, 12))
                else {
                    break;
                };
                versions.extend(strings.at(u64::from(name)));
                version = if following > 0 {
                    this.get(following as usize..)
                } else {
                    None
                };
            }
            left = left.saturating_sub(versions.len());
            if let Some(library) = strings.at(u64::from(library)) {
                required.push(RequiredVersions { library, versions });
            }
            match entry.get(next as usize..) {
                Some(rest) if next > 0 && left > 0 => entry = rest,
                _ => break,
            }
        }
        required
    }

    /// The dynamic symbol table and its string table, found by section.
    fn dynamic_symbol_sections(&self) -> Option<(&'a [u8], &'a [u8])> {
        let size: u64 = if self.class == Class::Elf64 { 64 } else { 40 };
        // Fields of a section header: type, offset, size, link; their places for the two classes.
        let (offset_at, size_at, link_at) = if self.class == Class::Elf64 {
            (24, 32, 40)
        } else {
            (16, 20, 24)
        };
        let section = |index: u64| {
            self.slice(
                self.header.e_shoff.checked_add(index.checked_mul(size)?)?,
                size,
            )
        };
        for index in 0..u64::from(self.header.e_shnum) {
            let header = section(index)?;
            if self.u32_in(header, 4)? != SHT_DYNSYM {
                continue;
            }
            let symbols = self.slice(
                self.word_in(header, offset_at)?,
                self.word_in(header, size_at)?,
            )?;
            let names = section(u64::from(self.u32_in(header, link_at)?))?;
            let names = self.slice(
                self.word_in(names, offset_at)?,
                self.word_in(names, size_at)?,
            )?;
            return Some((symbols, names));
        }
        None
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
}

/// The string table of the dynamic segment, with the budget of text that one file may use.
struct Strings<'a> {
    file: &'a Layout<'a>,
    table: Option<(u64, u64)>,
    left: usize,
}

impl Strings<'_> {
    fn at(&mut self, offset: u64) -> Option<String> {
        let (start, size) = self.table?;
        let length = size.checked_sub(offset)?;
        let text = c_string(self.file.slice_to_end(start.checked_add(offset)?, length)?)?;
        self.left = self.left.checked_sub(text.len())?;
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn own_executable() -> Vec<u8> {
        std::fs::read(std::env::current_exe().unwrap()).unwrap()
    }

    #[test]
    fn the_test_program_itself() {
        let bytes = own_executable();
        let facts = ElfFacts::parse(&bytes).unwrap();
        assert_eq!(
            (facts.class, facts.kind, facts.dynamic),
            (Class::Elf64, Kind::Shared, true)
        );
        assert!(
            facts.needed.iter().any(|name| name.starts_with("libc.so")),
            "{facts:?}"
        );
        assert!(
            facts
                .interpreter
                .as_deref()
                .is_some_and(|path| path.starts_with("/lib")),
            "{facts:?}"
        );
        assert!(
            facts
                .required_versions
                .iter()
                .any(|r| r.versions.iter().any(|v| v.starts_with("GLIBC_2.")))
        );
        assert!(!facts.is_static());
        let text = serde_json::to_string(&facts).unwrap();
        assert_eq!(serde_json::from_str::<ElfFacts>(&text).unwrap(), facts);
    }

    #[test]
    fn what_is_no_elf_file_is_told_apart() {
        assert_eq!(ElfFacts::parse(b""), Err(ElfError::TooShort(0)));
        assert_eq!(
            ElfFacts::parse(b"\x7fELF\x02\x01\x01"),
            Err(ElfError::TooShort(7))
        );
        assert_eq!(ElfFacts::parse(&[b'/'; 200]), Err(ElfError::NotElf));
        let mut bytes = own_executable();
        bytes.truncate(100);
        assert_eq!(
            ElfFacts::parse(&bytes),
            Err(ElfError::Malformed("program headers outside the file"))
        );
        bytes[EI_CLASS] = 9;
        assert_eq!(
            ElfFacts::parse(&bytes),
            Err(ElfError::Malformed("unknown class"))
        );
    }

    #[test]
    fn a_truncated_file_still_says_what_is_left() {
        let mut bytes = own_executable();
        bytes.truncate(4096);
        let facts = ElfFacts::parse(&bytes).unwrap();
        assert!(facts.interpreter.is_some());
    }

    proptest! {
        #[test]
        fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let _ = ElfFacts::parse(&bytes);
        }

        #[test]
        fn a_real_file_with_any_damage(changes in proptest::collection::vec((0usize..8192, any::<u8>()), 1..40), keep in 0usize..16384) {
            let mut bytes = own_executable();
            for (at, value) in changes {
                bytes[at] = value;
            }
            let _ = ElfFacts::parse(&bytes);
            let _ = dynamic_symbols(&bytes, "", 100);
            bytes.truncate(keep);
            let _ = ElfFacts::parse(&bytes);
        }
    }
}

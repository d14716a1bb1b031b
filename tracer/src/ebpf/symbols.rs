//! Where functions lie in an ELF file, as the kernel counts for a uprobe: by file offset.

use std::{cell::OnceCell, collections::HashMap};

use goblin::{
    elf::{
        Elf, ProgramHeader,
        program_header::{PF_X, PT_LOAD},
        reloc::R_X86_64_RELATIVE,
        sym::{STT_FUNC, Symtab},
    },
    strtab::Strtab,
};

use super::returns::Code;

/// A function found in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Function {
    /// What the caller's function numbers it.
    pub(crate) number: u16,
    /// Its name.
    pub(crate) name: String,
    /// Virtual address of its first byte.
    pub(crate) address: u64,
    /// Bytes; 0 where the symbol does not say.
    pub(crate) size: u64,
    /// Found in `.symtab` only: a static copy (cudart linked statically), not an export.
    pub(crate) is_static: bool,
}

/// Which symbol tables are searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tables {
    /// What the file exports.
    Exported,
    /// The static symbol table as well.
    All,
}

/// An object file: its symbols, and its code by virtual address.
pub(crate) struct Object<'a> {
    bytes: &'a [u8],
    elf: Elf<'a>,
    /// What RELATIVE relocations put where; filled when first asked for, there may be 100,000.
    pointers: OnceCell<HashMap<u64, u64>>,
}

impl<'a> Object<'a> {
    /// Reads the headers.
    ///
    /// # Errors
    ///
    /// One sentence, when the bytes are not an ELF file of this machine.
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Self, String> {
        let elf = Elf::parse(bytes).map_err(|error| format!("not a readable ELF file: {error}"))?;
        if !elf.is_64 || elf.header.e_machine != goblin::elf::header::EM_X86_64 {
            return Err("not an ELF file for x86-64".to_owned());
        }
        Ok(Self {
            bytes,
            elf,
            pointers: OnceCell::new(),
        })
    }

    /// The functions to which `number_of` gives a number. Several versions of one name at one address count once.
    pub(crate) fn functions(
        &self,
        number_of: &dyn Fn(&str) -> Option<u16>,
        tables: Tables,
    ) -> Vec<Function> {
        let mut found = Vec::new();
        self.collect(
            &self.elf.dynsyms,
            &self.elf.dynstrtab,
            number_of,
            false,
            &mut found,
        );
        if tables == Tables::All {
            self.collect(
                &self.elf.syms,
                &self.elf.strtab,
                number_of,
                true,
                &mut found,
            );
        }
        found
    }

    fn collect(
        &self,
        table: &Symtab<'_>,
        strings: &Strtab<'_>,
        number_of: &dyn Fn(&str) -> Option<u16>,
        is_static: bool,
        found: &mut Vec<Function>,
    ) {
        for symbol in table.iter() {
            if symbol.st_type() != STT_FUNC || symbol.st_shndx == 0 {
                continue;
            }
            let Some(text) = strings.get_at(symbol.st_name) else {
                continue;
            };
            let Some(number) = number_of(text) else {
                continue;
            };
            let address = symbol.st_value;
            if self.offset(address).is_some()
                && !found
                    .iter()
                    .any(|other: &Function| other.number == number && other.address == address)
            {
                found.push(Function {
                    number,
                    name: text.to_owned(),
                    address,
                    size: symbol.st_size,
                    is_static,
                });
            }
        }
    }

    /// The executable segment of an address.
    fn segment(&self, address: u64) -> Option<&ProgramHeader> {
        self.elf
            .program_headers
            .iter()
            .filter(|segment| segment.p_type == PT_LOAD && segment.p_flags & PF_X != 0)
            .find(|segment| {
                address
                    .checked_sub(segment.p_vaddr)
                    .is_some_and(|into| into < segment.p_filesz)
            })
    }

    /// The file offset of a code address.
    pub(crate) fn offset(&self, address: u64) -> Option<u64> {
        let segment = self.segment(address)?;
        (address - segment.p_vaddr).checked_add(segment.p_offset)
    }
}

impl Code for Object<'_> {
    fn code(&self, address: u64) -> Option<&[u8]> {
        let segment = self.segment(address)?;
        let end = segment.p_offset.checked_add(segment.p_filesz)?;
        self.bytes
            .get(usize::try_from(self.offset(address)?).ok()?..usize::try_from(end).ok()?)
    }

    fn pointer(&self, address: u64) -> Option<u64> {
        let pointers = self.pointers.get_or_init(|| {
            let relative = self
                .elf
                .dynrelas
                .iter()
                .filter(|relocation| relocation.r_type == R_X86_64_RELATIVE);
            relative
                .filter_map(|relocation| {
                    Some((
                        relocation.r_offset,
                        u64::try_from(relocation.r_addend?).ok()?,
                    ))
                })
                .collect()
        });
        pointers
            .get(&address)
            .copied()
            .filter(|target| self.segment(*target).is_some())
    }
}

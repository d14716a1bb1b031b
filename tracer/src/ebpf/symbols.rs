//! Where functions lie in an ELF file, as the kernel counts for a uprobe: by file offset.

use goblin::elf::{
    Elf,
    program_header::{PF_X, PT_LOAD},
    sym::{STT_FUNC, Symtab},
};

/// A function found in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Function {
    /// What the caller's function numbers it.
    pub(crate) number: u16,
    /// Its name.
    pub(crate) name: String,
    /// Offset of its first byte in the file.
    pub(crate) offset: u64,
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

/// The functions of `file` to which `number_of` gives a number. Several versions of one name at one address count once.
///
/// # Errors
///
/// One sentence, when the bytes are not an ELF file of this machine.
pub(crate) fn functions(
    file: &[u8],
    number_of: &dyn Fn(&str) -> Option<u16>,
    tables: Tables,
) -> Result<Vec<Function>, String> {
    let elf = Elf::parse(file).map_err(|error| format!("not a readable ELF file: {error}"))?;
    if !elf.is_64 || elf.header.e_machine != goblin::elf::header::EM_X86_64 {
        return Err("not an ELF file for x86-64".to_owned());
    }
    let mut found = Vec::new();
    collect(
        &elf,
        &elf.dynsyms,
        &elf.dynstrtab,
        number_of,
        false,
        &mut found,
    );
    if tables == Tables::All {
        collect(&elf, &elf.syms, &elf.strtab, number_of, true, &mut found);
    }
    Ok(found)
}

fn collect(
    elf: &Elf<'_>,
    table: &Symtab<'_>,
    strings: &goblin::strtab::Strtab<'_>,
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
        let Some(offset) = file_offset(elf, symbol.st_value) else {
            continue;
        };
        if !found
            .iter()
            .any(|other: &Function| other.number == number && other.offset == offset)
        {
            found.push(Function {
                number,
                name: text.to_owned(),
                offset,
                size: symbol.st_size,
                is_static,
            });
        }
    }
}

/// The file offset of a virtual address, within the executable segments.
fn file_offset(elf: &Elf<'_>, address: u64) -> Option<u64> {
    elf.program_headers
        .iter()
        .filter(|segment| segment.p_type == PT_LOAD && segment.p_flags & PF_X != 0)
        .find(|segment| {
            address
                .checked_sub(segment.p_vaddr)
                .is_some_and(|into| into < segment.p_filesz)
        })
        .and_then(|segment| (address - segment.p_vaddr).checked_add(segment.p_offset))
}

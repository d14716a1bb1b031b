//! First facts of a module image: what it was made for, as far as its first bytes tell.
//!
//! PTX is text with `.version` and `.target`. A cubin is an ELF file whose `e_flags` hold the architecture. A fat binary
//! is a header and a list of entries, each a cubin or PTX for one architecture (resolution.md 2.7).

use crate::real::read_memory;
use crate::text::Short;
use jittrace_wire::record::Writer;

const FATBIN_WRAPPER: u32 = 0x4662_43b1;
const FATBIN: u32 = 0xba55_ed50;
const ELF: u32 = u32::from_le_bytes(*b"\x7fELF");

/// As much of an image's beginning as is looked at.
const HEAD: usize = 4096;

/// Appends the facts of the image at `address`; `size` when the call gave one.
pub(crate) fn write_facts(writer: &mut Writer<'_>, tag: u8, address: usize, size: Option<usize>) {
    let mut facts = Short::<512>::new();
    if describe(&mut facts, address, size, 0) {
        writer.text(tag, facts.as_bytes());
    } else {
        writer.unreadable(tag);
    }
}

/// Whether an image lies at `address`.
pub(crate) fn is_image(address: usize) -> bool {
    describe(&mut Short::<512>::new(), address, None, 0)
}

fn describe(facts: &mut Short<512>, address: usize, size: Option<usize>, depth: u8) -> bool {
    let mut head = [0; HEAD];
    let wanted = size.unwrap_or(HEAD).min(HEAD);
    // Reading ends at the first page that is not there, which is within a short image's right.
    let page_end = HEAD - address % HEAD;
    let mut length = read_memory(
        address,
        head.get_mut(..wanted.min(page_end)).unwrap_or_default(),
    );
    if length == page_end && wanted > page_end {
        length += read_memory(
            address + page_end,
            head.get_mut(page_end..wanted).unwrap_or_default(),
        );
    }
    let head = head.get(..length).unwrap_or_default();
    let Some(magic) = u32_at(head, 0) else {
        return false;
    };
    match magic {
        FATBIN_WRAPPER if depth == 0 => {
            let data = u64_at(head, 8).unwrap_or(0) as usize;
            describe(facts, data, None, 1)
        }
        FATBIN => {
            facts.push(b"fatbin");
            describe_entries(facts, address, head);
            true
        }
        ELF => {
            facts.push(b"cubin ");
            push_cubin(facts, head);
            true
        }
        _ => describe_ptx(facts, head),
    }
}

/// Entries of a fat binary: kind (1 PTX, 2 cubin), header size, size, architecture.
fn describe_entries(facts: &mut Short<512>, address: usize, head: &[u8]) {
    let header = u16_at(head, 6).unwrap_or(16) as usize;
    let total = u64_at(head, 8).unwrap_or(0) as usize;
    let end = header.saturating_add(total);
    let mut at = header;
    for _ in 0..64 {
        if at + 32 > end || facts.is_full() {
            return;
        }
        let mut entry = [0; 64];
        let length = read_memory(address + at, &mut entry);
        let entry = entry.get(..length).unwrap_or_default();
        let (Some(kind), Some(size_of_header), Some(size), Some(arch)) = (
            u16_at(entry, 0),
            u32_at(entry, 4),
            u64_at(entry, 8),
            u32_at(entry, 28),
        ) else {
            return;
        };
        let words: &[u8] = if kind == 1 { b" ptx:sm_" } else { b" sm_" };
        if (10..10_000).contains(&arch) {
            facts.push(words).push_number(arch.into());
        }
        let step = (size_of_header as usize).saturating_add(size as usize);
        if size_of_header < 32 || step == 0 {
            return;
        }
        at = at.saturating_add(step);
    }
}

/// The architecture in a cubin's `e_flags`: the low byte before CUDA 13, bits 8 to 15 since (ELF ABI version 8).
fn push_cubin(facts: &mut Short<512>, head: &[u8]) {
    let flags = u32_at(head, 48).unwrap_or(0);
    let abi = head.get(8).copied().unwrap_or(0);
    let arch = if abi >= 8 {
        (flags >> 8) & 0xff
    } else {
        flags & 0xff
    };
    facts.push(b"sm_").push_number(arch.into());
}

/// `.version 8.7` and `.target sm_120a` of PTX text.
fn describe_ptx(facts: &mut Short<512>, head: &[u8]) -> bool {
    let text = head.split(|byte| *byte == 0).next().unwrap_or_default();
    if text.is_empty()
        || text
            .iter()
            .take(256)
            .any(|byte| !byte.is_ascii() || (*byte < 32 && !byte.is_ascii_whitespace()))
    {
        return false;
    }
    facts.push(b"ptx");
    for (directive, name) in [
        (&b".version"[..], &b" version="[..]),
        (b".target", b" target="),
    ] {
        if let Some(value) = word_after(text, directive) {
            facts.push(name).push(value);
        }
    }
    true
}

fn word_after<'t>(text: &'t [u8], directive: &[u8]) -> Option<&'t [u8]> {
    for line in text.split(|byte| *byte == b'\n') {
        if let Some(rest) = line.trim_ascii_start().strip_prefix(directive) {
            return rest
                .trim_ascii()
                .split(|byte| byte.is_ascii_whitespace() || *byte == b',')
                .next();
        }
    }
    None
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

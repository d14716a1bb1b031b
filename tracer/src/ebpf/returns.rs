//! The `ret` instructions that a function can return by.
//!
//! A uretprobe swaps the return address on the stack: the dynamic loader then no longer finds its caller (RUNPATH
//! look-ups fail, `dlsym(RTLD_NEXT)` returns NULL) and C++ cannot unwind through the frame (mechanisms 4d). A plain
//! probe on each `ret` sees the same result and changes nothing.
//!
//! The code is followed from its first instruction, so no symbol need say where it ends, and tail jumps lead on: at the
//! `ret` of the function jumped to, the stack is as it was at the entry. That matters for the driver, whose exports are
//! all `jmp *slot`, each slot filled by a relocation of the file itself.

use std::collections::HashSet;

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind};

/// Most instructions that are followed; the functions of interest are far smaller.
const MOST: usize = 50_000;
/// Most `ret` instructions that are worth probing, at about 0.4 ms each (mechanisms 1).
const MOST_RETS: usize = 64;

/// Code and constants of an object, by virtual address.
pub(crate) trait Code {
    /// The bytes from this address to the end of its executable segment.
    fn code(&self, address: u64) -> Option<&[u8]>;

    /// The code address that the loader puts at this place, where the file alone decides it.
    fn pointer(&self, address: u64) -> Option<u64>;
}

/// How a function can be left.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Returns {
    /// Addresses of its `ret` instructions, ascending.
    pub(crate) at: Vec<u64>,
    /// Why there may be ways out that are not among them.
    pub(crate) gap: Option<Gap>,
    /// Some lie behind a table of functions that the program may rewrite (a profiler does).
    pub(crate) through_table: bool,
}

/// A way out of a function which its `ret` instructions do not show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gap {
    /// It jumps through a register or memory: a switch, or a tail jump through a table that is filled at run time.
    IndirectJump,
    /// Its bytes are not all instructions.
    Undecodable,
    /// It leads to more code, or more returns, than are worth following.
    TooLarge,
}

impl Gap {
    /// In words, for a note.
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Self::IndirectJump => "may leave by an indirect jump",
            Self::Undecodable => "has bytes that are no instructions",
            Self::TooLarge => "leads to too much code",
        }
    }
}

/// Follows the function at `entry`. Running on behind `end`, where it is known, is not followed: that is another
/// function behind a call that does not return.
pub(crate) fn returns(code: &impl Code, entry: u64, end: Option<u64>) -> Returns {
    let mut found = Returns::default();
    let mut seen = HashSet::new();
    let mut starts = vec![entry];
    while let Some(start) = starts.pop() {
        let Some(bytes) = code.code(start) else {
            found.gap = Some(Gap::Undecodable);
            continue;
        };
        let mut decoder = Decoder::with_ip(64, bytes, start, DecoderOptions::NONE);
        let mut instruction = Instruction::default();
        loop {
            let at = decoder.ip();
            if !seen.insert(at) || (Some(at) == end && at != start) {
                break;
            }
            if seen.len() > MOST || found.at.len() > MOST_RETS {
                return Returns {
                    at: Vec::new(),
                    gap: Some(Gap::TooLarge),
                    through_table: found.through_table,
                };
            }
            if !decoder.can_decode() {
                found.gap = Some(Gap::Undecodable);
                break;
            }
            decoder.decode_out(&mut instruction);
            let branches = instruction.op0_kind() == OpKind::NearBranch64;
            match instruction.mnemonic() {
                Mnemonic::INVALID => {
                    found.gap = Some(Gap::Undecodable);
                    break;
                }
                Mnemonic::Ret => {
                    found.at.push(at);
                    break;
                }
                Mnemonic::Jmp if branches => {
                    starts.push(instruction.near_branch_target());
                    break;
                }
                Mnemonic::Jmp => {
                    match slot(&instruction).and_then(|slot| code.pointer(slot)) {
                        Some(target) => {
                            found.through_table = true;
                            starts.push(target);
                        }
                        None => found.gap = Some(found.gap.unwrap_or(Gap::IndirectJump)),
                    }
                    break;
                }
                Mnemonic::Ud2 | Mnemonic::Int3 | Mnemonic::Hlt => break,
                Mnemonic::Call => {}
                _ if branches => starts.push(instruction.near_branch_target()),
                _ => {}
            }
        }
    }
    found.at.sort_unstable();
    found
}

/// The constant address that a jump takes its target from.
fn slot(jump: &Instruction) -> Option<u64> {
    jump.is_ip_rel_memory_operand()
        .then(|| jump.ip_rel_memory_address())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Code at 0x1000, and a pointer to 0x1040 at 0x2000.
    struct Bytes(Vec<u8>);

    impl Code for Bytes {
        fn code(&self, address: u64) -> Option<&[u8]> {
            self.0
                .get(usize::try_from(address.checked_sub(0x1000)?).ok()?..)
        }

        fn pointer(&self, address: u64) -> Option<u64> {
            (address == 0x2000).then_some(0x1040)
        }
    }

    struct Case {
        name: &'static str,
        code: &'static [u8],
        at: &'static [u64],
        gap: Option<Gap>,
    }

    const fn case(
        name: &'static str,
        code: &'static [u8],
        at: &'static [u64],
        gap: Option<Gap>,
    ) -> Case {
        Case {
            name,
            code,
            at,
            gap,
        }
    }

    #[test]
    fn ways_out_of_functions() {
        let cases = [
            case("xor eax,eax; ret", &[0x31, 0xc0, 0xc3], &[2], None),
            case("rep ret", &[0xf3, 0xc3], &[0], None),
            case(
                "test; je +1; ret; inc eax; ret",
                &[0x85, 0xff, 0x74, 0x01, 0xc3, 0xff, 0xc0, 0xc3],
                &[4, 7],
                None,
            ),
            case(
                "no ret inside a constant",
                &[0xb8, 0xc3, 0xc3, 0xc3, 0xc3, 0xc3],
                &[5],
                None,
            ),
            case(
                "no ret that nothing leads to",
                &[0xeb, 0x01, 0xc3, 0x90, 0xc3],
                &[4],
                None,
            ),
            case(
                "tail jump to 0x1040",
                &[0xe9, 0x3b, 0x00, 0x00, 0x00],
                &[0x40],
                None,
            ),
            case("jne 0x1040; ret", &[0x75, 0x3e, 0xc3], &[2, 0x40], None),
            case(
                "jump out of the code",
                &[0xe9, 0x00, 0x10, 0x00, 0x00],
                &[],
                Some(Gap::Undecodable),
            ),
            case(
                "call elsewhere; ret",
                &[0xe8, 0x10, 0x00, 0x00, 0x00, 0xc3],
                &[5],
                None,
            ),
            case(
                "jmp [slot]",
                &[0xff, 0x25, 0xfa, 0x0f, 0x00, 0x00],
                &[0x40],
                None,
            ),
            case(
                "jmp [unknown]",
                &[0xff, 0x25, 0x10, 0x00, 0x00, 0x00],
                &[],
                Some(Gap::IndirectJump),
            ),
            case("jmp rax", &[0xff, 0xe0], &[], Some(Gap::IndirectJump)),
            case("loop: jmp self", &[0xeb, 0xfe, 0xc3], &[], None),
            case(
                "call abort; ud2",
                &[0xe8, 0x10, 0x00, 0x00, 0x00, 0x0f, 0x0b, 0xc3],
                &[],
                None,
            ),
            case("no instruction", &[0x06], &[], Some(Gap::Undecodable)),
        ];
        for Case {
            name,
            code,
            at,
            gap,
        } in cases
        {
            // nops up to 0x1040, where a ret is
            let mut bytes = vec![0x90; 0x41];
            bytes[..code.len()].copy_from_slice(code);
            bytes[0x40] = 0xc3;
            let found = returns(&Bytes(bytes), 0x1000, Some(0x1000 + code.len() as u64));
            let expected: Vec<u64> = at.iter().map(|offset| 0x1000 + offset).collect();
            assert_eq!((found.at, found.gap), (expected, gap), "{name}");
            assert_eq!(found.through_table, name == "jmp [slot]", "{name}");
        }
    }

    #[test]
    fn what_leads_too_far_is_left() {
        let rets: Vec<u8> = [0x75, 0x01, 0xc3].repeat(200);
        assert_eq!(returns(&Bytes(rets), 0x1000, None).gap, Some(Gap::TooLarge));
    }
}

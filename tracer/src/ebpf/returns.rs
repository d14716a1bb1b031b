//! The `ret` instructions of a function.
//!
//! A uretprobe swaps the return address on the stack: the dynamic loader then no longer finds its caller (RUNPATH
//! look-ups fail, `dlsym(RTLD_NEXT)` returns NULL) and C++ cannot unwind through the frame (mechanisms 4d). A plain
//! probe on each `ret` sees the same result and changes nothing.

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind};

/// Longest function that is decoded; the functions of interest are far smaller.
const LONGEST: usize = 256 * 1024;

/// How a function can be left.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Returns {
    /// Offsets of its `ret` instructions from its start.
    pub(crate) at: Vec<u64>,
    /// Why there may be ways out that are not among them.
    pub(crate) gap: Option<Gap>,
}

/// A way out of a function which its `ret` instructions do not show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gap {
    /// It jumps to another function, which then returns to the caller.
    TailJump,
    /// It jumps through a register or memory: a switch, or a tail jump through a table.
    IndirectJump,
    /// Its bytes are not all instructions.
    Undecodable,
    /// The symbol has no size, or too large a one.
    UnknownSize,
}

impl Gap {
    /// In words, for a note.
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Self::TailJump => "leaves by a jump to another function",
            Self::IndirectJump => "may leave by an indirect jump",
            Self::Undecodable => "has bytes that are no instructions",
            Self::UnknownSize => "has a symbol without a usable size",
        }
    }
}

/// Decodes `code`, the bytes of one function.
pub(crate) fn returns(code: &[u8]) -> Returns {
    let mut found = Returns::default();
    if code.is_empty() || code.len() > LONGEST {
        found.gap = Some(Gap::UnknownSize);
        return found;
    }
    let end = code.len() as u64;
    let mut decoder = Decoder::new(64, code, DecoderOptions::NONE);
    let mut instruction = Instruction::default();
    while decoder.can_decode() {
        decoder.decode_out(&mut instruction);
        if instruction.is_invalid() {
            found.gap = Some(Gap::Undecodable);
            // What was decoded before may have been out of step already: trust none of it.
            found.at.clear();
            return found;
        }
        let direct = matches!(instruction.op0_kind(), OpKind::NearBranch64);
        match instruction.mnemonic() {
            Mnemonic::Ret => found.at.push(instruction.ip()),
            Mnemonic::Jmp if !direct => {
                found.gap.get_or_insert(Gap::IndirectJump);
            }
            // Conditional jumps out of the function leave it as well.
            _ if direct
                && instruction.mnemonic() != Mnemonic::Call
                && instruction.near_branch_target() >= end =>
            {
                found.gap = Some(Gap::TailJump);
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_out_of_functions() {
        type Case = (&'static str, &'static [u8], &'static [u64], Option<Gap>);
        let cases: &[Case] = &[
            ("xor eax,eax; ret", &[0x31, 0xc0, 0xc3], &[2], None),
            ("rep ret", &[0xf3, 0xc3], &[0], None),
            (
                "test; je +1; ret; inc eax; ret",
                &[0x85, 0xff, 0x74, 0x01, 0xc3, 0xff, 0xc0, 0xc3],
                &[4, 7],
                None,
            ),
            (
                "mov eax,0xc3c3c3c3; ret: no ret inside the constant",
                &[0xb8, 0xc3, 0xc3, 0xc3, 0xc3, 0xc3],
                &[5],
                None,
            ),
            (
                "jmp out",
                &[0xe9, 0x10, 0x00, 0x00, 0x00],
                &[],
                Some(Gap::TailJump),
            ),
            (
                "jmp backwards out",
                &[0xe9, 0x00, 0xff, 0xff, 0xff, 0xc3],
                &[5],
                Some(Gap::TailJump),
            ),
            (
                "jne out; ret",
                &[0x75, 0x10, 0xc3],
                &[2],
                Some(Gap::TailJump),
            ),
            (
                "call elsewhere; ret",
                &[0xe8, 0x10, 0x00, 0x00, 0x00, 0xc3],
                &[5],
                None,
            ),
            (
                "jmp [rip+x]",
                &[0xff, 0x25, 0x10, 0x00, 0x00, 0x00],
                &[],
                Some(Gap::IndirectJump),
            ),
            ("loop: jmp self; ret", &[0xeb, 0xfe, 0xc3], &[2], None),
            (
                "ret, then cut instruction",
                &[0xc3, 0x48],
                &[],
                Some(Gap::Undecodable),
            ),
            ("nothing", &[], &[], Some(Gap::UnknownSize)),
        ];
        for (name, code, at, gap) in cases {
            assert_eq!(
                returns(code),
                Returns {
                    at: at.to_vec(),
                    gap: *gap
                },
                "{name}"
            );
        }
    }
}

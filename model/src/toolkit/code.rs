//! Constants that a version function writes or returns, read from its machine code.
//!
//! `libcudart.so.N` has no version string: `cudaRuntimeGetVersion` checks its argument, calls an inner function,
//! and that one stores 12080 or 13000 through the pointer (resolution.md 2.6, number 6). x86-64 only; on other
//! machines the file name and the owning package remain.

use crate::image::object::{EM_X86_64, Object};
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};
use std::collections::BTreeSet;

const MAX_INSTRUCTIONS: usize = 256;
const MAX_FUNCTIONS: usize = 24;
const MAX_DEPTH: u32 = 2;
/// The longest x86 instruction times the number looked at.
const WINDOW: usize = 15 * MAX_INSTRUCTIONS;

/// A constant found in a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Constant {
    /// Stored through a pointer that is not the stack's.
    Stored(u32),
    /// Put into the register that a function returns in.
    Returned(u32),
}

/// The constants that the exported function `name` and the functions that it calls directly store or return, in
/// the order of the code, outermost function first.
pub(crate) fn constants(object: &Object<'_>, name: &str) -> Vec<Constant> {
    let mut found = Vec::new();
    if object.machine != EM_X86_64 {
        return found;
    }
    let Some(start) = object.export(name) else {
        return found;
    };
    let mut level = vec![start];
    let mut seen = BTreeSet::from([start]);
    for _ in 0..=MAX_DEPTH {
        let mut next = Vec::new();
        for address in level {
            for callee in scan(object, address, &mut found) {
                if seen.len() < MAX_FUNCTIONS && seen.insert(callee) {
                    next.push(callee);
                }
            }
        }
        level = next;
    }
    found
}

/// Decodes one function in a straight line. The stores that matter come before or between its returns; the first
/// return that no earlier branch jumps over ends it.
fn scan(object: &Object<'_>, address: u64, found: &mut Vec<Constant>) -> Vec<u64> {
    let mut callees = Vec::new();
    let Some(code) = object.code_at(address) else {
        return callees;
    };
    let code = code.get(..code.len().min(WINDOW)).unwrap_or(code);
    let mut decoder = Decoder::with_ip(64, code, address, DecoderOptions::NONE);
    let mut furthest = address;
    let mut instruction = Instruction::default();
    for _ in 0..MAX_INSTRUCTIONS {
        if !decoder.can_decode() {
            break;
        }
        decoder.decode_out(&mut instruction);
        match instruction.mnemonic() {
            Mnemonic::INVALID => break,
            Mnemonic::Mov => found.extend(constant(&instruction)),
            Mnemonic::Call if instruction.op0_kind() == OpKind::NearBranch64 => {
                callees.push(instruction.near_branch_target())
            }
            Mnemonic::Jmp => {
                if instruction.op0_kind() == OpKind::NearBranch64 {
                    let target = instruction.near_branch_target();
                    if (address..address.saturating_add(WINDOW as u64)).contains(&target) {
                        furthest = furthest.max(target);
                    } else {
                        callees.push(target); // a tail call
                    }
                }
                if instruction.next_ip() > furthest {
                    break;
                }
            }
            Mnemonic::Ret if instruction.next_ip() > furthest => break,
            _ if instruction.op0_kind() == OpKind::NearBranch64 => {
                furthest = furthest.max(instruction.near_branch_target())
            }
            _ => {}
        }
    }
    callees
}

fn constant(instruction: &Instruction) -> Option<Constant> {
    let value = match instruction.op1_kind() {
        OpKind::Immediate32 => instruction.immediate32(),
        OpKind::Immediate32to64 => u32::try_from(instruction.immediate32to64()).ok()?,
        _ => return None,
    };
    match instruction.op0_kind() {
        OpKind::Memory => {
            let on_stack = matches!(
                instruction.memory_base(),
                Register::RSP | Register::RBP | Register::RIP | Register::None
            );
            (!on_stack).then_some(Constant::Stored(value))
        }
        OpKind::Register if matches!(instruction.op0_register(), Register::EAX | Register::RAX) => {
            Some(Constant::Returned(value))
        }
        _ => None,
    }
}

//! One record of the session file: a fixed, versioned header and fields that each say whether they are whole.
//!
//! A writer appends every record with one `write(2)` to a file opened with `O_APPEND`, so records of many processes
//! never mix. A reader finds the next record by its magic when bytes are torn (disk full, writer killed).
//!
//! ```text
//! offset  0  magic     FF 'J' 'T' 'R'     FF never occurs in UTF-8, so no text field can look like a header
//!         4  length    u32                whole record, header included, at most MAX_RECORD
//!         8  checksum  u32                over everything after this field
//!        12  version   u8                 FORMAT_VERSION
//!        13  kind      u8                 which record
//!        14  flags     u16                CUT: fields that did not fit are missing
//!        16  time      u64                CLOCK_MONOTONIC, nanoseconds
//!        24  pid       u32                as the process itself sees it
//!        28  tid       u32
//!        32  sequence  u32                per process, from 1; a gap is a loss
//!        36  -         u32                reserved, zero
//!        40  fields:   tag u8, mark u8, length u16, bytes
//! ```
//!
//! All numbers are little-endian. A reader skips tags it does not know, so a field can be added without a new version.

mod decode;
mod encode;
mod fields;
mod kinds;

pub use decode::{DecodeError, decode};
pub use encode::{Encoded, Writer};
pub use fields::{Field, Frame, List, Mark, Object, Put, Tag, Take, Text};
pub use kinds::{
    Call, Count, DlClose, DlError, DlRequest, DlSettled, DlUnloaded, ExecAttempt, ExecFailed, Exit,
    File, Fork, Message, NotFollowed, Note, ObjectLoaded, Record, Spawned, Start, SymbolLookup,
};

/// First bytes of every record.
pub const MAGIC: [u8; 4] = [0xff, b'J', b'T', b'R'];

/// Version of the header and of the meaning of the fields.
pub const FORMAT_VERSION: u8 = 2;

/// Bytes before the first field.
pub const HEADER_LENGTH: usize = 40;

/// Longest record, header included: what one `write(2)` appends without being split on any local file system.
pub const MAX_RECORD: usize = 8192;

/// Header flag: fields that did not fit were left out. `argc`, `envc` and the like still say how many there were.
pub const FLAG_CUT: u16 = 1;

/// What every record says about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Header {
    /// `CLOCK_MONOTONIC` in nanoseconds, the clock of `bpf_ktime_get_ns`.
    pub time: u64,
    /// Process id in the process's own pid namespace.
    pub pid: u32,
    /// Thread id in the process's own pid namespace.
    pub tid: u32,
    /// Number of the record within its process, from 1. Other records refer to it.
    pub sequence: u32,
    /// [`FLAG_CUT`] or zero.
    pub flags: u16,
}

impl Header {
    /// Whether fields were left out because the record was full.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.flags & FLAG_CUT != 0
    }
}

/// Checksum of a record's bytes after the checksum field: tells a torn record from a whole one.
pub(crate) fn checksum(bytes: &[u8]) -> u32 {
    const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut sum = 0x6a74_7472_6163_6501_u64 ^ (bytes.len() as u64);
    let mut words = bytes.chunks_exact(8);
    for word in &mut words {
        let mut eight = [0; 8];
        eight.copy_from_slice(word);
        sum = (sum ^ u64::from_le_bytes(eight))
            .wrapping_mul(MULTIPLIER)
            .rotate_left(29);
    }
    for byte in words.remainder() {
        sum = (sum ^ u64::from(*byte))
            .wrapping_mul(MULTIPLIER)
            .rotate_left(29);
    }
    ((sum >> 32) ^ sum) as u32
}

#[cfg(test)]
mod tests;

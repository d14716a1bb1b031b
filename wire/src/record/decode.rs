//! Reads records back, and finds the next whole one after damage.

use super::fields::Fields;
use super::{FORMAT_VERSION, HEADER_LENGTH, Header, MAGIC, MAX_RECORD, Record, checksum};
use core::fmt;

/// Why no record could be read at the given place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecodeError {
    /// The bytes end before the record does: wait for more, or the tail is torn.
    Incomplete,
    /// What is here is no whole record; skip this many bytes, where the next magic or the end of the bytes is.
    Damaged {
        /// Bytes to skip.
        skip: usize,
    },
    /// A whole record of a newer format; skip this many bytes.
    NewerFormat {
        /// The version it has.
        version: u8,
        /// Bytes to skip.
        skip: usize,
    },
    /// A whole record of a kind that this build does not know; skip this many bytes.
    UnknownKind {
        /// The kind it has.
        kind: u8,
        /// Bytes to skip.
        skip: usize,
    },
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DecodeError::Incomplete => f.write_str("the last record is not complete yet"),
            DecodeError::Damaged { skip } => write!(
                f,
                "{skip} bytes of the session file are no record; they are skipped"
            ),
            DecodeError::NewerFormat { version, .. } => {
                write!(
                    f,
                    "a record has format {version}, this jittrace reads {FORMAT_VERSION}; use the newer jittrace"
                )
            }
            DecodeError::UnknownKind { kind, .. } => {
                write!(f, "a record has the unknown kind {kind}; it is skipped")
            }
        }
    }
}

impl core::error::Error for DecodeError {}

impl DecodeError {
    /// How many bytes to skip before reading on; `None` when more bytes must come first.
    #[must_use]
    pub fn skip(&self) -> Option<usize> {
        match self {
            DecodeError::Incomplete => None,
            DecodeError::Damaged { skip }
            | DecodeError::NewerFormat { skip, .. }
            | DecodeError::UnknownKind { skip, .. } => Some(*skip),
        }
    }
}

/// Reads the record at the beginning of `bytes`: its header, the record and its length.
///
/// # Errors
///
/// [`DecodeError::Incomplete`] when more bytes are needed; every other error says how many bytes to skip.
pub fn decode(bytes: &[u8]) -> Result<(Header, Record<'_>, usize), DecodeError> {
    let known = bytes.len().min(MAGIC.len());
    if bytes[..known] != MAGIC[..known] {
        return Err(DecodeError::Damaged {
            skip: next_magic(bytes),
        });
    }
    let Some(header) = bytes.first_chunk::<HEADER_LENGTH>() else {
        return Err(DecodeError::Incomplete);
    };
    let length = le32(header, 4) as usize;
    if !(HEADER_LENGTH..=MAX_RECORD).contains(&length) {
        return Err(DecodeError::Damaged {
            skip: next_magic(bytes),
        });
    }
    let Some(record) = bytes.get(..length) else {
        // A record cut short is followed by the next record's magic when its writer could not write it whole.
        let next = (1..bytes.len()).find(|&at| bytes[at..].starts_with(&MAGIC));
        return Err(
            next.map_or(DecodeError::Incomplete, |skip| DecodeError::Damaged {
                skip,
            }),
        );
    };
    if checksum(&record[12..]) != le32(header, 8) {
        return Err(DecodeError::Damaged {
            skip: next_magic(bytes),
        });
    }
    if header[12] > FORMAT_VERSION {
        return Err(DecodeError::NewerFormat {
            version: header[12],
            skip: length,
        });
    }
    let head = Header {
        time: u64::from(le32(header, 16)) | u64::from(le32(header, 20)) << 32,
        pid: le32(header, 24),
        tid: le32(header, 28),
        sequence: le32(header, 32),
        flags: u16::from_le_bytes([header[14], header[15]]),
    };
    match Record::read(
        header[13],
        Fields {
            rest: &record[HEADER_LENGTH..],
        },
    ) {
        Some(body) => Ok((head, body, length)),
        None => Err(DecodeError::UnknownKind {
            kind: header[13],
            skip: length,
        }),
    }
}

fn le32(bytes: &[u8; HEADER_LENGTH], at: usize) -> u32 {
    let mut four = [0; 4];
    if let Some(found) = bytes.get(at..at + 4) {
        four.copy_from_slice(found);
    }
    u32::from_le_bytes(four)
}

/// Distance to the next place, after the first byte, where a magic begins or may begin at the very end.
fn next_magic(bytes: &[u8]) -> usize {
    (1..bytes.len())
        .find(|&at| {
            let rest = &bytes[at..];
            let known = rest.len().min(MAGIC.len());
            rest[..known] == MAGIC[..known]
        })
        .unwrap_or(bytes.len().max(1))
}

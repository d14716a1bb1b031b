//! Reading the session file as it grows.

use std::{
    fs::File,
    io::{self, Read},
};

use jittrace_wire::{DecodeError, Record, decode, record::Header};

/// Most bytes that are read at a time.
const CHUNK: usize = 1 << 20;

/// The growing session file.
#[derive(Debug)]
pub(super) struct Tail {
    file: File,
    buffer: Vec<u8>,
    /// Bytes of damaged records that were skipped.
    damaged: u64,
    /// Records of kinds or formats that this build does not know.
    unknown: u64,
}

impl Tail {
    /// Starts at the beginning of the file.
    pub(super) fn new(file: File) -> Tail {
        Tail {
            file,
            buffer: Vec::new(),
            damaged: 0,
            unknown: 0,
        }
    }

    /// Reads what is there now and hands every whole record on, also as it was written. Gives the number of records.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(super) fn read(
        &mut self,
        mut each: impl FnMut(Header, &Record<'_>, &[u8]),
    ) -> io::Result<usize> {
        let mut records = 0;
        loop {
            let read = (&mut self.file)
                .take(CHUNK as u64)
                .read_to_end(&mut self.buffer)?;
            records += self.decode(&mut each);
            if read == 0 {
                return Ok(records);
            }
        }
    }

    fn decode(&mut self, each: &mut impl FnMut(Header, &Record<'_>, &[u8])) -> usize {
        let mut at = 0;
        let mut records = 0;
        while let Some(rest) = self.buffer.get(at..).filter(|rest| !rest.is_empty()) {
            match decode(rest) {
                Ok((header, record, length)) => {
                    each(header, &record, rest.get(..length).unwrap_or_default());
                    records += 1;
                    at += length;
                }
                Err(DecodeError::Incomplete) => break,
                Err(error) => {
                    let skip = error.skip().unwrap_or(rest.len()).max(1);
                    match error {
                        DecodeError::Damaged { .. } => self.damaged += skip as u64,
                        _ => self.unknown += 1,
                    }
                    at += skip;
                }
            }
        }
        self.buffer.drain(..at.min(self.buffer.len()));
        records
    }

    /// Bytes that were no record, the torn end included.
    pub(super) fn damaged(&self) -> u64 {
        self.damaged + self.buffer.len() as u64
    }

    /// Records that this build does not know.
    pub(super) fn unknown(&self) -> u64 {
        self.unknown
    }
}

//! Writing a trace so that it can be read at any moment.

use std::io::{self, Write};

use super::Header;
use crate::event::Event;

/// Writes a trace: one write for each line, so that a reader never meets half an event for long.
pub struct Writer<W> {
    output: W,
    line: Vec<u8>,
    bytes: u64,
}

impl<W: Write> Writer<W> {
    /// Writes the header.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn new(output: W, header: &Header) -> io::Result<Self> {
        let mut writer = Writer {
            output,
            line: Vec::new(),
            bytes: 0,
        };
        writer.put(header)?;
        writer.output.flush()?;
        Ok(writer)
    }

    /// Writes one event.
    ///
    /// # Errors
    /// The output cannot be written (a full disk, for one).
    pub fn write(&mut self, event: &Event) -> io::Result<()> {
        self.put(event)
    }

    /// Hands everything to the operating system.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }

    /// Bytes written so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Gives the output back.
    pub fn into_inner(self) -> W {
        self.output
    }

    fn put(&mut self, value: &impl serde::Serialize) -> io::Result<()> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, value)?;
        self.line.push(b'\n');
        self.bytes += self.line.len() as u64;
        self.output.write_all(&self.line)
    }
}

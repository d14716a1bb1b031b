//! Reading a trace, whole or growing or torn, one event at a time and in bounded memory.

use std::io::BufRead;

use thiserror::Error;

use super::{FORMAT, Header};
use crate::event::Event;

/// Longest line that is read, in bytes; a longer one is skipped.
const LONGEST_LINE: usize = 16 << 20;

/// Why nothing can be read.
#[derive(Debug, Error)]
pub enum LogError {
    /// The input ended before a whole header.
    #[error("the trace is empty: its first line is missing or was cut off")]
    Empty,
    /// The first line is something else.
    #[error("not a jittrace trace: its first line is no jittrace header")]
    Foreign,
    /// The file could not be read.
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

/// A line that was not read as an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Line number, from 1.
    pub line: u64,
    /// Why.
    pub reason: String,
    /// The line was the last and had no newline: the trace was cut there, or is still being written.
    pub torn: bool,
}

/// Reads a trace.
pub struct Reader<R> {
    input: R,
    header: Header,
    line: u64,
    position: u64,
    buffer: Vec<u8>,
    skipped: Skips,
}

impl<R: BufRead> Reader<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// The input cannot be read, is empty, or is no trace.
    pub fn new(mut input: R) -> Result<Self, LogError> {
        let mut buffer = Vec::new();
        let complete = read_line(&mut input, &mut buffer)?;
        if buffer.is_empty() {
            return Err(LogError::Empty);
        }
        let header: Header = match serde_json::from_slice(&buffer) {
            Ok(header) => header,
            Err(error) if error.is_eof() && !complete && buffer.starts_with(b"{\"jittrace\"") => {
                return Err(LogError::Empty);
            }
            Err(_) => return Err(LogError::Foreign),
        };
        let position = buffer.len() as u64;
        // A header without its newline is whole all the same; the newline that follows is an empty line.
        buffer.clear();
        Ok(Reader {
            input,
            header,
            line: 1,
            position,
            buffer,
            skipped: Skips::default(),
        })
    }

    /// The header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// A sentence when the trace was written in a newer format; what is known of it is still read.
    pub fn newer_format(&self) -> Option<String> {
        (self.header.jittrace > FORMAT).then(|| {
            format!(
                "the trace has format {}, this jittrace knows {FORMAT}: what it does not know is left out; a newer jittrace reads all of it",
                self.header.jittrace
            )
        })
    }

    /// The next event; `None` at the end of what is there now. On a growing file, call again later.
    ///
    /// # Errors
    /// The file could not be read. Lines that are no events are skipped, see [`Reader::skipped`].
    pub fn next_event(&mut self) -> Result<Option<Event>, std::io::Error> {
        loop {
            // A torn line stays in the buffer, so that the rest of it can follow.
            let complete = read_line(&mut self.input, &mut self.buffer)?;
            if !complete {
                return Ok(None);
            }
            self.line += 1;
            let line = std::mem::take(&mut self.buffer);
            self.position += line.len() as u64;
            let parsed = parse(&line).map(|parsed| parsed.map(|(event, _)| event));
            self.buffer = reuse(line);
            match parsed {
                Ok(Some(event)) => return Ok(Some(event)),
                Ok(None) => {}
                Err(reason) => self.skipped.add(self.line, reason),
            }
        }
    }

    /// The whole lines that are read at a time: as many as the input's buffer holds, without waiting for more; `None` at
    /// the end of what is there now. What [`Lines::each`] skips is not known here until it is [told](Reader::note).
    ///
    /// # Errors
    /// The file could not be read.
    pub fn next_lines(&mut self) -> Result<Option<Lines>, std::io::Error> {
        loop {
            let available = match self.input.fill_buf() {
                Ok(available) => available,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if available.is_empty() {
                return Ok(None);
            }
            let Some(last) = memchr::memrchr(b'\n', available) else {
                let room = LONGEST_LINE.saturating_sub(self.buffer.len());
                let taken = available.len();
                let part = available.get(..taken.min(room)).unwrap_or_default();
                self.buffer.extend_from_slice(part);
                self.input.consume(taken);
                continue;
            };
            let (whole, after) = available.split_at_checked(last + 1).unwrap_or_default();
            let mut bytes = std::mem::take(&mut self.buffer);
            bytes.reserve_exact(whole.len());
            bytes.extend_from_slice(whole);
            // Taken now, so that the input's buffer is read anew at once.
            self.buffer.extend_from_slice(after);
            let (before, taken) = (self.line, available.len());
            self.input.consume(taken);
            self.line += memchr::memchr_iter(b'\n', &bytes).count() as u64;
            self.position += bytes.len() as u64;
            return Ok(Some(Lines { before, bytes }));
        }
    }

    /// Takes note of lines that were not read as events.
    pub fn note(&mut self, skips: Skips) {
        self.skipped.join(skips);
    }

    /// Bytes of the trace that were read so far, in whole lines.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The lines that were not read, at most the first hundred of them.
    pub fn skipped(&self) -> &[Skipped] {
        &self.skipped.first
    }

    /// How many lines were not read.
    pub fn skipped_count(&self) -> u64 {
        self.skipped.count
    }

    /// The cut-off last line, if the input ended inside one.
    pub fn torn_tail(&self) -> Option<Skipped> {
        let tail = &self.buffer;
        (!tail.is_empty()).then(|| Skipped {
            line: self.line + 1,
            reason: format!("the last line was cut off after {} bytes", tail.len()),
            torn: true,
        })
    }
}

/// Whole lines of a trace that nobody has looked into yet: any thread may.
#[derive(Debug)]
pub struct Lines {
    /// Lines before the first of them.
    before: u64,
    bytes: Vec<u8>,
}

impl Lines {
    /// Hands over the events in them, each with its line, and gives the lines that are none.
    pub fn each(&self, mut take: impl FnMut(Event, &str)) -> Skips {
        let mut skips = Skips::default();
        let mut rest = self.bytes.as_slice();
        let mut number = self.before;
        while !rest.is_empty() {
            let end = memchr::memchr(b'\n', rest).map_or(rest.len(), |at| at + 1);
            let (line, after) = rest.split_at_checked(end).unwrap_or_default();
            rest = after;
            number += 1;
            match parse(line) {
                Ok(Some((event, line))) => take(event, line),
                Ok(None) => {}
                Err(reason) => skips.add(number, reason),
            }
        }
        skips
    }
}

/// Lines that were not read as events: the first hundred, and how many there are.
#[derive(Debug, Default)]
pub struct Skips {
    first: Vec<Skipped>,
    count: u64,
}

impl Skips {
    fn add(&mut self, line: u64, reason: String) {
        self.count += 1;
        if self.first.len() < 100 {
            self.first.push(Skipped {
                line,
                reason,
                torn: false,
            });
        }
    }

    /// Adds those of later lines.
    pub fn join(&mut self, later: Skips) {
        self.count += later.count;
        let room = 100_usize.saturating_sub(self.first.len());
        self.first.extend(later.first.into_iter().take(room));
    }
}

/// The event of a line, and the line without its end; none of an empty line.
fn parse(line: &[u8]) -> Result<Option<(Event, &str)>, String> {
    let parsed = match std::str::from_utf8(line).map(str::trim) {
        Ok("") => return Ok(None),
        Ok(text) => Event::from_line(text)
            .map(|event| (event, text))
            .map_err(|error| error.to_string()),
        Err(_) => Err("the line is not UTF-8".to_owned()),
    };
    match parsed {
        Ok(parsed) => Ok(Some(parsed)),
        Err(_) if line.len() >= LONGEST_LINE => Err("the line is longer than 16 MiB".to_owned()),
        Err(reason) => Err(reason),
    }
}

/// Empties a buffer and keeps its room, unless one huge line made it large.
fn reuse(mut buffer: Vec<u8>) -> Vec<u8> {
    if buffer.capacity() > 1 << 20 {
        return Vec::new();
    }
    buffer.clear();
    buffer
}

/// Appends up to a newline; returns whether one was found. What exceeds the longest line is dropped.
fn read_line<R: BufRead>(input: &mut R, line: &mut Vec<u8>) -> Result<bool, std::io::Error> {
    loop {
        let available = match input.fill_buf() {
            Ok(available) => available,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if available.is_empty() {
            return Ok(false);
        }
        let end = available.iter().position(|&byte| byte == b'\n');
        let taken = end.map_or(available.len(), |at| at + 1);
        let room = LONGEST_LINE.saturating_sub(line.len());
        line.extend_from_slice(available.get(..taken.min(room)).unwrap_or_default());
        input.consume(taken);
        if end.is_some() {
            return Ok(true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = r#"{"jittrace":1,"version":"0.1.0","command":["true"]}"#;
    const EVENT: &str =
        r#"{"id":1,"t":5,"pid":9,"tid":9,"source":"preload","kind":"process-exit","code":0}"#;

    fn read(text: &str) -> (Vec<Event>, Reader<&[u8]>) {
        let mut reader = Reader::new(text.as_bytes()).unwrap();
        let mut events = Vec::new();
        while let Some(event) = reader.next_event().unwrap() {
            events.push(event);
        }
        (events, reader)
    }

    #[test]
    fn whole_traces_read_whole() {
        let text = format!("{HEADER}\n{EVENT}\n{EVENT}\n");
        let (events, reader) = read(&text);
        assert_eq!(events.len(), 2);
        assert_eq!(reader.header().command, ["true"]);
        assert_eq!((reader.skipped_count(), reader.torn_tail()), (0, None));
    }

    #[test]
    fn a_header_alone_is_a_trace_without_events() {
        for text in [format!("{HEADER}\n"), HEADER.to_owned()] {
            let (events, reader) = read(&text);
            assert!(events.is_empty());
            assert_eq!(reader.torn_tail(), None, "{text:?}");
        }
    }

    #[test]
    fn a_torn_tail_is_reported_and_skipped() {
        let text = format!("{HEADER}\n{EVENT}\n{{\"id\":2,\"t");
        let (events, reader) = read(&text);
        assert_eq!(events.len(), 1);
        assert!(reader.torn_tail().unwrap().torn);
    }

    #[test]
    fn a_growing_trace_goes_on_where_it_stopped() {
        use std::io::{BufReader, Seek, SeekFrom, Write};
        let mut file = tempfile::tempfile().unwrap();
        let (first, second) = EVENT.split_at(20);
        write!(file, "{HEADER}\n{first}").unwrap();
        file.seek(SeekFrom::Start(0)).unwrap();
        let mut reader = Reader::new(BufReader::new(file.try_clone().unwrap())).unwrap();
        assert!(reader.next_event().unwrap().is_none());
        let at = file.stream_position().unwrap();
        writeln!(file, "{second}").unwrap();
        file.seek(SeekFrom::Start(at)).unwrap();
        assert_eq!(reader.next_event().unwrap().unwrap().id, 1);
    }

    #[test]
    fn damage_in_the_middle_costs_only_its_line() {
        let text = format!("{HEADER}\n{EVENT}\n{{broken\n{EVENT}\n");
        let (events, reader) = read(&text);
        assert_eq!(events.len(), 2);
        assert_eq!(reader.skipped()[0].line, 3);
    }

    #[test]
    fn lines_that_are_read_in_pieces_tell_the_same() {
        let bad = "{broken\n\n".repeat(120);
        let text = format!("{HEADER}\n{EVENT}\n\n{bad}{EVENT}\n{EVENT}\n{{\"id\":2");
        let (events, whole) = read(&text);
        for bytes in [1, 100, 1 << 20] {
            let input = std::io::BufReader::with_capacity(bytes, text.as_bytes());
            let mut reader = Reader::new(input).unwrap();
            let (mut found, mut skips) = (Vec::new(), Skips::default());
            while let Some(lines) = reader.next_lines().unwrap() {
                skips.join(lines.each(|event, line| {
                    assert_eq!(Event::from_line(line).unwrap(), event);
                    found.push(event);
                }));
            }
            reader.note(skips);
            assert_eq!(found, events);
            assert_eq!(reader.skipped(), whole.skipped());
            assert_eq!(reader.skipped_count(), 120);
            assert_eq!(reader.torn_tail(), whole.torn_tail());
            assert_eq!(reader.position(), whole.position());
        }
    }

    #[test]
    fn foreign_and_empty_files_are_refused() {
        assert!(matches!(Reader::new(&b""[..]), Err(LogError::Empty)));
        assert!(matches!(
            Reader::new(&b"hello\n"[..]),
            Err(LogError::Foreign)
        ));
        assert!(matches!(
            Reader::new(&b"{\"a\":1}\n"[..]),
            Err(LogError::Foreign)
        ));
        assert!(matches!(
            Reader::new(&b"{\"jittrace\":1,\"ver"[..]),
            Err(LogError::Empty)
        ));
    }
}

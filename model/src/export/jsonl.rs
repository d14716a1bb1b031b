//! The lines of a trace, as they are: what jq, DuckDB and the like read.
//!
//! Lines are copied, not written anew, so that kinds and fields of newer versions come along. What is no event, the
//! torn last line among it, is left out.

use std::io::{self, BufRead, Write};

use serde::{Deserialize, de::IgnoredAny};

use crate::log::{Header, LogError};

/// The lines of a trace behind its header.
pub struct Lines<R> {
    input: R,
    header: String,
}

/// What makes a line an event.
#[derive(Deserialize)]
struct Shape {
    #[serde(rename = "id")]
    _id: u64,
    #[serde(rename = "t")]
    _t: u64,
    #[serde(rename = "kind")]
    _kind: IgnoredAny,
}

impl<R: BufRead> Lines<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// The input cannot be read, is empty, or is no trace.
    pub fn new(mut input: R) -> Result<Self, LogError> {
        let mut line = Vec::new();
        // A header is short: a file without newlines must not be read whole to find that it is no trace.
        io::Read::take(&mut input, 1 << 20).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Err(LogError::Empty);
        }
        let header = String::from_utf8(line).map_err(|_| LogError::Foreign)?;
        match serde_json::from_str::<Header>(&header) {
            Ok(_) => Ok(Lines {
                input,
                header: header.trim_end().to_owned(),
            }),
            Err(error) if error.is_eof() && header.starts_with("{\"jittrace\"") => {
                Err(LogError::Empty)
            }
            Err(_) => Err(LogError::Foreign),
        }
    }

    /// The header's line, without its newline.
    pub fn header(&self) -> &str {
        &self.header
    }

    /// Copies the events, one a line; answers how many lines were left out.
    ///
    /// # Errors
    /// The input cannot be read or the output not be written.
    pub fn copy(mut self, output: &mut dyn Write) -> io::Result<u64> {
        let mut left_out = 0;
        let mut line = Vec::new();
        while self.input.read_until(b'\n', &mut line)? > 0 {
            let whole = line.last() == Some(&b'\n');
            if whole && serde_json::from_slice::<Shape>(&line).is_ok() {
                output.write_all(&line)?;
            } else if !line.trim_ascii().is_empty() {
                left_out += 1;
            }
            line.clear();
        }
        Ok(left_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_out_as_they_are() {
        let events = "{\"id\":1,\"t\":2,\"pid\":3,\"tid\":3,\"source\":\"x\",\"kind\":\"of-tomorrow\",\"new\":[1]}\n";
        let text = format!("{{\"jittrace\":1}}\n{events}\nbroken\n{{\"id\":2,\"t");
        let lines = Lines::new(text.as_bytes()).unwrap();
        assert_eq!(lines.header(), "{\"jittrace\":1}");
        let mut out = Vec::new();
        assert_eq!(lines.copy(&mut out).unwrap(), 2);
        assert_eq!(String::from_utf8(out).unwrap(), events);
    }

    #[test]
    fn what_is_no_trace_is_refused() {
        assert!(matches!(Lines::new(&b""[..]), Err(LogError::Empty)));
        assert!(matches!(
            Lines::new(&b"PK\x03\x04"[..]),
            Err(LogError::Foreign)
        ));
    }
}

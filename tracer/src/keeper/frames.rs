//! What the keeper and the view say to each other, over a pair of sockets: a kind, a length, the bytes.

use std::io::{self, Read, Write};

/// Longest frame; a longer one is damage.
const LONGEST: usize = 1 << 20;

/// What the keeper says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FromKeeper {
    /// The program runs as this process, and its trace is in this file.
    Ready {
        /// The program.
        pid: i32,
        /// The trace.
        trace: Vec<u8>,
    },
    /// The program could not be started: exit status and sentence.
    Failed {
        /// What jittrace is to exit with.
        status: u8,
        /// Why.
        sentence: String,
    },
    /// The program wrote this to its terminal.
    Output(Vec<u8>),
    /// The program ended, with a code, or by a signal when the code is negative.
    Ended(i32),
    /// The trace is whole; this is what jittrace has to say at the end.
    Done(Vec<u8>),
}

/// What the view says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FromView {
    /// Keys for the program.
    Input(Vec<u8>),
    /// The terminal's size: columns, rows.
    Resize(u16, u16),
    /// A signal for the program's process group.
    Signal(i32),
}

impl FromKeeper {
    /// Writes it.
    pub(super) fn write(&self, to: &mut impl Write) -> io::Result<()> {
        match self {
            FromKeeper::Ready { pid, trace } => put(to, 1, &[&pid.to_le_bytes(), trace]),
            FromKeeper::Failed { status, sentence } => {
                put(to, 2, &[&[*status], sentence.as_bytes()])
            }
            FromKeeper::Output(bytes) => put(to, 3, &[bytes]),
            FromKeeper::Ended(status) => put(to, 4, &[&status.to_le_bytes()]),
            FromKeeper::Done(text) => put(to, 5, &[text]),
        }
    }

    /// Reads one; none at the end.
    pub(super) fn read(from: &mut impl Read) -> io::Result<Option<FromKeeper>> {
        let Some((kind, bytes)) = get(from)? else {
            return Ok(None);
        };
        Ok(Some(match kind {
            1 => {
                let (pid, trace) = number(&bytes)?;
                FromKeeper::Ready {
                    pid,
                    trace: trace.to_vec(),
                }
            }
            2 => {
                let (status, sentence) = bytes.split_first().ok_or_else(damage)?;
                FromKeeper::Failed {
                    status: *status,
                    sentence: String::from_utf8_lossy(sentence).into_owned(),
                }
            }
            3 => FromKeeper::Output(bytes),
            4 => FromKeeper::Ended(number(&bytes)?.0),
            5 => FromKeeper::Done(bytes),
            _ => return Err(damage()),
        }))
    }
}

impl FromView {
    /// Writes it.
    pub(super) fn write(&self, to: &mut impl Write) -> io::Result<()> {
        match self {
            FromView::Input(bytes) => put(to, 1, &[bytes]),
            FromView::Resize(columns, rows) => {
                put(to, 2, &[&columns.to_le_bytes(), &rows.to_le_bytes()])
            }
            FromView::Signal(signal) => put(to, 3, &[&signal.to_le_bytes()]),
        }
    }

    /// Reads one; none at the end.
    pub(super) fn read(from: &mut impl Read) -> io::Result<Option<FromView>> {
        let Some((kind, bytes)) = get(from)? else {
            return Ok(None);
        };
        Ok(Some(match (kind, bytes.as_slice()) {
            (1, _) => FromView::Input(bytes),
            (2, &[a, b, c, d]) => {
                FromView::Resize(u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d]))
            }
            (3, bytes) => FromView::Signal(number(bytes)?.0),
            _ => return Err(damage()),
        }))
    }
}

fn put(to: &mut impl Write, kind: u8, parts: &[&[u8]]) -> io::Result<()> {
    let length: usize = parts.iter().map(|p| p.len()).sum();
    let length = u32::try_from(length).map_err(|_| damage())?;
    // One write, so that frames of two threads never mix.
    let mut frame = vec![kind];
    frame.extend_from_slice(&length.to_le_bytes());
    for part in parts {
        frame.extend_from_slice(part);
    }
    to.write_all(&frame)
}

fn get(from: &mut impl Read) -> io::Result<Option<(u8, Vec<u8>)>> {
    let mut head = [0; 5];
    let mut got = 0;
    while let Some(rest) = head.get_mut(got..).filter(|rest| !rest.is_empty()) {
        match from.read(rest) {
            Ok(0) if got == 0 => return Ok(None),
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => got += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if got == 0 && error.kind() == io::ErrorKind::ConnectionReset => {
                return Ok(None);
            }
            Err(error) => return Err(error),
        }
    }
    let [kind, a, b, c, d] = head;
    let length = usize::try_from(u32::from_le_bytes([a, b, c, d])).map_err(|_| damage())?;
    if length > LONGEST {
        return Err(damage());
    }
    let mut bytes = vec![0; length];
    from.read_exact(&mut bytes)?;
    Ok(Some((kind, bytes)))
}

fn number(bytes: &[u8]) -> io::Result<(i32, &[u8])> {
    let (number, rest) = bytes.split_first_chunk::<4>().ok_or_else(damage)?;
    Ok((i32::from_le_bytes(*number), rest))
}

fn damage() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "the keeper and the view do not understand each other",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_understood() {
        let said = [
            FromKeeper::Ready {
                pid: 77,
                trace: b"/tmp/a b.jtrace".to_vec(),
            },
            FromKeeper::Failed {
                status: 127,
                sentence: "no such program".into(),
            },
            FromKeeper::Output(b"\x1b[1mhi".to_vec()),
            FromKeeper::Ended(-9),
            FromKeeper::Done(Vec::new()),
        ];
        let mut bytes = Vec::new();
        for frame in &said {
            frame.write(&mut bytes).unwrap();
        }
        let mut from = bytes.as_slice();
        for frame in &said {
            assert_eq!(FromKeeper::read(&mut from).unwrap().as_ref(), Some(frame));
        }
        assert_eq!(FromKeeper::read(&mut from).unwrap(), None);
        let asked = [
            FromView::Input(b"q".to_vec()),
            FromView::Resize(200, 60),
            FromView::Signal(15),
        ];
        let mut bytes = Vec::new();
        for frame in &asked {
            frame.write(&mut bytes).unwrap();
        }
        let mut from = bytes.as_slice();
        for frame in &asked {
            assert_eq!(FromView::read(&mut from).unwrap().as_ref(), Some(frame));
        }
    }

    #[test]
    fn damage_is_an_error_not_a_panic() {
        for bytes in [
            &b"\x09\0\0\0\0"[..],
            b"\x01\xff\xff\xff\xff",
            b"\x01\x02\0\0\0ab",
            b"\x03\x01",
        ] {
            assert!(FromKeeper::read(&mut &bytes[..]).is_err() || bytes[0] == 3);
            assert!(FromView::read(&mut &bytes[..]).is_err() || bytes[0] == 1);
        }
    }
}

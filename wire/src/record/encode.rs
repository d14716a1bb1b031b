//! Writes a record into a buffer that the caller owns, without allocating.

use super::{
    FLAG_CUT, FORMAT_VERSION, HEADER_LENGTH, Header, MAGIC, MAX_RECORD, Mark, Tag, checksum,
};

/// A record under construction.
///
/// Fields that do not fit are cut or left out, and the header says so: a record is never lost for its size. Write
/// short and important fields first.
#[derive(Debug)]
pub struct Writer<'b> {
    buffer: &'b mut [u8],
    length: usize,
    limit: usize,
    cut: bool,
}

/// The bytes of a finished record.
pub type Encoded<'b> = &'b [u8];

/// The longest text that one field holds; anything longer is cut with a mark.
pub(crate) const MAX_TEXT: usize = 4096;

impl<'b> Writer<'b> {
    /// Begins a record in `buffer`, which should hold a header and a few fields; more than [`MAX_RECORD`] is not used.
    pub fn new(buffer: &'b mut [u8], kind: u8) -> Self {
        let limit = buffer.len().min(MAX_RECORD);
        let writer = Writer {
            buffer,
            length: HEADER_LENGTH.min(limit),
            limit,
            cut: limit < HEADER_LENGTH,
        };
        if let Some(header) = writer.buffer.get_mut(..HEADER_LENGTH) {
            header.fill(0);
            header[..4].copy_from_slice(&MAGIC);
            header[12] = FORMAT_VERSION;
            header[13] = kind;
        }
        writer
    }

    /// Bytes that are still free.
    #[must_use]
    pub fn free(&self) -> usize {
        self.limit - self.length
    }

    /// Whether something was left out so far.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.cut
    }

    /// Remembers that something was left out for want of room.
    pub fn cut(&mut self) {
        self.cut = true;
    }

    /// Keeps `bytes` of the free room for fields to come; gives the former limit to hand to [`Writer::release`].
    pub fn reserve(&mut self, bytes: usize) -> usize {
        let former = self.limit;
        self.limit = self.limit.saturating_sub(bytes).max(self.length);
        former
    }

    /// Gives room kept by [`Writer::reserve`] back.
    pub fn release(&mut self, former: usize) {
        self.limit = former.min(self.buffer.len());
    }

    fn field(&mut self, tag: Tag, mark: Mark, length: usize) -> Option<&mut [u8]> {
        let value = self.length + 4;
        let end = value + length;
        if end > self.limit || length > usize::from(u16::MAX) {
            self.cut = true;
            return None;
        }
        let head = self.buffer.get_mut(self.length..value)?;
        head[0] = tag;
        head[1] = mark.0;
        head[2..4].copy_from_slice(&(length as u16).to_le_bytes());
        self.length = end;
        self.buffer.get_mut(value..end)
    }

    /// Appends a number.
    pub fn number(&mut self, tag: Tag, number: u64) -> &mut Self {
        if let Some(bytes) = self.field(tag, Mark::WHOLE, 8) {
            bytes.copy_from_slice(&number.to_le_bytes());
        }
        self
    }

    /// Appends a text. Bytes that are not UTF-8 become `?`, what does not fit is cut; both are marked.
    pub fn text(&mut self, tag: Tag, bytes: &[u8]) -> &mut Self {
        self.marked(tag, bytes, Mark::WHOLE)
    }

    /// Appends a text that already has a mark.
    pub fn marked(&mut self, tag: Tag, bytes: &[u8], mark: Mark) -> &mut Self {
        let room = self.free().saturating_sub(4).min(MAX_TEXT);
        let mut mark = mark;
        let mut value = bytes;
        if bytes.len() > room {
            if room < 16 {
                self.cut = true;
                return self;
            }
            value = whole_characters(&bytes[..room]);
            mark = mark.with(Mark::TRUNCATED);
        }
        let valid = core::str::from_utf8(value).is_ok();
        if !valid {
            mark = mark.with(Mark::ALTERED);
        }
        if let Some(target) = self.field(tag, mark, value.len()) {
            target.copy_from_slice(value);
            if !valid {
                replace_invalid(target);
            }
        }
        self
    }

    /// Appends a field whose value could not be read.
    pub fn unreadable(&mut self, tag: Tag) -> &mut Self {
        self.field(tag, Mark::UNREADABLE, 0);
        self
    }

    /// Appends one line of a Python stack; a long file name loses its beginning, as its end tells more.
    pub fn frame(
        &mut self,
        tag: Tag,
        file: &[u8],
        line: u32,
        function: &[u8],
        folded: u8,
    ) -> &mut Self {
        const LONGEST: usize = 300;
        let mut mark = Mark::WHOLE;
        let mut tail = file;
        if file.len() > LONGEST {
            tail = whole_tail(&file[file.len() - LONGEST..]);
            mark = Mark::TRUNCATED;
        }
        let mut name = function;
        if name.len() > LONGEST {
            name = whole_characters(&name[..LONGEST]);
            mark = Mark::TRUNCATED;
        }
        if let Some(target) = self.field(tag, mark, 7 + tail.len() + name.len()) {
            let (head, rest) = target.split_at_mut(7);
            head[..4].copy_from_slice(&line.to_le_bytes());
            head[4] = folded;
            head[5..7].copy_from_slice(&(tail.len() as u16).to_le_bytes());
            let (first, second) = rest.split_at_mut(tail.len());
            first.copy_from_slice(tail);
            second.copy_from_slice(name);
            replace_invalid(first);
            replace_invalid(second);
        }
        self
    }

    /// Appends one object of the link map.
    pub fn object(
        &mut self,
        tag: Tag,
        base: u64,
        device: u64,
        inode: u64,
        path: &[u8],
    ) -> &mut Self {
        let (value, mark) = match path.get(..MAX_TEXT) {
            Some(beginning) if path.len() > MAX_TEXT => {
                (whole_characters(beginning), Mark::TRUNCATED)
            }
            _ => (path, Mark::WHOLE),
        };
        if let Some(target) = self.field(tag, mark, 24 + value.len()) {
            target[..8].copy_from_slice(&base.to_le_bytes());
            target[8..16].copy_from_slice(&device.to_le_bytes());
            target[16..24].copy_from_slice(&inode.to_le_bytes());
            target[24..].copy_from_slice(value);
            replace_invalid(&mut target[24..]);
        }
        self
    }

    /// Completes the header and gives the record's bytes; empty when the buffer could not even hold a header.
    pub fn finish(self, header: Header) -> Encoded<'b> {
        let Writer {
            buffer,
            length,
            cut,
            ..
        } = self;
        let flags = header.flags | if cut { FLAG_CUT } else { 0 };
        let Some(record) = buffer.get_mut(..length) else {
            return &[];
        };
        if record.len() < HEADER_LENGTH {
            return &[];
        }
        record[4..8].copy_from_slice(&(length as u32).to_le_bytes());
        record[14..16].copy_from_slice(&flags.to_le_bytes());
        record[16..24].copy_from_slice(&header.time.to_le_bytes());
        record[24..28].copy_from_slice(&header.pid.to_le_bytes());
        record[28..32].copy_from_slice(&header.tid.to_le_bytes());
        record[32..36].copy_from_slice(&header.sequence.to_le_bytes());
        let sum = checksum(&record[12..]);
        record[8..12].copy_from_slice(&sum.to_le_bytes());
        record
    }
}

/// `bytes` without a UTF-8 character that was cut in the middle at the end.
fn whole_characters(bytes: &[u8]) -> &[u8] {
    let mut end = bytes.len();
    for back in 1..=3.min(bytes.len()) {
        let byte = bytes[bytes.len() - back];
        if byte & 0xc0 == 0x80 {
            continue;
        }
        let needs = match byte {
            0xc0..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xff => 4,
            _ => 1,
        };
        if needs > back {
            end = bytes.len() - back;
        }
        break;
    }
    &bytes[..end]
}

/// `bytes` without the rest of a UTF-8 character whose beginning was cut off.
fn whole_tail(bytes: &[u8]) -> &[u8] {
    let start = bytes
        .iter()
        .take(3)
        .take_while(|byte| **byte & 0xc0 == 0x80)
        .count();
    &bytes[start..]
}

/// Replaces what is not UTF-8 by `?`, in place.
fn replace_invalid(bytes: &mut [u8]) {
    let mut start = 0;
    while let Err(error) = core::str::from_utf8(&bytes[start..]) {
        let bad = start + error.valid_up_to();
        let length = error.error_len().unwrap_or(bytes.len() - bad);
        bytes[bad..bad + length].fill(b'?');
        start = bad + length;
    }
}

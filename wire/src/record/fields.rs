//! The types a field can have, and how each is written and read.

use super::encode::Writer;
use core::fmt;

/// What a field is about; the byte before each field.
pub type Tag = u8;

/// Why a field is not simply a value.
#[derive(Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Mark(pub u8);

impl Mark {
    /// The field is whole.
    pub const WHOLE: Mark = Mark(0);
    /// Only the beginning of the value is here.
    pub const TRUNCATED: Mark = Mark(1);
    /// The value could not be read; its bytes are empty.
    pub const UNREADABLE: Mark = Mark(2);
    /// The value was not UTF-8; offending bytes were replaced by `?`.
    pub const ALTERED: Mark = Mark(4);
    /// A credential in the value was replaced by `***`.
    pub const MASKED: Mark = Mark(8);
    /// The record has no such field.
    pub const ABSENT: Mark = Mark(16);

    /// Whether all bits of `other` are set.
    #[must_use]
    pub const fn has(self, other: Mark) -> bool {
        self.0 & other.0 == other.0 && other.0 != 0
    }

    /// Both marks.
    #[must_use]
    pub const fn with(self, other: Mark) -> Mark {
        Mark(self.0 | other.0)
    }
}

impl fmt::Debug for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [
            (Mark::TRUNCATED, "truncated"),
            (Mark::UNREADABLE, "unreadable"),
            (Mark::ALTERED, "altered"),
            (Mark::MASKED, "masked"),
            (Mark::ABSENT, "absent"),
        ];
        if self.0 == 0 {
            return f.write_str("whole");
        }
        let mut separator = "";
        for (mark, name) in names {
            if self.has(mark) {
                write!(f, "{separator}{name}")?;
                separator = "+";
            }
        }
        Ok(())
    }
}

/// A text field: what could be read, and what is wrong with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Text<'a> {
    /// The value, or as much of it as there is.
    pub value: &'a str,
    /// Whether the value is whole.
    pub mark: Mark,
}

impl Default for Text<'_> {
    fn default() -> Self {
        Text {
            value: "",
            mark: Mark::ABSENT,
        }
    }
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(value: &'a str) -> Self {
        Text {
            value,
            mark: Mark::WHOLE,
        }
    }
}

impl<'a> Text<'a> {
    /// The value when the field was there and readable.
    #[must_use]
    pub fn get(&self) -> Option<&'a str> {
        (!self.mark.has(Mark::ABSENT) && !self.mark.has(Mark::UNREADABLE)).then_some(self.value)
    }
}

/// One line of a Python stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Frame<'a> {
    /// `co_filename`.
    pub file: &'a str,
    /// Line number; 0 when unknown.
    pub line: u32,
    /// `co_qualname` where the interpreter has it, else `co_name`.
    pub function: &'a str,
    /// How many import-machinery and ctypes frames were left out just inside this frame.
    pub folded: u8,
    /// Whether file or function were cut.
    pub mark: Mark,
}

/// One object of the link map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Object<'a> {
    /// Load address (`l_addr`).
    pub base: u64,
    /// `st_dev` of the file; 0 when it could not be asked.
    pub device: u64,
    /// `st_ino` of the file; 0 when it could not be asked.
    pub inode: u64,
    /// `l_name`; empty for the program itself.
    pub path: &'a str,
    /// Whether the path was cut.
    pub mark: Mark,
}

/// A field as it lies in a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field<'a> {
    /// Which field.
    pub tag: Tag,
    /// Whether it is whole.
    pub mark: Mark,
    /// Its bytes.
    pub bytes: &'a [u8],
}

/// Walks the fields of a record.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Fields<'a> {
    pub(crate) rest: &'a [u8],
}

impl<'a> Iterator for Fields<'a> {
    type Item = Field<'a>;

    fn next(&mut self) -> Option<Field<'a>> {
        let (head, rest) = self.rest.split_first_chunk::<4>()?;
        let length = usize::from(u16::from_le_bytes([head[2], head[3]]));
        let (bytes, rest) = rest.split_at_checked(length)?;
        self.rest = rest;
        Some(Field {
            tag: head[0],
            mark: Mark(head[1]),
            bytes,
        })
    }
}

/// A type that one field's bytes can be read as.
pub trait Take<'a>: Sized {
    /// Reads the field; `None` when the bytes do not fit the type.
    fn take(field: Field<'a>) -> Option<Self>;
}

impl<'a> Take<'a> for u64 {
    fn take(field: Field<'a>) -> Option<u64> {
        Some(u64::from_le_bytes(field.bytes.try_into().ok()?))
    }
}

impl<'a> Take<'a> for i64 {
    fn take(field: Field<'a>) -> Option<i64> {
        Some(i64::from_le_bytes(field.bytes.try_into().ok()?))
    }
}

impl<'a> Take<'a> for Text<'a> {
    fn take(field: Field<'a>) -> Option<Text<'a>> {
        Some(Text {
            value: core::str::from_utf8(field.bytes).ok()?,
            mark: field.mark,
        })
    }
}

impl<'a> Take<'a> for Frame<'a> {
    fn take(field: Field<'a>) -> Option<Frame<'a>> {
        let (head, rest) = field.bytes.split_first_chunk::<7>()?;
        let (file, function) =
            rest.split_at_checked(usize::from(u16::from_le_bytes([head[5], head[6]])))?;
        Some(Frame {
            file: core::str::from_utf8(file).ok()?,
            line: u32::from_le_bytes([head[0], head[1], head[2], head[3]]),
            function: core::str::from_utf8(function).ok()?,
            folded: head[4],
            mark: field.mark,
        })
    }
}

impl<'a> Take<'a> for Object<'a> {
    fn take(field: Field<'a>) -> Option<Object<'a>> {
        let (base, rest) = field.bytes.split_first_chunk::<8>()?;
        let (device, rest) = rest.split_first_chunk::<8>()?;
        let (inode, path) = rest.split_first_chunk::<8>()?;
        Some(Object {
            base: u64::from_le_bytes(*base),
            device: u64::from_le_bytes(*device),
            inode: u64::from_le_bytes(*inode),
            path: core::str::from_utf8(path).ok()?,
            mark: field.mark,
        })
    }
}

/// A field that may occur many times, read one at a time.
pub struct List<'a, T> {
    tag: Tag,
    fields: Fields<'a>,
    kind: core::marker::PhantomData<T>,
}

impl<T> Clone for List<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for List<'_, T> {}

impl<T> Default for List<'_, T> {
    fn default() -> Self {
        List {
            tag: 0,
            fields: Fields::default(),
            kind: core::marker::PhantomData,
        }
    }
}

impl<'a, T: Take<'a> + 'a> List<'a, T> {
    pub(crate) fn over(tag: Tag, bytes: &'a [u8]) -> Self {
        List {
            tag,
            fields: Fields { rest: bytes },
            kind: core::marker::PhantomData,
        }
    }

    /// The values in the order in which they were written.
    pub fn iter(&self) -> impl Iterator<Item = T> + 'a {
        let (tag, fields) = (self.tag, self.fields);
        fields
            .filter(move |field| field.tag == tag)
            .filter_map(T::take)
    }

    /// Whether the record has no such field.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }
}

impl<'a, T: Take<'a> + fmt::Debug + 'a> fmt::Debug for List<'a, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<'a, T: Take<'a> + PartialEq + 'a> PartialEq for List<'a, T> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

/// A type that can be written as a field.
pub trait Put {
    /// Appends the value; a value that stands for "absent" writes nothing.
    fn put(&self, tag: Tag, writer: &mut Writer<'_>);
}

impl Put for u64 {
    fn put(&self, tag: Tag, writer: &mut Writer<'_>) {
        writer.number(tag, *self);
    }
}

impl Put for Option<i64> {
    fn put(&self, tag: Tag, writer: &mut Writer<'_>) {
        if let Some(number) = self {
            writer.number(tag, *number as u64);
        }
    }
}

impl Put for Text<'_> {
    fn put(&self, tag: Tag, writer: &mut Writer<'_>) {
        if !self.mark.has(Mark::ABSENT) {
            writer.marked(tag, self.value.as_bytes(), self.mark);
        }
    }
}

impl<'a> Put for List<'a, Text<'a>> {
    fn put(&self, tag: Tag, writer: &mut Writer<'_>) {
        for text in self.iter() {
            writer.marked(tag, text.value.as_bytes(), text.mark);
        }
    }
}

impl<'a> Put for List<'a, Frame<'a>> {
    fn put(&self, tag: Tag, writer: &mut Writer<'_>) {
        for frame in self.iter() {
            writer.frame(
                tag,
                frame.file.as_bytes(),
                frame.line,
                frame.function.as_bytes(),
                frame.folded,
            );
        }
    }
}

impl<'a> Put for List<'a, Object<'a>> {
    fn put(&self, tag: Tag, writer: &mut Writer<'_>) {
        for object in self.iter() {
            writer.object(
                tag,
                object.base,
                object.device,
                object.inode,
                object.path.as_bytes(),
            );
        }
    }
}

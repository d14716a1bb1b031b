//! C strings of the program, and small texts built without the heap.

use core::ffi::c_char;

/// The bytes of a C string; empty for null and for addresses that no object can have.
pub(crate) unsafe fn c_bytes<'a>(string: *const c_char) -> &'a [u8] {
    if (string as usize) < 4096 {
        return &[];
    }
    // SAFETY: the program passed it as a string; it ends with a zero byte.
    unsafe {
        let mut length = 0;
        while *string.add(length) != 0 {
            length += 1;
        }
        core::slice::from_raw_parts(string.cast(), length)
    }
}

/// The value in an environment entry of this name. Reads no further than it must: there may be hundreds of entries.
pub(crate) unsafe fn value_in<'a>(entry: *const c_char, name: &[u8]) -> Option<&'a [u8]> {
    if (entry as usize) < 4096 {
        return None;
    }
    // SAFETY: a string; what is compared comes before the zero byte at its end, or is that.
    unsafe {
        for (at, byte) in name.iter().enumerate() {
            if *entry.add(at) as u8 != *byte {
                return None;
            }
        }
        (*entry.add(name.len()) as u8 == b'=').then(|| c_bytes(entry.add(name.len() + 1)))
    }
}

/// The name in an environment entry: all of it when it has no `=`.
pub(crate) unsafe fn name_in<'a>(entry: *const c_char) -> &'a [u8] {
    if (entry as usize) < 4096 {
        return &[];
    }
    // SAFETY: a string; it ends with a zero byte.
    unsafe {
        let mut length = 0;
        while !matches!(*entry.add(length) as u8, 0 | b'=') {
            length += 1;
        }
        core::slice::from_raw_parts(entry.cast(), length)
    }
}

/// A text in a buffer of `N` bytes; what does not fit is left out.
pub(crate) struct Short<const N: usize> {
    bytes: [u8; N],
    length: usize,
}

impl<const N: usize> Short<N> {
    pub(crate) const fn new() -> Self {
        Short {
            bytes: [0; N],
            length: 0,
        }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        self.bytes.get_mut(..self.length).unwrap_or_default()
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) -> &mut Self {
        let end = (self.length + bytes.len()).min(N);
        if let Some(target) = self.bytes.get_mut(self.length..end) {
            let (fits, _) = bytes.split_at(target.len());
            target.copy_from_slice(fits);
        }
        self.length = end;
        self
    }

    pub(crate) fn push_number(&mut self, number: u64) -> &mut Self {
        let mut digits = [0; 20];
        let mut start = digits.len();
        let mut rest = number;
        loop {
            start -= 1;
            if let Some(digit) = digits.get_mut(start) {
                *digit = b'0' + (rest % 10) as u8;
            }
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        let digits = digits;
        self.push(digits.get(start..).unwrap_or_default())
    }

    /// Keeps only the first `length` bytes.
    pub(crate) fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
    }

    pub(crate) fn is_full(&self) -> bool {
        self.length == N
    }

    /// With a zero byte at its end, for system calls; `None` when it does not fit.
    pub(crate) fn as_c(&mut self) -> Option<*const c_char> {
        *self.bytes.get_mut(self.length)? = 0;
        Some(self.bytes.as_ptr().cast())
    }
}

//! Messages: what the program writes to its standard streams, and what it reads from pipes, when it is about toolkits.
//!
//! Tools like nvcc print through stdio, whose inner write cannot be interposed: what they say is read at the other end of
//! the pipe, by ninja or Python. The same line may so be recorded by its writer and by its reader.

use crate::session;
use crate::text::Short;
use crate::thread::Quiet;
use crate::{calls, thread};
use core::ffi::c_int;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use jittrace_wire::messages::{self, MAX_MESSAGE};
use jittrace_wire::record::{Mark, Message, Writer};
use jittrace_wire::secrets;

type Registers = [usize; 6];

/// Longer reads are data, not messages.
const LONGEST: usize = 64 * 1024;

/// A program that moves this much through its streams moves data: from then on only beginnings are looked at.
const THOROUGHLY: usize = 64 << 20;
const BEGINNING: usize = 4096;
static SEARCHED: AtomicUsize = AtomicUsize::new(0);

/// Records every message in the text that went over a descriptor.
unsafe fn search(stream: &str, descriptor: c_int, address: usize, length: usize) {
    let longest = if SEARCHED.load(Relaxed) < THOROUGHLY {
        LONGEST
    } else {
        BEGINNING
    };
    // SAFETY: the kernel has read or written that many bytes there.
    let mut rest =
        unsafe { core::slice::from_raw_parts(address as *const u8, length.min(longest)) };
    if rest.iter().take(64).any(|byte| *byte == 0) {
        return; // not text
    }
    SEARCHED.fetch_add(rest.len(), Relaxed);
    while let Some((found, after)) = messages::find(rest) {
        rest = after;
        record(stream, descriptor, found);
    }
}

/// Not inlined: its buffers are not to lie on the stack of every write.
#[inline(never)]
fn record(stream: &str, descriptor: c_int, found: messages::Found<'_>) {
    let Some(_quiet) = Quiet::begin() else { return };
    if !calls::within_rate(&calls::MESSAGES) {
        return;
    }
    let mut line = Short::<MAX_MESSAGE>::new();
    line.push(found.line);
    let mark = if secrets::mask(line.bytes_mut()) {
        Mark::MASKED
    } else {
        Mark::WHOLE
    };
    let mut buffer = [0; 512];
    let mut writer = Writer::new(&mut buffer, Message::KIND);
    writer
        .text(Message::stream, stream.as_bytes())
        .text(Message::pattern, found.pattern.as_bytes());
    writer
        .number(Message::descriptor, descriptor as u64)
        .marked(Message::text, line.as_bytes(), mark);
    session::append(writer);
}

fn stream_of(descriptor: usize) -> Option<&'static str> {
    match descriptor as c_int {
        1 => Some("stdout"),
        2 => Some("stderr"),
        _ => None,
    }
}

pub(crate) unsafe extern "C" fn on_write(
    &[descriptor, address, length, ..]: &Registers,
    _: *const usize,
) -> usize {
    let Some(real) = real!(write: unsafe extern "C" fn(usize, usize, usize) -> isize) else {
        return -1_isize as usize;
    };
    // SAFETY: write's arguments.
    let written = unsafe { real(descriptor, address, length) };
    if let (true, Some(stream), 1..) = (session::is_on(), stream_of(descriptor), written) {
        // SAFETY: the kernel has read these bytes.
        unsafe { search(stream, descriptor as c_int, address, written as usize) };
    }
    written as usize
}

pub(crate) unsafe extern "C" fn on_writev(
    &[descriptor, pieces, count, ..]: &Registers,
    _: *const usize,
) -> usize {
    let Some(real) = real!(writev: unsafe extern "C" fn(usize, usize, usize) -> isize) else {
        return -1_isize as usize;
    };
    // SAFETY: writev's arguments.
    let written = unsafe { real(descriptor, pieces, count) };
    if let (true, Some(stream), 1..) = (session::is_on(), stream_of(descriptor), written) {
        let mut rest = written as usize;
        // SAFETY: the kernel has read this array and what it points to.
        let pieces = unsafe { core::slice::from_raw_parts(pieces as *const libc::iovec, count) };
        for piece in pieces {
            let length = piece.iov_len.min(rest);
            // SAFETY: as above.
            unsafe { search(stream, descriptor as c_int, piece.iov_base as usize, length) };
            rest -= length;
        }
    }
    written as usize
}

/// Only reads from pipes are looked at: a message in a file or from a socket is somebody else's.
unsafe fn after_read(descriptor: usize, address: usize, read: isize) {
    if !session::is_on() || !(10..=LONGEST as isize).contains(&read) {
        return;
    }
    let Some(status) = session::status_of(descriptor as c_int) else {
        return;
    };
    if status.st_mode & libc::S_IFMT == libc::S_IFIFO {
        let errno = thread::errno();
        // SAFETY: the kernel has written these bytes.
        unsafe { search("pipe", descriptor as c_int, address, read as usize) };
        thread::set_errno(errno);
    }
}

pub(crate) unsafe extern "C" fn on_read(
    &[descriptor, address, length, ..]: &Registers,
    _: *const usize,
) -> usize {
    let Some(real) = real!(read: unsafe extern "C" fn(usize, usize, usize) -> isize) else {
        return -1_isize as usize;
    };
    // SAFETY: read's arguments.
    unsafe {
        let read = real(descriptor, address, length);
        after_read(descriptor, address, read);
        read as usize
    }
}

pub(crate) unsafe extern "C" fn on_read_chk(
    &[descriptor, address, length, room, ..]: &Registers,
    _: *const usize,
) -> usize {
    let Some(real) = real!(__read_chk: unsafe extern "C" fn(usize, usize, usize, usize) -> isize)
    else {
        return -1_isize as usize;
    };
    // SAFETY: read's arguments, and the size that the compiler knows.
    unsafe {
        let read = real(descriptor, address, length, room);
        after_read(descriptor, address, read);
        read as usize
    }
}

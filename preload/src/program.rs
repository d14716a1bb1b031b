//! The path of the program's own file, without `/proc`.
//!
//! The link `/proc/self/exe` tells it in one call, but the first look into a process's directory there makes the kernel
//! build that directory and take it down again at the end: a fifth of all that following `/bin/true` would cost. The
//! kernel also hands every program the path by which it was started (`AT_EXECFN`), and to follow the symbolic links of a
//! path takes half a microsecond for each of its names. Where that path need not lead to the file that runs (a script, a
//! loader run by hand, a descriptor), the link is read after all.

use crate::arch::system_call;
use crate::process::read_link;
use crate::text::{Short, c_bytes};
use core::ffi::c_char;

/// Longest path that is followed, and that a link's target may have.
pub(crate) const PATH: usize = 1024;

/// As many symbolic links as the kernel follows in one path.
const LINKS: usize = 40;

/// Path of the program's file with all links followed; `None` when it cannot be told.
///
/// `argv` is the array given to `main`, `current` the current directory.
#[inline(never)]
pub(crate) unsafe fn path<'p>(
    argv: *const *const c_char,
    current: Option<&[u8]>,
    path: &'p mut Short<PATH>,
) -> Option<&'p [u8]> {
    // SAFETY: strings that the kernel laid out, and main's arguments.
    unsafe {
        let asked = c_bytes(libc::getauxval(libc::AT_EXECFN) as *const c_char);
        let by_a_loader = libc::getauxval(libc::AT_BASE) != 0;
        if by_a_loader && !is_argument(asked, argv) && resolve(asked, current, path) {
            return Some(path.as_bytes());
        }
    }
    let mut target = [0; PATH];
    let target = read_link(c"/proc/self/exe".as_ptr(), &mut target)?;
    path.truncate(0);
    Some(path.push(target).as_bytes())
}

/// Whether the path is among the first arguments: the kernel hands a script, and what else has an interpreter, to its
/// interpreter in that way, and the interpreter may be a script again.
unsafe fn is_argument(path: &[u8], argv: *const *const c_char) -> bool {
    const INTERPRETERS: usize = 12;
    // SAFETY: an array of C strings that ends with a null pointer.
    unsafe {
        let mut at = 0;
        while !argv.is_null() && at < INTERPRETERS && !(*argv.add(at)).is_null() {
            if at > 0 && c_bytes(*argv.add(at)) == path {
                return true;
            }
            at += 1;
        }
    }
    false
}

/// Follows all links of a path; whether that worked.
fn resolve(asked: &[u8], current: Option<&[u8]>, path: &mut Short<PATH>) -> bool {
    if asked.is_empty() {
        return false;
    }
    let mut rest = Short::<PATH>::new();
    if asked.first() != Some(&b'/') {
        let Some(current) = current.filter(|current| current.first() == Some(&b'/')) else {
            return false;
        };
        path.push(current.strip_suffix(b"/").unwrap_or(current));
    }
    rest.push(asked);
    let mut links = 0;
    let mut done = 0;
    loop {
        if path.is_full() || rest.is_full() {
            return false;
        }
        let left = rest.as_bytes().get(done..).unwrap_or_default();
        let slashes = left.iter().take_while(|byte| **byte == b'/').count();
        let name = left
            .split(|byte| *byte == b'/')
            .nth(slashes)
            .unwrap_or_default();
        done += slashes + name.len();
        let parent = path.as_bytes().len();
        match name {
            b"" => return parent > 0,
            b"." => continue,
            b".." => {
                let last = path.as_bytes().iter().rposition(|byte| *byte == b'/');
                path.truncate(last.unwrap_or(0));
                continue;
            }
            _ => {}
        }
        path.push(b"/").push(name);
        // What lies there leads to where it says only while a process looks.
        if path.as_bytes() == b"/proc" {
            return false;
        }
        let mut target = [0; PATH];
        let Some(link) = path.as_c() else {
            return false;
        };
        let place = target.as_mut_ptr() as usize;
        let here = libc::AT_FDCWD as usize;
        const NO_LINK: isize = -(libc::EINVAL as isize);
        let read = match system_call(
            libc::SYS_readlinkat,
            [here, link as usize, place, target.len(), 0, 0],
        ) {
            NO_LINK => continue,
            read => usize::try_from(read).unwrap_or(0),
        };
        links += 1;
        let Some(target @ [first, ..]) = target.get(..read) else {
            return false;
        };
        if links > LINKS {
            return false;
        }
        path.truncate(if *first == b'/' { 0 } else { parent });
        let left = rest;
        rest = Short::new();
        rest.push(target)
            .push(left.as_bytes().get(done..).unwrap_or_default());
        done = 0;
    }
}

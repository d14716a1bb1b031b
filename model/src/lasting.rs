//! What stays of a path from one run to the next.

use std::borrow::Cow;

/// A path without what is new in every run: temporary directories, hashes of a moment, process ids.
pub(crate) fn lasting(path: &str) -> Cow<'_, str> {
    if !may_be_made_up(path) {
        return Cow::Borrowed(path);
    }
    let mut before = "";
    let made_up = |part: &str, before: &str| {
        let temporary = before == "tmp" && !part.is_empty();
        let numbered = part.len() > 3 && part.bytes().all(|byte| byte.is_ascii_digit());
        temporary || numbered || part.starts_with("tmp") && part.len() > 6
    };
    let is_made_up = |part| {
        let is = made_up(part, before);
        before = part;
        is
    };
    if !path.split('/').any(is_made_up) {
        return Cow::Borrowed(path);
    }
    let mut out = String::with_capacity(path.len());
    let mut before = "";
    for (at, part) in path.split('/').enumerate() {
        if at > 0 {
            out.push('/');
        }
        out.push_str(if made_up(part, before) { "*" } else { part });
        before = part;
    }
    Cow::Owned(out)
}

/// Whether something in a text can be new in every run: more than three digits in a row, or a temporary name. Most texts
/// have neither, and this is asked of every argument of every command line.
pub(crate) fn may_be_made_up(text: &str) -> bool {
    let (mut digits, mut before) = (0, [0; 2]);
    text.bytes().any(|byte| {
        digits = if byte.is_ascii_digit() { digits + 1 } else { 0 };
        let temporary = byte == b'p' && before == *b"tm";
        let [_, last] = before;
        before = [last, byte];
        digits > 3 || temporary
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_new_in_every_run_is_left_out() {
        for (path, lasts) in [
            ("/usr/lib/libc.so.6", "/usr/lib/libc.so.6"),
            ("/tmp/abc/x.cu", "/tmp/*/x.cu"),
            ("/c/tmp.pid_17_ab/k.ptx", "/c/*/k.ptx"),
            ("/tmp/tmpxft_0001_7-6_x.cudafe1.cpp", "/tmp/*"),
            ("--output=/proc/12345/fd", "--output=/proc/*/fd"),
            ("/c/120f/x", "/c/120f/x"),
            ("", ""),
        ] {
            assert_eq!(lasting(path), lasts);
        }
    }
}

//! Text that fits: widths in terminal columns, paths shortened in the middle, numbers a person reads at a glance.

use std::borrow::Cow;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Columns that a text takes.
pub fn width(text: &str) -> usize {
    UnicodeWidthStr::width(text)
}

/// The text without anything that a terminal would obey: control characters become visible or spaces.
pub fn clean(text: &str) -> Cow<'_, str> {
    if text.chars().all(|c| !c.is_control() && !is_direction(c)) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(
        text.chars()
            .map(|c| match c {
                '\n' | '\t' | '\r' => ' ',
                c if c.is_control() || is_direction(c) => '\u{fffd}',
                c => c,
            })
            .collect(),
    )
}

/// Characters that reorder the text around them; they would let a path look like another one.
fn is_direction(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The longest beginning of a text that takes at most `room` columns.
pub fn head(text: &str, room: usize) -> &str {
    let mut taken = 0;
    for (at, c) in text.char_indices() {
        taken += c.width().unwrap_or(0);
        if taken > room {
            return text.get(..at).unwrap_or_default();
        }
    }
    text
}

/// The longest end of a text that takes at most `room` columns.
pub fn tail(text: &str, room: usize) -> &str {
    let mut taken = 0;
    for (at, c) in text.char_indices().rev() {
        taken += c.width().unwrap_or(0);
        if taken > room {
            return text.get(at + c.len_utf8()..).unwrap_or_default();
        }
    }
    text
}

/// The text, cut at its end when it takes more than `room` columns.
pub fn fit<'a>(text: &'a str, room: usize, ellipsis: &str) -> Cow<'a, str> {
    if width(text) <= room {
        return Cow::Borrowed(text);
    }
    let mark = width(ellipsis);
    if room <= mark {
        return Cow::Owned(head(ellipsis, room).to_owned());
    }
    Cow::Owned(format!("{}{ellipsis}", head(text, room - mark)))
}

/// The text, cut in its middle when it takes more than `room` columns.
pub fn fit_middle<'a>(text: &'a str, room: usize, ellipsis: &str) -> Cow<'a, str> {
    if width(text) <= room {
        return Cow::Borrowed(text);
    }
    let mark = width(ellipsis);
    if room <= mark + 1 {
        return fit(text, room, ellipsis);
    }
    let left = (room - mark) / 2;
    let right = room - mark - left;
    Cow::Owned(format!(
        "{}{ellipsis}{}",
        head(text, left),
        tail(text, right)
    ))
}

/// A path that fits: its first component and as much of its end as there is room for, since the end names the file.
pub fn fit_path<'a>(path: &'a str, room: usize, ellipsis: &str) -> Cow<'a, str> {
    if width(path) <= room {
        return Cow::Borrowed(path);
    }
    let starts: Vec<usize> = path.match_indices('/').map(|(at, _)| at).collect();
    // `/opt` of `/opt/cuda/bin/nvcc`, nothing of a relative path.
    let first = match (path.starts_with('/'), starts.get(1)) {
        (true, Some(&second)) => path.get(..second + 1).unwrap_or_default(),
        _ => "",
    };
    let mark = width(ellipsis);
    for lead in [first, ""] {
        let fixed = width(lead) + mark;
        let end = starts
            .iter()
            .filter(|&&at| at + 1 >= lead.len() && at > 0)
            .filter_map(|&at| path.get(at..))
            .find(|end| fixed + width(end) <= room);
        if let Some(end) = end {
            return Cow::Owned(format!("{lead}{ellipsis}{end}"));
        }
    }
    let name = path.rsplit('/').next().unwrap_or(path);
    fit_middle(name, room, ellipsis)
}

/// The text followed by spaces up to `room` columns; longer text stays as it is.
pub fn pad(text: &str, room: usize) -> String {
    let missing = room.saturating_sub(width(text));
    let mut out = String::with_capacity(text.len() + missing);
    out.push_str(text);
    out.extend(std::iter::repeat_n(' ', missing));
    out
}

/// The text after spaces, up to `room` columns.
pub fn pad_left(text: &str, room: usize) -> String {
    let missing = room.saturating_sub(width(text));
    let mut out = " ".repeat(missing);
    out.push_str(text);
    out
}

/// Breaks a text into lines of at most `room` columns, at spaces where it can and after slashes where it must.
pub fn wrap(text: &str, room: usize) -> Vec<String> {
    let room = room.max(1);
    let mut lines = Vec::new();
    for paragraph in text.split('\n') {
        let mut line = String::new();
        for word in paragraph.split(' ').filter(|w| !w.is_empty()) {
            let gap = usize::from(!line.is_empty());
            if width(&line) + gap + width(word) <= room {
                if gap == 1 {
                    line.push(' ');
                }
                line.push_str(word);
                continue;
            }
            if !line.is_empty() {
                lines.push(std::mem::take(&mut line));
            }
            let mut rest = word;
            while width(rest) > room {
                let part = head(rest, room);
                let part = match part.rfind(['/', ':', ',', '=']) {
                    Some(at) if at > room / 3 => part.get(..=at).unwrap_or(part),
                    _ => part,
                };
                // A character wider than the room still has to go somewhere.
                let part = if part.is_empty() {
                    rest.get(..rest.chars().next().map_or(0, char::len_utf8))
                        .unwrap_or_default()
                } else {
                    part
                };
                if part.is_empty() {
                    break;
                }
                lines.push(part.to_owned());
                rest = rest.get(part.len()..).unwrap_or_default();
            }
            line.push_str(rest);
        }
        lines.push(line);
    }
    lines
}

/// Nanoseconds as a person says them: `850 µs`, `12 ms`, `3.41 s`, `2m07s`.
pub fn duration(ns: u64) -> String {
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{} µs", ns / 1_000),
        1_000_000..1_000_000_000 => format!("{} ms", ns / 1_000_000),
        1_000_000_000..60_000_000_000 => {
            format!("{}.{:02} s", ns / 1_000_000_000, ns / 10_000_000 % 100)
        }
        _ => {
            let seconds = ns / 1_000_000_000;
            match seconds {
                0..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
                _ => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
            }
        }
    }
}

/// A round number of nanoseconds without decimals that say nothing: `20 s`, `200 ms`, `1m20s`.
pub fn round_duration(ns: u64) -> String {
    match ns {
        1_000_000_000..60_000_000_000 if ns.is_multiple_of(1_000_000_000) => {
            format!("{} s", ns / 1_000_000_000)
        }
        ns => duration(ns),
    }
}

/// How old something is, in the unit that tells it best: `40 s`, `12 min`, `5 h`, `30 days`.
pub fn age(seconds: i64) -> String {
    match seconds {
        ..0 => "new".to_owned(),
        0..60 => format!("{seconds} s"),
        60..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// A moment of the trace in seconds, with three decimals.
pub fn moment(ns: u64) -> String {
    format!("{}.{:03}", ns / 1_000_000_000, ns / 1_000_000 % 1_000)
}

/// A count with its thousands set apart.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, c) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// Bytes in the unit that needs the fewest digits.
pub fn bytes(n: u64) -> String {
    match n {
        0..1_000 => format!("{n} B"),
        1_000..1_000_000 => format!("{}.{} kB", n / 1_000, n / 100 % 10),
        1_000_000..1_000_000_000 => format!("{}.{} MB", n / 1_000_000, n / 100_000 % 10),
        _ => format!("{}.{} GB", n / 1_000_000_000, n / 100_000_000 % 10),
    }
}

/// The arguments of a command in one line. A program that sets its title leaves spaces where its arguments were.
pub fn arguments(argv: &[String]) -> String {
    let words = argv.iter().skip(1).flat_map(|a| a.split_whitespace());
    words.collect::<Vec<_>>().join(" ")
}

/// A path as it was found, or its real form where the first only leads around (`lib/../../nvidia/lib`).
pub fn straight<'a>(path: &'a str, real: &'a str) -> &'a str {
    if path.contains("/../") && !real.is_empty() {
        real
    } else {
        path
    }
}

/// The part of a path after its last slash.
pub fn base(path: &str) -> &str {
    path.trim_end_matches('/')
        .rsplit('/')
        .next()
        .unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_keep_their_end() {
        for (path, room, shown) in [
            ("/opt/cuda/bin/nvcc", 40, "/opt/cuda/bin/nvcc"),
            ("/opt/toolkits/cuda-12.4/bin/nvcc", 20, "/opt/…/bin/nvcc"),
            (
                "/opt/toolkits/cuda-12.4/bin/nvcc",
                26,
                "/opt/…/cuda-12.4/bin/nvcc",
            ),
            ("/opt/toolkits/cuda-12.4/bin/nvcc", 10, "…/bin/nvcc"),
            ("/opt/toolkits/cuda-12.4/bin/nvcc", 6, "…/nvcc"),
            ("/opt/lib/libnvJitLink.so.13", 11, "libnv…so.13"),
            ("relative/folder/file.cu", 12, "…/file.cu"),
        ] {
            assert_eq!(fit_path(path, room, "…"), shown, "{path} in {room}");
        }
    }

    #[test]
    fn nothing_is_wider_than_its_room() {
        for text in [
            "",
            "日本語のパス/ファイル.so",
            "a/b/c",
            "👩‍🔬/nvcc",
            "/日本/語/x",
        ] {
            for room in 0..12 {
                assert!(width(&fit(text, room, "…")) <= room, "{text} {room}");
                assert!(width(&fit_middle(text, room, "…")) <= room, "{text} {room}");
                assert!(width(&fit_path(text, room, "…")) <= room, "{text} {room}");
            }
        }
    }

    #[test]
    fn wrapped_lines_hold_everything() {
        let text = "nvcc 12.4 from /opt/toolkits/cuda-12.4/bin/nvcc was chosen";
        for room in 4..40 {
            let lines = wrap(text, room);
            assert!(lines.iter().all(|l| width(l) <= room), "{room}: {lines:?}");
            let joined: String = lines.concat().replace(' ', "");
            assert_eq!(joined, text.replace(' ', ""), "{room}");
        }
    }

    #[test]
    fn control_characters_are_never_passed_on() {
        assert_eq!(clean("a\x1b[31mb\nc"), "a\u{fffd}[31mb c");
        assert_eq!(clean("\u{202e}gnp.exe"), "\u{fffd}gnp.exe");
    }

    #[test]
    fn numbers_read_at_a_glance() {
        assert_eq!(duration(12_345_678), "12 ms");
        assert_eq!(duration(3_412_000_000), "3.41 s");
        assert_eq!(duration(127_000_000_000), "2m07s");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(bytes(4_250_000), "4.2 MB");
    }
}

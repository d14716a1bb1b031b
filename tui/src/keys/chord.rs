//! Keys: how they are written, and what a terminal sends for them.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// How a key is written.
pub fn name(key: KeyEvent) -> Option<String> {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    let bare = match key.code {
        KeyCode::Char(c) if control => match c.to_ascii_lowercase() {
            ' ' => "Space".to_owned(),
            // A terminal sends one byte for both; the digit is what the older name says.
            '4' => "\\".to_owned(),
            '5' => "]".to_owned(),
            '6' => "^".to_owned(),
            '7' => "_".to_owned(),
            c => c.to_string(),
        },
        KeyCode::Char(' ') => "Space".to_owned(),
        KeyCode::Char(c) => c.to_string(),
        KeyCode::Enter => "Enter".to_owned(),
        KeyCode::Esc => "Esc".to_owned(),
        KeyCode::Tab => "Tab".to_owned(),
        KeyCode::BackTab => "BackTab".to_owned(),
        KeyCode::Backspace => "Backspace".to_owned(),
        KeyCode::Delete => "Delete".to_owned(),
        KeyCode::Insert => "Insert".to_owned(),
        KeyCode::Up => "Up".to_owned(),
        KeyCode::Down => "Down".to_owned(),
        KeyCode::Left => "Left".to_owned(),
        KeyCode::Right => "Right".to_owned(),
        KeyCode::PageUp => "PageUp".to_owned(),
        KeyCode::PageDown => "PageDown".to_owned(),
        KeyCode::Home => "Home".to_owned(),
        KeyCode::End => "End".to_owned(),
        KeyCode::F(n) => format!("F{n}"),
        _ => return None,
    };
    let mut out = String::new();
    if control {
        out.push_str("Ctrl-");
    }
    if key.modifiers.contains(KeyModifiers::ALT) {
        out.push_str("Alt-");
    }
    out.push_str(&bare);
    Some(out)
}

/// Names of keys that are no character, with other ways to write them.
const NAMES: &[(&str, &[&str])] = &[
    ("Space", &[" "]),
    ("Enter", &["return"]),
    ("Esc", &["escape"]),
    ("Tab", &[]),
    ("BackTab", &["shift-tab"]),
    ("Backspace", &[]),
    ("Delete", &["del"]),
    ("Insert", &["ins"]),
    ("Up", &[]),
    ("Down", &[]),
    ("Left", &[]),
    ("Right", &[]),
    ("PageUp", &["pgup"]),
    ("PageDown", &["pgdn", "pgdown"]),
    ("Home", &[]),
    ("End", &[]),
];

/// A key as a person wrote it, in the one way in which [`name`] writes it.
///
/// # Errors
/// A sentence: there is no such key, or a terminal sends the same for another one.
pub fn canonical(written: &str) -> Result<String, String> {
    let mut rest = written;
    let (mut control, mut alt) = (false, false);
    loop {
        let lower = rest.to_ascii_lowercase();
        let (modifier, short) = if lower.starts_with("ctrl-") {
            (&mut control, 5)
        } else if lower.starts_with("alt-") {
            (&mut alt, 4)
        } else {
            break;
        };
        *modifier = true;
        rest = rest.get(short..).unwrap_or_default();
    }
    let lower = rest.to_ascii_lowercase();
    let mut characters = rest.chars();
    let named = NAMES
        .iter()
        .find(|(name, others)| name.eq_ignore_ascii_case(rest) || others.contains(&lower.as_str()))
        .map(|(name, _)| (*name).to_owned());
    let function = lower
        .strip_prefix('f')
        .filter(|number| !number.starts_with(['0', '+']))
        .and_then(|number| number.parse::<u8>().ok())
        .filter(|number| (1..=24).contains(number))
        .map(|number| format!("F{number}"));
    let bare = match (named.or(function), characters.next(), characters.next()) {
        (Some(name), ..) => name,
        (None, Some(c), None) if !c.is_control() && !c.is_whitespace() => c.to_string(),
        _ => {
            return Err(format!(
                "there is no key {written:?}: a key is one character, or a name like Enter, Space, PageUp or F5, with Ctrl- or Alt- before it"
            ));
        }
    };
    let bare = if control && bare.len() == 1 {
        bare.to_ascii_lowercase()
    } else {
        bare
    };
    if control {
        let same = match bare.as_str() {
            "i" => "Tab",
            "m" => "Enter",
            "[" | "3" => "Esc",
            "2" | "@" => "Ctrl-Space",
            "4" => "Ctrl-\\",
            "5" => "Ctrl-]",
            "6" => "Ctrl-^",
            "7" | "/" => "Ctrl-_",
            "8" | "?" => "Backspace",
            _ => "",
        };
        if !same.is_empty() {
            return Err(format!(
                "a terminal sends the same for {written} and {same}: write {same}"
            ));
        }
    }
    let mut out = String::new();
    if control {
        out.push_str("Ctrl-");
    }
    if alt {
        out.push_str("Alt-");
    }
    out.push_str(&bare);
    Ok(out)
}

/// The bytes that a terminal sends for a key.
pub fn encode(key: KeyEvent, application_cursor: bool) -> Vec<u8> {
    let mut out = Vec::new();
    if key.modifiers.contains(KeyModifiers::ALT) {
        out.push(0x1b);
    }
    let modifier = 1
        + u8::from(key.modifiers.contains(KeyModifiers::SHIFT))
        + 4 * u8::from(key.modifiers.contains(KeyModifiers::CONTROL));
    let mut cursor = |letter: char| match (modifier, application_cursor) {
        (1, true) => out.extend_from_slice(format!("\x1bO{letter}").as_bytes()),
        (1, false) => out.extend_from_slice(format!("\x1b[{letter}").as_bytes()),
        _ => out.extend_from_slice(format!("\x1b[1;{modifier}{letter}").as_bytes()),
    };
    match key.code {
        KeyCode::Up => cursor('A'),
        KeyCode::Down => cursor('B'),
        KeyCode::Right => cursor('C'),
        KeyCode::Left => cursor('D'),
        KeyCode::Home => cursor('H'),
        KeyCode::End => cursor('F'),
        KeyCode::Char(c) if key.modifiers.contains(KeyModifiers::CONTROL) => {
            match c.to_ascii_lowercase() {
                c @ 'a'..='z' => out.push(c as u8 - b'a' + 1),
                ' ' | '2' | '@' => out.push(0),
                '[' | '3' => out.push(0x1b),
                '\\' | '4' => out.push(0x1c),
                ']' | '5' => out.push(0x1d),
                '^' | '6' => out.push(0x1e),
                '_' | '7' | '/' => out.push(0x1f),
                '?' | '8' => out.push(0x7f),
                _ => {}
            }
        }
        KeyCode::Char(c) => {
            let mut buffer = [0; 4];
            out.extend_from_slice(c.encode_utf8(&mut buffer).as_bytes());
        }
        KeyCode::Enter => out.push(b'\r'),
        KeyCode::Tab => out.push(b'\t'),
        KeyCode::BackTab => out.extend_from_slice(b"\x1b[Z"),
        KeyCode::Backspace => out.push(0x7f),
        KeyCode::Esc => out.push(0x1b),
        KeyCode::Insert => out.extend_from_slice(b"\x1b[2~"),
        KeyCode::Delete => out.extend_from_slice(b"\x1b[3~"),
        KeyCode::PageUp => out.extend_from_slice(b"\x1b[5~"),
        KeyCode::PageDown => out.extend_from_slice(b"\x1b[6~"),
        KeyCode::F(n @ 1..=4) => out.extend_from_slice(&[0x1b, b'O', b'P' + n - 1]),
        KeyCode::F(n @ 5..=12) => {
            let code = [15, 17, 18, 19, 20, 21, 23, 24]
                .get(usize::from(n) - 5)
                .copied()
                .unwrap_or(24);
            out.extend_from_slice(format!("\x1b[{code}~").as_bytes());
        }
        _ => out.clear(),
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_reach_the_program_as_a_terminal_sends_them() {
        for (code, modifiers, bytes) in [
            (KeyCode::Char('c'), KeyModifiers::CONTROL, &b"\x03"[..]),
            (KeyCode::Char('x'), KeyModifiers::ALT, b"\x1bx"),
            (KeyCode::Up, KeyModifiers::NONE, b"\x1b[A"),
            (KeyCode::Right, KeyModifiers::CONTROL, b"\x1b[1;5C"),
            (KeyCode::F(5), KeyModifiers::NONE, b"\x1b[15~"),
            (KeyCode::Char('é'), KeyModifiers::NONE, "é".as_bytes()),
        ] {
            assert_eq!(encode(KeyEvent::new(code, modifiers), false), bytes);
        }
        let up = KeyEvent::new(KeyCode::Up, KeyModifiers::NONE);
        assert_eq!(encode(up, true), b"\x1bOA");
    }

    #[test]
    fn keys_are_read_as_people_write_them() {
        for (written, key) in [
            ("q", "q"),
            ("Q", "Q"),
            ("é", "é"),
            ("-", "-"),
            ("Ctrl--", "Ctrl--"),
            ("ctrl-D", "Ctrl-d"),
            ("alt-ctrl-x", "Ctrl-Alt-x"),
            ("Alt-X", "Alt-X"),
            ("return", "Enter"),
            ("ESC", "Esc"),
            ("Shift-Tab", "BackTab"),
            ("pgdn", "PageDown"),
            (" ", "Space"),
            ("Ctrl-Space", "Ctrl-Space"),
            ("f", "f"),
            ("f12", "F12"),
        ] {
            assert_eq!(canonical(written).as_deref(), Ok(key), "{written}");
        }
        for (written, told) in [
            ("", "there is no key \"\""),
            ("Ctrl-", "there is no key"),
            ("qq", "there is no key \"qq\""),
            ("F25", "there is no key"),
            ("\u{7}", "there is no key"),
            ("Ctrl-i", "a terminal sends the same for Ctrl-i and Tab"),
            ("Ctrl-[", "a terminal sends the same for Ctrl-[ and Esc"),
            ("Ctrl-5", "a terminal sends the same for Ctrl-5 and Ctrl-]"),
        ] {
            let error = canonical(written).unwrap_err();
            assert!(error.starts_with(told), "{written}: {error}");
        }
    }
}

//! A line to type in, with completion and an error that points at its column.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::filter::{self, Completion, FilterError};

/// What is being typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// A text to search for.
    Search,
    /// A filter of the events.
    Filter,
}

/// A line to type in.
#[derive(Debug, Clone)]
pub struct Prompt {
    /// What it is for.
    pub purpose: Purpose,
    /// What was typed.
    pub text: String,
    /// Characters before the cursor.
    pub cursor: usize,
    /// What is wrong with it.
    pub error: Option<FilterError>,
    /// Ways to go on.
    pub completions: Vec<Completion>,
    /// The way that was chosen last.
    pub chosen: Option<usize>,
    /// What was typed for this before, the latest last.
    past: Vec<String>,
    /// The position in the past; its end is what is being typed now.
    at: usize,
    /// What was being typed before the past was looked at.
    draft: String,
}

impl Prompt {
    /// A line that begins with a text.
    pub fn new(purpose: Purpose, text: String) -> Prompt {
        let mut prompt = Prompt {
            purpose,
            cursor: text.chars().count(),
            text,
            error: None,
            completions: Vec::new(),
            chosen: None,
            past: Vec::new(),
            at: 0,
            draft: String::new(),
        };
        prompt.look_up();
        prompt
    }

    /// The same, with what was typed for this before.
    pub fn after(mut self, past: &[String]) -> Prompt {
        self.past = past.to_vec();
        self.at = past.len();
        self
    }

    /// Goes a step back into the past, or towards the present; whether there was one.
    fn recall(&mut self, back: bool) -> bool {
        let next = if back {
            self.at.checked_sub(1)
        } else {
            Some(self.at + 1).filter(|at| *at <= self.past.len())
        };
        let Some(next) = next else { return false };
        if self.at == self.past.len() {
            self.draft.clone_from(&self.text);
        }
        self.at = next;
        self.text = self.past.get(next).unwrap_or(&self.draft).clone();
        self.cursor = self.text.chars().count();
        self.look_up();
        true
    }

    /// Takes a key.
    pub fn key(&mut self, key: KeyEvent) {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let length = self.text.chars().count();
        match key.code {
            KeyCode::Char('a') if control => self.cursor = 0,
            KeyCode::Char('e') if control => self.cursor = length,
            KeyCode::Char('u') if control => {
                self.cut(0, self.cursor);
                self.look_up();
            }
            KeyCode::Char('w') if control => {
                let before: Vec<char> = self.text.chars().take(self.cursor).collect();
                let start = before
                    .iter()
                    .rposition(|c| !c.is_whitespace())
                    .and_then(|end| before.get(..end)?.iter().rposition(|c| c.is_whitespace()))
                    .map_or(0, |at| at + 1);
                self.cut(start, self.cursor);
                self.look_up();
            }
            KeyCode::Char(c) if !control => {
                self.insert(c.encode_utf8(&mut [0; 4]));
            }
            KeyCode::Backspace => {
                if self.cursor > 0 {
                    self.cut(self.cursor - 1, self.cursor);
                }
                self.look_up();
            }
            KeyCode::Delete => {
                self.cut(self.cursor, (self.cursor + 1).min(length));
                self.look_up();
            }
            KeyCode::Left => self.cursor = self.cursor.saturating_sub(1),
            KeyCode::Right => self.cursor = (self.cursor + 1).min(length),
            KeyCode::Home => self.cursor = 0,
            KeyCode::End => self.cursor = length,
            // As in a shell, the way up leads into the past; once a completion is chosen, to the one above.
            KeyCode::Up if self.chosen.is_none() && self.recall(true) => {}
            KeyCode::Down if self.chosen.is_none() && self.recall(false) => {}
            KeyCode::Tab | KeyCode::Down => self.complete(true),
            KeyCode::BackTab | KeyCode::Up => self.complete(false),
            _ => {}
        }
    }

    /// Puts a text at the cursor; it becomes one line.
    pub fn insert(&mut self, text: &str) {
        let line: String = text
            .trim_end_matches(['\n', '\r'])
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect();
        let at = self.byte(self.cursor);
        self.text.insert_str(at, &line);
        self.cursor += line.chars().count();
        self.look_up();
    }

    fn byte(&self, chars: usize) -> usize {
        self.text
            .char_indices()
            .nth(chars)
            .map_or(self.text.len(), |(at, _)| at)
    }

    fn cut(&mut self, from: usize, to: usize) {
        let (from_byte, to_byte) = (self.byte(from), self.byte(to));
        self.text.replace_range(from_byte..to_byte, "");
        self.cursor = from;
    }

    fn look_up(&mut self) {
        self.chosen = None;
        self.completions = match self.purpose {
            Purpose::Search => Vec::new(),
            Purpose::Filter => {
                let before: String = self.text.chars().take(self.cursor).collect();
                filter::complete(&before).1
            }
        };
    }

    /// Puts the next way to go on in the place of the word at the cursor.
    fn complete(&mut self, forward: bool) {
        let count = self.completions.len();
        if count == 0 {
            return;
        }
        let next = match (self.chosen, forward) {
            (None, true) => 0,
            (None, false) => count - 1,
            (Some(at), true) => (at + 1) % count,
            (Some(at), false) => (at + count - 1) % count,
        };
        let Some(word) = self.completions.get(next).map(|c| c.word.clone()) else {
            return;
        };
        let before: String = self.text.chars().take(self.cursor).collect();
        // The word that an earlier choice put there is replaced as a whole.
        let typed = match self.chosen.and_then(|at| self.completions.get(at)) {
            Some(last) => last.word.chars().count(),
            None => filter::complete(&before).0,
        };
        let kept = self.completions.clone();
        self.cut(self.cursor.saturating_sub(typed), self.cursor);
        let at = self.byte(self.cursor);
        self.text.insert_str(at, &word);
        self.cursor += word.chars().count();
        // With one way to go on, what follows it is offered next.
        if kept.len() == 1 {
            self.look_up();
        } else {
            self.completions = kept;
            self.chosen = Some(next);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(prompt: &mut Prompt, keys: &str) {
        for c in keys.chars() {
            let code = match c {
                '\t' => KeyCode::Tab,
                '\u{8}' => KeyCode::Backspace,
                c => KeyCode::Char(c),
            };
            prompt.key(KeyEvent::new(code, KeyModifiers::NONE));
        }
    }

    #[test]
    fn what_was_typed_before_comes_back() {
        use KeyCode::{Down, Up};
        let past = ["one".to_owned(), "two".to_owned()];
        let mut prompt = Prompt::new(Purpose::Search, "th".to_owned()).after(&past);
        let mut seen = Vec::new();
        for code in [Up, Up, Up, Down, Down, Down] {
            prompt.key(KeyEvent::new(code, KeyModifiers::NONE));
            seen.push(prompt.text.clone());
        }
        assert_eq!(seen, ["two", "one", "one", "two", "th", "th"]);
    }

    #[test]
    fn tab_goes_through_the_completions() {
        let mut prompt = Prompt::new(Purpose::Filter, String::new());
        press(&mut prompt, "-ki\t");
        assert_eq!(prompt.text, "-kind:");
        press(&mut prompt, "exec\t");
        assert_eq!(prompt.text, "-kind:exec-failed");
    }

    #[test]
    fn a_paste_with_newlines_is_one_line() {
        let mut prompt = Prompt::new(Purpose::Filter, String::new());
        prompt.insert("kind:exec\nnvcc\n");
        assert_eq!(prompt.text, "kind:exec nvcc");
        assert_eq!(prompt.cursor, 14);
    }

    #[test]
    fn characters_of_any_width_are_edited_whole() {
        let mut prompt = Prompt::new(Purpose::Search, String::new());
        press(&mut prompt, "日本x");
        prompt.key(KeyEvent::new(KeyCode::Left, KeyModifiers::NONE));
        press(&mut prompt, "\u{8}");
        assert_eq!((prompt.text.as_str(), prompt.cursor), ("日x", 1));
    }
}

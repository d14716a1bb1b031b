//! A shell's `-c` text, taken apart into simple commands.
//!
//! nvcc and ninja start each of their steps through `sh -c`. Quotes, escapes, assignments, redirections and the
//! usual operators are understood; variables and substitutions are left as they are written.

/// How much text and how many commands are read, at most.
const MAX_TEXT: usize = 1 << 20;
const MAX_COMMANDS: usize = 256;

/// A simple command: its words, without assignments before and redirections after it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Simple {
    /// The program and its arguments.
    pub words: Vec<String>,
    /// The names that were assigned for it (`CUDA_HOME=… nvcc`), with their values.
    pub assignments: Vec<(String, String)>,
}

#[derive(Default)]
struct Reader {
    done: Vec<Simple>,
    current: Simple,
    word: String,
    in_word: bool,
    /// The word in hand was quoted, so it is no operator and no assignment.
    quoted: bool,
    /// The next word is a redirection's file.
    redirected: bool,
}

impl Reader {
    fn end_word(&mut self) {
        if !self.in_word {
            return;
        }
        let word = std::mem::take(&mut self.word);
        let quoted = std::mem::take(&mut self.quoted);
        self.in_word = false;
        if std::mem::take(&mut self.redirected) {
            return;
        }
        if self.current.words.is_empty()
            && let Some((name, value)) = word.split_once('=')
            && is_name(name)
        {
            self.current
                .assignments
                .push((name.to_owned(), value.to_owned()));
            return;
        }
        let is_keyword = !quoted
            && self.current.words.is_empty()
            && matches!(
                word.as_str(),
                "if" | "then" | "else" | "fi" | "do" | "done" | "{" | "}" | "!" | "time"
            );
        if !is_keyword {
            self.current.words.push(word);
        }
    }

    fn end_command(&mut self) {
        self.end_word();
        let command = std::mem::take(&mut self.current);
        if (!command.words.is_empty() || !command.assignments.is_empty())
            && self.done.len() < MAX_COMMANDS
        {
            self.done.push(command);
        }
    }

    fn push(&mut self, character: char) {
        self.in_word = true;
        self.word.push(character);
    }
}

fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// The simple commands in a shell text, in order.
#[must_use]
pub fn commands(text: &str) -> Vec<Simple> {
    let mut reader = Reader::default();
    let mut characters = text
        .char_indices()
        .take_while(|(at, _)| *at < MAX_TEXT)
        .map(|(_, character)| character)
        .peekable();
    while let Some(character) = characters.next() {
        match character {
            '\'' => {
                reader.in_word = true;
                reader.quoted = true;
                for inner in characters.by_ref().take_while(|inner| *inner != '\'') {
                    reader.word.push(inner);
                }
            }
            '"' => {
                reader.in_word = true;
                reader.quoted = true;
                while let Some(inner) = characters.next() {
                    match inner {
                        '"' => break,
                        '\\' if characters
                            .peek()
                            .is_some_and(|next| matches!(next, '"' | '\\' | '$' | '`')) =>
                        {
                            reader.word.extend(characters.next());
                        }
                        inner => reader.word.push(inner),
                    }
                }
            }
            '\\' => match characters.next() {
                Some('\n') | None => {}
                Some(escaped) => reader.push(escaped),
            },
            ' ' | '\t' => reader.end_word(),
            '\n' | ';' | '|' | '(' | ')' => reader.end_command(),
            '&' => {
                // `>&1` and `&>` are redirections.
                if reader.redirected || characters.peek() == Some(&'>') {
                    continue;
                }
                reader.end_command();
            }
            '>' | '<' => {
                if reader.word.bytes().all(|byte| byte.is_ascii_digit()) {
                    // The descriptor in `2>`.
                    reader.word.clear();
                    reader.in_word = false;
                } else {
                    reader.end_word();
                }
                reader.redirected = true;
            }
            '#' if !reader.in_word => {
                for _ in characters.by_ref().take_while(|inner| *inner != '\n') {}
                reader.end_command();
            }
            other => reader.push(other),
        }
    }
    reader.end_command();
    reader.done
}

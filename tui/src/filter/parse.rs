//! Reading a filter, with an error that points at the column.

use regex::{Regex, RegexBuilder};

use super::{Comparison, Filter, FilterError, Test};

/// Deepest nesting of parentheses and negations.
const DEEPEST: usize = 32;

/// Reads a filter; an empty one lets everything through.
///
/// # Errors
/// A sentence, and the column it is about.
pub fn parse(text: &str) -> Result<Filter, FilterError> {
    let mut parser = Parser {
        chars: text.chars().collect(),
        at: 0,
        depth: 0,
    };
    let filter = parser.any()?;
    match parser.peek() {
        None => Ok(filter),
        Some(_) => parser.fail("this parenthesis closes nothing"),
    }
}

/// The text of a regular expression as it is written between slashes.
pub(super) fn written(regex: &Regex) -> String {
    regex.as_str().replace('/', "\\/")
}

struct Parser {
    chars: Vec<char>,
    at: usize,
    depth: usize,
}

impl Parser {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn peek_after(&self, by: usize) -> Option<char> {
        self.chars.get(self.at + by).copied()
    }

    fn fail<T>(&self, message: impl Into<String>) -> Result<T, FilterError> {
        Err(FilterError {
            column: self.at,
            message: message.into(),
        })
    }

    fn spaces(&mut self) {
        while self.peek().is_some_and(char::is_whitespace) {
            self.at += 1;
        }
    }

    /// Whether a word stands here on its own; passes it if so.
    fn keyword(&mut self, word: &str) -> bool {
        let long = word.chars().count();
        let here = self.chars.get(self.at..self.at + long);
        let same = here.is_some_and(|here| {
            here.iter()
                .zip(word.chars())
                .all(|(a, b)| a.eq_ignore_ascii_case(&b))
        });
        let ends = self
            .peek_after(long)
            .is_none_or(|c| c.is_whitespace() || c == '(' || c == ')');
        if same && ends {
            self.at += long;
        }
        same && ends
    }

    fn any(&mut self) -> Result<Filter, FilterError> {
        let mut filters = vec![self.all()?];
        loop {
            self.spaces();
            if self.peek() == Some('|') {
                self.at += 1;
                if self.peek() == Some('|') {
                    self.at += 1;
                }
            } else if !self.keyword("or") {
                break;
            }
            if matches!(filters.last(), Some(Filter::All(none)) if none.is_empty()) {
                return self.fail("something must stand before this `or`");
            }
            let next = self.all()?;
            if matches!(&next, Filter::All(none) if none.is_empty()) {
                return self.fail("something must follow `or`");
            }
            filters.push(next);
        }
        Ok(match filters.len() {
            1 => filters.remove(0),
            _ => Filter::Any(filters),
        })
    }

    fn all(&mut self) -> Result<Filter, FilterError> {
        let mut filters = Vec::new();
        loop {
            self.spaces();
            match self.peek() {
                None | Some(')' | '|') => break,
                _ => {}
            }
            let before = self.at;
            if self.keyword("or") {
                self.at = before;
                break;
            }
            if self.keyword("and") {
                continue;
            }
            filters.push(self.term()?);
        }
        Ok(match filters.len() {
            1 => filters.remove(0),
            _ => Filter::All(filters),
        })
    }

    fn term(&mut self) -> Result<Filter, FilterError> {
        if self.depth >= DEEPEST {
            return self.fail("nested too deeply");
        }
        self.depth += 1;
        let term = self.bare_term();
        self.depth -= 1;
        term
    }

    fn bare_term(&mut self) -> Result<Filter, FilterError> {
        self.spaces();
        let start = self.at;
        match self.peek() {
            Some('!' | '-') => {
                self.at += 1;
                if self.peek().is_none_or(char::is_whitespace) {
                    self.at = start;
                    return self.fail("a word must follow the negation directly");
                }
                Ok(Filter::Not(Box::new(self.term()?)))
            }
            Some('(') => {
                self.at += 1;
                let inner = self.any()?;
                self.spaces();
                if self.peek() != Some(')') {
                    self.at = start;
                    return self.fail("this parenthesis is not closed");
                }
                self.at += 1;
                Ok(inner)
            }
            Some('/') if self.closes_regex() => Ok(Filter::Words(self.regex()?)),
            Some('"') => Ok(Filter::Words(Test::Contains(self.quoted()?.to_lowercase()))),
            None => self.fail("a word is missing here"),
            Some(_) => {
                if self.keyword("not") {
                    return Ok(Filter::Not(Box::new(self.term()?)));
                }
                self.word_or_field()
            }
        }
    }

    /// A slash begins a regular expression only when another one ends it; else it is a path.
    fn closes_regex(&self) -> bool {
        let mut at = self.at + 1;
        let mut escaped = false;
        while let Some(&c) = self.chars.get(at) {
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '/' => {
                    // `/usr/bin` is a path: a regular expression ends before a space, a parenthesis or the end.
                    let next = self.chars.get(at + 1);
                    return next.is_none_or(|c| c.is_whitespace() || matches!(c, ')' | '|'))
                        && at > self.at + 1;
                }
                _ => {}
            }
            at += 1;
        }
        false
    }

    fn regex(&mut self) -> Result<Test, FilterError> {
        let start = self.at;
        self.at += 1;
        let mut source = String::new();
        while let Some(c) = self.peek() {
            match c {
                '/' => {
                    self.at += 1;
                    // Small letters match any case, as in a search.
                    let regex = RegexBuilder::new(&source)
                        .case_insensitive(!source.chars().any(char::is_uppercase))
                        .size_limit(1 << 20)
                        .build();
                    return regex.map(Test::Matches).map_err(|error| FilterError {
                        column: start,
                        message: reason(&error),
                    });
                }
                '\\' if self.peek_after(1) == Some('/') => {
                    source.push('/');
                    self.at += 2;
                }
                '\\' => {
                    source.push('\\');
                    source.extend(self.peek_after(1));
                    self.at += 2;
                }
                c => {
                    source.push(c);
                    self.at += 1;
                }
            }
        }
        self.at = start;
        self.fail("this regular expression has no closing slash")
    }

    fn quoted(&mut self) -> Result<String, FilterError> {
        let start = self.at;
        self.at += 1;
        let mut text = String::new();
        while let Some(c) = self.peek() {
            self.at += 1;
            match c {
                '"' => return Ok(text),
                '\\' => match self.peek() {
                    Some(next) => {
                        text.push(next);
                        self.at += 1;
                    }
                    None => break,
                },
                c => text.push(c),
            }
        }
        self.at = start;
        self.fail("this quotation mark is not closed")
    }

    fn word_or_field(&mut self) -> Result<Filter, FilterError> {
        let start = self.at;
        while self
            .peek()
            .is_some_and(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
        {
            self.at += 1;
        }
        let name: String = self
            .chars
            .get(start..self.at)
            .unwrap_or_default()
            .iter()
            .collect();
        let operator = (self.peek(), self.peek_after(1));
        let named = name.chars().next().is_some_and(|c| c.is_ascii_alphabetic());
        // `a::b` is a word, and so is `c:/x` of a name that is no field.
        let field = named && !matches!(operator, (Some(':'), Some(':')));
        let (long, comparison) = match operator {
            (Some('<'), Some('=')) => (2, Some(Comparison::AtMost)),
            (Some('>'), Some('=')) => (2, Some(Comparison::AtLeast)),
            (Some('<'), _) => (1, Some(Comparison::Less)),
            (Some('>'), _) => (1, Some(Comparison::More)),
            (Some('!'), Some('=')) => (2, None),
            (Some(':' | '='), _) => (1, None),
            _ => (0, None),
        };
        if !field || long == 0 {
            self.at = start;
            return self
                .word()
                .map(|word| Filter::Words(Test::Contains(word.to_lowercase())));
        }
        let exact = matches!(operator, (Some('='), _) | (Some('!'), Some('=')));
        let negated = matches!(operator, (Some('!'), Some('=')));
        self.at += long;
        if self.peek().is_none_or(char::is_whitespace) {
            return self.fail(format!("a value for {name} is missing here"));
        }
        let value_at = self.at;
        let test = match (self.peek(), comparison) {
            (_, Some(comparison)) => {
                let word = self.word()?;
                match number(&word) {
                    Some(number) => Test::Compares(comparison, number),
                    None => {
                        self.at = value_at;
                        return self.fail("a number or a time (12, 1.5s, 10ms) is wanted here");
                    }
                }
            }
            (Some('/'), None) if self.closes_regex() => self.regex()?,
            (Some('"'), None) if exact => Test::Is(self.quoted()?.to_lowercase()),
            (Some('"'), None) => Test::Contains(self.quoted()?.to_lowercase()),
            (_, None) if exact => Test::Is(self.word()?.to_lowercase()),
            (_, None) => Test::Contains(self.word()?.to_lowercase()),
        };
        // These are compared as numbers: another text would never hold, and nobody would see why.
        if let ("pid" | "id", Test::Contains(text) | Test::Is(text)) = (name.as_str(), &test)
            && text.parse::<u64>().is_err()
        {
            let message = format!("a number is wanted here ({name}:1234, {name}>1000)");
            self.at = value_at;
            return self.fail(message);
        }
        let filter = Filter::Field(name, test);
        Ok(if negated {
            Filter::Not(Box::new(filter))
        } else {
            filter
        })
    }

    fn word(&mut self) -> Result<String, FilterError> {
        let start = self.at;
        while self
            .peek()
            .is_some_and(|c| !c.is_whitespace() && !matches!(c, '(' | ')' | '|'))
        {
            self.at += 1;
        }
        if self.at == start {
            return self.fail("a word is missing here");
        }
        Ok(self
            .chars
            .get(start..self.at)
            .unwrap_or_default()
            .iter()
            .collect())
    }
}

/// A number; with a unit of time it is in nanoseconds.
fn number(word: &str) -> Option<f64> {
    let digits = word
        .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+')))
        .unwrap_or(word.len());
    let value: f64 = word.get(..digits)?.parse().ok()?;
    let unit = match word.get(digits..)? {
        "" => 1.0,
        "ns" => 1.0,
        "us" | "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "m" | "min" => 60e9,
        "h" => 3600e9,
        _ => return None,
    };
    Some(value * unit)
}

/// The last line of a regular expression's error tells the reason; the others draw it.
fn reason(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    let last = last.strip_prefix("error: ").unwrap_or(last);
    format!("this regular expression does not read: {last}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(text: &str) -> String {
        match parse(text) {
            Ok(filter) => filter.to_string(),
            Err(error) => format!("{}: {}", error.column, error.message),
        }
    }

    #[test]
    fn what_is_written_is_understood() {
        for (text, meaning) in [
            ("", ""),
            ("nvcc", "\"nvcc\""),
            ("kind:exec -errno:2", "kind:\"exec\" !errno:\"2\""),
            ("NVCC not ptxas", "\"nvcc\" !\"ptxas\""),
            ("/usr/bin/nvcc", "\"/usr/bin/nvcc\""),
            ("/nv(cc|link)/", "/nv(cc|link)/"),
            ("path:/12\\.[0-9]/ x", "path:/12\\.[0-9]/ \"x\""),
            ("path:/opt/cuda/bin", "path:\"/opt/cuda/bin\""),
            ("t>1.5s", "t>1500000000"),
            ("duration_ns<=10ms", "duration_ns<=10000000"),
            ("pid=7 | pid!=8", "pid=\"7\" | !pid=\"8\""),
            ("a (b or \"c d\") and e", "\"a\" (\"b\" | \"c d\") \"e\""),
            ("std::io", "\"std::io\""),
            ("order", "\"order\""),
            ("12:30", "\"12:30\""),
        ] {
            assert_eq!(shown(text), meaning, "{text:?}");
        }
    }

    #[test]
    fn an_error_points_at_its_column() {
        for (text, error) in [
            ("a (b", "2: this parenthesis is not closed"),
            ("a)", "1: this parenthesis closes nothing"),
            ("kind:", "5: a value for kind is missing here"),
            ("x \"ab", "2: this quotation mark is not closed"),
            (
                "t>soon",
                "2: a number or a time (12, 1.5s, 10ms) is wanted here",
            ),
            (
                "pid:nvcc",
                "4: a number is wanted here (pid:1234, pid>1000)",
            ),
            ("- x", "0: a word must follow the negation directly"),
            ("a or", "4: something must follow `or`"),
            ("| a", "1: something must stand before this `or`"),
            (
                "x /a(/",
                "2: this regular expression does not read: unclosed group",
            ),
        ] {
            assert_eq!(shown(text), error, "{text:?}");
        }
    }

    fn filters() -> impl Strategy<Value = Filter> {
        let word = "[a-z0-9 /\"\\\\:|()<>=!-]{1,12}";
        let test = prop_oneof![
            word.prop_map(Test::Contains),
            word.prop_map(Test::Is),
            (0_u32..1000).prop_map(|n| Test::Compares(Comparison::AtLeast, f64::from(n) / 8.0)),
        ];
        // Those take nothing but numbers.
        let name = "[a-z][a-z_.]{0,8}".prop_filter("a field of numbers", |name| {
            !matches!(name.as_str(), "id" | "pid")
        });
        let leaf = prop_oneof![
            word.prop_map(|w| Filter::Words(Test::Contains(w))),
            (name, test).prop_map(|(n, t)| Filter::Field(n, t)),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 2..4).prop_map(Filter::All),
                prop::collection::vec(inner.clone(), 2..4).prop_map(Filter::Any),
                inner.prop_map(|f| Filter::Not(Box::new(f))),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_within_itself(text in ".{0,60}") {
            if let Err(error) = parse(&text) {
                prop_assert!(error.column <= text.chars().count());
                prop_assert!(!error.message.is_empty());
            }
        }

        #[test]
        fn a_written_filter_reads_as_itself(filter in filters()) {
            let text = filter.to_string();
            let read = parse(&text);
            prop_assert_eq!(read.as_ref(), Ok(&filter), "{}", text);
        }
    }
}

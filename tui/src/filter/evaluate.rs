//! Whether an event passes a filter, at the least cost: marks first, then the raw line, the parsed event last.

use std::cell::OnceCell;

use jittrace_model::Event;
use serde_json::Value;

use super::{Filter, Test};
use crate::{store::Mark, summary};

impl Filter {
    /// Whether an event passes.
    pub fn holds(&self, mark: &Mark, line: &str) -> bool {
        let looked = Looked {
            mark,
            line,
            value: OnceCell::new(),
            words: OnceCell::new(),
        };
        looked.passes(self)
    }

    /// Whether everything passes.
    pub fn is_empty(&self) -> bool {
        matches!(self, Filter::All(filters) if filters.is_empty())
    }

    /// The words to highlight in what is found.
    pub fn highlights(&self) -> Vec<String> {
        match self {
            Filter::All(filters) | Filter::Any(filters) => {
                filters.iter().flat_map(Filter::highlights).collect()
            }
            Filter::Words(Test::Contains(text)) | Filter::Field(_, Test::Contains(text)) => {
                vec![text.clone()]
            }
            _ => Vec::new(),
        }
    }
}

/// One event, looked at only as far as a filter asks.
struct Looked<'a> {
    mark: &'a Mark,
    line: &'a str,
    value: OnceCell<Value>,
    words: OnceCell<String>,
}

impl Looked<'_> {
    fn passes(&self, filter: &Filter) -> bool {
        match filter {
            Filter::All(filters) => filters.iter().all(|f| self.passes(f)),
            Filter::Any(filters) => filters.iter().any(|f| self.passes(f)),
            Filter::Not(filter) => !self.passes(filter),
            Filter::Words(test) => self.may_contain(test) && test.passes(self.words()),
            Filter::Field(name, test) => self.field(name, test),
        }
    }

    /// Whether the raw line can contain what is wanted; saves parsing most of the others.
    fn may_contain(&self, test: &Test) -> bool {
        match test {
            // What JSON writes otherwise than it is, or what the summary adds of its own, cannot be told from the line.
            Test::Contains(text) if text.len() >= 3 && text.bytes().all(is_literal) => {
                contains_ignoring_case(self.line, text) || is_added(text)
            }
            _ => true,
        }
    }

    fn words(&self) -> &str {
        self.words.get_or_init(|| {
            Event::from_line(self.line)
                .map(|event| summary::haystack(&event).to_lowercase())
                .unwrap_or_else(|_| self.line.to_lowercase())
        })
    }

    fn field(&self, name: &str, test: &Test) -> bool {
        let mark = self.mark;
        match name {
            "id" => test.passes_number(mark.id as f64, &mark.id.to_string()),
            "pid" => test.passes_number(f64::from(mark.pid), &mark.pid.to_string()),
            "t" => test.passes_number(mark.t as f64, &crate::text::moment(mark.t)),
            "kind" if !mark.kind_name().is_empty() => test.passes(mark.kind_name()),
            "source" => test.passes(mark.source_name()),
            "is" => {
                let words = [("failed", mark.failed), ("probe", mark.probe)];
                words
                    .iter()
                    .any(|(word, holds)| *holds && test.passes(word))
            }
            "component" | "distribution" => {
                self.line.contains("distribution") && self.any_value("distribution", test)
            }
            _ => {
                let (first, rest) = name.split_once('.').unwrap_or((name, ""));
                if !self.line.contains(first) {
                    return false;
                }
                match rest {
                    "" => self.any_value(first, test),
                    rest => self
                        .value()
                        .get(first)
                        .and_then(|inner| inner.get(rest))
                        .is_some_and(|value| test.passes_value(value)),
                }
            }
        }
    }

    fn value(&self) -> &Value {
        self.value
            .get_or_init(|| serde_json::from_str(self.line).unwrap_or_default())
    }

    /// Whether a field of this name, at any depth outside the environment, passes.
    fn any_value(&self, name: &str, test: &Test) -> bool {
        fn within(value: &Value, name: &str, test: &Test) -> bool {
            match value {
                Value::Object(fields) => fields.iter().any(|(key, value)| {
                    (key == name && test.passes_value(value))
                        || (key != "env" && within(value, name, test))
                }),
                Value::Array(values) => values.iter().any(|v| within(v, name, test)),
                _ => false,
            }
        }
        within(self.value(), name, test)
    }
}

impl Test {
    /// Whether a text passes; it is in lower case already where that matters.
    fn passes(&self, text: &str) -> bool {
        match self {
            Test::Contains(wanted) => {
                text.contains(wanted.as_str()) || text.to_lowercase().contains(wanted.as_str())
            }
            Test::Is(wanted) => text.eq_ignore_ascii_case(wanted) || text.to_lowercase() == *wanted,
            Test::Matches(regex) => regex.is_match(text),
            Test::Compares(comparison, wanted) => text
                .parse::<f64>()
                .ok()
                .and_then(|number| number.partial_cmp(wanted))
                .is_some_and(|ordering| comparison.holds(ordering)),
        }
    }

    fn passes_number(&self, number: f64, text: &str) -> bool {
        match self {
            // `pid:12` means 12, not 120 or 312.
            Test::Contains(wanted) | Test::Is(wanted) => text == wanted,
            Test::Compares(comparison, wanted) => number
                .partial_cmp(wanted)
                .is_some_and(|ordering| comparison.holds(ordering)),
            Test::Matches(regex) => regex.is_match(text),
        }
    }

    fn passes_value(&self, value: &Value) -> bool {
        match value {
            Value::String(text) => self.passes(text),
            Value::Number(number) => {
                self.passes_number(number.as_f64().unwrap_or(f64::NAN), &number.to_string())
            }
            Value::Bool(true) => self.passes("true"),
            Value::Bool(false) => self.passes("false"),
            Value::Array(values) => {
                values.iter().any(|v| self.passes_value(v))
                    // A command line is searched as one text too.
                    || values.iter().all(Value::is_string) && {
                        let words: Vec<&str> = values.iter().filter_map(Value::as_str).collect();
                        self.passes(&words.join(" "))
                    }
            }
            Value::Object(fields) => fields.values().any(|v| self.passes_value(v)),
            Value::Null => false,
        }
    }
}

/// Bytes that JSON writes as they are and that lower case does not lengthen.
fn is_literal(byte: u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\')
}

/// Whether a text could come from the words that the summary puts around an event's own.
fn is_added(text: &str) -> bool {
    const ADDED: &str = "starts runs ended with code by signal dlopen unmapped failed with ptx target for open create \
        stat rename remove mkdir list waits for lock locked unlocked file frames built with toolkit gpu compute \
        capability driver cuda output of directory artefact lost eperm enoent enoexec eagain eacces eexist enotdir \
        eisdir etxtbsy enospc erofs eloop errno in to after";
    ADDED.contains(text)
}

/// Whether a line contains a text that is in lower case and ASCII, in any case.
fn contains_ignoring_case(line: &str, wanted: &str) -> bool {
    let (line, wanted) = (line.as_bytes(), wanted.as_bytes());
    let Some((&first, rest)) = wanted.split_first() else {
        return true;
    };
    let (lower, upper) = (first, first.to_ascii_uppercase());
    let mut from = 0;
    while let Some(at) = line
        .get(from..)
        .and_then(|l| l.iter().position(|&b| b == lower || b == upper))
    {
        let begin = from + at + 1;
        if line
            .get(begin..begin + rest.len())
            .is_some_and(|here| here.eq_ignore_ascii_case(rest))
        {
            return true;
        }
        from = begin;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::parse;

    const EXEC: &str = r#"{"id":7,"t":1500000000,"pid":42,"tid":42,"source":"preload","kind":"exec","call":"posix_spawn","path":"/opt/cuda-12.4/bin/nvcc","argv":["nvcc","-arch","sm_90"],"python":[{"file":"/v/site-packages/flashinfer/jit/cpp_ext.py","line":9,"function":"get","distribution":"flashinfer-python"}]}"#;
    const START: &str = r#"{"id":8,"t":1600000000,"pid":43,"tid":43,"source":"preload","kind":"process-start","ppid":42,"exe":"/bin/true","argv":["true"],"cwd":"/","env":{"CUDA_HOME":"/opt/cuda-12.4"}}"#;
    const FAILED: &str = r#"{"id":9,"t":1700000000,"pid":42,"tid":42,"source":"ebpf","kind":"exec-failed","path":"/a/b","argv":[],"errno":2,"call":"execve"}"#;

    #[test]
    fn filters_hold_for_what_they_say() {
        for (text, holds) in [
            ("", "exec start failed"),
            ("nvcc", "exec"),
            ("NVCC sm_90", "exec"),
            ("cuda-12.4", "exec"),
            ("env.CUDA_HOME:12.4", "start"),
            ("kind:exec", "exec failed"),
            ("kind=exec", "exec"),
            ("pid:42", "exec failed"),
            ("pid:4", ""),
            ("-pid:42", "start"),
            ("errno:2", "failed"),
            ("enoent", "failed"),
            ("is:probe", "failed"),
            ("is:failed or source:ebpf", "failed"),
            ("t>=1.6s", "start failed"),
            ("component:flashinfer", "exec"),
            ("argv:\"-arch sm_90\"", "exec"),
            ("path:/12\\.[0-9]/", "exec"),
            ("/bin.(true|nvcc)/", "exec start"),
            ("cpp_ext", "exec"),
        ] {
            let filter = parse(text).unwrap();
            let mut held = Vec::new();
            for (name, line) in [("exec", EXEC), ("start", START), ("failed", FAILED)] {
                let mark = Mark::of(&Event::from_line(line).unwrap());
                if filter.holds(&mark, line) {
                    held.push(name);
                }
            }
            assert_eq!(held.join(" "), holds, "{text:?}");
        }
    }

    #[test]
    fn the_quick_look_never_hides_what_the_long_one_finds() {
        for line in [EXEC, START, FAILED] {
            let words = summary::haystack(&Event::from_line(line).unwrap()).to_lowercase();
            for word in words.split_whitespace().filter(|w| w.len() >= 3) {
                let filter = Filter::Words(Test::Contains(word.to_owned()));
                let mark = Mark::of(&Event::from_line(line).unwrap());
                assert!(filter.holds(&mark, line), "{word} in {line}");
            }
        }
    }
}

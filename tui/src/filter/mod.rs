//! The language that narrows the list of events.
//!
//! Words stand side by side and all must hold: `kind:exec nvcc -errno:2`.
//!
//! | written | holds when |
//! |---|---|
//! | `nvcc`, `"two words"` | the event's words contain the text, in any case (the inherited environment is left out) |
//! | `/lib(cudart\|nvrtc)/` | the regular expression matches its words |
//! | `path:cuda-12` | the field contains the text |
//! | `path:/12\.[0-9]/` | the regular expression matches the field |
//! | `pid=123`, `rule!=path` | the field is, or is not, exactly this |
//! | `t>1.5s`, `duration_ns>10ms` | the field is a larger (`<`, `<=`, `>=`: smaller, …) number or time |
//! | `env.CUDA_HOME:12.4` | a variable of a process's captured environment contains the text |
//! | `is:failed`, `is:probe` | it tells of something that did not work; it is a step of a search |
//! | `-word`, `!word`, `not word` | the word does not hold |
//! | `a or b`, `a \| b`, `( … )` | one of them holds; grouping |

mod complete;
mod evaluate;
mod parse;

pub use complete::{Completion, complete};
pub use parse::parse;

use std::{cmp::Ordering, fmt};

use regex::Regex;

/// A filter that was understood.
#[derive(Debug, Clone, PartialEq)]
pub enum Filter {
    /// All of them hold; none means always.
    All(Vec<Filter>),
    /// One of them holds.
    Any(Vec<Filter>),
    /// It does not hold.
    Not(Box<Filter>),
    /// The event's words pass the test.
    Words(Test),
    /// A field passes the test.
    Field(String, Test),
}

/// A test of a text.
#[derive(Debug, Clone)]
pub enum Test {
    /// Contains this text, in any case; kept in lower case.
    Contains(String),
    /// Is this text, in any case; kept in lower case.
    Is(String),
    /// Matches.
    Matches(Regex),
    /// Compares so with this number; times are nanoseconds.
    Compares(Comparison, f64),
}

/// How a number compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    More,
    /// `>=`
    AtLeast,
}

impl Comparison {
    /// Whether an ordering fits.
    pub fn holds(self, ordering: Ordering) -> bool {
        match self {
            Comparison::Less => ordering.is_lt(),
            Comparison::AtMost => ordering.is_le(),
            Comparison::More => ordering.is_gt(),
            Comparison::AtLeast => ordering.is_ge(),
        }
    }

    fn sign(self) -> &'static str {
        match self {
            Comparison::Less => "<",
            Comparison::AtMost => "<=",
            Comparison::More => ">",
            Comparison::AtLeast => ">=",
        }
    }
}

impl PartialEq for Test {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Test::Contains(a), Test::Contains(b)) | (Test::Is(a), Test::Is(b)) => a == b,
            (Test::Matches(a), Test::Matches(b)) => a.as_str() == b.as_str(),
            (Test::Compares(a, x), Test::Compares(b, y)) => a == b && x.to_bits() == y.to_bits(),
            _ => false,
        }
    }
}

/// What is wrong with a filter, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct FilterError {
    /// Position of the fault: characters before it.
    pub column: usize,
    /// The sentence.
    pub message: String,
}

/// Writes a filter so that reading it gives the same filter.
impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>, filters: &[Filter], between: &str| {
            for (at, filter) in filters.iter().enumerate() {
                if at > 0 {
                    f.write_str(between)?;
                }
                match filter {
                    Filter::All(_) | Filter::Any(_) => write!(f, "({filter})")?,
                    filter => write!(f, "{filter}")?,
                }
            }
            Ok(())
        };
        match self {
            Filter::All(filters) => list(f, filters, " "),
            Filter::Any(filters) => list(f, filters, " | "),
            Filter::Not(filter) => match filter.as_ref() {
                Filter::All(_) | Filter::Any(_) => write!(f, "!({filter})"),
                filter => write!(f, "!{filter}"),
            },
            Filter::Words(test) => write_value(f, test),
            Filter::Field(name, Test::Is(value)) => write!(f, "{name}={}", Quoted(value)),
            Filter::Field(name, Test::Compares(comparison, number)) => {
                write!(f, "{name}{}{number}", comparison.sign())
            }
            Filter::Field(name, test) => {
                write!(f, "{name}:")?;
                write_value(f, test)
            }
        }
    }
}

fn write_value(f: &mut fmt::Formatter<'_>, test: &Test) -> fmt::Result {
    match test {
        Test::Contains(text) | Test::Is(text) => write!(f, "{}", Quoted(text)),
        Test::Matches(regex) => write!(f, "/{}/", parse::written(regex)),
        Test::Compares(comparison, number) => write!(f, "{}{number}", comparison.sign()),
    }
}

/// A text in quotes, since any character may be in it.
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"")?;
        for c in self.0.chars() {
            if matches!(c, '"' | '\\') {
                f.write_str("\\")?;
            }
            write!(f, "{c}")?;
        }
        f.write_str("\"")
    }
}

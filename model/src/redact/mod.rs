//! Masks credentials before the first byte of a trace is written.
//!
//! A trace is made to be attached to a public bug report, so nothing that opens a door may enter it. Masking happens
//! once, at capture: what the log never held no report, export or bundle can leak. The same credential always becomes
//! the same placeholder (`<secret:3fa9c1>`), in one trace and between traces of one machine, so that a diff still
//! tells a changed value from an unchanged one; the placeholder is a keyed hash cut to 24 bits and cannot be turned back.
//!
//! A credential is recognised in three ways: by its *shape* (`shapes`: the prefixes that issuers print into their
//! tokens for this very purpose), by the *name* it is given under (`names`: `--api-key X`, `"password": "X"`,
//! `?token=X`, `HF_TOKEN=X`), and by *memory*: what was masked once by its name, or was learnt from the environment
//! ([`Redactor::learn_environment`]), is masked wherever it turns up later, in a file name for example.
//! Everything else stays readable: hashes in cache paths, versions, architecture lists, UUIDs.

mod fields;
mod names;
mod paths;
mod placeholder;
mod scan;
mod shapes;

pub use names::names_a_secret;
pub use paths::Places;

use aho_corasick::AhoCorasick;

use paths::PathMask;
use placeholder::Placeholder;

/// What a [`Redactor`] masks.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Key of the placeholders' hash. Two traces can be compared secret by secret when they were made with the same
    /// key; it must not be written anywhere near the trace. A digest of machine id and user id serves well.
    pub key: Vec<u8>,
    /// Places to hide as well (`--redact paths`).
    pub places: Option<Places>,
}

/// Masks credentials in events, headers and loose text; consistent over its lifetime and, with an equal key, beyond.
#[derive(Debug)]
pub struct Redactor {
    placeholder: Placeholder,
    paths: Option<PathMask>,
    /// Credentials seen or learnt so far, longest first so that one inside another does not win.
    known: Vec<String>,
    /// Finds `known`; rebuilt when it grew.
    known_search: Option<AhoCorasick>,
    /// Finds what makes a closer look worth while.
    triggers: Option<AhoCorasick>,
    masked: u64,
}

impl Redactor {
    /// A redactor that knows no credential yet.
    pub fn new(options: Options) -> Self {
        Redactor {
            placeholder: Placeholder::new(&options.key),
            paths: options.places.map(PathMask::new),
            known: Vec::new(),
            known_search: None,
            triggers: scan::triggers(),
            masked: 0,
        }
    }

    /// How many values were masked so far.
    pub fn masked(&self) -> u64 {
        self.masked
    }

    /// Remembers a credential, so that it is masked wherever it turns up. Too short a value is not remembered: it would
    /// mask ordinary words.
    pub fn learn(&mut self, secret: &str) {
        if !names::worth_remembering(secret) || self.known.iter().any(|known| known == secret) {
            return;
        }
        self.known.push(secret.to_owned());
        self.known
            .sort_by_key(|known| std::cmp::Reverse(known.len()));
        self.known_search = AhoCorasick::builder()
            .match_kind(aho_corasick::MatchKind::LeftmostLongest)
            .build(&self.known)
            .ok();
    }

    /// Remembers the values of those variables whose names speak of credentials. The values are kept in memory only.
    pub fn learn_environment<N, V>(&mut self, variables: impl IntoIterator<Item = (N, V)>)
    where
        N: AsRef<str>,
        V: AsRef<str>,
    {
        for (name, value) in variables {
            if names_a_secret(name.as_ref()) && !names::harmless(value.as_ref()) {
                self.learn(value.as_ref());
            }
        }
    }

    /// The placeholder of a credential.
    fn mask(&mut self, secret: &str) -> String {
        self.masked += 1;
        self.placeholder.of(secret)
    }
}

//! Finding credentials in a piece of text.
//!
//! Most texts hold none, so one pass for fixed beginnings comes first; only a text that has one is looked at closely.

use std::borrow::Cow;
use std::sync::OnceLock;

use aho_corasick::AhoCorasick;
use indexmap::IndexMap;
use regex::{Captures, Regex};

use super::{Redactor, names, placeholder, shapes};
use names::Weight;

/// Words that announce a name which may speak of a credential, or a URL that may carry one.
const NAME_TRIGGERS: &[&str] = &[
    "key",
    "token",
    "secret",
    "passw",
    "passphrase",
    "pwd",
    "pass",
    "credential",
    "auth",
    "bearer",
    "://",
    "signature",
    "sig=",
    "cookie",
    "sas=",
    "jwt",
    "_pat",
];

pub(super) fn triggers() -> Option<AhoCorasick> {
    AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .build(NAME_TRIGGERS.iter().chain(shapes::BEGINNINGS))
        .ok()
}

/// The expressions of the close look.
struct Expressions {
    /// `scheme://user:password@host`.
    url: Regex,
    /// `Bearer X`, `Basic X`.
    scheme: Regex,
    /// `name=value`, `name: value`, `"name": "value"`.
    pair: Regex,
    /// `name%3Dvalue`: a query that became part of a file name.
    encoded: Regex,
    /// `--name value`, `"--name", "value"`.
    option: Regex,
    /// `password value`, as a netrc file has it.
    netrc: Regex,
}

fn expressions() -> Option<&'static Expressions> {
    static EXPRESSIONS: OnceLock<Option<Expressions>> = OnceLock::new();
    EXPRESSIONS
        .get_or_init(|| {
            Some(Expressions {
                url: Regex::new(r"([A-Za-z][A-Za-z0-9+.-]*)://([^\s/?#@:'\x22]*)(?::([^\s/?#@'\x22]*))?@").ok()?,
                scheme: Regex::new(r"(?i)\b(bearer|basic)((?:\s|%20)+)([A-Za-z0-9._~+/=-]{8,})").ok()?,
                pair: Regex::new(concat!(
                    r"(-{0,2}[A-Za-z_][A-Za-z0-9_.\-]*)",
                    // A closing quote of the name, the sign, an opening quote of the value; any quote may be escaped.
                    r#"((?:\\*["'])?\s*(?:=>|[=:])\s*)"#,
                    r#"(?:(\\*")((?:[^"\\]|\\[^"])*)|(\\*')((?:[^'\\]|\\[^'])*)|([^\s"'&;,<>(){}\[\]|]+))"#,
                ))
                .ok()?,
                encoded: Regex::new(r"([A-Za-z][A-Za-z0-9_.\-]*)(%3[DdAa])((?:%2[BbFf]|[^/%&\s\x22'])+)").ok()?,
                option: Regex::new(r#"(--?[A-Za-z][A-Za-z0-9_.\-]*)(["']?(?:\s*,)?\s+["']?|["'],["'])([^\s"',;\]\-][^\s"',;\]]*)"#).ok()?,
                netrc: Regex::new(r"(?i)\b(password|passwd|token)(\s+)([^\s:=]{8,})").ok()?,
            })
        })
        .as_ref()
}

impl Redactor {
    /// Masks what is a credential in a text, and places when asked to.
    pub fn text(&mut self, text: &mut String) {
        if let Cow::Owned(masked) = self.masked_text(text) {
            *text = masked;
        }
    }

    /// The value of a name: masked whole when the name speaks of a credential, else as any text.
    pub fn value(&mut self, name: &str, value: &mut String) {
        match self.credential(name, value) {
            Some(masked) => *value = masked,
            None => self.text(value),
        }
    }

    /// Arguments: what follows an option named like a credential is masked whole.
    pub fn argv(&mut self, argv: &mut [String]) {
        let web_client = argv.first().is_some_and(|program| {
            let name = program.rsplit('/').next().unwrap_or(program);
            ["curl", "wget", "http", "https"].contains(&name)
        });
        let mut option = String::new();
        for argument in argv.iter_mut() {
            let login =
                web_client && ["-u", "--user", "--proxy-user", "-U"].contains(&option.as_str());
            let is_option = argument.starts_with('-') && argument.len() > 1;
            if login && argument.contains(':') {
                *argument = self.login(argument);
            } else if option.is_empty() || is_option {
                self.text(argument);
            } else {
                self.value(&option, argument);
            }
            option.clear();
            if is_option && !argument.contains(['=', ' ']) {
                option.push_str(argument);
            }
        }
    }

    /// Environment variables.
    pub fn environment(&mut self, variables: &mut IndexMap<String, String>) {
        for (name, value) in variables {
            self.value(name, value);
        }
    }

    fn masked_text<'a>(&mut self, text: &'a str) -> Cow<'a, str> {
        let mut masked = Cow::Borrowed(text);
        if let Some(search) = &self.known_search
            && search.is_match(text)
        {
            masked = Cow::Owned(self.without_known(text));
        }
        if self
            .triggers
            .as_ref()
            .is_none_or(|triggers| triggers.is_match(masked.as_ref()))
        {
            masked = Cow::Owned(self.looked_at_closely(&masked));
        }
        if let Some(paths) = &self.paths
            && let Cow::Owned(hidden) = paths.hide(&masked)
        {
            masked = Cow::Owned(hidden);
        }
        masked
    }

    fn without_known(&mut self, text: &str) -> String {
        let Some(search) = self.known_search.clone() else {
            return text.to_owned();
        };
        let mut out = String::with_capacity(text.len());
        search.replace_all_with(text, &mut out, |_, found, out| {
            out.push_str(&self.mask(found));
            true
        });
        out
    }

    fn looked_at_closely(&mut self, text: &str) -> String {
        let (Some(expressions), Some(shape)) = (expressions(), shapes::expression()) else {
            return text.to_owned();
        };
        let text = replace(shape, text, |found| {
            let (whole, token) = (found.get(0)?, found.get(1)?);
            let lead = text_before(whole, token);
            Some(format!("{lead}{}", self.mask(token.as_str())))
        });
        let text = replace(&expressions.url, &text, |found| {
            let user = found.get(2).map_or("", |user| user.as_str());
            let password = found.get(3).map_or("", |password| password.as_str());
            let scheme = &found[1];
            if password.is_empty() {
                // `git@host` names an account; a long user without a password is a token in its place.
                let token = !scheme.contains("ssh") && user.len() >= 8 && !names::harmless(user);
                return token.then(|| format!("{scheme}://{}@", self.remembered(user)));
            }
            (!names::harmless(password)).then(|| {
                let user = if names::looks_generated(user) {
                    self.remembered(user)
                } else {
                    user.to_owned()
                };
                format!("{scheme}://{user}:{}@", self.remembered(password))
            })
        });
        let text = replace(&expressions.scheme, &text, |found| {
            let value = &found[3];
            (names::looks_generated(value) || value.len() >= 16)
                .then(|| format!("{}{}{}", &found[1], &found[2], self.remembered(value)))
        });
        let text = self.without_pairs(&expressions.pair, &text);
        let text = replace(&expressions.encoded, &text, |found| {
            let masked = self.credential(&found[1], &found[3])?;
            Some(format!("{}{}{masked}", &found[1], &found[2]))
        });
        let text = replace(&expressions.option, &text, |found| {
            let masked = self.credential(&found[1], &found[3])?;
            Some(format!("{}{}{masked}", &found[1], &found[2]))
        });
        replace(&expressions.netrc, &text, |found| {
            names::looks_generated(&found[3])
                .then(|| format!("{}{}{}", &found[1], &found[2], self.remembered(&found[3])))
        })
    }

    /// Masks values in `name=value` pairs. The search goes on behind the sign when a pair is ordinary, because its
    /// value may be a pair itself (`--env=HF_TOKEN=…`, `url=https://host/?token=…`).
    fn without_pairs(&mut self, pair: &Regex, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut at = 0;
        while let Some(found) = pair.captures_at(text, at) {
            let (Some(name), Some(sign)) = (found.get(1), found.get(2)) else {
                break;
            };
            let quote = found
                .get(3)
                .or(found.get(5))
                .map_or("", |quote| quote.as_str());
            let Some(value) = found.get(4).or(found.get(6)).or(found.get(7)) else {
                break;
            };
            out.push_str(text.get(at..sign.end()).unwrap_or_default());
            out.push_str(quote);
            at = value.start();
            let before = text.get(..name.start()).unwrap_or_default();
            let mut value = value.as_str();
            if before.ends_with('/') && quote.is_empty() {
                // A file name that is a pair ends where the next one begins.
                value = value.split('/').next().unwrap_or(value);
            }
            if let Some(masked) = self.pair_value(name.as_str(), before, value) {
                out.push_str(&masked);
                at += value.len();
            }
        }
        out.push_str(text.get(at..).unwrap_or_default());
        out
    }

    fn pair_value(&mut self, name: &str, before: &str, value: &str) -> Option<String> {
        // A placeholder looks like a pair itself.
        if name == "secret" && before.ends_with('<') {
            return None;
        }
        // A bare `key` opens a cache more often than a door: it counts in a query, a header or as a definition.
        if name.eq_ignore_ascii_case("key") && !before.ends_with(['?', '&']) {
            return None;
        }
        // `Authorization: Basic X` was masked by its scheme and keeps the word.
        if value.contains(placeholder::OPENING)
            || ["bearer", "basic"]
                .iter()
                .any(|word| value.eq_ignore_ascii_case(word))
        {
            return None;
        }
        self.credential(name, value)
    }

    /// The placeholder of `value` when it is a credential by its name.
    fn credential(&mut self, name: &str, value: &str) -> Option<String> {
        let secret = match names::weigh(name) {
            Weight::Ordinary => false,
            Weight::Perhaps => names::looks_generated(value),
            Weight::Certain => true,
        };
        (secret && !names::harmless(value) && !value.contains(placeholder::OPENING))
            .then(|| self.remembered(value))
    }

    /// `user:password` of a web client.
    fn login(&mut self, argument: &str) -> String {
        match argument.split_once(':') {
            Some((user, password)) if !names::harmless(password) => {
                format!("{user}:{}", self.remembered(password))
            }
            _ => argument.to_owned(),
        }
    }

    fn remembered(&mut self, secret: &str) -> String {
        self.learn(secret);
        self.mask(secret)
    }
}

fn text_before<'t>(whole: regex::Match<'t>, part: regex::Match<'t>) -> &'t str {
    whole
        .as_str()
        .get(..part.start().saturating_sub(whole.start()))
        .unwrap_or_default()
}

/// Replaces matches for which `by` has an answer.
fn replace(
    expression: &Regex,
    text: &str,
    mut by: impl FnMut(&Captures<'_>) -> Option<String>,
) -> String {
    expression
        .replace_all(text, |found: &Captures<'_>| {
            by(found).unwrap_or_else(|| found[0].to_owned())
        })
        .into_owned()
}

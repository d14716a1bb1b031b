//! What a person may have otherwise than it comes: keys, where the evidence stands, the look. A file in TOML says so.
//!
//! This reads the text of such a file and writes the one that changes nothing; where the file is, is not known here.

use thiserror::Error;
use toml::{
    Spanned,
    de::{DeString, DeTable, DeValue},
};

use crate::{
    clock::Times,
    keys::{self, Action, Change, Keymap, Scope},
    layout::{Layout, OutputPlace},
    theme::Theme,
};

/// How the view is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// What every key does.
    pub keys: Keymap,
    /// Where the evidence stands.
    pub layout: Layout,
    /// Percent of the screen that the evidence takes beside or below the list.
    pub share: u16,
    /// Where the launched program's terminal stands.
    pub output: OutputPlace,
    /// How moments are told.
    pub times: Times,
    /// Words that change the look, as in `JITTRACE_THEME`.
    pub theme: String,
    /// Why a file of settings was not heeded, in a sentence to be shown.
    pub problem: Option<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            keys: Keymap::default(),
            layout: Layout::default(),
            share: 45,
            output: OutputPlace::default(),
            times: Times::default(),
            theme: String::new(),
            problem: None,
        }
    }
}

/// Percent of the screen that the evidence may take.
pub const SHARES: std::ops::RangeInclusive<u16> = 20..=80;

/// Why a file of settings cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line}: {reason}")]
pub struct SettingsError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong and what helps.
    pub reason: String,
}

/// The command that writes a file with every setting.
const ALL_SETTINGS: &str = "`jittrace view --defaults` lists them all";

impl Settings {
    /// Reads a file of settings. What it does not name stays as it comes.
    ///
    /// # Errors
    /// The first thing in it that cannot be heeded, with its line.
    pub fn parse(text: &str) -> Result<Settings, SettingsError> {
        let reader = Reader { text };
        let table = DeTable::parse(text).map_err(|error| {
            let reason = error.message().replace('\n', ", ");
            reader.wrong(
                error.span().map_or(0, |span| span.start),
                format!("this is not TOML: {reason}"),
            )
        })?;
        let mut settings = Settings::default();
        for (name, value) in table.get_ref() {
            match name.get_ref().as_ref() {
                "layout" => {
                    let word = reader.word(value)?;
                    settings.layout = Layout::named(word).ok_or_else(|| {
                        reader.wrong(
                            value.span().start,
                            format!(
                                "layout is {word:?}, and can be {}",
                                list(Layout::ALL.map(Layout::name))
                            ),
                        )
                    })?;
                }
                "output" => {
                    let word = reader.word(value)?;
                    settings.output = OutputPlace::named(word).ok_or_else(|| {
                        reader.wrong(
                            value.span().start,
                            format!(
                                "output is {word:?}, and can be {}",
                                list(OutputPlace::ALL.map(OutputPlace::name))
                            ),
                        )
                    })?;
                }
                "times" => {
                    let word = reader.word(value)?;
                    settings.times = Times::named(word).ok_or_else(|| {
                        reader.wrong(
                            value.span().start,
                            format!(
                                "times is {word:?}, and can be {}",
                                list(Times::ALL.map(Times::name))
                            ),
                        )
                    })?;
                }
                "share" => settings.share = reader.share(value)?,
                "theme" => {
                    let words = reader.word(value)?;
                    if let Err(word) = Theme::default().dressed(words) {
                        return Err(reader.wrong(
                            value.span().start,
                            format!("theme says {word:?}, and can say {}", list(Theme::WORDS)),
                        ));
                    }
                    settings.theme = words.to_owned();
                }
                "keys" => settings.keys = reader.keys(value)?,
                other => {
                    return Err(reader.wrong(
                        name.span().start,
                        format!("no setting is called {other}; there are layout, share, output, times, theme and tables like [keys.everywhere]"),
                    ));
                }
            }
        }
        Ok(settings)
    }

    /// A file with every setting as it comes, commented out: it changes nothing until a line of it is edited.
    pub fn file() -> String {
        let settings = Settings::default();
        let mut out = format!(
            "# Settings of jittrace's view. Each line that begins with # is as it comes: take the # away and change it.\n\
             # Read from $XDG_CONFIG_HOME/jittrace/view.toml, else ~/.config/jittrace/view.toml.\n\
             \n\
             # Where the evidence stands: {}.\n\
             # layout = \"{}\"\n\
             \n\
             # Percent of the screen that it takes beside or below the list, {} to {}.\n\
             # share = {}\n\
             \n\
             # Where the launched program's terminal stands: {}.\n\
             # output = \"{}\"\n\
             \n\
             # How moments are told: {}.\n\
             # times = \"{}\"\n\
             \n\
             # Words that change the look: {}. JITTRACE_THEME overrides them.\n\
             # theme = \"\"\n\
             \n\
             # Keys: one character, or Enter, Space, PageUp, F5 …, with Ctrl- or Alt- before it; several in brackets; [] for\n\
             # none. A table for each place: keys of the place in front are asked first, then moving, then everywhere.\n\
             # Every action can have keys in every table.\n",
            list(Layout::ALL.map(Layout::name)),
            settings.layout.name(),
            SHARES.start(),
            SHARES.end(),
            settings.share,
            list(OutputPlace::ALL.map(OutputPlace::name)),
            settings.output.name(),
            list(Times::ALL.map(Times::name)),
            settings.times.name(),
            list(Theme::WORDS),
        );
        for scope in Scope::all() {
            out.push_str(&format!("\n[keys.{}]\n", scope.name()));
            for bound in settings.keys.all().filter(|b| b.scope == scope) {
                let keys: Vec<String> = bound.keys.iter().map(|key| quoted(key)).collect();
                let keys = match keys.as_slice() {
                    [one] => one.clone(),
                    several => format!("[{}]", several.join(", ")),
                };
                let line = format!("# {} = {keys}", bound.action.name());
                out.push_str(&format!("{line:<40} # {}\n", bound.about));
            }
        }
        out
    }
}

/// A key as a string of TOML.
fn quoted(key: &str) -> String {
    if key.contains(['\\', '"']) {
        format!("'{key}'")
    } else {
        format!("\"{key}\"")
    }
}

/// `a, b or c`.
fn list<const N: usize>(words: [&str; N]) -> String {
    match words.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => words.concat(),
    }
}

/// A file that is being read.
struct Reader<'a> {
    text: &'a str,
}

type Value<'a> = Spanned<DeValue<'a>>;

impl Reader<'_> {
    /// Something wrong at a byte of the text.
    fn wrong(&self, at: usize, reason: impl Into<String>) -> SettingsError {
        let before = self.text.bytes().take(at);
        SettingsError {
            line: 1 + before.filter(|byte| *byte == b'\n').count(),
            reason: reason.into(),
        }
    }

    fn word<'v>(&self, value: &'v Value<'_>) -> Result<&'v str, SettingsError> {
        value
            .get_ref()
            .as_str()
            .ok_or_else(|| self.wrong(value.span().start, "a text in quotation marks belongs here"))
    }

    fn share(&self, value: &Value<'_>) -> Result<u16, SettingsError> {
        value
            .get_ref()
            .as_integer()
            .and_then(|number| u16::from_str_radix(number.as_str(), number.radix()).ok())
            .filter(|share| SHARES.contains(share))
            .ok_or_else(|| {
                self.wrong(
                    value.span().start,
                    format!(
                        "share is a number of percent from {} to {}",
                        SHARES.start(),
                        SHARES.end()
                    ),
                )
            })
    }

    fn keys(&self, value: &Value<'_>) -> Result<Keymap, SettingsError> {
        let tables = self.table(value, "keys are given in tables like [keys.everywhere]")?;
        let mut changes: Vec<(usize, Change)> = Vec::new();
        for (name, value) in tables {
            let word = name.get_ref().as_ref();
            let scope = Scope::named(word).ok_or_else(|| {
                self.wrong(
                    name.span().start,
                    format!("keys have no place called {word}; {ALL_SETTINGS}"),
                )
            })?;
            let actions = self.table(value, "the keys of a place are a table of actions")?;
            for (name, value) in actions {
                let word = name.get_ref().as_ref();
                let action = Action::named(word).ok_or_else(|| {
                    self.wrong(
                        name.span().start,
                        format!("no action is called {word}; {ALL_SETTINGS}"),
                    )
                })?;
                let keys = self.chords(value)?;
                changes.push((
                    name.span().start,
                    Change {
                        scope,
                        action,
                        keys,
                    },
                ));
            }
        }
        // A table is read in the order of its names; what is said of a line is said of the later one.
        changes.sort_by_key(|(at, _)| *at);
        let (places, changes): (Vec<usize>, Vec<Change>) = changes.into_iter().unzip();
        Keymap::changed(&changes).map_err(|refused| {
            self.wrong(
                places.get(refused.at).copied().unwrap_or_default(),
                refused.reason,
            )
        })
    }

    fn table<'v, 'i>(
        &self,
        value: &'v Value<'i>,
        otherwise: &str,
    ) -> Result<impl Iterator<Item = (&'v Spanned<DeString<'i>>, &'v Value<'i>)>, SettingsError>
    {
        value
            .get_ref()
            .as_table()
            .map(|table| table.iter())
            .ok_or_else(|| self.wrong(value.span().start, otherwise))
    }

    /// One key, or several in brackets.
    fn chords(&self, value: &Value<'_>) -> Result<Vec<String>, SettingsError> {
        let several = value.get_ref().as_array();
        let values: Vec<&Value<'_>> = match several {
            Some(several) => several.iter().collect(),
            None => vec![value],
        };
        let mut keys = Vec::new();
        for value in values {
            let at = value.span().start;
            let written = value
                .get_ref()
                .as_str()
                .ok_or_else(|| self.wrong(at, "a key is a text in quotation marks, like \"q\""))?;
            let key = keys::canonical(written).map_err(|reason| self.wrong(at, reason))?;
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        Ok(keys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The file with the mark of a comment taken from every line that sets something.
    fn all_said() -> String {
        let file = Settings::file();
        let lines = file.lines().map(|line| {
            let bare = line.strip_prefix("# ").filter(|bare| {
                bare.split_once(" = ")
                    .is_some_and(|(name, _)| !name.contains(' '))
            });
            bare.unwrap_or(line)
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn the_file_that_is_written_says_what_is_so_anyway() {
        assert_eq!(Settings::parse(&Settings::file()), Ok(Settings::default()));
        let said = all_said();
        assert_ne!(said, Settings::file());
        assert_eq!(Settings::parse(&said), Ok(Settings::default()), "{said}");
    }

    #[test]
    fn the_file_in_the_book_can_be_read() {
        let book = include_str!("../../docs/live-view.md");
        let file = book
            .split("```toml\n")
            .nth(1)
            .and_then(|rest| rest.split("```").next())
            .unwrap();
        let settings = Settings::parse(file).unwrap();
        assert_ne!(settings.keys, Keymap::default());
        assert_eq!(settings.layout, Layout::Below);
    }

    #[test]
    fn what_is_said_is_heeded_and_the_rest_stays() {
        let settings = Settings::parse(
            "layout = \"below\"\nshare = 30\ntheme = \"light, ascii\"\n\
             [keys.everywhere]\nquit = [\"Q\", \"ctrl-c\"]\nzoom = []\n\
             [keys.builds]\nwrite = \"w\"\n",
        )
        .unwrap();
        assert_eq!(settings.layout, Layout::Below);
        assert_eq!(settings.share, 30);
        assert_eq!(settings.theme, "light, ascii");
        let keys = |scope, action| {
            settings
                .keys
                .all()
                .find(|b| b.scope == scope && b.action == action)
                .map(|b| b.keys.join(" "))
        };
        let written = |text: &str| Some(text.to_owned());
        assert_eq!(keys(Scope::Everywhere, Action::Quit), written("Q Ctrl-c"));
        assert_eq!(keys(Scope::Everywhere, Action::Zoom), written(""));
        let builds = Scope::In(crate::view::View::Builds);
        assert_eq!(keys(builds, Action::Export), written("w"));
        assert_eq!(keys(builds, Action::Copy), written("y"));
    }

    #[test]
    fn what_cannot_be_heeded_is_said_with_its_line() {
        let mut told = String::new();
        for text in [
            "layout = \"left\"",
            "\nshare = 90",
            "share = \"much\"",
            "theme = \"pink\"",
            "colour = 1",
            "keys = 1",
            "[keys]\nquit = \"q\"",
            "[keys.global]\nquit = \"q\"",
            "[keys.everywhere]\nexit = \"q\"",
            "[keys.everywhere]\nquit = 1",
            "[keys.everywhere]\nquit = [\"q\",\n \"Crtl-c\"]",
            "[keys.everywhere]\nquit = \"Ctrl-m\"",
            "[keys.everywhere]\nquit = []",
            "[keys.everywhere]\nquit = \"o\"\n\nwrite = \"o\"",
            "[keys.everywhere]\nquit = \"s\"",
            "[keys.program]\nrelease-keys = []",
            "[keys.everywhere]\nquit = \"q",
            "[keys.everywhere]\nquit = \"q\"\nquit = \"p\"",
        ] {
            let error = Settings::parse(text).unwrap_err();
            told.push_str(&format!("{error}\n"));
        }
        insta::assert_snapshot!(told);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(\\[keys\\.[a-z]{0,10}\\]\n|[a-z-]{1,8} = [\"\\[\\]a-zA-Z0-9, -]{0,12}\n|.{0,20}\n){0,8}") {
            if let Err(error) = Settings::parse(&text) {
                prop_assert!(error.line <= text.lines().count() + 1);
                prop_assert!(!error.reason.contains('\n'));
            }
        }

        /// Whatever keys a file gives to actions: each does what it was given for, in every view.
        #[test]
        fn a_key_that_was_given_does_what_it_was_given_for(
            given in prop::collection::btree_map(
                prop::sample::select(Action::all().collect::<Vec<_>>()).prop_map(Action::name),
                prop::sample::subsequence(
                    ["a", "b", "c", "d", "é", "F9", "Alt-x", "Ctrl-n", "q", "Ctrl-c", "n", "Esc"].to_vec(),
                    1..3,
                ),
                1..5,
            )
        ) {
            let mut text = String::from("[keys.everywhere]\n");
            for (name, keys) in &given {
                text.push_str(&format!("{name} = {keys:?}\n"));
            }
            let Ok(settings) = Settings::parse(&text) else {
                return Ok(());
            };
            for (name, keys) in &given {
                for key in keys {
                    for view in crate::view::View::ALL {
                        let found = settings
                            .keys
                            .applicable(keys::Front::View(view))
                            .find(|b| b.keys.iter().any(|k| k == key));
                        prop_assert_eq!(found.map(|b| b.action.name()), Some(*name));
                    }
                }
            }
        }
    }
}

//! Hides places: home, user, project and host (`--redact paths`).
//!
//! The shape of a path stays: `/home/alice/work/x` becomes `<home>/work/x`, so that two paths still tell whether they
//! meet.

use std::borrow::Cow;

/// The places to hide. Empty ones are not looked for.
#[derive(Debug, Clone, Default)]
pub struct Places {
    /// Home directories, as spelled and without symbolic links.
    pub homes: Vec<String>,
    /// Names of the user.
    pub users: Vec<String>,
    /// Project directories: where the command was started.
    pub projects: Vec<String>,
    /// Names of the host, short and full.
    pub hosts: Vec<String>,
}

/// Users whose name is no secret, or who are called like a part of the stack.
const COMMON_NAMES: &[&str] = &[
    "root",
    "user",
    "ubuntu",
    "admin",
    "nobody",
    "app",
    "test",
    "runner",
    "build",
    "dev",
    "cuda",
    "nvidia",
    "python",
    "torch",
    "triton",
    "jupyter",
    "jovyan",
    "vscode",
    "debian",
    "localhost",
    "local",
    "docker",
];

/// What to look for, what to put in its place.
#[derive(Debug, Clone)]
pub(super) struct PathMask {
    /// Directories, longest first, so that a project inside the home is hidden as the project.
    directories: Vec<(String, &'static str)>,
    /// Words.
    words: Vec<(String, &'static str)>,
}

impl PathMask {
    pub(super) fn new(places: Places) -> Self {
        let directory = |paths: Vec<String>, by: &'static str| {
            paths.into_iter().filter_map(move |path| {
                let path = path.trim_end_matches('/').to_owned();
                // `/` or `/x` would hide half the machine.
                (path.starts_with('/') && path.len() > 2).then_some((path, by))
            })
        };
        let word = |names: Vec<String>, by: &'static str| {
            names
                .into_iter()
                .filter(|name| name.len() > 1 && !COMMON_NAMES.contains(&name.as_str()))
                .map(move |name| (name, by))
        };
        let mut directories: Vec<_> = directory(places.projects, "<project>")
            .chain(directory(places.homes, "<home>"))
            .collect();
        directories.sort_by_key(|(path, _)| std::cmp::Reverse(path.len()));
        directories.dedup_by(|one, other| one.0 == other.0);
        let mut words: Vec<_> = word(places.hosts, "<host>")
            .chain(word(places.users, "<user>"))
            .collect();
        words.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        PathMask { directories, words }
    }

    /// The text without the places.
    pub(super) fn hide<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut text = Cow::Borrowed(text);
        for (path, by) in &self.directories {
            // What stands before does not matter: `-I/home/alice` and `/proc/1/root/home/alice` are to be hidden as well.
            replace_bounded(&mut text, path, by, |_, after| !after.is_some_and(is_name));
        }
        for (word, by) in &self.words {
            replace_bounded(&mut text, word, by, |before, after| {
                !before.is_some_and(|letter| letter.is_alphanumeric())
                    && !after.is_some_and(|letter| letter.is_alphanumeric())
            });
        }
        text
    }
}

/// A letter that goes on with a file name.
fn is_name(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.')
}

fn replace_bounded(
    text: &mut Cow<'_, str>,
    what: &str,
    by: &str,
    bounded: impl Fn(Option<char>, Option<char>) -> bool,
) {
    if !text.contains(what) {
        return;
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_ref();
    let mut before = None;
    while let Some(at) = rest.find(what) {
        let (lead, tail) = rest.split_at(at);
        let tail = tail.get(what.len()..).unwrap_or_default();
        out.push_str(lead);
        let before_match = lead.chars().next_back().or(before);
        out.push_str(if bounded(before_match, tail.chars().next()) {
            by
        } else {
            what
        });
        before = what.chars().next_back();
        rest = tail;
    }
    out.push_str(rest);
    *text = Cow::Owned(out);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask() -> PathMask {
        PathMask::new(Places {
            homes: vec!["/home/alice".into(), "/data/homes/alice/".into()],
            users: vec!["alice".into(), "root".into()],
            projects: vec!["/home/alice/secret-product".into()],
            hosts: vec!["gpu17".into(), "gpu17.corp.example".into()],
        })
    }

    #[test]
    fn places_are_hidden_and_nothing_else() {
        for (text, expected) in [
            ("/home/alice/secret-product/train.py", "<project>/train.py"),
            ("/home/alice/.cache/x", "<home>/.cache/x"),
            ("-I/home/alice/inc", "-I<home>/inc"),
            ("PATH=/usr/bin:/home/alice/bin", "PATH=/usr/bin:<home>/bin"),
            ("/home/alicea/x", "/home/alicea/x"),
            ("/home/alice-2/x", "/home/<user>-2/x"),
            ("/data/homes/alice", "<home>"),
            (
                "/tmp/torchinductor_alice/ab",
                "/tmp/torchinductor_<user>/ab",
            ),
            ("malice", "malice"),
            (
                "cannot reach gpu17.corp.example:80",
                "cannot reach <host>:80",
            ),
            ("/root/x", "/root/x"),
            (
                "/usr/local/cuda-13.0/bin/nvcc",
                "/usr/local/cuda-13.0/bin/nvcc",
            ),
        ] {
            assert_eq!(mask().hide(text), expected, "{text}");
        }
    }
}

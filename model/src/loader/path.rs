//! Search paths: lists of directories with the tokens `$ORIGIN`, `$LIB` and `$PLATFORM` in them.

/// One directory of a search path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Directory {
    /// The name with a trailing slash; empty for the current directory. The loader's key for what it remembers.
    pub(super) name: String,
    /// The entry as it was written, tokens unexpanded.
    pub(super) entry: String,
}

/// What the tokens stand for in one object.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tokens<'a> {
    /// Directory of the object; none when it is unknown, and an entry that uses it is dropped.
    pub(super) origin: Option<&'a str>,
    pub(super) lib: &'a str,
    pub(super) platform: &'a str,
}

impl Tokens<'_> {
    /// Replaces the tokens; none when one of them has no value here, for then the loader ignores the whole entry.
    pub(super) fn expand(&self, text: &str) -> Option<String> {
        let mut expanded = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('$') {
            expanded.push_str(before);
            if let Some(rest_of) = token(after, "ORIGIN") {
                expanded.push_str(self.origin?);
                rest = rest_of;
            } else if let Some(rest_of) = token(after, "PLATFORM") {
                if self.platform.is_empty() {
                    return None;
                }
                expanded.push_str(self.platform);
                rest = rest_of;
            } else if let Some(rest_of) = token(after, "LIB") {
                expanded.push_str(self.lib);
                rest = rest_of;
            } else {
                // No token: the dollar sign stands for itself.
                expanded.push('$');
                rest = after;
            }
        }
        expanded.push_str(rest);
        Some(expanded)
    }
}

/// What follows `NAME` or `{NAME}`, if the text begins with it. A longer identifier (`$LIBRARY`) is another word.
fn token<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    if let Some(inside) = text.strip_prefix('{') {
        let after = inside.strip_prefix(name)?;
        return after.strip_prefix('}');
    }
    let after = text.strip_prefix(name)?;
    let longer = after.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    (!longer).then_some(after)
}

/// Splits a list into its directories: an empty entry is the current directory, a repeated directory counts once.
pub(super) fn directories(list: &str, separators: &[char], tokens: Tokens<'_>) -> Vec<Directory> {
    let mut found: Vec<Directory> = Vec::new();
    for entry in list.split(separators) {
        let name = if entry.is_empty() {
            String::new()
        } else {
            match tokens.expand(entry).filter(|name| !name.is_empty()) {
                Some(name) => with_slash(&name),
                None => continue,
            }
        };
        if !found.iter().any(|known| known.name == name) {
            found.push(Directory {
                name,
                entry: entry.to_owned(),
            });
        }
    }
    found
}

/// The name with exactly one slash at its end.
pub(super) fn with_slash(name: &str) -> String {
    format!("{}/", name.trim_end_matches('/'))
}

/// The directory of a file: everything before the last slash, `/` for a file in the root.
pub(super) fn directory_of(path: &str) -> Option<String> {
    let (directory, _) = path.rsplit_once('/')?;
    Some(if directory.is_empty() {
        "/".to_owned()
    } else {
        directory.to_owned()
    })
}

/// The path seen from a working directory.
pub(super) fn absolute(path: &str, cwd: &str) -> String {
    if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("{}{path}", with_slash(cwd))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKENS: Tokens<'_> = Tokens {
        origin: Some("/opt/app"),
        lib: "lib64",
        platform: "haswell",
    };

    #[test]
    fn tokens_are_replaced_as_the_loader_does() {
        let cases: &[(&str, Option<&str>)] = &[
            ("$ORIGIN/lib", Some("/opt/app/lib")),
            ("${ORIGIN}lib", Some("/opt/applib")),
            ("$ORIGINlib", Some("$ORIGINlib")),
            ("$ORIGIN_x", Some("$ORIGIN_x")),
            ("/usr/$LIB/$PLATFORM", Some("/usr/lib64/haswell")),
            ("/usr/$LIBRARY", Some("/usr/$LIBRARY")),
            ("/a/${LIB", Some("/a/${LIB")),
            ("/a$", Some("/a$")),
            ("$$ORIGIN", Some("$/opt/app")),
            ("plain", Some("plain")),
        ];
        for (text, expected) in cases {
            assert_eq!(TOKENS.expand(text).as_deref(), *expected, "{text}");
        }
        let unknown = Tokens {
            origin: None,
            lib: "lib",
            platform: "",
        };
        assert_eq!(unknown.expand("$ORIGIN/x"), None);
        assert_eq!(unknown.expand("$PLATFORM"), None);
    }

    #[test]
    fn lists_are_split_as_the_loader_does() {
        let names = |list: &str, separators: &[char]| -> Vec<String> {
            directories(list, separators, TOKENS)
                .into_iter()
                .map(|d| d.name)
                .collect()
        };
        assert_eq!(names("/a:/b//:/a/", &[':']), ["/a/", "/b/"]);
        assert_eq!(names(":/a;", &[':', ';']), ["", "/a/"]);
        assert_eq!(names("/a;/b", &[':']), ["/a;/b/"]);
        assert_eq!(names("/:rel", &[':']), ["/", "rel/"]);
    }

    #[test]
    fn an_entry_with_an_unknown_token_is_dropped() {
        let unknown = Tokens {
            origin: None,
            lib: "lib",
            platform: "",
        };
        let found = directories("$ORIGIN:/b", &[':'], unknown);
        assert_eq!(
            found,
            [Directory {
                name: "/b/".into(),
                entry: "/b".into()
            }]
        );
    }
}

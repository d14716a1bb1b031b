//! What could be typed next in a filter.

use crate::store::KINDS;

/// Fields that are offered, each with what it holds.
const FIELDS: &[(&str, &str)] = &[
    ("kind", "what was seen"),
    ("pid", "process id"),
    ("t", "time since the start: t>1.5s"),
    ("is", "failed, probe"),
    ("path", "a file"),
    ("argv", "command line"),
    ("function", "function called, or Python function"),
    ("component", "distribution that asked"),
    ("rule", "why a file was chosen"),
    ("errno", "error number"),
    ("op", "what was done to a file"),
    ("source", "who saw it"),
    ("requested", "name asked for"),
    ("requested_by", "object that asked"),
    ("text", "a message's text"),
    ("value", "what a call answered"),
    ("result", "return value"),
    ("env.CUDA_HOME", "a variable"),
    ("duration_ns", "time a call took: duration_ns>10ms"),
    ("explanation", "confirmed, differs, reconstructed"),
    ("id", "event number"),
    ("tid", "thread id"),
];

const RULES: &[&str] = &[
    "cuda-home",
    "cuda-path",
    "path",
    "override-variable",
    "default-directory",
    "bundled",
    "wheel",
    "conda",
    "rpath",
    "runpath",
    "ld-library-path",
    "ld-so-cache",
    "ld-default-directory",
    "absolute-path",
    "already-loaded",
    "preload",
    "inherited",
    "build-file",
    "tool-relative",
    "unknown",
];

/// One way to go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// The whole word that would stand at the cursor.
    pub word: String,
    /// What it means.
    pub about: String,
}

/// Ways to go on at the end of `before`, and how many characters of it they replace.
pub fn complete(before: &str) -> (usize, Vec<Completion>) {
    let word = before
        .rsplit(|c: char| c.is_whitespace() || matches!(c, '(' | '|'))
        .next()
        .unwrap_or_default();
    let word = word.trim_start_matches(['!', '-']);
    let completions = match word.split_once([':', '=']) {
        None => FIELDS
            .iter()
            .filter(|(name, _)| name.starts_with(word))
            .map(|(name, about)| Completion {
                word: format!("{name}:"),
                about: (*about).to_owned(),
            })
            .collect(),
        Some((field, value)) => {
            let values: &[&str] = match field {
                "kind" => &KINDS,
                "rule" => RULES,
                "is" => &["failed", "probe"],
                "source" => &["preload", "ebpf", "procfs", "collector"],
                "explanation" => &["confirmed", "differs", "reconstructed"],
                "op" => &[
                    "open",
                    "create",
                    "stat",
                    "rename",
                    "unlink",
                    "mkdir",
                    "list",
                    "lock-wait",
                    "locked",
                    "unlock",
                ],
                _ => &[],
            };
            values
                .iter()
                .filter(|v| v.starts_with(value) && **v != value)
                .map(|v| Completion {
                    word: format!("{field}:{v}"),
                    about: String::new(),
                })
                .collect()
        }
    };
    (word.chars().count(), completions)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(before: &str) -> String {
        let (_, completions) = complete(before);
        let words: Vec<String> = completions.into_iter().map(|c| c.word).collect();
        words.join(" ")
    }

    #[test]
    fn fields_then_values() {
        assert_eq!(words("nvcc ki"), "kind:");
        assert_eq!(words("-kind:exec"), "kind:exec-failed");
        assert_eq!(words("(is:"), "is:failed is:probe");
        assert_eq!(words("pid:"), "");
        assert_eq!(complete("nvcc -ki").0, 2);
    }
}

//! What the doctor found, as text and as JSON.

use std::fmt::Write as _;

use serde::Serialize;

use super::refusal::{Refusal, Standing};

/// Everything that was tried.
#[derive(Debug, Clone, Serialize)]
pub struct Findings {
    /// `jittrace.doctor/1`
    pub schema: &'static str,
    /// Who asks, and where.
    pub standing: Standing,
    /// What each way of tracing can do here.
    pub sources: Vec<Source>,
    /// Each capability that was tried.
    pub checks: Vec<Check>,
}

/// A way of tracing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Source {
    /// `launch`, `attach-ebpf`, `attach-snapshot`, `python-frames`
    pub name: &'static str,
    /// What it is, for people.
    pub title: &'static str,
    /// It works here.
    pub works: bool,
    /// The checks that stand in its way.
    pub lacking: Vec<&'static str>,
}

/// One capability.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Stable name.
    pub id: &'static str,
    /// What was tried, for people.
    pub title: &'static str,
    /// What came of it.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// What came of a try.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
pub enum Outcome {
    /// It works.
    Yes {
        /// What was seen.
        detail: String,
    },
    /// It does not.
    No(Refusal),
    /// It could not be tried, or there is nothing to try.
    NotTried {
        /// Why.
        detail: String,
    },
}

impl Outcome {
    pub(super) fn is_yes(&self) -> bool {
        matches!(self, Self::Yes { .. })
    }
}

/// Columns of the text.
const WIDTH: usize = 100;
/// Columns that an answer takes.
const ANSWER: usize = 5;
/// Spaces between a title and what is said of it.
const GAP: usize = 2;

impl Findings {
    /// For a terminal.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        let place = match &self.standing.container {
            Some(container) => format!(", in a {container} container"),
            None => String::new(),
        };
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "Linux {}, user {}{place}\n",
            self.standing.kernel, self.standing.uid
        );
        let column = |titles: Vec<usize>| titles.into_iter().max().unwrap_or_default() + GAP;
        let width = |title: &str| title.chars().count();
        let sources = column(self.sources.iter().map(|s| width(s.title)).collect());
        let checks = ANSWER + column(self.checks.iter().map(|c| width(c.title)).collect());
        for source in &self.sources {
            let state = if source.works {
                "works"
            } else {
                "does not work here"
            };
            let lacking = match source.lacking.as_slice() {
                [] => String::new(),
                lacking => format!("; lacks {}", lacking.join(", ")),
            };
            push_wrapped(
                &mut text,
                source.title,
                sources,
                &format!("{state}{lacking}"),
            );
        }
        text.push('\n');
        let mut told: Option<&Refusal> = None;
        for check in &self.checks {
            let head = |answer: &str| format!("{answer:<ANSWER$}{}", check.title);
            match &check.outcome {
                Outcome::Yes { detail } => push_wrapped(&mut text, &head("yes"), checks, detail),
                Outcome::NotTried { detail } => push_wrapped(&mut text, &head("-"), checks, detail),
                // One cause usually refuses several things in a row.
                Outcome::No(refusal) if told == Some(refusal) => {
                    push_wrapped(&mut text, &head("no"), checks, "for the same reason");
                }
                Outcome::No(refusal) => {
                    push_wrapped(&mut text, &head("no"), checks, &refusal.reason);
                    push_wrapped(&mut text, "", checks, &format!("→ {}", refusal.remedy));
                    told = Some(refusal);
                }
            }
        }
        text
    }
}

/// Appends `head` and, from `column` on, `detail`, broken at words.
fn push_wrapped(text: &mut String, head: &str, column: usize, detail: &str) {
    let mut line = format!("{head:<column$}");
    let mut has_words = false;
    for word in detail.split_whitespace() {
        if has_words && line.chars().count() + 1 + word.chars().count() > WIDTH {
            text.push_str(line.trim_end());
            text.push('\n');
            line = " ".repeat(column);
            has_words = false;
        }
        if has_words {
            line.push(' ');
        }
        line.push_str(word);
        has_words = true;
    }
    text.push_str(line.trim_end());
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings() -> Findings {
        Findings {
            schema: "jittrace.doctor/1",
            standing: Standing {
                uid: 1000,
                kernel: "6.1.0-13".to_owned(),
                ..Standing::default()
            },
            sources: vec![
                Source {
                    name: "launch",
                    title: "jittrace -- COMMAND",
                    works: true,
                    lacking: vec![],
                },
                Source {
                    name: "attach-ebpf",
                    title: "jittrace attach, live events (eBPF)",
                    works: false,
                    lacking: vec!["bpf-map", "uprobe"],
                },
            ],
            checks: vec![
                Check {
                    id: "preload",
                    title: "preload into this libc",
                    outcome: Outcome::Yes {
                        detail: "glibc 2.36: /bin/true announced itself".to_owned(),
                    },
                },
                Check {
                    id: "bpf-map",
                    title: "BPF map",
                    outcome: Outcome::No(Refusal {
                        reason: "this runs as user 1000 without CAP_BPF and CAP_PERFMON \
                                 (kernel.unprivileged_bpf_disabled is 2)"
                            .to_owned(),
                        remedy: "run it through sudo".to_owned(),
                    }),
                },
                Check {
                    id: "uprobe",
                    title: "uprobe",
                    outcome: Outcome::No(Refusal {
                        reason: "this runs as user 1000 without CAP_BPF and CAP_PERFMON \
                                 (kernel.unprivileged_bpf_disabled is 2)"
                            .to_owned(),
                        remedy: "run it through sudo".to_owned(),
                    }),
                },
                Check {
                    id: "python",
                    title: "Python frames by the C API",
                    outcome: Outcome::NotTried {
                        detail: "no python3 on PATH".to_owned(),
                    },
                },
            ],
        }
    }

    #[test]
    fn text_for_a_terminal() {
        insta::assert_snapshot!(findings().text(), @r"
        Linux 6.1.0-13, user 1000

        jittrace -- COMMAND                  works
        jittrace attach, live events (eBPF)  does not work here; lacks bpf-map, uprobe

        yes  preload into this libc      glibc 2.36: /bin/true announced itself
        no   BPF map                     this runs as user 1000 without CAP_BPF and CAP_PERFMON
                                         (kernel.unprivileged_bpf_disabled is 2)
                                         → run it through sudo
        no   uprobe                      for the same reason
        -    Python frames by the C API  no python3 on PATH
        ");
        assert!(
            findings()
                .text()
                .lines()
                .all(|line| line.chars().count() <= WIDTH)
        );
    }

    #[test]
    fn json_for_a_script() {
        let json = serde_json::to_value(findings()).unwrap();
        assert_eq!(json["schema"], "jittrace.doctor/1");
        assert_eq!(json["checks"][0]["answer"], "yes");
        assert_eq!(json["checks"][1]["answer"], "no");
        assert_eq!(json["checks"][1]["remedy"], "run it through sudo");
        assert_eq!(json["checks"][3]["answer"], "not-tried");
        assert_eq!(json["sources"][1]["lacking"][0], "bpf-map");
    }
}

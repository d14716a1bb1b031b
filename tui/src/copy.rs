//! What leaves the screen through the clipboard: paths, findings, and command lines that are safe to paste.

use base64::Engine;
use jittrace_model::report::{Finding, Severity};

/// The escape sequence by which a terminal takes a text into the clipboard (OSC 52).
pub fn osc52(text: &str) -> String {
    let encoded = base64::engine::general_purpose::STANDARD.encode(text);
    format!("\x1b]52;c;{encoded}\x07")
}

/// A word of a command line that a POSIX shell reads as this very text.
///
/// Control characters are written as escapes, since a terminal or a line editor would act on them while pasting.
pub fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=,+@%".contains(c);
    // A leading `~` or `=` means something to shells; `=` inside is harmless.
    if !word.is_empty() && word.chars().all(plain) && !word.starts_with('=') {
        return word.to_owned();
    }
    if word.chars().any(char::is_control) {
        let mut out = String::from("$'");
        for c in word.chars() {
            match c {
                '\'' => out.push_str("\\'"),
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                '\t' => out.push_str("\\t"),
                c if c.is_control() => {
                    let mut buffer = [0; 4];
                    for byte in c.encode_utf8(&mut buffer).bytes() {
                        out.push_str(&format!("\\{byte:03o}"));
                    }
                }
                c => out.push(c),
            }
        }
        out.push('\'');
        return out;
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// A command line that runs a program again, from its directory and with the captured variables that matter.
pub fn command<'a>(
    program: &str,
    argv: &[String],
    cwd: &str,
    env: impl IntoIterator<Item = (&'a String, &'a String)>,
) -> String {
    let mut out = String::new();
    if !cwd.is_empty() {
        out.push_str(&format!("cd -- {} && ", quote(cwd)));
    }
    // A name that a shell would not read as a name could be taken for an option or a command: it is left out.
    let names = env.into_iter().filter(|(name, _)| is_variable(name));
    let mut words: Vec<String> = names
        .map(|(name, value)| format!("{name}={}", quote(value)))
        .collect();
    words.push(quote_program(program));
    words.extend(argv.iter().skip(1).map(|a| quote(a)));
    out.push_str(&words.join(" "));
    out
}

/// A program's name where a shell expects a command: never an assignment, an option or a keyword.
fn quote_program(program: &str) -> String {
    let program = if program.contains('/') || !program.contains('=') && !program.starts_with('-') {
        program.to_owned()
    } else {
        format!("./{program}")
    };
    let quoted = quote(&program);
    if quoted == program && !program.contains('/') {
        format!("command -- {quoted}")
    } else {
        quoted
    }
}

fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        // What the loader or the tracer put there would change the run.
        && name != "LD_PRELOAD"
        && !name.starts_with("JITTRACE")
}

/// A finding as Markdown, for a bug report.
pub fn finding(finding: &Finding) -> String {
    let severity = match finding.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    };
    let mut out = format!("### {} (`{}`, {severity})\n", finding.title, finding.id);
    if !finding.cause.is_empty() {
        out.push_str(&format!("\n{}\n", finding.cause));
    }
    if !finding.evidence.is_empty() {
        out.push_str("\n**Evidence**\n\n");
        for evidence in &finding.evidence {
            out.push_str(&format!("- event {}: {}\n", evidence.event, evidence.text));
        }
    }
    if !finding.remedy.is_empty() {
        out.push_str("\n**What puts it right**\n\n");
        for remedy in &finding.remedy {
            out.push_str(&format!("- {remedy}\n"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::process::Command;

    fn words(of: &[&str]) -> Vec<String> {
        of.iter().map(|w| (*w).to_owned()).collect()
    }

    #[test]
    fn a_command_is_safe_to_paste() {
        let env = [
            ("CUDA_HOME".to_owned(), "/opt/my cuda".to_owned()),
            ("--help; rm -rf /".to_owned(), "x".to_owned()),
            ("LD_PRELOAD".to_owned(), "/x.so".to_owned()),
        ];
        let line = command(
            "/opt/cuda/bin/nvcc",
            &words(&["nvcc", "-DX=\"a b\"", "$(reboot)", "it's", "a\x1b[2Jb\n"]),
            "/tmp/a b",
            env.iter().map(|(name, value)| (name, value)),
        );
        assert_eq!(
            line,
            "cd -- '/tmp/a b' && CUDA_HOME='/opt/my cuda' /opt/cuda/bin/nvcc '-DX=\"a b\"' '$(reboot)' 'it'\\''s' $'a\\033[2Jb\\n'"
        );
    }

    #[test]
    fn a_program_is_never_an_assignment_or_an_option() {
        let line = |program: &str| command(program, &[], "", []);
        assert_eq!(line("A=b"), "./A=b");
        assert_eq!(line("-rf"), "./-rf");
        assert_eq!(line("if"), "command -- if");
        assert_eq!(line("/bin/ls"), "/bin/ls");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn a_shell_reads_every_word_as_it_was(word in "[^\0]{0,20}") {
            let script = format!("printf %s {}", quote(&word));
            match Command::new("bash").args(["-c", &script]).output() {
                Ok(output) => {
                    let read = String::from_utf8_lossy(&output.stdout).into_owned();
                    prop_assert_eq!(read, word);
                }
                Err(error) => println!("skipped: bash is not here ({error})"),
            }
        }
    }

    #[test]
    fn the_clipboard_sequence() {
        assert_eq!(osc52("hi"), "\x1b]52;c;aGk=\x07");
    }
}

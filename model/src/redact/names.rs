//! Names under which credentials are given, and values that are none in spite of their name.

/// Words that make a name a credential's when they end it, whatever the value looks like.
const SECRET_WORDS: &[&str] = &[
    "apikey",
    "apikeys",
    "apitoken",
    "authorization",
    "authtoken",
    "accesskey",
    "accesstoken",
    "bearer",
    "credential",
    "credentials",
    "passphrase",
    "passwd",
    "password",
    "passwords",
    "privatekey",
    "secret",
    "secretkey",
    "secrets",
];

/// `… key` is a credential after one of these; any other key opens a map, not a door.
const KEY_OWNERS: &[&str] = &[
    "access",
    "account",
    "admin",
    "anthropic",
    "api",
    "auth",
    "aws",
    "azure",
    "client",
    "cohere",
    "comet",
    "datadog",
    "encryption",
    "gcp",
    "gemini",
    "github",
    "google",
    "groq",
    "hf",
    "huggingface",
    "license",
    "master",
    "mistral",
    "neptune",
    "ngc",
    "nvidia",
    "openai",
    "private",
    "replicate",
    "secret",
    "sentry",
    "service",
    "session",
    "signing",
    "ssh",
    "storage",
    "stripe",
    "subscription",
    "together",
    "wandb",
    "write",
];

/// `… token` is a piece of text, not a credential, after one of these.
const TEXT_TOKENS: &[&str] = &[
    "audio",
    "bos",
    "chat",
    "cls",
    "current",
    "decode",
    "draft",
    "end",
    "eos",
    "expected",
    "first",
    "fim",
    "image",
    "input",
    "invalid",
    "last",
    "mask",
    "max",
    "min",
    "new",
    "next",
    "num",
    "output",
    "pad",
    "per",
    "prefill",
    "prompt",
    "reasoning",
    "sep",
    "special",
    "start",
    "stop",
    "system",
    "think",
    "thinking",
    "tool",
    "unexpected",
    "unk",
    "video",
];

/// How far a name commits its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weight {
    /// Nothing.
    Ordinary,
    /// A credential when the value looks like one: `token`, `auth`, `sig`.
    Perhaps,
    /// A credential.
    Certain,
}

/// Whether a variable, option or field of this name holds a credential.
///
/// ```
/// # use jittrace_model::redact::names_a_secret;
/// assert!(names_a_secret("OPENAI_API_KEY"));
/// assert!(names_a_secret("--hf-token"));
/// assert!(!names_a_secret("--max-total-tokens"));
/// assert!(!names_a_secret("HF_TOKEN_PATH"));
/// ```
pub fn names_a_secret(name: &str) -> bool {
    weigh(name) != Weight::Ordinary
}

pub(super) fn weigh(name: &str) -> Weight {
    // A preprocessor definition is named like the variable it holds.
    let words = words(name.strip_prefix("-D").unwrap_or(name));
    let Some(last) = words.last().map(String::as_str) else {
        return Weight::Ordinary;
    };
    let before = words
        .len()
        .checked_sub(2)
        .and_then(|at| words.get(at))
        .map_or("", String::as_str);
    match last {
        // `PGPASSWORD` and the like are one word.
        _ if SECRET_WORDS.iter().any(|word| last.ends_with(word)) => Weight::Certain,
        "key" | "keys" if KEY_OWNERS.contains(&before) => Weight::Certain,
        "id" if before == "key" && words.iter().any(|word| word == "access") => Weight::Certain,
        "token" if TEXT_TOKENS.contains(&before) => Weight::Ordinary,
        "token" if !before.is_empty() => Weight::Certain,
        "tokens" if ["access", "api", "auth", "bearer", "refresh"].contains(&before) => {
            Weight::Certain
        }
        "pwd" if ["", "old"].contains(&before) => Weight::Ordinary,
        "pwd" => Weight::Certain,
        "pat" if !before.is_empty() => Weight::Perhaps,
        "token" | "auth" | "pass" | "sig" | "signature" | "cookie" | "sas" | "jwt" => {
            Weight::Perhaps
        }
        "key" if before.is_empty() => Weight::Perhaps,
        _ => Weight::Ordinary,
    }
}

/// The words of a name in lower case: split at punctuation and where a lower-case letter meets an upper-case one.
fn words(name: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut before = ' ';
    for letter in name.chars() {
        let boundary = letter.is_ascii_uppercase() && before.is_ascii_lowercase();
        if (boundary || !letter.is_ascii_alphanumeric()) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if letter.is_ascii_alphanumeric() {
            word.push(letter.to_ascii_lowercase());
        }
        before = letter;
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// Whether a value hides nothing, whatever its name: empty, a switch, a count, a reference, a path, a placeholder.
pub(super) fn harmless(value: &str) -> bool {
    const SWITCHES: &[&str] = &[
        "",
        "0",
        "1",
        "true",
        "false",
        "none",
        "null",
        "nil",
        "auto",
        "yes",
        "no",
        "on",
        "off",
        "default",
        "unset",
        "empty",
        "undefined",
        "required",
        "missing",
        "invalid",
        "str",
        "string",
        "bearer",
        "basic",
        "changeme",
    ];
    let value = value.trim();
    let lower = value.to_ascii_lowercase();
    SWITCHES.contains(&lower.as_str())
        || (value.len() < 8
            && value
                .bytes()
                .all(|byte| byte.is_ascii_digit() || byte == b'.'))
        || value.starts_with('$')
        || value.starts_with("%(")
        || (value.starts_with('<') && value.ends_with('>'))
        || value
            .bytes()
            .all(|byte| byte == b'*' || byte == b'.' || byte == b'x' || byte == b'X')
        || is_path(&lower)
}

/// Whether a value is a file's name rather than a credential; credentials may hold a slash, so only usual roots count.
fn is_path(value: &str) -> bool {
    const ROOTS: &[&str] = &[
        "/data/",
        "/dev/",
        "/etc/",
        "/home/",
        "/mnt/",
        "/opt/",
        "/proc/",
        "/root/",
        "/run/",
        "/srv/",
        "/sys/",
        "/tmp/",
        "/usr/",
        "/var/",
        "/workspace/",
        "./",
        "../",
        "~/",
    ];
    ROOTS.iter().any(|root| value.starts_with(root))
}

/// Whether a value has the look of something generated: long enough, with digits among its letters, no prose.
pub(super) fn looks_generated(value: &str) -> bool {
    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    let letters = value.bytes().filter(u8::is_ascii_alphabetic).count();
    value.len() >= 8 && digits >= 1 && letters >= 1 && !value.contains(char::is_whitespace)
}

/// Whether a value is telling enough to be masked wherever it turns up.
pub(super) fn worth_remembering(value: &str) -> bool {
    !harmless(value)
        && !value.contains(char::is_whitespace)
        && (value.len() >= 16 || (value.len() >= 8 && looks_generated(value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_weighed_by_their_last_words() {
        for (name, expected) in [
            ("OPENAI_API_KEY", Weight::Certain),
            ("--api-key", Weight::Certain),
            ("apiKey", Weight::Certain),
            ("--api-keys", Weight::Certain),
            ("HF_TOKEN", Weight::Certain),
            ("HUGGING_FACE_HUB_TOKEN", Weight::Certain),
            ("AWS_SECRET_ACCESS_KEY", Weight::Certain),
            ("AWS_ACCESS_KEY_ID", Weight::Certain),
            ("WANDB_API_KEY", Weight::Certain),
            ("X-Api-Key", Weight::Certain),
            ("db_password", Weight::Certain),
            ("PGPASSWORD", Weight::Certain),
            ("Authorization", Weight::Certain),
            ("token", Weight::Perhaps),
            ("-DKEY", Weight::Perhaps),
            ("key", Weight::Perhaps),
            ("--max-total-tokens", Weight::Ordinary),
            ("--skip-tokenizer-init", Weight::Ordinary),
            ("TOKENIZERS_PARALLELISM", Weight::Ordinary),
            ("eos_token", Weight::Ordinary),
            ("HF_TOKEN_PATH", Weight::Ordinary),
            ("--api-key-file", Weight::Ordinary),
            ("cache_key", Weight::Ordinary),
            ("PWD", Weight::Ordinary),
            ("OLDPWD", Weight::Ordinary),
            ("CUDA_HOME", Weight::Ordinary),
            ("", Weight::Ordinary),
        ] {
            assert_eq!(weigh(name), expected, "{name}");
        }
    }

    #[test]
    fn values_that_hide_nothing_stay() {
        for value in [
            "",
            "512",
            "true",
            "$HF_TOKEN",
            "${TOKEN}",
            "/run/secrets/hf",
            "<secret:3fa9c1>",
            "****",
        ] {
            assert!(harmless(value), "{value}");
        }
        for value in ["hunter2hunter2", "/nA7x/92jQ+secretlooking", "12345678901"] {
            assert!(!harmless(value), "{value}");
        }
    }
}

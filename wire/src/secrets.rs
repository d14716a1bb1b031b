//! Credentials never leave the traced program: names that hold them, and masking of what looks like one.

/// Whether an environment variable of this name may hold a credential; such a variable is never captured.
#[must_use]
pub fn is_secret_name(name: &[u8]) -> bool {
    const WORDS: [&[u8]; 6] = [
        b"TOKEN",
        b"KEY",
        b"SECRET",
        b"PASSWORD",
        b"PASSWD",
        b"CREDENTIAL",
    ];
    WORDS.iter().any(|word| contains_ignoring_case(name, word))
}

/// Whether an option or assignment of this name has a credential as its value: one of its words says so.
///
/// By whole words, so that `--tokenizer-path` and `--max-total-tokens` stay readable.
fn holds_secret(name: &[u8]) -> bool {
    const WORDS: [&[u8]; 9] = [
        b"token",
        b"key",
        b"apikey",
        b"secret",
        b"password",
        b"passwd",
        b"credential",
        b"credentials",
        b"authtoken",
    ];
    name.split(|byte| !byte.is_ascii_alphanumeric())
        .any(|part| WORDS.iter().any(|word| part.eq_ignore_ascii_case(word)))
}

/// Replaces credentials in `text` by `*`, in place, and says whether there were any.
///
/// Masked are the values of `NAME=VALUE`, `--name=VALUE`, `--name VALUE` and `name: VALUE` with a secret name, what
/// follows `Bearer ` and the user part of `scheme://user:password@host`, and tokens with well-known beginnings.
pub fn mask(text: &mut [u8]) -> bool {
    let mut masked = false;
    let mut at = 0;
    let mut secret_follows = false;
    while at < text.len() {
        if is_separator(text[at]) {
            at += 1;
            continue;
        }
        let end = at
            + text[at..]
                .iter()
                .position(|byte| is_separator(*byte))
                .unwrap_or(text.len() - at);
        let word = &text[at..end];
        if secret_follows && word.first() != Some(&b'-') {
            text[at..end].fill(b'*');
            masked = true;
            secret_follows = false;
        } else if let Some(split) = word.iter().position(|byte| matches!(byte, b'=' | b':')) {
            let (name, value) = word.split_at(split);
            if holds_secret(name) && value.len() > 1 {
                text[at + split + 1..end].fill(b'*');
                masked = true;
                secret_follows = false;
            } else {
                secret_follows = holds_secret(name) && value.len() == 1;
                masked |= mask_user_part(&mut text[at..end])
                    | mask_known_token(&mut text[at + split + 1..end]);
            }
        } else {
            secret_follows = word == b"Bearer" || (word.starts_with(b"-") && holds_secret(word));
            masked |= mask_known_token(&mut text[at..end]);
        }
        at = end;
    }
    masked
}

/// Whether the argument after this one is a credential: `--api-key`, `--token`.
#[must_use]
pub fn announces_secret(argument: &[u8]) -> bool {
    argument.starts_with(b"-") && !argument.contains(&b'=') && holds_secret(argument)
}

fn is_separator(byte: u8) -> bool {
    matches!(
        byte,
        b' ' | b'\t' | b'\n' | b'\r' | b'"' | b'\'' | b',' | b';' | b'(' | b')' | 0
    )
}

fn mask_user_part(word: &mut [u8]) -> bool {
    let Some(scheme) = word.windows(3).position(|three| three == b"://") else {
        return false;
    };
    let authority = scheme + 3;
    let end = word[authority..]
        .iter()
        .position(|byte| *byte == b'/')
        .map_or(word.len(), |slash| authority + slash);
    let Some(at_sign) = word[authority..end].iter().rposition(|byte| *byte == b'@') else {
        return false;
    };
    word[authority..authority + at_sign].fill(b'*');
    true
}

fn mask_known_token(word: &mut [u8]) -> bool {
    const BEGINNINGS: [&[u8]; 9] = [
        b"hf_",
        b"ghp_",
        b"gho_",
        b"github_pat_",
        b"glpat-",
        b"sk-",
        b"xoxb-",
        b"AKIA",
        b"eyJhbGci",
    ];
    let Some(beginning) = BEGINNINGS
        .iter()
        .find(|beginning| word.starts_with(beginning))
    else {
        return false;
    };
    let rest = &word[beginning.len()..];
    if rest.len() < 16 || !rest.iter().any(u8::is_ascii_digit) || rest.contains(&b'/') {
        return false;
    }
    word.fill(b'*');
    true
}

fn contains_ignoring_case(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len())
        .any(|window| window.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::String;

    #[test]
    fn credentials_are_masked_and_nothing_else() {
        let cases = [
            ("--api-key=abc", "--api-key=***"),
            ("--token abc next", "--token *** next"),
            ("HF_TOKEN=hf_x", "HF_TOKEN=****"),
            (
                "Authorization: Bearer abcdef",
                "Authorization: Bearer ******",
            ),
            ("https://user:pw@host/x", "https://*******@host/x"),
            (
                "nvcc -arch=sm_120 --keep-dir x",
                "nvcc -arch=sm_120 --keep-dir x",
            ),
            (
                "--tokenizer-path a --max-total-tokens 512",
                "--tokenizer-path a --max-total-tokens 512",
            ),
            (
                "nvcc fatal   : Unsupported gpu architecture 'compute_120a'",
                "nvcc fatal   : Unsupported gpu architecture 'compute_120a'",
            ),
            ("/home/u/.cache/hf_models/x", "/home/u/.cache/hf_models/x"),
        ];
        for (given, expected) in cases {
            let mut text = given.as_bytes().to_vec();
            mask(&mut text);
            assert_eq!(String::from_utf8(text).unwrap(), expected, "{given}");
        }
    }
}

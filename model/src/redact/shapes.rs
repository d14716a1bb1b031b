//! Credentials that are known by their shape: issuers give their tokens a prefix so that scanners find them.
//!
//! Each pattern begins with fixed text and asks for as many characters as the issuer's shortest token has, so that
//! prose, hashes and file names do not match.

use std::sync::OnceLock;

use regex::Regex;

/// Issuer, pattern, an example made up for the tests.
pub(super) const SHAPES: &[(&str, &str, &str)] = &[
    (
        "Hugging Face",
        r"hf_[A-Za-z0-9]{24,}",
        "hf_aBcDeFgHiJkLmNoPqRsTuVwXyZ12345678",
    ),
    (
        "Hugging Face organisation",
        r"api_org_[A-Za-z0-9]{24,}",
        "api_org_aBcDeFgHiJkLmNoPqRsTuVwXyZ12345678",
    ),
    (
        "OpenAI, Anthropic, DeepSeek",
        r"sk-(?:[a-z]+-)?(?:api03-)?[A-Za-z0-9_-]{20,}",
        "sk-proj-Ab12Cd34Ef56Gh78Ij90Kl12Mn34",
    ),
    (
        "AWS access key",
        r"A(?:KIA|SIA|GPA|IDA|ROA)[A-Z0-9]{16}",
        "AKIAIOSFODNN7EXAMPLE",
    ),
    (
        "GitHub",
        r"gh[pousr]_[A-Za-z0-9]{30,}",
        "ghp_0123456789abcdefghijABCDEFGHIJ012345",
    ),
    (
        "GitHub fine-grained",
        r"github_pat_[A-Za-z0-9_]{22,}",
        "github_pat_11ABCDEFG0123456789abc_defghijklmnop",
    ),
    (
        "GitLab",
        r"gl(?:pat|dt|rt|cbt|ptt|ft|soat)-[A-Za-z0-9_.-]{20,}",
        "glpat-AbCdEfGhIjKlMnOpQrSt",
    ),
    (
        "Slack",
        r"xox[abeoprs]-[A-Za-z0-9-]{10,}",
        "xoxb-123456789012-abcdefGHIJKL",
    ),
    (
        "Slack app",
        r"xapp-[0-9]-[A-Za-z0-9-]{10,}",
        "xapp-1-A012BCDEF-0123456789-abcdef",
    ),
    (
        "Slack webhook",
        r"hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9/_+-]{20,}",
        "hooks.slack.com/services/T00000000/B00000000/abcdefghijklmnop",
    ),
    (
        "Weights & Biases",
        r"wandb_v1_[A-Za-z0-9_-]{24,}",
        "wandb_v1_aBcDeFgHiJkLmNoPqRsTuVwX_yz",
    ),
    (
        "Weights & Biases, own server",
        r"local-[0-9a-f]{40}",
        "local-0123456789abcdef0123456789abcdef01234567",
    ),
    (
        "JSON web token",
        r"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dozjgNryP4J3jVmN",
    ),
    (
        "Google API",
        r"AIza[A-Za-z0-9_-]{35}",
        "AIzaSyA0123456789abcdefghijklmnopqrstuv",
    ),
    (
        "Google OAuth",
        r"ya29\.[A-Za-z0-9_-]{20,}",
        "ya29.a0AfH6SMBabcdefghijklmnop",
    ),
    (
        "NVIDIA",
        r"nvapi-[A-Za-z0-9_-]{20,}",
        "nvapi-AbCdEfGhIjKlMnOpQrStUvWx",
    ),
    (
        "npm",
        r"npm_[A-Za-z0-9]{30,}",
        "npm_abcdefghijklmnopqrstuvwxyz0123456789",
    ),
    (
        "PyPI",
        r"pypi-[A-Za-z0-9_-]{40,}",
        "pypi-AgEIcHlwaS5vcmcCJDAwMDAwMDAwLTAwMDAtMDAwMC0wMDAw",
    ),
    (
        "Stripe",
        r"[sr]k_(?:live|test)_[A-Za-z0-9]{16,}",
        "sk_live_0123456789abcdefABCDEF",
    ),
    (
        "Groq",
        r"gsk_[A-Za-z0-9]{30,}",
        "gsk_0123456789abcdefABCDEF0123456789ab",
    ),
    (
        "Replicate",
        r"r8_[A-Za-z0-9]{30,}",
        "r8_0123456789abcdefABCDEF0123456789ab",
    ),
    (
        "DigitalOcean",
        r"do[opr]_v1_[0-9a-f]{40,}",
        "dop_v1_0123456789abcdef0123456789abcdef0123456789abcdef",
    ),
    (
        "SendGrid",
        r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",
        "SG.abcdefghijklmnopqrstuv.0123456789abcdefghijABCDEF",
    ),
    (
        "Docker Hub",
        r"dckr_pat_[A-Za-z0-9_-]{20,}",
        "dckr_pat_AbCdEfGhIjKlMnOpQrStUvWxYz0",
    ),
    (
        "Telegram bot",
        r"[0-9]{8,10}:AA[A-Za-z0-9_-]{33}",
        "123456789:AAabcdefghijklmnopqrstuvwxyz0123456",
    ),
    (
        "private key block",
        r"-----BEGIN [A-Z ]*PRIVATE KEY-----[A-Za-z0-9+/=\s\\n]*",
        "-----BEGIN RSA PRIVATE KEY-----MIIEpAIBAAKCAQEA75",
    ),
];

/// Lower-case beginnings that make a look at the shapes worth while; compared without regard to case.
pub(super) const BEGINNINGS: &[&str] = &[
    "hf_",
    "api_org_",
    "sk-",
    "akia",
    "asia",
    "agpa",
    "aida",
    "aroa",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "gldt-",
    "glrt-",
    "glcbt-",
    "glptt-",
    "glft-",
    "glsoat-",
    "xox",
    "xapp-",
    "hooks.slack.com",
    "wandb_v1_",
    "local-",
    "eyj",
    "aiza",
    "ya29.",
    "nvapi-",
    "npm_",
    "pypi-",
    "sk_live_",
    "sk_test_",
    "rk_live_",
    "rk_test_",
    "gsk_",
    "r8_",
    "doo_v1_",
    "dop_v1_",
    "dor_v1_",
    "sg.",
    "dckr_pat_",
    ":aa",
    "-----begin",
];

/// One expression for all shapes. It never begins inside a word, so that a hash does not contain a token by chance; the
/// end of a percent or backslash escape is no inside.
pub(super) fn expression() -> Option<&'static Regex> {
    static EXPRESSION: OnceLock<Option<Regex>> = OnceLock::new();
    EXPRESSION
        .get_or_init(|| {
            let all: Vec<&str> = SHAPES.iter().map(|(_, pattern, _)| *pattern).collect();
            Regex::new(&format!(
                r"(?:^|[^A-Za-z0-9]|%[0-9A-Fa-f]{{2}}|\\[nrt])({})",
                all.join("|")
            ))
            .ok()
        })
        .as_ref()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_matches_its_example_and_is_announced_by_a_beginning() {
        for (issuer, pattern, example) in SHAPES {
            let found = expression()
                .unwrap()
                .captures(example)
                .unwrap_or_else(|| panic!("{issuer}"));
            assert_eq!(&found[1], *example, "{issuer}");
            assert!(Regex::new(pattern).unwrap().is_match(example), "{issuer}");
            let lower = example.to_ascii_lowercase();
            assert!(
                BEGINNINGS.iter().any(|beginning| lower.contains(beginning)),
                "{issuer}"
            );
        }
    }

    #[test]
    fn ordinary_words_match_no_shape() {
        for ordinary in [
            "0123456789abcdef0123456789abcdef01234567",
            "/home/u/.cache/flashinfer/0.6.8.post1/120f/cached_ops/page/page.so",
            "task-local-storage-for-everyone",
            "550e8400-e29b-41d4-a716-446655440000",
            "sk-learn",
            "--gpu-name=sm_120a",
            "shf_aBcDeFgHiJkLmNoPqRsTuVwXyZ12345678",
            "nvidia_cuda_nvcc_cu12-12.8.93.dist-info",
        ] {
            assert!(!expression().unwrap().is_match(ordinary), "{ordinary}");
        }
    }
}

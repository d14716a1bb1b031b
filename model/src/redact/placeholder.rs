//! What stands in a credential's place.

use sha2::{Digest, Sha256};

/// How every placeholder begins.
pub(super) const OPENING: &str = "<secret:";

/// Makes placeholders: a keyed hash, cut short.
///
/// 24 bits tell a handful of credentials apart and say nothing about any of them: sixteen million passwords share each
/// placeholder.
#[derive(Debug, Clone)]
pub(super) struct Placeholder {
    keyed: Sha256,
}

impl Placeholder {
    pub(super) fn new(key: &[u8]) -> Self {
        let mut keyed = Sha256::new();
        keyed.update((key.len() as u64).to_le_bytes());
        keyed.update(key);
        Placeholder { keyed }
    }

    pub(super) fn of(&self, secret: &str) -> String {
        let mut hash = self.keyed.clone();
        hash.update(secret.as_bytes());
        let digest = hash.finalize();
        let hex: String = digest
            .iter()
            .take(3)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        format!("{OPENING}{hex}>")
    }
}

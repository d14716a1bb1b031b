//! Equal things, kept once: a server asks the same library the same question a million times.

use std::{collections::HashSet, hash::Hash, sync::Arc};

/// What was seen so far, each different one once.
#[derive(Debug, Clone)]
pub(super) struct Pool<T>(HashSet<Arc<T>, foldhash::fast::RandomState>);

impl<T> Default for Pool<T> {
    fn default() -> Self {
        Pool(HashSet::default())
    }
}

impl<T: Eq + Hash> Pool<T> {
    /// The one of those seen before that equals `what`, or `what` itself.
    pub(super) fn share(&mut self, what: T) -> Arc<T> {
        if let Some(known) = self.0.get(&what) {
            return Arc::clone(known);
        }
        let new = Arc::new(what);
        self.0.insert(Arc::clone(&new));
        new
    }

    /// Forgets what nobody else holds any more.
    pub(super) fn forget_unshared(&mut self) {
        self.0.retain(|what| Arc::strong_count(what) > 1);
        self.0.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_things_are_one_and_different_ones_stay_apart() {
        let mut pool = Pool::default();
        let [a, b, c] = ["x", "x", "y"].map(|s| pool.share(s.to_owned()));
        assert!(Arc::ptr_eq(&a, &b));
        assert_eq!((a.as_str(), c.as_str()), ("x", "y"));
    }
}

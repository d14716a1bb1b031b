//! Rows of a forest, with folded branches left out.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

/// A row of a forest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeRow {
    /// Position of the node in its list.
    pub at: usize,
    /// Steps from the root.
    pub depth: usize,
    /// Nodes below it, at any depth.
    pub below: usize,
    /// Whether they are left out.
    pub folded: bool,
}

/// The rows of a forest: `parents` gives each node's parent, which always stands before it.
pub fn rows<K: Eq + Hash>(
    parents: &[Option<usize>],
    key: impl Fn(usize) -> K,
    folded: &HashSet<K>,
) -> Vec<TreeRow> {
    let mut children: HashMap<Option<usize>, Vec<usize>> = HashMap::new();
    let mut below = vec![0_usize; parents.len()];
    for (at, parent) in parents.iter().enumerate().rev() {
        let parent = parent.filter(|p| *p < at);
        if let Some(parent) = parent {
            let own = below.get(at).copied().unwrap_or(0);
            if let Some(count) = below.get_mut(parent) {
                *count += own + 1;
            }
        }
        children.entry(parent).or_default().push(at);
    }
    let mut out = Vec::with_capacity(parents.len());
    // Lists of children are in reverse, so that the stack gives them in order.
    let mut stack: Vec<(usize, usize)> = children
        .get(&None)
        .into_iter()
        .flatten()
        .map(|&at| (at, 0))
        .collect();
    while let Some((at, depth)) = stack.pop() {
        let below = below.get(at).copied().unwrap_or(0);
        let folded = below > 0 && folded.contains(&key(at));
        out.push(TreeRow {
            at,
            depth,
            below,
            folded,
        });
        if !folded {
            stack.extend(
                children
                    .get(&Some(at))
                    .into_iter()
                    .flatten()
                    .map(|&child| (child, depth + 1)),
            );
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branches_stand_below_their_parents_and_fold() {
        let parents = [None, Some(0), Some(0), Some(1), None];
        let order = |folded: &[usize]| {
            rows(&parents, |at| at, &folded.iter().copied().collect())
                .iter()
                .map(|r| (r.at, r.depth, r.below))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            order(&[]),
            [(0, 0, 3), (1, 1, 1), (3, 2, 0), (2, 1, 0), (4, 0, 0)]
        );
        assert_eq!(order(&[1]), [(0, 0, 3), (1, 1, 1), (2, 1, 0), (4, 0, 0)]);
        assert_eq!(order(&[0]), [(0, 0, 3), (4, 0, 0)]);
    }
}

//! Rows of a forest, with folded branches left out.

use std::collections::HashSet;
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
    /// What is known of a node; its children are a chain, from the last to the first.
    #[derive(Clone, Copy, Default)]
    struct Node {
        /// Nodes below it, at any depth.
        below: usize,
        /// Its last child.
        last: Option<usize>,
        /// The child of its parent before it.
        before: Option<usize>,
    }
    let mut nodes = vec![Node::default(); parents.len()];
    let mut last_root = None;
    for (at, parent) in parents.iter().enumerate() {
        let parent = parent.filter(|p| *p < at).and_then(|p| nodes.get_mut(p));
        let last = parent.map_or(&mut last_root, |parent| &mut parent.last);
        let before = last.replace(at);
        if let Some(node) = nodes.get_mut(at) {
            node.before = before;
        }
    }
    for (at, parent) in parents.iter().enumerate().rev() {
        let own = nodes.get(at).map_or(0, |node| node.below);
        if let Some(parent) = parent.filter(|p| *p < at).and_then(|p| nodes.get_mut(p)) {
            parent.below += own + 1;
        }
    }
    let chain = |last: Option<usize>| {
        let before = |at: &usize| nodes.get(*at).and_then(|node| node.before);
        std::iter::successors(last, before)
    };
    let mut out = Vec::with_capacity(parents.len());
    // A chain goes from the last child to the first, so that the stack gives them in order.
    let mut stack: Vec<(usize, usize)> = chain(last_root).map(|at| (at, 0)).collect();
    while let Some((at, depth)) = stack.pop() {
        let node = nodes.get(at).copied().unwrap_or_default();
        let below = node.below;
        let folded = below > 0 && folded.contains(&key(at));
        out.push(TreeRow {
            at,
            depth,
            below,
            folded,
        });
        if !folded {
            stack.extend(chain(node.last).map(|child| (child, depth + 1)));
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

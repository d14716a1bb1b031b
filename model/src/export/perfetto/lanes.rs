//! Parallel builds on tracks: slices of one track must lie within each other, so builds that overlap get lanes.

use std::collections::HashMap;

use crate::report::Build;

/// A build's place: its lane, its start and its end in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Placed<'a> {
    /// The build.
    pub(super) build: &'a Build,
    /// Number of the lane, from 0.
    pub(super) lane: usize,
    /// When it began.
    pub(super) start: u64,
    /// When it ended, after its start.
    pub(super) end: u64,
}

/// Gives each build a lane. A build goes into the lane of the one that started it when it fits, else into one that is
/// free.
pub(super) fn place(builds: &[Build], trace_end: u64) -> Vec<Placed<'_>> {
    let mut order: Vec<&Build> = builds.iter().collect();
    let end_of = |build: &Build| {
        let end = build.duration_ns.map_or(trace_end, |duration| {
            build.start_ns.saturating_add(duration)
        });
        // A slice without a length would end before it began.
        end.max(build.start_ns + 1)
    };
    // Outer builds first where several begin together.
    order.sort_by_key(|build| (build.start_ns, std::cmp::Reverse(end_of(build)), build.id));
    let mut lanes: Vec<Vec<(u32, u64)>> = Vec::new();
    let mut lane_of: HashMap<u32, usize> = HashMap::new();
    let mut placed = Vec::with_capacity(order.len());
    for build in order {
        let (start, end) = (build.start_ns, end_of(build));
        for lane in &mut lanes {
            while lane.last().is_some_and(|(_, until)| *until <= start) {
                lane.pop();
            }
        }
        let parent_lane = build
            .parent
            .and_then(|parent| lane_of.get(&parent).copied());
        let inside_parent = parent_lane.filter(|lane| {
            lanes
                .get(*lane)
                .and_then(|open| open.last())
                .is_some_and(|(id, until)| Some(*id) == build.parent && *until >= end)
        });
        let lane = inside_parent
            .or_else(|| lanes.iter().position(Vec::is_empty))
            .unwrap_or(lanes.len());
        if lane == lanes.len() {
            lanes.push(Vec::new());
        }
        if let Some(open) = lanes.get_mut(lane) {
            open.push((build.id, end));
        }
        lane_of.insert(build.id, lane);
        placed.push(Placed {
            build,
            lane,
            start,
            end,
        });
    }
    placed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(id: u32, parent: Option<u32>, start: u64, duration: u64) -> Build {
        Build {
            id,
            parent,
            start_ns: start,
            duration_ns: Some(duration),
            ..Build::default()
        }
    }

    #[test]
    fn children_lie_in_their_parents_lane_when_they_fit() {
        let builds = [
            build(1, None, 0, 100),
            build(2, Some(1), 10, 50),
            build(3, Some(2), 20, 20),
            // In parallel with 2: another lane.
            build(4, Some(1), 15, 60),
            // After all of them: the first lane again.
            build(5, None, 200, 0),
            // Outlives its parent.
            build(6, Some(1), 90, 60),
        ];
        let lanes: Vec<(u32, usize)> = place(&builds, 1000)
            .iter()
            .map(|placed| (placed.build.id, placed.lane))
            .collect();
        assert_eq!(lanes, [(1, 0), (2, 0), (4, 1), (3, 0), (6, 1), (5, 0)]);
    }
}

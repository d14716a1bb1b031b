//! Which toolkit release first knew, and which last knew, each GPU architecture (resolution.md 2.1).

use super::{Arch, Suffix, Version};

/// One line of the table: a number and its suffixes.
struct Line {
    number: u32,
    suffixes: &'static [Suffix],
    /// First release whose ptxas accepts it.
    first: Version,
    /// First release that rejects it again, for architectures that were dropped or renamed.
    dropped: Option<Version>,
    /// Lowest PTX ISA that may name it.
    ptx: Version,
}

const NONE: &[Suffix] = &[Suffix::None];
const A: &[Suffix] = &[Suffix::A];
const F: &[Suffix] = &[Suffix::F];
const NONE_A: &[Suffix] = &[Suffix::None, Suffix::A];
const ALL: &[Suffix] = &[Suffix::None, Suffix::A, Suffix::F];

const fn line(
    number: u32,
    suffixes: &'static [Suffix],
    first: (u32, u32),
    dropped: Option<(u32, u32)>,
    ptx: (u32, u32),
) -> Line {
    Line {
        number,
        suffixes,
        first: Version::release(first.0, first.1),
        dropped: match dropped {
            Some((major, minor)) => Some(Version::release(major, minor)),
            None => None,
        },
        ptx: Version::release(ptx.0, ptx.1),
    }
}

/// Run with the ptxas of 11.8, 12.6, 12.8, 12.9, 13.0, 13.4 and 13.5; minors between are from documentation.
const TABLE: &[Line] = &[
    line(35, NONE, (5, 0), Some((12, 0)), (3, 1)),
    line(37, NONE, (6, 5), Some((12, 0)), (4, 1)),
    line(50, NONE, (6, 5), Some((13, 0)), (4, 0)),
    line(52, NONE, (7, 0), Some((13, 0)), (4, 1)),
    line(53, NONE, (7, 0), Some((13, 0)), (4, 2)),
    line(60, NONE, (8, 0), Some((13, 0)), (5, 0)),
    line(61, NONE, (8, 0), Some((13, 0)), (5, 0)),
    line(62, NONE, (8, 0), Some((13, 0)), (5, 0)),
    line(70, NONE, (9, 0), Some((13, 0)), (6, 0)),
    line(72, NONE, (9, 2), Some((13, 0)), (6, 1)),
    line(75, NONE, (10, 0), None, (6, 3)),
    line(80, NONE, (11, 0), None, (7, 0)),
    line(86, NONE, (11, 1), None, (7, 1)),
    line(87, NONE, (11, 4), None, (7, 4)),
    line(88, NONE, (13, 0), None, (9, 0)),
    line(89, NONE, (11, 8), None, (7, 8)),
    line(90, NONE, (11, 8), None, (7, 8)),
    line(90, A, (12, 0), None, (8, 0)),
    line(100, NONE_A, (12, 8), None, (8, 6)),
    line(100, F, (12, 9), None, (8, 8)),
    // Thor was sm_101 in 12.8 and 12.9 and is sm_110 since 13.0, which rejects the old name.
    line(101, NONE_A, (12, 8), Some((13, 0)), (8, 6)),
    line(101, F, (12, 9), Some((13, 0)), (8, 8)),
    line(103, ALL, (12, 9), None, (8, 8)),
    line(107, ALL, (13, 4), None, (9, 4)),
    line(110, ALL, (13, 0), None, (9, 0)),
    line(120, NONE_A, (12, 8), None, (8, 7)),
    line(120, F, (12, 9), None, (8, 8)),
    line(121, ALL, (12, 9), None, (8, 8)),
];

fn find(arch: Arch) -> Option<&'static Line> {
    TABLE
        .iter()
        .find(|line| line.number == arch.number() && line.suffixes.contains(&arch.suffix))
}

/// The first toolkit release whose nvcc and ptxas accept `arch`; `None` for an architecture not in the table.
#[must_use]
pub fn first_toolkit_for(arch: Arch) -> Option<Version> {
    find(arch).map(|line| line.first)
}

/// The first release that no longer accepts `arch`; `None` while the newest known one does.
#[must_use]
pub fn dropped_in(arch: Arch) -> Option<Version> {
    find(arch)?.dropped
}

/// The lowest PTX ISA whose `.target` may name `arch`.
#[must_use]
pub fn lowest_ptx_isa_for(arch: Arch) -> Option<Version> {
    find(arch).map(|line| line.ptx)
}

/// Whether the tools of release `tool` accept `arch`; `None` where the table cannot tell.
///
/// An architecture that is not in the table is newer than the table, so tools up to its newest entry are known
/// to reject it only as far as that is unprovable here: the answer is `None`.
#[must_use]
pub fn supports(tool: Version, arch: Arch) -> Option<bool> {
    let line = find(arch)?;
    let tool = tool.without_patch();
    Some(line.first <= tool && line.dropped.is_none_or(|dropped| tool < dropped))
}

//! The PTX ISA that each toolkit release writes and reads (resolution.md 2.3).

use super::Version;

const fn pair(toolkit: (u32, u32), isa: (u32, u32)) -> (Version, Version) {
    (
        Version::release(toolkit.0, toolkit.1),
        Version::release(isa.0, isa.1),
    )
}

/// Toolkit release and its PTX ISA. 12.7 was never published; its ISA 8.6 exists.
const TABLE: &[(Version, Version)] = &[
    pair((11, 0), (7, 0)),
    pair((11, 1), (7, 1)),
    pair((11, 2), (7, 2)),
    pair((11, 3), (7, 3)),
    pair((11, 4), (7, 4)),
    pair((11, 5), (7, 5)),
    pair((11, 6), (7, 6)),
    pair((11, 7), (7, 7)),
    pair((11, 8), (7, 8)),
    pair((12, 0), (8, 0)),
    pair((12, 1), (8, 1)),
    pair((12, 2), (8, 2)),
    pair((12, 3), (8, 3)),
    pair((12, 4), (8, 4)),
    pair((12, 5), (8, 5)),
    pair((12, 6), (8, 5)),
    pair((12, 7), (8, 6)),
    pair((12, 8), (8, 7)),
    pair((12, 9), (8, 8)),
    pair((13, 0), (9, 0)),
    pair((13, 1), (9, 1)),
    pair((13, 2), (9, 2)),
    pair((13, 3), (9, 3)),
    pair((13, 4), (9, 4)),
    pair((13, 5), (9, 5)),
];

/// The highest PTX ISA that the tools (or the driver) of CUDA release `toolkit` read, which is also what its
/// nvcc writes. `None` for releases outside the table.
#[must_use]
pub fn ptx_isa_of(toolkit: Version) -> Option<Version> {
    TABLE
        .iter()
        .find(|(release, _)| release.same_release(toolkit))
        .map(|(_, isa)| *isa)
}

/// The first toolkit release that reads PTX ISA `isa`, so the oldest that can have written it.
#[must_use]
pub fn first_toolkit_for_ptx(isa: Version) -> Option<Version> {
    TABLE
        .iter()
        .find(|(_, reads)| *reads >= isa.without_patch())
        .map(|(release, _)| *release)
}

/// All releases whose nvcc writes PTX ISA `isa` by default (two for 8.5).
pub fn toolkits_writing(isa: Version) -> impl Iterator<Item = Version> {
    TABLE
        .iter()
        .filter(move |(_, writes)| writes.same_release(isa))
        .map(|(release, _)| *release)
}

/// Whether tools or a driver of CUDA release `reader` accept PTX of ISA `isa`; `None` outside the table.
#[must_use]
pub fn reads_ptx(reader: Version, isa: Version) -> Option<bool> {
    ptx_isa_of(reader).map(|reads| isa.without_patch() <= reads)
}

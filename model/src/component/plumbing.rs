//! Packages that only act for others.

use super::{Component, NOTHING};

/// ninja.
pub(super) const NINJA: Component = Component {
    name: "ninja",
    aliases: &["ninja"],
    plumbing: true,
    ..NOTHING
};

/// setuptools.
pub(super) const SETUPTOOLS: Component = Component {
    name: "setuptools",
    aliases: &["setuptools", "-distutils-hack", "pkg-resources"],
    plumbing: true,
    ..NOTHING
};

/// pip.
pub(super) const PIP: Component = Component {
    name: "pip",
    aliases: &["pip"],
    plumbing: true,
    ..NOTHING
};

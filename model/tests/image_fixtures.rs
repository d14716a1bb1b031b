//! Every form of CUDA image, read from small files that were made for this.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use jittrace_model::image::{self, Compression, Container, Fit, ImageFacts, cubin};
use jittrace_model::toolkit::{ComputeCapability, Version};
use std::path::Path;

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/fixtures/images")
            .join(name),
    )
    .unwrap()
}

fn facts(name: &str) -> ImageFacts {
    image::read(&fixture(name)).unwrap_or_else(|| panic!("{name} holds no image"))
}

fn words<T: std::fmt::Display>(items: impl IntoIterator<Item = T>) -> String {
    items
        .into_iter()
        .map(|item| item.to_string())
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn archs_and_ptx_of_every_form() {
    let rows = [
        ("k_124_89.cubin", Container::Cubin, "sm_89", ""),
        ("k_124_90a.cubin", Container::Cubin, "sm_90a", ""),
        ("k_128_120a.cubin", Container::Cubin, "sm_120a", ""),
        ("k_129_120a.cubin", Container::Cubin, "sm_120a", ""),
        ("k_130_90a.cubin", Container::Cubin, "sm_90a", ""),
        ("k_130_120.cubin", Container::Cubin, "sm_120", ""),
        ("k_130_120a.cubin", Container::Cubin, "sm_120a", ""),
        ("k_130_120f.cubin", Container::Cubin, "sm_120f", ""),
        ("k_124.fatbin", Container::Fatbin, "sm_90", "compute_90:8.4"),
        (
            "k_130.fatbin",
            Container::Fatbin,
            "sm_120f",
            "compute_120:9.0 compute_120f:9.0",
        ),
        (
            "k_130_multi.fatbin",
            Container::Fatbin,
            "sm_80 sm_90a sm_120f",
            "compute_80:9.0",
        ),
        (
            "k_130_lz4.fatbin",
            Container::Fatbin,
            "sm_90a",
            "compute_90a:9.0",
        ),
        (
            "k_c.o",
            Container::HostObject,
            "sm_90a",
            "compute_90:9.0 compute_90a:9.0",
        ),
        (
            "k_rdc.o",
            Container::HostObject,
            "sm_90a",
            "compute_90:9.0 compute_90a:9.0",
        ),
        ("k_130_120f.ptx", Container::Ptx, "", "compute_120f:9.0"),
        ("triton_sm120a.ptx", Container::Ptx, "", "compute_120a:8.8"),
    ];
    for (name, container, sass, ptx) in rows {
        let facts = facts(name);
        assert_eq!(facts.container, container, "{name}");
        assert_eq!(words(&facts.sass), sass, "{name}");
        let found = words(
            facts
                .ptx
                .iter()
                .map(|ptx| format!("{}:{}", ptx.target.unwrap(), ptx.isa)),
        );
        assert_eq!(found, ptx, "{name}");
        assert!(!facts.truncated, "{name}");
    }
}

#[test]
fn the_compiler_that_made_them() {
    let rows = [
        // Old ABI: the header states the release, no tool signed.
        ("k_124_89.cubin", Some(Version::release(12, 4)), None),
        ("k_124_90a.cubin", Some(Version::release(12, 4)), None),
        ("k_128_120a.cubin", None, Some(Version::exact(12, 8, 93))),
        ("k_129_120a.cubin", None, Some(Version::exact(12, 9, 86))),
        (
            "k_130_90a.cubin",
            Some(Version::release(13, 0)),
            Some(Version::exact(13, 0, 88)),
        ),
        (
            "k_130_120f.cubin",
            Some(Version::release(13, 0)),
            Some(Version::exact(13, 0, 88)),
        ),
        ("k_130.fatbin", None, Some(Version::exact(13, 0, 88))),
        ("k_c.o", None, Some(Version::exact(13, 0, 88))),
        ("k_130_120f.ptx", Some(Version::exact(13, 0, 88)), None),
        ("triton_sm120a.ptx", None, None),
    ];
    for (name, stated, stamped) in rows {
        let facts = facts(name);
        assert_eq!(facts.stated_toolkit, stated, "{name}");
        assert_eq!(
            facts.stamps.iter().find_map(|stamp| stamp.version),
            stamped,
            "{name}"
        );
    }
    let stamp = cubin::read(&fixture("k_130_120f.cubin"))
        .unwrap()
        .stamp
        .unwrap();
    assert_eq!(stamp.tool, "ptxas");
    assert!(stamp.options.starts_with("-arch sm_120f"), "{stamp:?}");
    assert_eq!(stamp.build, "Build cuda_13.0.r13.0/compiler.36424714_0");
}

#[test]
fn compression_is_told_without_decompressing() {
    let stored = |name| facts(name).compression.unwrap();
    assert_eq!(stored("k_130_multi.fatbin"), [Compression::Zstd]);
    assert_eq!(stored("k_130_lz4.fatbin"), [Compression::Lz4]);
    assert!(stored("k_130.fatbin").contains(&Compression::None));
}

#[test]
fn what_a_gpu_would_take() {
    let multi = facts("k_130_multi.fatbin");
    let fit = |major, minor, driver: (u32, u32)| {
        multi.fit(
            ComputeCapability { major, minor },
            Some(Version::release(driver.0, driver.1)),
        )
    };
    assert!(matches!(fit(12, 1, (13, 0)), Fit::Sass(arch) if arch.to_string() == "sm_120f"));
    assert!(matches!(fit(8, 6, (13, 0)), Fit::Sass(arch) if arch.to_string() == "sm_80"));
    assert!(matches!(fit(10, 0, (13, 0)), Fit::Ptx(_)));
    assert!(
        matches!(fit(10, 0, (12, 8)), Fit::PtxTooNew(ptx) if ptx.isa == Version::release(9, 0))
    );
    assert_eq!(fit(7, 5, (13, 0)), Fit::Nothing);
    let only_90a = facts("k_124_90a.cubin");
    assert_eq!(
        only_90a.fit(
            ComputeCapability {
                major: 12,
                minor: 0
            },
            None
        ),
        Fit::Nothing
    );
}

#[test]
fn broken_files_give_less_and_no_panic() {
    for name in [
        "k_130_multi.fatbin",
        "k_130_120f.cubin",
        "k_c.o",
        "k_130_120f.ptx",
    ] {
        let bytes = fixture(name);
        for end in 0..bytes.len() {
            let _ = image::read(&bytes[..end]);
        }
        for at in 0..bytes.len() {
            let mut broken = bytes.clone();
            broken[at] ^= 0xff;
            let _ = image::read(&broken);
        }
    }
    let torn = image::read(&fixture("k_130_multi.fatbin")[..200]).unwrap();
    assert!(torn.truncated);
}

#[test]
fn files_without_images_are_none() {
    for bytes in [
        &b""[..],
        b"\x7fELF",
        b"#!/bin/sh\n",
        b"// .version in a comment\n.target sm_90\n",
        b"P\xedU\xba",
    ] {
        let read = image::read(bytes);
        assert!(read.is_none_or(|facts| facts.sass.is_empty() && facts.ptx.is_empty()));
    }
    // A text that a program hands to cuModuleLoadData, with a NUL at its end.
    let ptx = image::ptx::read(b".version 9.2\n.target sm_80\n\0").unwrap();
    assert_eq!(
        (ptx.isa, ptx.target.unwrap().to_string().as_str()),
        (Version::release(9, 2), "compute_80")
    );
}

//! `ld.so.cache`: caches that ldconfig wrote, caches that nobody should have written.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;
use std::process::Command;

use jittrace_model::loader::{CacheError, LdSoCache, Processor, System, usual_default_directories};
use proptest::prelude::*;

fn system(level: u8) -> System {
    let processor = Processor {
        level,
        platform: "x86_64".into(),
        capabilities: vec!["x86_64".into()],
    };
    System::glibc((2, 36), 62, &processor, usual_default_directories(62, true))
}

/// Writes a cache of the present layout: (name, path, flags, hwcap), and the names of the extension.
fn write(entries: &[(&str, &str, i32, u64)], names: &[&str]) -> Vec<u8> {
    let mut strings: Vec<u8> = Vec::new();
    let base = 48 + entries.len() * 24;
    let mut put = |text: &str| -> u32 {
        let at = base + strings.len();
        strings.extend(text.as_bytes());
        strings.push(0);
        u32::try_from(at).unwrap()
    };
    let mut table: Vec<u8> = Vec::new();
    for (name, path, flags, hwcap) in entries {
        let (name, path) = (put(name), put(path));
        table.extend(flags.to_le_bytes());
        table.extend(name.to_le_bytes());
        table.extend(path.to_le_bytes());
        table.extend(0u32.to_le_bytes());
        table.extend(hwcap.to_le_bytes());
    }
    let names: Vec<u32> = names.iter().map(|name| put(name)).collect();
    while !(base + strings.len()).is_multiple_of(4) {
        strings.push(0);
    }
    let extension = u32::try_from(base + strings.len()).unwrap();
    let mut file: Vec<u8> = b"glibc-ld.so.cache1.1".to_vec();
    file.extend(u32::try_from(entries.len()).unwrap().to_le_bytes());
    file.extend(u32::try_from(strings.len()).unwrap().to_le_bytes());
    file.extend([2, 0, 0, 0]);
    file.extend(extension.to_le_bytes());
    file.extend([0; 12]);
    file.extend(table);
    file.extend(strings);
    file.extend(0xeaa4_2174_u32.to_le_bytes());
    file.extend(1u32.to_le_bytes());
    for field in [
        1,
        0,
        extension + 24,
        u32::try_from(names.len() * 4).unwrap(),
    ] {
        file.extend(u32::to_le_bytes(field));
    }
    names
        .iter()
        .for_each(|name| file.extend(name.to_le_bytes()));
    file
}

#[test]
fn the_best_entry_for_a_processor() {
    const HWCAPS: u64 = 1 << 62;
    let bytes = write(
        &[
            ("libx.so", "/lib32/libx.so", 0x003, 0),
            (
                "libx.so",
                "/lib/glibc-hwcaps/x86-64-v2/libx.so",
                0x303,
                HWCAPS,
            ),
            (
                "libx.so",
                "/lib/glibc-hwcaps/x86-64-v4/libx.so",
                0x303,
                HWCAPS | 2,
            ),
            (
                "libx.so",
                "/lib/glibc-hwcaps/x86-64-v3/libx.so",
                0x303,
                HWCAPS | 1,
            ),
            (
                "libx.so",
                "/lib/glibc-hwcaps/nobody/libx.so",
                0x303,
                HWCAPS | 7,
            ),
            ("libx.so", "/lib/sse9/libx.so", 0x303, 1 << 40),
            ("libx.so", "/lib/libx.so", 0x303, 0),
            ("libx.so", "/usr/lib/libx.so", 0x303, 0),
            ("liby.so", "/lib32/liby.so", 0x003, 0),
        ],
        &["x86-64-v2", "x86-64-v3", "x86-64-v4"],
    );
    let cache = LdSoCache::parse(&bytes).unwrap();
    let cases = [
        (4, "/lib/glibc-hwcaps/x86-64-v4/libx.so"),
        (3, "/lib/glibc-hwcaps/x86-64-v3/libx.so"),
        (2, "/lib/glibc-hwcaps/x86-64-v2/libx.so"),
        (1, "/lib/libx.so"),
    ];
    for (level, expected) in cases {
        assert_eq!(
            cache.lookup("libx.so", &system(level)).unwrap().path,
            expected,
            "level {level}"
        );
    }
    assert_eq!(cache.lookup("liby.so", &system(4)), None);
    assert_eq!(cache.entries("libx.so").len(), 7);
}

#[test]
fn what_ldconfig_writes_is_what_is_read() {
    let Some(layouts) = ldconfig_layouts() else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(directory.path()).unwrap();
    let exe = std::env::current_exe().unwrap();
    // ldconfig takes any shared object; a position-independent executable without SONAME will do.
    for place in [
        "lib",
        "lib/glibc-hwcaps/x86-64-v2",
        "lib/glibc-hwcaps/x86-64-v3",
        "plain",
    ] {
        fs::create_dir_all(root.join(place)).unwrap();
        fs::copy(&exe, root.join(place).join("libjt.so.1")).unwrap();
    }
    for layout in layouts {
        let cache = root.join(format!("cache.{layout}"));
        // The layout with both tables is older than subdirectories; ldconfig garbles their names in it.
        let library = root.join(if *layout == "new" { "lib" } else { "plain" });
        fs::write(root.join("conf"), format!("{}\n", library.display())).unwrap();
        let bytes = ldconfig(&root, &cache, layout);
        let parsed = LdSoCache::parse(&bytes);
        if *layout == "old" {
            assert!(
                matches!(parsed, Err(CacheError::Truncated(..))),
                "{parsed:?}"
            );
            continue;
        }
        let parsed = parsed.unwrap();
        let listed = Command::new("ldconfig")
            .args(["-p", "-C"])
            .arg(&cache)
            .output()
            .unwrap();
        let listed = String::from_utf8(listed.stdout).unwrap();
        let mut lines = 0;
        for line in listed.lines().filter(|line| line.contains(" => ")) {
            let (name, path) = line.split_once(" => ").unwrap();
            let name = name.split_whitespace().next().unwrap();
            assert!(
                parsed.entries(name).iter().any(|entry| entry.path == path),
                "{line}"
            );
            lines += 1;
        }
        assert_eq!(parsed.len(), lines, "{layout}");
        for (level, place) in [
            (1, ""),
            (2, "glibc-hwcaps/x86-64-v2"),
            (4, "glibc-hwcaps/x86-64-v3"),
        ] {
            let found = parsed.lookup("libjt.so.1", &system(level)).unwrap();
            let place = if *layout == "new" { place } else { "" };
            let expected = library.join(place).join("libjt.so.1");
            assert_eq!(Path::new(&found.path), expected, "{layout}, level {level}");
        }
    }
}

fn ldconfig_layouts() -> Option<&'static [&'static str]> {
    let version = Command::new("ldconfig").arg("--version").output();
    if version.is_ok_and(|output| output.status.success()) {
        return Some(&["new", "compat", "old"]);
    }
    eprintln!("SKIPPED: no ldconfig on PATH");
    None
}

fn ldconfig(root: &Path, cache: &Path, layout: &str) -> Vec<u8> {
    let output = Command::new("ldconfig")
        .args(["-X", "-c", layout, "-f"])
        .arg(root.join("conf"))
        .arg("-C")
        .arg(cache)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    fs::read(cache).unwrap()
}

#[test]
fn no_cache_is_told_apart_from_a_damaged_one() {
    assert_eq!(LdSoCache::parse(b""), Err(CacheError::UnknownMagic));
    assert_eq!(LdSoCache::parse(&[0; 500]), Err(CacheError::UnknownMagic));
    let mut bytes = write(&[("a", "/a", 0x303, 0)], &[]);
    bytes[20..24].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(matches!(
        LdSoCache::parse(&bytes),
        Err(CacheError::Truncated(4_294_967_295, _))
    ));
    let mut old = b"ld.so-1.7.0\0".to_vec();
    old.extend(u32::MAX.to_le_bytes());
    assert!(matches!(
        LdSoCache::parse(&old),
        Err(CacheError::Truncated(4_294_967_295, 16))
    ));
}

proptest! {
    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = LdSoCache::parse(&bytes);
    }

    #[test]
    fn any_damage(
        changes in proptest::collection::vec((0usize..400, any::<u8>()), 1..20),
        keep in 0usize..500,
        old in any::<bool>(),
    ) {
        let mut bytes = if old { b"ld.so-1.7.0\0\0\0\0\0".to_vec() } else { Vec::new() };
        bytes.extend(write(
            &[("liba.so", "/lib/liba.so", 0x303, 1 << 62), ("libb.so", "/lib/libb.so", 0x303, 0), ("libb.so", "/x", 3, 7)],
            &["x86-64-v2", "x86-64-v3"],
        ));
        for (at, value) in changes {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = value;
            }
        }
        bytes.truncate(keep);
        if let Ok(cache) = LdSoCache::parse(&bytes) {
            for level in 0..=4 {
                let _ = cache.lookup("libb.so", &system(level));
            }
        }
    }

    /// Whatever is written is read: names, paths, flags, in order.
    #[test]
    fn round_trip(names in proptest::collection::vec("[a-z]{1,6}\\.so", 0..20)) {
        let entries: Vec<(&str, &str, i32, u64)> = names.iter().map(|name| (name.as_str(), name.as_str(), 0x303, 0)).collect();
        let cache = LdSoCache::parse(&write(&entries, &[])).unwrap();
        prop_assert_eq!(cache.len(), names.len());
        for name in &names {
            prop_assert_eq!(cache.entries(name).len(), names.iter().filter(|other| *other == name).count());
            prop_assert_eq!(&cache.lookup(name, &system(1)).unwrap().path, name);
        }
    }
}

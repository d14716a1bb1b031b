//! The committed kernel object belongs to the committed sources: found without the toolchain that builds it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use sha2::{Digest, Sha256};

fn ebpf() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../ebpf")
}

fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .fold(String::new(), |mut text, byte| {
            write!(text, "{byte:02x}").unwrap();
            text
        })
}

fn files_below(directory: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files_below(&path, into);
        } else {
            into.push(path);
        }
    }
}

/// As `ebpf/build.sh` computes it: the hash of what `sha256sum` prints for each file, in the order of their names.
fn hash_of_sources() -> String {
    let root = ebpf();
    let mut files = vec![root.join("Cargo.toml"), root.join("Cargo.lock")];
    files_below(&root.join("src"), &mut files);
    let mut names: Vec<String> = files
        .iter()
        .map(|file| {
            file.strip_prefix(&root)
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    names.sort_unstable();
    let list: String = names
        .iter()
        .map(|name| format!("{}  {name}\n", digest(&fs::read(root.join(name)).unwrap())))
        .collect();
    digest(list.as_bytes())
}

#[test]
fn object_and_lock_are_of_these_sources() {
    let lock = fs::read_to_string(ebpf().join("object.lock")).unwrap();
    let value = |key: &str| {
        lock.lines()
            .find_map(|line| line.strip_prefix(key)?.strip_prefix(' '))
            .unwrap_or_else(|| panic!("object.lock has no line `{key}`"))
            .to_owned()
    };
    assert_eq!(
        value("sources"),
        hash_of_sources(),
        "ebpf/src changed since the object was built: run ebpf/build.sh --update"
    );
    assert_eq!(
        value("object"),
        digest(&fs::read(ebpf().join("jittrace.bpf.o")).unwrap()),
        "the object is not the one that object.lock was written for: run ebpf/build.sh --update"
    );
    for tool in ["rustc", "llvm", "linker"] {
        assert!(
            value(tool).contains('.'),
            "object.lock must name the {tool} release"
        );
    }
}

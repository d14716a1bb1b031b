//! Every dependency may be used under a licence of `deny.toml`: the same rule as `cargo deny check licenses`, without the
//! tool.

use std::{collections::BTreeSet, fs, path::Path, process::Command};

#[test]
fn every_dependency_has_an_allowed_licence() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let rules = fs::read_to_string(workspace.join("deny.toml")).unwrap();
    let list = rules
        .split("allow = [")
        .nth(1)
        .unwrap()
        .split(']')
        .next()
        .unwrap();
    let allowed: BTreeSet<&str> = list.split('"').skip(1).step_by(2).collect();
    assert!(allowed.contains("MIT"));
    // The tree of what is really built; the lock file also names what unused options would bring.
    let output = Command::new(env!("CARGO"))
        .args([
            "tree",
            "--workspace",
            "--edges",
            "normal,build",
            "--prefix",
            "none",
        ])
        .args(["--format", "{p}|{l}", "--locked", "--offline"])
        .current_dir(&workspace)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let tree = String::from_utf8_lossy(&output.stdout).into_owned();
    let packages: BTreeSet<(&str, &str)> = tree
        .lines()
        .filter_map(|line| line.trim_end_matches(" (*)").split_once('|'))
        .collect();
    assert!(packages.len() > 50);
    for (package, licence) in packages {
        assert!(
            is_allowed(licence, &allowed),
            "{package} is under {licence:?}"
        );
    }
}

/// Whether an SPDX expression can be satisfied; `/` is the older spelling of OR.
fn is_allowed(licence: &str, allowed: &BTreeSet<&str>) -> bool {
    let expression = licence.replace('/', " OR ");
    let simple = |part: &str| {
        let part = part.trim_matches(['(', ')', ' ']);
        part.split(" OR ")
            .any(|choice| allowed.contains(choice.trim_matches(['(', ')', ' '])))
    };
    expression.split(" AND ").all(simple)
        || expression
            .split(" OR ")
            .any(|choice| choice.split(" AND ").all(simple))
}

#[test]
fn expressions_are_read_as_they_are_meant() {
    let allowed = BTreeSet::from(["MIT", "Unicode-3.0"]);
    for (licence, may) in [
        ("MIT", true),
        ("GPL-3.0", false),
        ("GPL-3.0 OR MIT", true),
        ("MIT/Apache-2.0", true),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
        ("MIT AND GPL-3.0", false),
        ("", false),
    ] {
        assert_eq!(is_allowed(licence, &allowed), may, "{licence}");
    }
}

//! The book says what the code does: lists in it are compared with the tables that they come from.

use std::{fs, path::Path};

fn page(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../docs")
        .join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn every_captured_variable_is_in_the_book() {
    let text = page("privacy.md");
    for prefix in jittrace_wire::environment::PREFIXES {
        assert!(text.contains(&format!("`{prefix}*`")), "{prefix}");
    }
    for name in jittrace_wire::environment::NAMES {
        assert!(text.contains(&format!("`{name}`")), "{name}");
    }
}

#[test]
fn every_page_is_in_the_index_and_every_link_leads_somewhere() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let index = page("README.md");
    for entry in fs::read_dir(&docs).unwrap() {
        let name = entry.unwrap().file_name().to_string_lossy().into_owned();
        if name.ends_with(".md") && name != "README.md" {
            assert!(
                index.contains(&format!("]({name})")),
                "{name} is not in the index"
            );
        }
    }
    for root in [&docs, &docs.join("..")] {
        for entry in fs::read_dir(root).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|e| e != "md") {
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            for target in text
                .split("](")
                .skip(1)
                .filter_map(|rest| rest.split(')').next())
            {
                let file = target.split('#').next().unwrap_or_default();
                if file.is_empty() || file.contains("://") {
                    continue;
                }
                assert!(root.join(file).exists(), "{}: {target}", path.display());
            }
        }
    }
}

//! Turns the `linked` lines of the table of watched functions into symbol definitions with hidden versions.
//!
//! Writes `linked.s` (one macro call for each pair of name and version; the macro is in `src/arch`), `linked.rs` (which
//! line of the table each pair belongs to) and `versions.map`, the version script. Its first node keeps version index 2,
//! which glibc also matches with references that have no version, free of any CUDA name.
//!
//! rustc passes a version script of its own (what is exported). rust-lld, the default of rustup's toolchains on x86-64
//! Linux, merges the two; GNU ld refuses ("anonymous version tag cannot be combined with other version tags").

use jittrace_wire::functions::WATCHED;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

fn main() -> std::io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
    let (mut assembly, mut table) = (String::new(), String::new());
    let mut nodes: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut count = 0;
    for (line, watched) in WATCHED.iter().enumerate() {
        for version in watched.linked {
            let _ = writeln!(
                assembly,
                "jittrace_linked {}, {version}, {count}",
                watched.name
            );
            let _ = writeln!(
                table,
                "    Linked {{ watched: {line}, version: b\"{version}\" }},"
            );
            nodes.entry(version).or_default().push(watched.name);
            count += 1;
        }
    }
    let mut script = String::from("JITTRACE {};\n");
    for (version, names) in nodes {
        let _ = writeln!(script, "{version} {{ global: {}; }};", names.join("; "));
    }
    std::fs::write(out.join("linked.s"), assembly)?;
    std::fs::write(out.join("linked.rs"), format!("[\n{table}]\n"))?;
    let map = out.join("versions.map");
    std::fs::write(&map, script)?;
    println!(
        "cargo::rustc-cdylib-link-arg=-Wl,--version-script={}",
        map.display()
    );
    // What loading the shim costs every program is mappings and pages written to, so there are two of each kind less:
    // no section of its own for read-only data, none to be protected after relocation (what would lie there is the table
    // of a dozen imported functions), and no start-up code of a C compiler, which has nothing to do here. What is written
    // to begins at the beginning of a page, so that it touches no more of them than it must.
    for argument in [
        "-Wl,-soname,libjittrace_preload.so",
        "-Wl,--no-rosegment",
        "-Wl,-z,norelro",
        "-Wl,-z,separate-loadable-segments",
        "-Wl,-Bsymbolic-functions",
        "-nostartfiles",
    ] {
        println!("cargo::rustc-cdylib-link-arg={argument}");
    }
    Ok(())
}

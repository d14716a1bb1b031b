//! The texts around toolkits: command lines, messages, build files, records.
#![no_main]

use jittrace_model::toolkit::{NoFiles, Part, profile, version_in_json};
use jittrace_model::{cache, commandline, distribution};
use std::path::Path;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let words: Vec<&str> = text.split('\0').collect();
    let _ = commandline::parse(&words);
    let _ = commandline::parse(&["sh", "-c", text]);
    let _ = (
        commandline::meanings(text),
        commandline::read_version(text),
        commandline::read_arch_list(text),
    );
    let _ = (
        cache::ninja::read(text),
        cache::triton::read(text),
        cache::triton::read_group(text),
        cache::sglang::read(text),
    );
    let _ = cache::place_of(Path::new(text), &|_| Some("/c".to_owned()), &NoFiles);
    let _ = (
        distribution::read_metadata(text, ""),
        distribution::read_record(text).count(),
    );
    let _ = (
        distribution::read_conda_meta(text, ""),
        distribution::read_dpkg_status(text),
    );
    let _ = distribution::built_for::from_version_py(text);
    let _ = (
        profile::evaluate(text, Path::new("/t/bin")),
        version_in_json(text, Part::Cudart),
    );
});

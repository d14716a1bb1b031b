//! Any bytes as `/etc/ld.so.cache`: parsed or refused, within memory bounded by the file; every entry can be looked up.
#![no_main]

use jittrace_model::loader::{LdSoCache, Processor, System, usual_default_directories};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(cache) = LdSoCache::parse(bytes) else {
        return;
    };
    let processor = Processor {
        level: 3,
        platform: "haswell".into(),
        capabilities: vec!["x86_64".into()],
    };
    let system = System::glibc((2, 36), 62, &processor, usual_default_directories(62, true));
    assert!(cache.len() <= bytes.len() / 24);
    for name in ["", "libc.so.6", "libcuda.so.1", "a"] {
        let found = cache.lookup(name, &system);
        assert!(found.is_none_or(|found| cache.entries(name).contains(found)));
    }
});

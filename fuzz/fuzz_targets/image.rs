//! Fatbins, cubins, PTX and the objects that carry them: any bytes give an answer, in bounded time and memory.
#![no_main]

use jittrace_model::{cache, image};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Some(facts) = image::read(bytes) {
        assert!(facts.sass.len() <= 4096 && facts.ptx.len() <= 4096);
    }
    let _ = image::fatbin::read(bytes);
    let _ = cache::built_with(bytes, None, &|_| None);
});

//! Any bytes as an ELF file: facts or an error, bounded; and what was read survives the trace file.
#![no_main]

use jittrace_model::elf::{ElfFacts, dynamic_symbols};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(facts) = ElfFacts::parse(bytes) {
        let text = serde_json::to_string(&facts).expect("facts are plain data");
        let again: ElfFacts = serde_json::from_str(&text).expect("what was written is read");
        assert_eq!(again, facts);
    }
    assert!(dynamic_symbols(bytes, "", 64).len() <= 64);
});

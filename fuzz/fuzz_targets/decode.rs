//! Any bytes: decoding reads to their end without a panic, and what it read encodes to what it was.
#![no_main]

use jittrace_wire::{decode, record::MAX_RECORD};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut rest = bytes;
    while !rest.is_empty() {
        match decode(rest) {
            Ok((header, record, length)) => {
                let mut buffer = [0; MAX_RECORD];
                let encoded = record.encode(header, &mut buffer);
                if let Ok((_, again, _)) = decode(encoded) {
                    assert_eq!(record.kind(), again.kind());
                }
                rest = &rest[length..];
            }
            Err(error) => match error.skip() {
                Some(skip) => rest = &rest[skip..],
                None => break,
            },
        }
    }
});

//! A trace that anybody may have written: read, masked, folded, reported. Nothing of it may panic.
#![no_main]

use jittrace_model::{
    Model,
    log::Reader,
    redact::{Options, Redactor},
    report::text,
};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut trace = b"{\"jittrace\":1}\n".to_vec();
    trace.extend_from_slice(bytes);
    let Ok(mut reader) = Reader::new(trace.as_slice()) else {
        return;
    };
    let mut redactor = Redactor::new(Options::default());
    let mut model = Model::new(reader.header().clone());
    while let Ok(Some(mut event)) = reader.next_event() {
        redactor.event(&mut event);
        model.apply(event);
    }
    let report = model.report();
    let _ = text::render(&report, text::Style::default());
});

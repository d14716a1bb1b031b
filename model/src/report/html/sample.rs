//! The events that a page carries: all of a short trace, a fair part of a long one.

use std::collections::HashMap;

use crate::event::{Body, Event};

/// Most bytes of events in a page: a browser searches that much at once.
const MOST_BYTES: usize = 12 << 20;

/// Events for a page, in order of arrival.
#[derive(Debug, Default)]
pub struct EventSample {
    lines: Vec<String>,
    bytes: usize,
    kept: HashMap<String, usize>,
    seen: u64,
}

impl EventSample {
    /// Takes an event in, unless there are enough of its kind.
    pub fn add(&mut self, event: &Event) {
        self.seen += 1;
        let kept = match self.kept.get_mut(event.body.kind()) {
            Some(kept) => kept,
            None => self.kept.entry(event.body.kind().to_owned()).or_default(),
        };
        if *kept >= most(&event.body) || self.bytes >= MOST_BYTES {
            return;
        }
        if let Ok(line) = event.to_line() {
            *kept += 1;
            self.bytes += line.len();
            self.lines.push(line);
        }
    }

    /// How many events the trace has.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// How many of them are kept.
    pub fn kept(&self) -> usize {
        self.lines.len()
    }

    /// The events as a JSON array that may stand inside a `<script>` element: `<` only occurs in JSON strings, where
    /// it can be written as an escape.
    pub(super) fn json(&self) -> String {
        let mut out = String::with_capacity(self.bytes + self.lines.len() + 2);
        out.push('[');
        for (number, line) in self.lines.iter().enumerate() {
            if number > 0 {
                out.push_str(",\n");
            }
            for piece in line.split_inclusive('<') {
                match piece.strip_suffix('<') {
                    Some(before) => {
                        out.push_str(before);
                        out.push_str("\\u003c");
                    }
                    None => out.push_str(piece),
                }
            }
        }
        out.push(']');
        out
    }
}

/// How many events of a kind a page carries: what failed and what was said in full, what there is plenty of in part.
fn most(body: &Body) -> usize {
    match body {
        Body::Message(_)
        | Body::ExecFailed(_)
        | Body::LibraryFailed(_)
        | Body::Lost(_)
        | Body::Note(_) => 20_000,
        Body::ProcessStart(_)
        | Body::ProcessExit(_)
        | Body::Exec(_)
        | Body::LibraryLoaded(_)
        | Body::Call(_) => 5_000,
        _ => 3_000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Note, Source};

    #[test]
    fn a_sample_cannot_end_the_script_element_and_stays_json() {
        let mut sample = EventSample::default();
        for id in 1..=2 {
            sample.add(&Event {
                id,
                t: 0,
                pid: 0,
                tid: 0,
                source: Source::Collector,
                same_as: None,
                body: Body::Note(Note {
                    about: String::new(),
                    text: "</script><!-- <b".into(),
                }),
            });
        }
        let json = sample.json();
        assert!(!json.contains('<'));
        let values: Vec<serde_json::Value> = serde_json::from_str(&json).unwrap();
        assert_eq!(values[1]["text"], "</script><!-- <b");
    }
}

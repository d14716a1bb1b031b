//! Events on their way to the view: packed for the list by whoever parsed them, whole for the fold.

use jittrace_model::Event;

use crate::store::{CHUNK, Chunk};

/// Consecutive events, with the lines that tell them.
#[derive(Debug, Default)]
pub struct Batch {
    pub(crate) chunks: Vec<Chunk>,
    pub(crate) events: Vec<Event>,
}

impl Batch {
    /// Takes the next event and its line in the trace, without the line's end.
    pub fn add(&mut self, event: Event, line: &str) {
        match self.chunks.last_mut().filter(|chunk| chunk.len() < CHUNK) {
            Some(open) => open.add(&event, line),
            None => {
                self.pack();
                let mut chunk = Chunk::default();
                chunk.add(&event, line);
                self.chunks.push(chunk);
            }
        }
        self.events.push(event);
    }

    /// Compresses what is long enough; the rest may still grow by what comes next.
    pub fn pack(&mut self) {
        if let Some(last) = self.chunks.last_mut() {
            last.pack();
        }
    }

    /// The events.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// How many events there are.
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }
}

/// Events of which nobody has the lines any more.
impl From<Vec<Event>> for Batch {
    fn from(events: Vec<Event>) -> Batch {
        let mut batch = Batch::default();
        for event in events {
            // A line that cannot be written keeps its place, so that events and lines stay in step.
            let line = event.to_line().unwrap_or_default();
            batch.add(event, &line);
        }
        batch.pack();
        batch
    }
}

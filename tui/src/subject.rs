//! What a row, a cell or a link is about: a name that stays the same while the model grows.

use jittrace_model::EventId;

use crate::view::View;

/// Anything that has evidence.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Subject {
    /// What a component resolved for a part.
    Cell {
        /// The component's name.
        component: String,
        /// Column of the table.
        column: usize,
    },
    /// A finding, by its id and title.
    Finding(String, String),
    /// A process image, by the event of its start.
    Process(EventId),
    /// A run of a build tool, by the event of its start.
    Build(EventId),
    /// A cache, by its directory.
    Cache(String),
    /// A file in a cache.
    Artifact(String),
    /// A load or a failed load.
    Library(EventId),
    /// An event.
    Event(EventId),
}

impl Subject {
    /// The view that shows it.
    pub fn view(&self) -> View {
        match self {
            Subject::Cell { .. } => View::Resolution,
            Subject::Finding(..) => View::Findings,
            Subject::Process(_) => View::Processes,
            Subject::Build(_) => View::Builds,
            Subject::Cache(_) | Subject::Artifact(_) => View::Caches,
            Subject::Library(_) => View::Libraries,
            Subject::Event(_) => View::Events,
        }
    }
}

//! What a person can do, and the names by which a file of settings and the palette call it.

use crate::view::View;

use super::BINDINGS;

/// Something a person can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// Move by rows.
    Up,
    /// Move by rows.
    Down,
    /// Move by columns, fold, or scroll sideways.
    Left,
    /// Move by columns, unfold, or scroll sideways.
    Right,
    /// Move by half a page.
    HalfUp,
    /// Move by half a page.
    HalfDown,
    /// Move by a page.
    PageUp,
    /// Move by a page.
    PageDown,
    /// To the first row.
    First,
    /// To the last row.
    Last,
    /// Open the evidence of what is selected, or follow a link.
    Open,
    /// Close what is in front.
    Close,
    /// Move the focus to the other pane.
    Switch,
    /// Fill the screen with the pane in focus.
    Zoom,
    /// The evidence beside the list, below it, or on the whole screen.
    Layout,
    /// More room for the evidence.
    Widen,
    /// Less room for the evidence.
    Narrow,
    /// To the next event that tells of a failure.
    NextFailure,
    /// To the one before.
    PreviousFailure,
    /// Fold or unfold a row.
    Fold,
    /// Fold or unfold everything.
    FoldAll,
    /// Bring a view to the front.
    Show(View),
    /// The view to the right.
    NextView,
    /// The view to the left.
    PreviousView,
    /// To the process behind it, and from a process to its parent.
    Parent,
    /// The place before.
    Back,
    /// The place after.
    Forward,
    /// Search in the view in front.
    Search,
    /// The next place that the search finds.
    Next,
    /// The one before.
    Previous,
    /// Narrow the list of events.
    Filter,
    /// Show everything again.
    ClearFilter,
    /// Stay at the end as events come.
    Follow,
    /// Show failed look-ups one by one, or folded.
    Probes,
    /// Sort by the next column.
    Sort,
    /// Choose a process, or all of them.
    Process,
    /// Copy what is selected: a path, or the cell's value.
    Copy,
    /// Copy a command line that runs the same again.
    CopyCommand,
    /// Copy as Markdown.
    CopyMarkdown,
    /// Write the report or the bundle.
    Export,
    /// Switch between bars and list.
    Timeline,
    /// The launched program's terminal beside every view, or in a view of its own.
    OutputBeside,
    /// Give keys to the launched program.
    Type,
    /// Take the keys back from the launched program.
    Release,
    /// Moments as of the clock, or since the trace began.
    Clock,
    /// Another look.
    Theme,
    /// All actions by name.
    Palette,
    /// The keys of the view in front.
    Help,
    /// Leave.
    Quit,
}

/// Every action with its name.
const NAMES: &[(Action, &str)] = &[
    (Action::Up, "up"),
    (Action::Down, "down"),
    (Action::Left, "left"),
    (Action::Right, "right"),
    (Action::HalfUp, "half-page-up"),
    (Action::HalfDown, "half-page-down"),
    (Action::PageUp, "page-up"),
    (Action::PageDown, "page-down"),
    (Action::First, "first"),
    (Action::Last, "last"),
    (Action::Open, "open"),
    (Action::Close, "close"),
    (Action::Switch, "switch-pane"),
    (Action::Zoom, "zoom"),
    (Action::Layout, "layout"),
    (Action::Widen, "widen-evidence"),
    (Action::Narrow, "narrow-evidence"),
    (Action::NextFailure, "next-failure"),
    (Action::PreviousFailure, "previous-failure"),
    (Action::Fold, "fold"),
    (Action::FoldAll, "fold-all"),
    (Action::Show(View::Resolution), "resolution"),
    (Action::Show(View::Findings), "findings"),
    (Action::Show(View::Processes), "processes"),
    (Action::Show(View::Builds), "builds"),
    (Action::Show(View::Caches), "caches"),
    (Action::Show(View::Libraries), "libraries"),
    (Action::Show(View::Events), "events"),
    (Action::Show(View::Output), "output"),
    (Action::NextView, "next-view"),
    (Action::PreviousView, "previous-view"),
    (Action::Parent, "parent"),
    (Action::Back, "back"),
    (Action::Forward, "forward"),
    (Action::Search, "search"),
    (Action::Next, "next-found"),
    (Action::Previous, "previous-found"),
    (Action::Filter, "filter"),
    (Action::ClearFilter, "clear-filter"),
    (Action::Follow, "follow"),
    (Action::Probes, "show-probes"),
    (Action::Sort, "sort"),
    (Action::Process, "choose-process"),
    (Action::Copy, "copy"),
    (Action::CopyCommand, "copy-command"),
    (Action::CopyMarkdown, "copy-markdown"),
    (Action::Export, "write"),
    (Action::Timeline, "timeline"),
    (Action::OutputBeside, "output-beside"),
    (Action::Type, "type-into-program"),
    (Action::Release, "release-keys"),
    (Action::Clock, "clock"),
    (Action::Theme, "next-look"),
    (Action::Palette, "palette"),
    (Action::Help, "help"),
    (Action::Quit, "quit"),
];

impl Action {
    /// Every action.
    pub fn all() -> impl Iterator<Item = Action> {
        NAMES.iter().map(|(action, _)| *action)
    }

    /// What it is called.
    pub fn name(self) -> &'static str {
        NAMES
            .iter()
            .find(|(action, _)| *action == self)
            .map_or("", |(_, name)| name)
    }

    /// What it does, in words.
    pub fn about(self) -> &'static str {
        BINDINGS
            .iter()
            .find(|binding| binding.action == self)
            .map_or("", |binding| binding.about)
    }

    /// The action of a name.
    pub fn named(name: &str) -> Option<Action> {
        NAMES
            .iter()
            .find(|(_, known)| *known == name)
            .map(|(action, _)| *action)
    }
}

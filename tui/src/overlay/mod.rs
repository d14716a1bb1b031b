//! What lies over the view for a moment: a line to type in, a menu, the help, a question.

mod draw;
mod help;
mod menu;
mod prompt;

pub use draw::draw;
pub use help::{Help, HelpLine, help_lines, last_offset};
pub use menu::{Choice, Item, Menu};
pub use prompt::{Prompt, Purpose};

use crate::{app::App, keys, text};

/// What lies over the view.
#[derive(Debug, Clone)]
pub enum Overlay {
    /// Whether the running program is to go on.
    Quit,
    /// What is to be written.
    Export,
    /// A line to type in.
    Prompt(Prompt),
    /// Choices to narrow by typing.
    Menu(Menu),
    /// The keys.
    Help(Help),
    /// Something that is to be read before anything else.
    Told(String),
}

impl Overlay {
    /// All actions that count in the place in front.
    pub fn palette(app: &App) -> Overlay {
        let mut items: Vec<Item> = Vec::new();
        let map = &app.setup.settings.keys;
        for bound in map.applicable(app.front()) {
            let choice = Choice::Act(bound.action);
            if bound.scope != keys::Scope::Moving && items.iter().all(|i| i.choice != choice) {
                items.push(Item {
                    name: bound.action.name(),
                    text: bound.about.to_owned(),
                    aside: bound.keys.join(" "),
                    choice,
                });
            }
        }
        // Actions of the other views that make sense from anywhere.
        for action in [
            keys::Action::Filter,
            keys::Action::Timeline,
            keys::Action::Type,
            keys::Action::Process,
        ] {
            if items.iter().all(|i| i.choice != Choice::Act(action)) {
                items.push(Item {
                    name: action.name(),
                    text: action.about().to_owned(),
                    aside: String::new(),
                    choice: Choice::Act(action),
                });
            }
        }
        Overlay::Menu(Menu::new("What is to be done?", items))
    }

    /// The processes that resolved something.
    pub fn processes(app: &App) -> Overlay {
        let mut items = vec![Item {
            name: "",
            text: "all processes, merged".to_owned(),
            aside: String::new(),
            choice: Choice::Process(None),
        }];
        let mut pids: Vec<u32> = app
            .snapshot
            .report
            .components
            .iter()
            .flat_map(|c| c.resolved.values().flatten())
            .flat_map(|r| r.pids.iter().copied())
            .chain(app.snapshot.libraries.iter().map(|l| l.pid))
            .collect();
        pids.sort_unstable();
        pids.dedup();
        for pid in pids {
            let row = app.snapshot.processes.iter().rev().find(|p| p.pid == pid);
            let argv = row.map_or(String::new(), |row| {
                let mut words = vec![text::base(&row.program).to_owned()];
                words.extend(row.argv.iter().skip(1).cloned());
                words.join(" ")
            });
            items.push(Item {
                name: "",
                text: format!("{pid} {argv}"),
                aside: String::new(),
                choice: Choice::Process(Some(pid)),
            });
        }
        let mut menu = Menu::new("Which process?", items);
        menu.select(&Choice::Process(app.process));
        Overlay::Menu(menu)
    }

    /// The keys of the view in front.
    pub fn help() -> Overlay {
        Overlay::Help(Help::default())
    }
}

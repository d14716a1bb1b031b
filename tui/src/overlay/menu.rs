//! Choices, narrowed by typing.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::keys::Action;

/// What a choice does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// An action.
    Act(Action),
    /// One process, or all of them.
    Process(Option<u32>),
}

/// One choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// The name that a file of settings knows it by; empty where it has none.
    pub name: &'static str,
    /// What it is called.
    pub text: String,
    /// What stands at the right: its key.
    pub aside: String,
    /// What it does.
    pub choice: Choice,
}

/// A menu.
#[derive(Debug, Clone)]
pub struct Menu {
    /// The question.
    pub title: String,
    /// What was typed.
    pub typed: String,
    /// The selected one of those that are left.
    pub selected: usize,
    items: Vec<Item>,
}

impl Menu {
    /// A menu of all its items.
    pub fn new(title: &str, items: Vec<Item>) -> Menu {
        Menu {
            title: title.to_owned(),
            typed: String::new(),
            selected: 0,
            items,
        }
    }

    /// Whether its items have names that a file of settings knows them by.
    pub fn has_names(&self) -> bool {
        self.items.iter().any(|item| !item.name.is_empty())
    }

    /// Selects a choice.
    pub fn select(&mut self, choice: &Choice) {
        self.selected = self
            .items
            .iter()
            .position(|i| i.choice == *choice)
            .unwrap_or(0);
    }

    /// The items that contain every typed word.
    pub fn left(&self) -> Vec<&Item> {
        let words: Vec<String> = self
            .typed
            .to_lowercase()
            .split_whitespace()
            .map(str::to_owned)
            .collect();
        self.items
            .iter()
            .filter(|item| {
                let text = format!("{} {}", item.name, item.text).to_lowercase();
                words.iter().all(|w| text.contains(w.as_str()))
            })
            .collect()
    }

    /// The choice that is selected.
    pub fn chosen(&self) -> Option<Choice> {
        self.left().get(self.selected).map(|i| i.choice.clone())
    }

    /// Takes a text.
    pub fn insert(&mut self, text: &str) {
        self.typed.extend(text.chars().filter(|c| !c.is_control()));
        self.selected = 0;
    }

    /// Takes a key.
    pub fn key(&mut self, key: KeyEvent) {
        let last = self.left().len().saturating_sub(1);
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Up => self.selected = self.selected.saturating_sub(1),
            KeyCode::Down | KeyCode::Tab => self.selected = (self.selected + 1).min(last),
            KeyCode::PageUp => self.selected = self.selected.saturating_sub(10),
            KeyCode::PageDown => self.selected = (self.selected + 10).min(last),
            KeyCode::Home => self.selected = 0,
            KeyCode::End => self.selected = last,
            KeyCode::Char('p') if control => self.selected = self.selected.saturating_sub(1),
            KeyCode::Char('n') if control => self.selected = (self.selected + 1).min(last),
            KeyCode::Char('u') if control => {
                self.typed.clear();
                self.selected = 0;
            }
            KeyCode::Backspace => {
                self.typed.pop();
                self.selected = 0;
            }
            KeyCode::Char(c) if !control => self.insert(c.encode_utf8(&mut [0; 4])),
            _ => {}
        }
    }
}

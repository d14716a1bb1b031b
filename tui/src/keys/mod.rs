//! What every key does: one map, from which keys are looked up, help is drawn and the palette is filled.
//!
//! It begins as the [`BINDINGS`] and takes the [`Change`]s that a file of settings asks for.

mod action;
mod chord;
mod table;

pub use action::Action;
pub use chord::{canonical, encode, name};
pub use table::{BINDINGS, Binding};

use crossterm::event::KeyEvent;

use crate::view::View;

/// Where a key has its meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Everywhere.
    Everywhere,
    /// Moving within any list or pane.
    Moving,
    /// One view.
    In(View),
    /// The pane of evidence.
    Why,
    /// The launched program, while it has the keys.
    Program,
}

impl Scope {
    /// All of them, as the help and the file of settings list them.
    pub fn all() -> impl Iterator<Item = Scope> {
        [Scope::Everywhere, Scope::Moving]
            .into_iter()
            .chain(View::ALL.map(Scope::In))
            .chain([Scope::Why, Scope::Program])
    }

    /// What it is called in a file of settings.
    pub fn name(self) -> &'static str {
        match self {
            Scope::Everywhere => "everywhere",
            Scope::Moving => "moving",
            Scope::In(View::Resolution) => "resolution",
            Scope::In(View::Findings) => "findings",
            Scope::In(View::Processes) => "processes",
            Scope::In(View::Builds) => "builds",
            Scope::In(View::Caches) => "caches",
            Scope::In(View::Libraries) => "libraries",
            Scope::In(View::Events) => "events",
            Scope::In(View::Output) => "output",
            Scope::Why => "evidence",
            Scope::Program => "program",
        }
    }

    /// The scope of a name.
    pub fn named(name: &str) -> Option<Scope> {
        Scope::all().find(|scope| scope.name() == name)
    }

    /// Whether keys of another scope are asked for before those of this one.
    fn comes_after(self, nearer: Scope) -> bool {
        let distance = |scope| match scope {
            Scope::In(_) | Scope::Why => Some(0),
            Scope::Moving => Some(1),
            Scope::Everywhere => Some(2),
            Scope::Program => None,
        };
        match (distance(self), distance(nearer)) {
            (Some(own), Some(other)) => other < own,
            _ => false,
        }
    }
}

/// Where keys go, and so which scopes count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Front {
    /// A view.
    View(View),
    /// The pane of evidence.
    Why,
    /// The launched program.
    Program,
}

impl Front {
    /// The scopes that are asked, the nearest first.
    fn scopes(self) -> impl Iterator<Item = Scope> {
        let (nearest, others) = match self {
            Front::View(view) => (Scope::In(view), true),
            Front::Why => (Scope::Why, true),
            Front::Program => (Scope::Program, false),
        };
        [nearest, Scope::Moving, Scope::Everywhere]
            .into_iter()
            .take(if others { 3 } else { 1 })
    }
}

/// An action and the keys that do it in a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bound {
    /// Where.
    pub scope: Scope,
    /// What they do.
    pub action: Action,
    /// Keys, as they are shown: `Enter`, `Ctrl-d`, `j`. None where they were given to something else.
    pub keys: Vec<String>,
    /// What they do, in words.
    pub about: &'static str,
    /// A short word for the bottom line; empty when it is not shown there.
    pub hint: &'static str,
}

/// Other keys for an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Where.
    pub scope: Scope,
    /// What they do.
    pub action: Action,
    /// The keys, in place of those it had.
    pub keys: Vec<String>,
}

/// Why keys cannot be bound as asked: the position of the change that cannot be made, and a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Position among the changes.
    pub at: usize,
    /// What is wrong and what helps.
    pub reason: String,
}

/// What every key does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keymap {
    bound: Vec<Bound>,
}

impl Default for Keymap {
    fn default() -> Self {
        let bound = BINDINGS.iter().map(|binding| Bound {
            scope: binding.scope,
            action: binding.action,
            keys: binding.keys.split(' ').map(str::to_owned).collect(),
            about: binding.about,
            hint: binding.hint,
        });
        Keymap {
            bound: bound.collect(),
        }
    }
}

impl Keymap {
    /// The keys of old with some changes. A key that a change gives to one action is taken from the other that had it
    /// in the same place.
    ///
    /// # Errors
    /// Two changes give one key two meanings in one place; a key could never be reached, since a nearer place has
    /// another use for it; or nothing would be left to quit with, or to take the keys back from a program.
    pub fn changed(changes: &[Change]) -> Result<Keymap, Refused> {
        let mut map = Keymap::default();
        let refused = |at, reason| Err(Refused { at, reason });
        for (at, change) in changes.iter().enumerate() {
            for key in &change.keys {
                let other = changes.iter().take(at).find(|other| {
                    other.scope == change.scope
                        && other.action != change.action
                        && other.keys.contains(key)
                });
                if let Some(other) = other {
                    let (one, two) = (other.action.name(), change.action.name());
                    let scope = change.scope.name();
                    let reason = format!(
                        "{key} is given to both {one} and {two} in [keys.{scope}]; one of them needs another key"
                    );
                    return refused(at, reason);
                }
            }
        }
        for change in changes {
            for bound in map.bound.iter_mut().filter(|b| b.scope == change.scope) {
                bound.keys.retain(|key| !change.keys.contains(key));
            }
        }
        for change in changes {
            let same = |b: &&mut Bound| b.scope == change.scope && b.action == change.action;
            match map.bound.iter_mut().find(same) {
                Some(bound) => bound.keys.clone_from(&change.keys),
                None => map.bound.push(Bound {
                    scope: change.scope,
                    action: change.action,
                    keys: change.keys.clone(),
                    about: change.action.about(),
                    hint: "",
                }),
            }
        }
        for (at, change) in changes.iter().enumerate() {
            let hidden = change.keys.iter().find_map(|key| {
                map.bound
                    .iter()
                    .filter(|b| change.scope.comes_after(b.scope) && b.action != change.action)
                    .filter(|b| b.keys.contains(key))
                    // What the file itself says of a nearer place is meant so.
                    .find(|b| {
                        !changes
                            .iter()
                            .any(|c| c.scope == b.scope && c.action == b.action)
                    })
                    .map(|b| (key, b))
            });
            if let Some((key, nearer)) = hidden {
                let (scope, action) = (nearer.scope.name(), nearer.action.name());
                let reason = format!(
                    "{key} would not reach {}: it is {action} in [keys.{scope}], which is asked first; give {action} another key there too",
                    change.action.name()
                );
                return refused(at, reason);
            }
        }
        for (scope, action, why) in [
            (Scope::Everywhere, Action::Quit, "the view cannot be left"),
            (
                Scope::Program,
                Action::Release,
                "nothing takes the keys back from the program",
            ),
        ] {
            if map.keys_of(scope, action).next().is_none() {
                let at = changes
                    .iter()
                    .position(|c| c.scope == scope && c.action == action)
                    .or_else(|| changes.iter().position(|c| c.scope == scope))
                    .unwrap_or(0);
                let reason = format!("without a key for {} {why}; give it one", action.name());
                return refused(at, reason);
            }
        }
        Ok(map)
    }

    /// Every binding.
    pub fn all(&self) -> impl Iterator<Item = &Bound> {
        self.bound.iter()
    }

    /// The binding of a key: the place in front first, then moving, then everywhere.
    pub fn find(&self, key: KeyEvent, front: Front) -> Option<&Bound> {
        let name = name(key)?;
        front.scopes().find_map(|scope| {
            self.bound
                .iter()
                .find(|b| b.scope == scope && b.keys.contains(&name))
        })
    }

    /// The bindings that count in a place, the nearest first.
    pub fn applicable(&self, front: Front) -> impl Iterator<Item = &Bound> {
        front
            .scopes()
            .flat_map(|scope| self.bound.iter().filter(move |b| b.scope == scope))
    }

    fn keys_of(&self, scope: Scope, action: Action) -> impl Iterator<Item = &str> {
        self.bound
            .iter()
            .filter(move |b| b.scope == scope && b.action == action)
            .flat_map(|b| b.keys.iter().map(String::as_str))
    }

    /// The first key that does something in a place; where none does, the way to it through all actions, in words.
    pub fn key(&self, front: Front, action: Action) -> &str {
        front
            .scopes()
            .flat_map(|scope| self.keys_of(scope, action))
            .next()
            .unwrap_or_else(|| action.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crossterm::event::{KeyCode, KeyModifiers};
    use std::collections::HashSet;

    fn press(c: char) -> KeyEvent {
        KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE)
    }

    fn change(scope: Scope, action: Action, keys: &[&str]) -> Change {
        Change {
            scope,
            action,
            keys: keys.iter().map(|k| (*k).to_owned()).collect(),
        }
    }

    #[test]
    fn no_key_means_two_things_in_one_place() {
        let mut seen = HashSet::new();
        for binding in Keymap::default().all() {
            for key in &binding.keys {
                assert!(
                    seen.insert((binding.scope, key.clone())),
                    "{key} is bound twice in {:?}",
                    binding.scope
                );
            }
        }
    }

    #[test]
    fn every_key_is_written_as_it_is_read() {
        for binding in Keymap::default().all() {
            for key in &binding.keys {
                assert_eq!(canonical(key).as_ref(), Ok(key));
            }
        }
    }

    #[test]
    fn every_action_has_a_name_of_its_own_and_a_key() {
        let mut names = HashSet::new();
        let map = Keymap::default();
        for action in Action::all() {
            assert!(names.insert(action.name()), "{action:?}");
            assert_eq!(Action::named(action.name()), Some(action));
            assert!(map.all().any(|b| b.action == action), "{action:?}");
        }
        for binding in map.all() {
            assert!(!binding.action.name().is_empty(), "{binding:?}");
        }
    }

    #[test]
    fn the_nearest_meaning_wins() {
        let map = Keymap::default();
        let action = |front| map.find(press('y'), front).map(|b| b.action);
        assert_eq!(
            action(Front::View(View::Findings)),
            Some(Action::CopyMarkdown)
        );
        assert_eq!(action(Front::Why), Some(Action::Copy));
        assert_eq!(action(Front::View(View::Output)), None);
    }

    #[test]
    fn a_program_gets_every_key_but_the_one_that_takes_them_back() {
        let map = Keymap::default();
        assert_eq!(map.find(press('q'), Front::Program), None);
        // A terminal sends the same for both.
        for c in [']', '5'] {
            let key = KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL);
            let action = map.find(key, Front::Program).map(|b| b.action);
            assert_eq!(action, Some(Action::Release));
        }
    }

    #[test]
    fn a_key_goes_from_one_action_to_another() {
        let front = Front::View(View::Caches);
        let map = Keymap::changed(&[
            change(Scope::Everywhere, Action::Help, &["q"]),
            change(Scope::In(View::Caches), Action::Export, &["w"]),
        ])
        .unwrap();
        let action = |c| map.find(press(c), front).map(|b| b.action);
        assert_eq!(action('q'), Some(Action::Help));
        assert_eq!(action('w'), Some(Action::Export));
        assert_eq!(action('?'), None);
        assert_eq!(map.key(front, Action::Quit), "Ctrl-c");
        // Elsewhere it means what it did.
        let elsewhere = map.find(press('w'), Front::View(View::Findings));
        assert_eq!(elsewhere.map(|b| b.action), Some(Action::Layout));
    }

    #[test]
    fn what_cannot_be_bound_is_refused() {
        use Scope::{Everywhere, In, Moving, Program};
        let open = change(In(View::Builds), Action::Open, &["o"]);
        let cases: &[(&[Change], usize, &str)] = &[
            (
                &[open.clone(), change(In(View::Builds), Action::Sort, &["o"])],
                1,
                "o is given to both open and sort in [keys.builds]",
            ),
            (
                &[change(Everywhere, Action::Help, &["j"])],
                0,
                "j would not reach help: it is down in [keys.moving]",
            ),
            (
                &[change(Moving, Action::Down, &["y"])],
                0,
                "y would not reach down: it is copy in [keys.resolution]",
            ),
            (
                &[open, change(Everywhere, Action::Quit, &[])],
                1,
                "without a key for quit",
            ),
            (
                &[change(Everywhere, Action::Help, &["q", "Ctrl-c"])],
                0,
                "without a key for quit",
            ),
            (
                &[change(Program, Action::Release, &[])],
                0,
                "without a key for release-keys",
            ),
        ];
        for (changes, at, reason) in cases {
            let refused = Keymap::changed(changes).unwrap_err();
            assert_eq!(refused.at, *at, "{}", refused.reason);
            assert!(refused.reason.starts_with(reason), "{}", refused.reason);
        }
        // With both said, it is meant so.
        Keymap::changed(&[
            change(Everywhere, Action::Help, &["j"]),
            change(Moving, Action::Down, &["Down"]),
        ])
        .unwrap();
    }
}

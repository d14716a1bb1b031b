//! Asking: keys and pastes while something lies over the view.

use std::sync::Arc;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::{
    filter::{self},
    overlay::{Overlay, Prompt, Purpose},
    theme::Tone,
};

use super::*;

impl App {
    pub(super) fn prompt(&mut self, purpose: Purpose) {
        let text = match purpose {
            Purpose::Search => String::new(),
            Purpose::Filter => self.events.filter_text.clone(),
        };
        let prompt = Prompt::new(purpose, text).after(self.typed(purpose));
        self.overlay = Some(Overlay::Prompt(prompt));
    }

    /// What was typed for a purpose before.
    fn typed(&mut self, purpose: Purpose) -> &mut Vec<String> {
        match purpose {
            Purpose::Search => &mut self.searches,
            Purpose::Filter => &mut self.filters,
        }
    }

    fn remember_typed(&mut self, purpose: Purpose, text: &str) {
        let past = self.typed(purpose);
        if !text.is_empty() {
            past.retain(|known| known != text);
            past.push(text.to_owned());
        }
    }

    pub(super) fn overlay_key(&mut self, key: KeyEvent, effects: &mut Vec<Effect>) {
        let Some(overlay) = self.overlay.take() else {
            return;
        };
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match overlay {
            Overlay::Quit => match key.code {
                KeyCode::Char('l') => effects.push(Effect::End(Outcome::Leave)),
                KeyCode::Char('s') => effects.push(Effect::End(Outcome::Stop)),
                KeyCode::Esc | KeyCode::Char('q' | 'n') => {}
                KeyCode::Char('c') if control => {}
                _ => self.overlay = Some(Overlay::Quit),
            },
            Overlay::Export => {
                let chosen = match key.code {
                    KeyCode::Char(c) => Export::ALL.iter().find(|(_, k, _)| *k == c),
                    KeyCode::Esc => return,
                    _ => None,
                };
                match chosen {
                    Some((export, ..)) => {
                        let report = Arc::clone(&self.snapshot.report);
                        effects.push(Effect::Export(*export, report));
                        self.say("writing", Tone::Note);
                    }
                    None if matches!(key.code, KeyCode::Char('q')) => {}
                    None => self.overlay = Some(Overlay::Export),
                }
            }
            Overlay::Prompt(mut prompt) => match key.code {
                KeyCode::Esc => self.cancel_prompt(&prompt),
                KeyCode::Char('c') if control => self.cancel_prompt(&prompt),
                KeyCode::Enter => self.accept_prompt(prompt),
                _ => {
                    prompt.key(key);
                    self.prompt_changed(&mut prompt);
                    self.overlay = Some(Overlay::Prompt(prompt));
                }
            },
            Overlay::Menu(mut menu) => match key.code {
                KeyCode::Esc => {}
                KeyCode::Char('c') if control => {}
                KeyCode::Enter => {
                    if let Some(choice) = menu.chosen() {
                        self.choose(choice, effects);
                    }
                }
                _ => {
                    menu.key(key);
                    self.overlay = Some(Overlay::Menu(menu));
                }
            },
            Overlay::Told(_) => {}
            Overlay::Help(mut help) => {
                let lines = crate::overlay::help_lines(self, &help).len();
                let last = crate::overlay::last_offset(self, lines);
                if !help.key(key, last) {
                    self.overlay = Some(Overlay::Help(help));
                }
            }
        }
    }

    pub(super) fn choose(&mut self, choice: crate::overlay::Choice, effects: &mut Vec<Effect>) {
        match choice {
            crate::overlay::Choice::Act(action) => self.act(action, effects),
            crate::overlay::Choice::Process(process) => {
                self.outdate(View::Resolution);
                self.outdate(View::Libraries);
                self.process = process;
                self.freshen(self.view);
                self.refresh_why();
                let text = match process {
                    Some(pid) => format!("only process {pid}"),
                    None => "all processes merged".to_owned(),
                };
                self.say(text, Tone::Note);
            }
        }
    }

    pub(super) fn prompt_changed(&mut self, prompt: &mut Prompt) {
        match prompt.purpose {
            Purpose::Search => {}
            Purpose::Filter => {
                // The list shrinks while one types; what does not read yet leaves it as it is.
                match filter::parse(&prompt.text) {
                    Ok(filter) => {
                        prompt.error = None;
                        self.set_filter(filter, prompt.text.clone());
                    }
                    Err(error) => prompt.error = Some(error),
                }
            }
        }
    }

    pub(super) fn cancel_prompt(&mut self, prompt: &Prompt) {
        if prompt.purpose == Purpose::Filter
            && let Some((filter, text)) = self.previous_filter.take()
        {
            self.set_filter(filter, text);
        }
    }

    pub(super) fn accept_prompt(&mut self, mut prompt: Prompt) {
        match prompt.purpose {
            Purpose::Search => {
                self.remember_typed(Purpose::Search, &prompt.text);
                self.search = prompt.text.to_lowercase();
                if !self.search.is_empty() {
                    self.find(true);
                }
            }
            Purpose::Filter => match filter::parse(&prompt.text) {
                Ok(filter) => {
                    self.remember_typed(Purpose::Filter, &prompt.text);
                    self.set_filter(filter, prompt.text);
                }
                Err(error) => {
                    prompt.error = Some(error);
                    self.overlay = Some(Overlay::Prompt(prompt));
                }
            },
        }
    }

    pub(super) fn paste(&mut self, text: &str, effects: &mut Vec<Effect>) {
        if self.focus == Focus::Program {
            let bytes = if self.screen.bracketed_paste() {
                format!("\x1b[200~{}\x1b[201~", text.replace('\x1b', "")).into_bytes()
            } else {
                text.replace('\n', "\r").into_bytes()
            };
            effects.push(Effect::Send(bytes));
            return;
        }
        match self.overlay.take() {
            // A paste is text, never keys: its newlines are spaces and start nothing.
            Some(Overlay::Prompt(mut prompt)) => {
                prompt.insert(text);
                self.prompt_changed(&mut prompt);
                self.overlay = Some(Overlay::Prompt(prompt));
            }
            Some(Overlay::Menu(mut menu)) => {
                menu.insert(text);
                self.overlay = Some(Overlay::Menu(menu));
            }
            other => {
                self.overlay = other;
                self.say(
                    "a paste is only taken while something is being typed",
                    Tone::Note,
                );
            }
        }
    }
}

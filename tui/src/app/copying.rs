//! Copying: what goes to the clipboard, and what is said about it.

use jittrace_model::{Body, event::ProcessStart};

use crate::{
    copy,
    subject::Subject,
    text,
    theme::Tone,
    view::{findings, resolution},
    why::{self, Target},
};

use super::*;

impl App {
    pub(super) fn copied(&mut self, text: String, what: &str, effects: &mut Vec<Effect>) {
        let shown = text::fit(
            text.lines().next().unwrap_or_default(),
            50,
            self.theme.ellipsis(),
        )
        .into_owned();
        self.say(format!("copied {what}: {shown}"), Tone::Good);
        effects.push(Effect::Copy(text));
    }

    pub(super) fn copy(&mut self, effects: &mut Vec<Effect>) {
        if self.focus == Focus::Why {
            let link = self.why.as_ref().and_then(|w| w.links.get(w.selected));
            if let Some(link) = link {
                let text = link.copy.clone().unwrap_or_else(|| link.text.clone());
                let what = if link.label.is_empty() {
                    "the line".to_owned()
                } else {
                    link.label.clone()
                };
                self.copied(text, &what, effects);
            }
            return;
        }
        let report = &self.snapshot.report;
        let text = match self.selected() {
            Some(Subject::Cell { component, column }) => {
                let component = report.components.iter().find(|c| c.name == component);
                let key = resolution::COLUMNS.get(column).map_or("", |c| c.key);
                component
                    .and_then(|c| resolution::entries(c, key, self.process).next())
                    .map(|entry| entry.path.clone())
                    .or_else(|| {
                        let row = self.rows.resolution.get(self.list().selected)?;
                        row.cells
                            .get(column)
                            .map(|c| c.value.clone())
                            .filter(|v| !v.is_empty())
                    })
            }
            Some(Subject::Process(id)) => self.snapshot.process(id).map(|p| p.program.clone()),
            Some(Subject::Build(id)) => self
                .snapshot
                .build(id)
                .map(|b| b.output.clone().unwrap_or_else(|| b.path.clone())),
            Some(Subject::Cache(path) | Subject::Artifact(path)) => Some(path),
            Some(Subject::Library(id)) => self
                .snapshot
                .libraries
                .iter()
                .find(|l| l.event == id)
                .map(|l| l.path.clone()),
            Some(Subject::Event(id)) => self.store.position(id).and_then(|at| self.store.line(at)),
            Some(Subject::Finding(..)) | None => None,
        };
        match text {
            Some(text) => self.copied(text, "", effects),
            None => self.say("there is nothing to copy here", Tone::Note),
        }
    }

    pub(super) fn copy_command(&mut self, effects: &mut Vec<Effect>) {
        let subject = match (self.focus, &self.why) {
            (Focus::Why, Some(why)) => match why.links.get(why.selected).map(|l| &l.target) {
                Some(Target::Go(subject @ (Subject::Process(_) | Subject::Build(_)))) => {
                    Some(subject.clone())
                }
                _ => Some(why.subject.clone()),
            },
            _ => self.selected(),
        };
        let process = match subject {
            Some(Subject::Process(id) | Subject::Build(id)) => self.snapshot.process_index(id),
            Some(Subject::Event(id)) => match self.store.find(id).map(|event| event.body) {
                Some(Body::ProcessStart(start)) => match self.snapshot.process_index(id) {
                    Some(process) => Some(process),
                    // One that a long trace only counts.
                    None => {
                        let ProcessStart {
                            exe,
                            argv,
                            cwd,
                            env,
                            ..
                        } = *start;
                        let command = copy::command(&exe, &argv, &cwd, &env);
                        return self.copied(command, "the command", effects);
                    }
                },
                Some(Body::Exec(exec)) => {
                    let command = copy::command(&exec.path, &exec.argv, "", []);
                    return self.copied(command, "the command", effects);
                }
                Some(Body::ExecFailed(exec)) => {
                    let command = copy::command(&exec.path, &exec.argv, "", []);
                    return self.copied(command, "the command", effects);
                }
                _ => None,
            },
            _ => None,
        };
        match process.and_then(|at| self.snapshot.processes.get(at)) {
            Some(row) => {
                let command = copy::command(&row.program, &row.argv, &row.cwd, row.env.as_ref());
                self.copied(command, "the command", effects);
            }
            None => self.say("no command stands behind this", Tone::Note),
        }
    }

    pub(super) fn copy_markdown(&mut self, effects: &mut Vec<Effect>) {
        let subject = match (self.focus, &self.why) {
            (Focus::Why, Some(why)) => Some(why.subject.clone()),
            _ => self.selected(),
        };
        let Some(subject) = subject else { return };
        let text = match &subject {
            Subject::Finding(id, title) => {
                findings::find(&self.snapshot, id, title).map(copy::finding)
            }
            subject => Some(why::markdown(
                &self.why_title(subject),
                &self.chain(subject, true),
            )),
        };
        if let Some(text) = text {
            self.copied(text, "as Markdown", effects);
        }
    }
}

//! From the model to the report.

use indexmap::IndexSet;

use super::*;
use crate::{commandline::REBUILT_SINCE, findings, fold::Model, resolve};

impl Model {
    /// The answer so far. Can be asked for at any time; the model stays as it is.
    pub fn report(&self) -> Report {
        let toolkits = resolve::toolkits(self);
        let components = resolve::components(self, &toolkits);
        let builds = resolve::builds(self);
        let caches = resolve::caches(self, &builds);
        let header = self.header();
        let mut report = Report {
            schema: SCHEMA.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            host: header.host.clone(),
            command: header.command.clone(),
            attached: header.attached,
            exit: self.exit(),
            duration_ns: self.last_t(),
            sources: header.sources.clone(),
            lost: self.lost_entries(),
            gpus: self.gpu_list(),
            driver: self.driver(),
            toolkits,
            components,
            caches,
            builds,
            findings: Vec::new(),
            processes: self.process_entries(),
            environment: self
                .processes()
                .first()
                .map(|process| (*process.env).clone())
                .unwrap_or_default(),
            notes: self.note_texts(),
            condensed: Some(self.condensed().clone()).filter(|c| *c != Condensed::default()),
            traces: Vec::new(),
        };
        report.findings = findings::find(self, &report);
        report
    }

    /// How the traced command ended: the first process of the trace, through all its images.
    fn exit(&self) -> Option<Exit> {
        let mut process = self.processes().first()?;
        while let Some(next) = process.replaced_by.and_then(|i| self.process(i)) {
            process = next;
        }
        process.exit
    }

    fn lost_entries(&self) -> Vec<LostEntry> {
        let mut entries: Vec<LostEntry> = Vec::new();
        for lost in self.lost() {
            match entries
                .iter_mut()
                .find(|e| e.what == lost.what.what && e.reason == lost.what.reason)
            {
                Some(entry) => entry.count = entry.count.saturating_add(lost.what.count),
                None => entries.push(LostEntry {
                    what: lost.what.what.clone(),
                    count: lost.what.count,
                    reason: lost.what.reason.clone(),
                }),
            }
        }
        entries
    }

    /// The notes on the trace, each text once, the first hundred of them. What a source says of its own inner workings
    /// (calls that it only counted, functions of which it sees not every return) stays in the trace, and why a compile
    /// ran again is told with the build.
    fn note_texts(&self) -> Vec<String> {
        let mut texts = IndexSet::new();
        for note in self.notes() {
            let is_inner = matches!(
                note.what.about.as_str(),
                "counted" | "probe" | REBUILT_SINCE
            );
            if !is_inner && texts.len() < 100 {
                texts.insert(note.what.text.clone());
            }
        }
        texts
            .into_iter()
            .chain(condensed_words(self.condensed()))
            .collect()
    }

    fn gpu_list(&self) -> Vec<Gpu> {
        let mut gpus: Vec<Gpu> = Vec::new();
        for fact in self.gpus() {
            if gpus.iter().all(|g| g.index != fact.what.index) {
                gpus.push(Gpu {
                    index: fact.what.index,
                    name: fact.what.name.clone(),
                    compute_capability: fact.what.compute_capability.clone(),
                    from: fact.what.from.clone(),
                });
            }
        }
        gpus
    }

    /// The driver as it was looked up, completed by what cuDriverGetVersion answered.
    fn driver(&self) -> Driver {
        let mut driver = Driver::default();
        for fact in self.drivers() {
            driver.version = driver.version.or_else(|| fact.what.version.clone());
            driver.cuda = driver.cuda.or_else(|| fact.what.cuda.clone());
        }
        let asked = self.calls().iter().find(|c| {
            matches!(
                c.what.function.as_str(),
                "cuDriverGetVersion" | "cudaDriverGetVersion"
            ) && c.what.result == Some(0)
        });
        let answered = asked
            .and_then(|c| c.what.value.as_deref())
            .and_then(|v| v.parse::<u32>().ok());
        if let Some(value) = answered.filter(|v| *v >= 1000) {
            driver.cuda = driver
                .cuda
                .or_else(|| Some(format!("{}.{}", value / 1000, value % 1000 / 10)));
        }
        driver
    }

    fn process_entries(&self) -> Vec<ProcessEntry> {
        self.processes()
            .iter()
            .map(|p| ProcessEntry {
                pid: p.pid,
                ppid: p.what.ppid,
                argv: p.what.argv.clone(),
                exe: p.what.exe.clone(),
                start: p.start,
                end: p.end,
                exit: p.exit,
                followed: match p.not_followed() {
                    Some(reason) => Followed::No {
                        reason: reason.to_owned(),
                    },
                    None => Followed::Yes(true),
                },
                replaced: p.replaced_by.is_some(),
            })
            .collect()
    }
}

/// What a reader should know of a trace that was too long to be kept whole.
fn condensed_words(condensed: &Condensed) -> Option<String> {
    if *condensed == Condensed::default() {
        return None;
    }
    let mut programs: Vec<_> = condensed.processes.iter().collect();
    programs.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let named: Vec<String> = programs
        .iter()
        .take(3)
        .map(|(name, count)| format!("{count} {name}"))
        .collect();
    let and_more = if programs.len() > named.len() {
        ", …"
    } else {
        ""
    };
    let runs = match condensed.process_count() {
        0 => String::new(),
        runs => format!(
            "{runs} runs of programs ({}{and_more}) and ",
            named.join(", ")
        ),
    };
    Some(format!(
        "a long trace: {runs}{} loads, calls, uses of files and the like were like others before and after them; of such, \
         the first and the last are listed here, and the trace has them all",
        condensed.entries - condensed.process_count().min(condensed.entries)
    ))
}

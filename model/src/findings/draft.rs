//! A finding while it is being written: the sentences, the events behind them, and what it may be linked to.

use crate::{
    event::EventId,
    report::{Confidence, Evidence, Finding, Severity},
};

/// Most sentences of evidence that one finding lists.
const MOST_EVIDENCE: usize = 16;

/// A finding and what the linking pass needs to know of it.
#[derive(Debug, Clone, Default)]
pub struct Draft {
    /// The finding as it will be reported.
    pub finding: Finding,
    /// Processes in which it happened; a consequence shares one with its cause.
    pub pids: Vec<u32>,
}

impl Draft {
    /// Something failed.
    #[must_use]
    pub fn error(id: &str) -> Self {
        Self::of(id, Severity::Error)
    }

    /// Something is going wrong.
    #[must_use]
    pub fn warning(id: &str) -> Self {
        Self::of(id, Severity::Warning)
    }

    /// Something worth knowing.
    #[must_use]
    pub fn note(id: &str) -> Self {
        Self::of(id, Severity::Note)
    }

    /// A finding of a severity that is decided elsewhere.
    #[must_use]
    pub fn of(id: &str, severity: Severity) -> Self {
        Draft {
            finding: Finding {
                id: id.to_owned(),
                severity,
                confidence: Confidence::Likely,
                ..Finding::default()
            },
            pids: Vec::new(),
        }
    }

    /// Whom it befalls. An empty name is nobody's.
    #[must_use]
    pub fn component(mut self, name: &str) -> Self {
        self.finding.component = Some(name.to_owned()).filter(|n| !n.is_empty());
        self
    }

    /// The one line.
    #[must_use]
    pub fn title(mut self, text: impl Into<String>) -> Self {
        self.finding.title = text.into();
        self
    }

    /// One more sentence of the cause. Empty sentences are left out.
    #[must_use]
    pub fn cause(mut self, text: impl AsRef<str>) -> Self {
        let text = text.as_ref().trim();
        if !text.is_empty() {
            if !self.finding.cause.is_empty() {
                self.finding.cause.push(' ');
            }
            self.finding.cause.push_str(text);
        }
        self
    }

    /// A sentence that an event backs. The same event under the same words is listed once.
    #[must_use]
    pub fn evidence(mut self, event: EventId, text: impl Into<String>) -> Self {
        let line = Evidence {
            event,
            text: text.into(),
        };
        let known = &mut self.finding.evidence;
        if known.len() < MOST_EVIDENCE && !known.contains(&line) {
            known.push(line);
        }
        self
    }

    /// A sentence that an event backs, where there is such an event.
    #[must_use]
    pub fn evidence_of(self, seen: Option<(EventId, String)>) -> Self {
        match seen {
            Some((event, text)) => self.evidence(event, text),
            None => self,
        }
    }

    /// One way to put it right.
    #[must_use]
    pub fn remedy(mut self, text: impl Into<String>) -> Self {
        let text = text.into();
        if !text.is_empty() && !self.finding.remedy.contains(&text) {
            self.finding.remedy.push(text);
        }
        self
    }

    /// The way to put it right that comes before those named so far.
    #[must_use]
    pub fn remedy_first(mut self, text: impl Into<String>) -> Self {
        self.finding.remedy.insert(0, text.into());
        self
    }

    /// One way to put it right, where there is one.
    #[must_use]
    pub fn remedy_of(self, text: Option<String>) -> Self {
        match text {
            Some(text) => self.remedy(text),
            None => self,
        }
    }

    /// Every link of the chain is an event.
    #[must_use]
    pub fn proven(mut self) -> Self {
        self.finding.confidence = Confidence::Proven;
        self
    }

    /// More than one link is missing.
    #[must_use]
    pub fn possible(mut self) -> Self {
        self.finding.confidence = Confidence::Possible;
        self
    }

    /// `Proven` when `all` holds; else `Likely`, with what is missing.
    #[must_use]
    pub fn proven_if(mut self, all: bool, else_missing: &str) -> Self {
        if all {
            self.proven()
        } else {
            self.finding.confidence = Confidence::Likely;
            self.missing(else_missing)
        }
    }

    /// What would have to be seen to be sure.
    #[must_use]
    pub fn missing(mut self, text: &str) -> Self {
        if !text.is_empty() && !self.finding.missing.iter().any(|m| m == text) {
            self.finding.missing.push(text.to_owned());
        }
        self
    }

    /// Where it happened.
    #[must_use]
    pub fn in_process(mut self, pid: u32) -> Self {
        if pid != 0 && !self.pids.contains(&pid) {
            self.pids.push(pid);
        }
        self
    }

    /// It happened again, in another process or for another file: the evidence joins, the words stay.
    pub(super) fn absorb(&mut self, other: Draft) {
        for pid in other.pids {
            if !self.pids.contains(&pid) {
                self.pids.push(pid);
            }
        }
        for line in other.finding.evidence {
            let known = &mut self.finding.evidence;
            if known.len() < MOST_EVIDENCE && !known.contains(&line) {
                known.push(line);
            }
        }
        for remedy in other.finding.remedy {
            if !self.finding.remedy.contains(&remedy) {
                self.finding.remedy.push(remedy);
            }
        }
        self.finding.severity = self.finding.severity.min(other.finding.severity);
        self.finding.confidence = self.finding.confidence.min(other.finding.confidence);
    }
}

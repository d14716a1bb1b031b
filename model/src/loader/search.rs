//! The answer of a replayed search: candidates, winner, rule.

use serde::{Deserialize, Serialize};

use crate::event::{self, Outcome, Rule};

use super::files::FileId;
use super::link_map::ObjectId;

/// One file that the search looked at, or would have: the event's [`event::Candidate`] with what decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate {
    /// The path as the loader spells it, `$ORIGIN/..` unresolved.
    pub path: String,
    /// The rule that names it.
    pub rule: Rule,
    /// What became of it.
    pub outcome: Outcome,
    /// What decided within the rule: `RUNPATH $ORIGIN/../lib of /…/libcusparse.so.12`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub rule_detail: String,
    /// Whether it lies in a subdirectory for special processors (`glibc-hwcaps/…`, `tls/…`). Readers fold these.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hwcaps: bool,
    /// Which file it is, where one was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<FileId>,
}

/// The object that answers a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Winner {
    /// The object in the [`super::LinkMap`].
    pub object: ObjectId,
    /// Its path as the loader spells it: for an object that was loaded before, the path of then.
    pub path: String,
    /// Which file it is, where known.
    pub file: Option<FileId>,
    /// Whether this request mapped it.
    pub mapped: bool,
}

/// Flags of a `dlopen` that change the search or what stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// `RTLD_NOLOAD`: only ask.
    pub noload: bool,
    /// `RTLD_NODELETE`: never unmap it again.
    pub nodelete: bool,
}

impl Flags {
    /// From the second argument of `dlopen`. `RTLD_GLOBAL`, `RTLD_DEEPBIND` and the binding time change which symbols are
    /// used, not which files.
    #[must_use]
    pub fn from_bits(bits: i32) -> Self {
        Self {
            noload: bits & 0x4 != 0,
            nodelete: bits & 0x1000 != 0,
        }
    }
}

/// A `dlopen`.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The first argument.
    pub name: &'a str,
    /// The object that holds the call; none for one that is unknown, which the loader takes for the executable.
    pub requester: Option<ObjectId>,
    /// The second argument.
    pub flags: Flags,
}

/// How one name was resolved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Search {
    /// The name, as asked.
    pub requested: String,
    /// Path of the asking object.
    pub requested_by: String,
    /// What answered; none when nothing did.
    pub winner: Option<Winner>,
    /// The rule that decided; [`Rule::Unknown`] without a winner.
    pub rule: Rule,
    /// What decided within the rule: the variable's entry, the object and entry, the index, the earlier load.
    pub rule_detail: String,
    /// What the loader really looked at, in order. Equal to its own debug output, name by name.
    pub candidates: Vec<Candidate>,
    /// What it would have found further on, in order; every outcome is [`Outcome::NotTried`].
    pub not_tried: Vec<Candidate>,
    /// Directories of the search paths that were passed over since they are known to be missing.
    pub known_missing: Vec<Candidate>,
    /// The loader's complaint, in its own words, when the request fails.
    pub error: Option<String>,
    /// The needs of the objects that this request mapped, in the order of loading.
    pub needs: Vec<Search>,
    /// The objects that this request mapped, this one and needs, in the order of loading. After a failure none is left
    /// in the link map.
    pub mapped: Vec<ObjectId>,
}

impl Search {
    /// All candidates: tried, then known missing, then not tried.
    pub fn all_candidates(&self) -> impl Iterator<Item = &Candidate> {
        self.candidates
            .iter()
            .chain(&self.known_missing)
            .chain(&self.not_tried)
    }

    /// The candidates as the trace file lists them: tried, then known missing, then not tried.
    ///
    /// Subdirectories for special processors are left out where nothing was found in them: on an x86-64 host of glibc
    /// 2.36 each directory has eighteen.
    #[must_use]
    pub fn event_candidates(&self) -> Vec<event::Candidate> {
        let telling = |candidate: &&Candidate| {
            !candidate.hwcaps
                || !matches!(
                    candidate.outcome,
                    Outcome::Missing | Outcome::DirectoryMissing
                )
        };
        self.all_candidates()
            .filter(telling)
            .map(|candidate| event::Candidate {
                path: candidate.path.clone(),
                rule: candidate.rule,
                outcome: candidate.outcome,
            })
            .collect()
    }

    /// This search and those of all needs, depth first.
    pub fn iter(&self) -> impl Iterator<Item = &Search> {
        // Needs of a request are one flat list: the loader goes breadth first.
        std::iter::once(self).chain(&self.needs)
    }

    /// Whether a later rule would have given another file than the winner: the first such candidate.
    #[must_use]
    pub fn shadowed(&self) -> Option<&Candidate> {
        let winner = self.winner.as_ref()?;
        self.not_tried
            .iter()
            .find(|candidate| candidate.file.is_some() && candidate.file != winner.file)
    }
}

//! One search of the loader: the lists that an object's request goes through, the look at each candidate, and the
//! memory of directories that are missing.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::elf::{ElfError, ElfFacts, Kind};
use crate::event::{Outcome, Rule};

use super::super::files::{FileId, Files, Opened};
use super::super::path::{Directory, absolute, directories, directory_of};
use super::super::search::{Candidate, Search};
use super::{EXECUTABLE, LinkMap, ObjectId};

/// Most files listed that a search would have found further on.
const MOST_NOT_TRIED: usize = 16;

/// The loader's words for a file of another class; it keeps them until the search has found nothing better.
const WRONG_CLASS: &str = "wrong ELF class";

/// What the loader remembers of one slot of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    Unknown,
    Existing,
    Missing,
}

/// One rule's part of a search: a list of directories, or the cache.
pub(super) struct Step {
    rule: Rule,
    /// Where the list stands, to be completed by the entry: `RUNPATH`, `LD_LIBRARY_PATH entry`, …
    source: String,
    /// What follows the entry: ` of /…/libx.so`.
    of: String,
    place: Place,
}

enum Place {
    Directories(Vec<Directory>),
    Cache,
}

impl Step {
    fn detail(&self, entry: &str) -> String {
        let entry = if entry.is_empty() {
            "(empty: current directory)"
        } else {
            entry
        };
        format!("{} {entry}{}", self.source, self.of)
    }
}

/// What a look at one candidate means for the search.
enum Verdict {
    Take(FileId, Arc<ElfFacts>),
    Pass(&'static str),
    LeaveList,
    Fatal(String),
}

impl Verdict {
    /// What the search found, when this ends it: the candidate is number `at`, and a failed load goes on at `resume`.
    /// Otherwise it goes on, knowing whether a file was passed over for being of another class.
    fn ends(self, at: usize, resume: (usize, usize), other_class: &mut bool) -> Option<Found> {
        match self {
            Verdict::Take(id, elf) => Some(Found::File {
                at,
                id,
                elf,
                resume,
            }),
            Verdict::Fatal(error) => Some(Found::Fatal { error, resume }),
            Verdict::Pass(why) => {
                *other_class |= why == WRONG_CLASS;
                None
            }
            Verdict::LeaveList => None,
        }
    }
}

/// What one search found, before it is mapped.
pub(super) enum Found {
    File {
        at: usize,
        id: FileId,
        elf: Arc<ElfFacts>,
        resume: (usize, usize),
    },
    Fatal {
        error: String,
        resume: (usize, usize),
    },
    Nothing {
        error: String,
    },
}

impl LinkMap {
    /// The parts of a search that `requester` makes for a name without a slash, in order.
    pub(super) fn steps(&self, requester: ObjectId) -> Vec<Step> {
        let mut steps = Vec::new();
        let asking = self.objects.get(&requester);
        let elf = asking.and_then(|object| object.elf.as_deref());
        let runpath = elf.and_then(|elf| elf.runpath.as_deref());
        let asking_path = self.path_of(requester);
        if runpath.is_none() {
            let mut ancestor = Some(requester);
            let mut seen = BTreeSet::new();
            while let Some(id) = ancestor.filter(|id| seen.insert(*id)) {
                steps.extend(self.rpath_step(id, requester));
                ancestor = self.objects.get(&id).and_then(|object| object.loader);
            }
            if !seen.contains(&EXECUTABLE) {
                steps.extend(self.rpath_step(EXECUTABLE, requester));
            }
        }
        if !self.library_path.is_empty() {
            steps.push(Step {
                rule: Rule::LdLibraryPath,
                source: "LD_LIBRARY_PATH entry".to_owned(),
                of: String::new(),
                place: Place::Directories(self.library_path.clone()),
            });
        }
        if let Some(runpath) = runpath.filter(|list| !list.is_empty()) {
            steps.push(Step {
                rule: Rule::Runpath,
                source: "RUNPATH".to_owned(),
                of: format!(" of {asking_path}"),
                place: Place::Directories(directories(runpath, &[':'], self.tokens(requester))),
            });
        }
        steps.push(Step {
            rule: Rule::LdSoCache,
            source: "/etc/ld.so.cache entry".to_owned(),
            of: String::new(),
            place: Place::Cache,
        });
        if !elf.is_some_and(ElfFacts::ignores_default_directories) {
            steps.push(Step {
                rule: Rule::LdDefaultDirectory,
                source: "default directory".to_owned(),
                of: String::new(),
                place: Place::Directories(self.default_directories.clone()),
            });
        }
        steps
    }

    fn rpath_step(&self, owner: ObjectId, requester: ObjectId) -> Option<Step> {
        let object = self.objects.get(&owner)?;
        let rpath = object
            .elf
            .as_deref()?
            .effective_rpath()
            .filter(|list| !list.is_empty())?;
        let inherited = if owner == requester {
            String::new()
        } else {
            format!(", inherited by {}", self.path_of(requester))
        };
        Some(Step {
            rule: Rule::Rpath,
            source: "RPATH".to_owned(),
            of: format!(" of {}{inherited}", object.path),
            place: Place::Directories(directories(rpath, &[':'], self.tokens(owner))),
        })
    }

    /// Opens one candidate and judges it as the loader does.
    fn look(&self, path: &str, files: &dyn Files) -> (Outcome, Option<FileId>, Verdict) {
        let (id, elf) = match files.open(&absolute(path, &self.cwd)) {
            Opened::Missing => {
                return (
                    Outcome::Missing,
                    None,
                    Verdict::Pass("No such file or directory"),
                );
            }
            Opened::Denied => {
                return (
                    Outcome::Unreadable,
                    None,
                    Verdict::Pass("Permission denied"),
                );
            }
            Opened::Failed(_) => return (Outcome::Unreadable, None, Verdict::LeaveList),
            Opened::File { id, elf } => (id, elf),
        };
        let own = self
            .objects
            .get(&EXECUTABLE)
            .and_then(|object| object.elf.as_deref());
        let fatal = |outcome, why: String| (outcome, Some(id), Verdict::Fatal(why));
        match elf {
            Err(ElfError::NotElf) => fatal(Outcome::NotElf, format!("{path}: invalid ELF header")),
            Err(ElfError::TooShort(_)) => fatal(Outcome::Broken, format!("{path}: file too short")),
            Err(ElfError::Malformed(why)) => fatal(Outcome::Broken, format!("{path}: {why}")),
            Ok(elf) if own.is_some_and(|own| own.class != elf.class) => {
                (Outcome::WrongClass, Some(id), Verdict::Pass(WRONG_CLASS))
            }
            Ok(elf) if own.is_some_and(|own| own.big_endian != elf.big_endian) => fatal(
                Outcome::Broken,
                format!("{path}: ELF file data encoding of another machine"),
            ),
            Ok(elf) if own.is_some_and(|own| own.machine != elf.machine) => (
                Outcome::WrongClass,
                Some(id),
                Verdict::Pass("No such file or directory"),
            ),
            Ok(elf) if elf.kind == Kind::Other => fatal(
                Outcome::Broken,
                format!("{path}: only ET_DYN and ET_EXEC can be loaded"),
            ),
            Ok(elf) => (Outcome::Chosen, Some(id), Verdict::Take(id, elf)),
        }
    }

    /// A name with a slash: that file or none.
    pub(super) fn try_path(
        &self,
        name: &str,
        requester: ObjectId,
        files: &dyn Files,
        search: &mut Search,
    ) -> Found {
        let not_found = |why: &str| Found::Nothing {
            error: not_found(name, why),
        };
        let Some(path) = self.tokens(requester).expand(name) else {
            return not_found("No such file or directory");
        };
        let (outcome, file, verdict) = self.look(&path, files);
        search.candidates.push(Candidate {
            path,
            rule: Rule::AbsolutePath,
            outcome,
            rule_detail: String::new(),
            hwcaps: false,
            file,
        });
        match verdict {
            Verdict::Take(id, elf) => Found::File {
                at: 0,
                id,
                elf,
                resume: (0, 0),
            },
            Verdict::Pass(WRONG_CLASS) => Found::Nothing {
                error: self.wrong_class(name),
            },
            Verdict::Pass(why) => not_found(why),
            Verdict::LeaveList => not_found("Input/output error"),
            Verdict::Fatal(error) => Found::Fatal {
                error,
                resume: (0, 0),
            },
        }
    }

    /// A name without a slash: all steps in order, with the loader's memory of missing directories.
    pub(super) fn walk(
        &mut self,
        name: &str,
        steps: &[Step],
        requester: ObjectId,
        files: &dyn Files,
        search: &mut Search,
    ) -> Found {
        let system = Arc::clone(&self.system);
        let mut other_class = false;
        for (index, step) in steps.iter().enumerate() {
            let list = match &step.place {
                Place::Directories(list) => list,
                Place::Cache => {
                    let Some((path, detail)) = self.cached(name, requester, files, search) else {
                        continue;
                    };
                    let (outcome, file, verdict) = self.look(&path, files);
                    let at = search.candidates.len();
                    search.candidates.push(Candidate {
                        path,
                        rule: step.rule,
                        outcome,
                        rule_detail: detail,
                        hwcaps: false,
                        file,
                    });
                    if let Some(found) = verdict.ends(at, (index + 1, 0), &mut other_class) {
                        return found;
                    }
                    continue;
                }
            };
            'list: for (place, directory) in list.iter().enumerate() {
                let resume = (index, place + 1);
                let mut failed = false;
                for (number, subdirectory) in system.subdirectories.iter().enumerate() {
                    let path = in_subdirectory(&directory.name, subdirectory, name);
                    let mut candidate = Candidate {
                        path,
                        rule: step.rule,
                        outcome: Outcome::DirectoryMissing,
                        rule_detail: step.detail(&directory.entry),
                        hwcaps: !subdirectory.is_empty(),
                        file: None,
                    };
                    let slot = self.slot(&directory.name, number);
                    if slot == Slot::Missing {
                        if subdirectory.is_empty() {
                            search.known_missing.push(candidate);
                        }
                        continue;
                    }
                    let (outcome, file, verdict) = self.look(&candidate.path, files);
                    (candidate.outcome, candidate.file) = (outcome, file);
                    if slot == Slot::Unknown {
                        let there = matches!(verdict, Verdict::Take(..) | Verdict::Fatal(_))
                            || directory_of(&absolute(&candidate.path, &self.cwd))
                                .is_some_and(|directory| files.is_directory(&directory));
                        self.remember(&directory.name, number, there);
                        if !there && outcome == Outcome::Missing {
                            candidate.outcome = Outcome::DirectoryMissing;
                        }
                    }
                    let at = search.candidates.len();
                    search.candidates.push(candidate);
                    failed = matches!(verdict, Verdict::LeaveList);
                    if let Some(found) = verdict.ends(at, resume, &mut other_class) {
                        return found;
                    }
                }
                if failed {
                    break 'list;
                }
            }
        }
        let error = if other_class {
            self.wrong_class(name)
        } else {
            // Where nothing was opened there is no reason either.
            let why = if search.candidates.is_empty() {
                ""
            } else {
                "No such file or directory"
            };
            not_found(name, why)
        };
        Found::Nothing { error }
    }

    /// What the cache names for this requester. An entry in a default directory is kept from an object that ignores
    /// those.
    fn cached(
        &self,
        name: &str,
        requester: ObjectId,
        files: &dyn Files,
        search: &mut Search,
    ) -> Option<(String, String)> {
        let cache = files.cache()?;
        let path = cache.lookup(name, &self.system)?.path.clone();
        let detail = format!("/etc/ld.so.cache entry {name} => {path}");
        let elf = self
            .objects
            .get(&requester)
            .and_then(|object| object.elf.as_deref());
        let in_default = || {
            self.default_directories
                .iter()
                .any(|directory| path.starts_with(&directory.name))
        };
        if elf.is_some_and(ElfFacts::ignores_default_directories) && in_default() {
            search.not_tried.push(Candidate {
                rule_detail: format!(
                    "{detail}, kept out by -z nodefaultlib of {}",
                    self.path_of(requester)
                ),
                path,
                rule: Rule::LdSoCache,
                outcome: Outcome::NotTried,
                hwcaps: false,
                file: None,
            });
            return None;
        }
        Some((path, detail))
    }

    /// What a search by this object would find first, if the name were not known yet.
    pub(in crate::loader) fn first_found(
        &self,
        name: &str,
        requester: ObjectId,
        files: &dyn Files,
    ) -> Option<Candidate> {
        self.would_find(name, &self.steps(requester), (0, 0), requester, files)
            .into_iter()
            .next()
    }

    /// What the search would have found from `from` (step, directory) on, without touching the loader's memory.
    pub(super) fn would_find(
        &self,
        name: &str,
        steps: &[Step],
        from: (usize, usize),
        requester: ObjectId,
        files: &dyn Files,
    ) -> Vec<Candidate> {
        let mut found: Vec<Candidate> = Vec::new();
        let candidate = |step: &Step, path: String, detail: String, hwcaps: bool| {
            let (_, file, verdict) = self.look(&path, files);
            matches!(verdict, Verdict::Take(..)).then(|| Candidate {
                path,
                rule: step.rule,
                outcome: Outcome::NotTried,
                rule_detail: detail,
                hwcaps,
                file,
            })
        };
        for (index, step) in steps.iter().enumerate().skip(from.0) {
            let list = match &step.place {
                Place::Directories(list) => list,
                Place::Cache => {
                    let mut kept_out = Search::default();
                    if let Some((path, detail)) = self.cached(name, requester, files, &mut kept_out)
                    {
                        found.extend(candidate(step, path, detail, false));
                    }
                    continue;
                }
            };
            for directory in list.iter().skip(if index == from.0 { from.1 } else { 0 }) {
                for (number, subdirectory) in self.system.subdirectories.iter().enumerate() {
                    let there = match self.slot(&directory.name, number) {
                        Slot::Missing => false,
                        Slot::Existing => true,
                        Slot::Unknown => {
                            let path = format!("{}{subdirectory}", directory.name);
                            files.is_directory(&absolute(&path, &self.cwd))
                        }
                    };
                    if !there {
                        continue;
                    }
                    let path = in_subdirectory(&directory.name, subdirectory, name);
                    let hit = candidate(
                        step,
                        path,
                        step.detail(&directory.entry),
                        !subdirectory.is_empty(),
                    );
                    if let Some(hit) = hit {
                        found.push(hit);
                        break;
                    }
                }
                if found.len() >= MOST_NOT_TRIED {
                    return found;
                }
            }
        }
        found
    }

    /// The loader names the class of the file, which is the other one.
    fn wrong_class(&self, name: &str) -> String {
        let own = self
            .objects
            .get(&EXECUTABLE)
            .and_then(|object| object.elf.as_deref());
        let is_64_bit = own.is_none_or(|elf| elf.class == crate::elf::Class::Elf64);
        format!(
            "{name}: {WRONG_CLASS}: ELFCLASS{}",
            if is_64_bit { 32 } else { 64 }
        )
    }

    fn slot(&self, directory: &str, number: usize) -> Slot {
        // A relative directory may appear and vanish with the current one: it counts as existing for good.
        let unknown = if directory.starts_with('/') {
            Slot::Unknown
        } else {
            Slot::Existing
        };
        self.slots
            .get(directory)
            .and_then(|slots| slots.get(number))
            .copied()
            .unwrap_or(unknown)
    }

    fn remember(&mut self, directory: &str, number: usize, existing: bool) {
        if !directory.starts_with('/') {
            return;
        }
        let slots = self
            .slots
            .entry(directory.to_owned())
            .or_insert_with(|| vec![Slot::Unknown; self.system.subdirectories.len()]);
        if let Some(slot) = slots.get_mut(number) {
            *slot = if existing {
                Slot::Existing
            } else {
                Slot::Missing
            };
        }
    }
}

fn in_subdirectory(directory: &str, subdirectory: &str, name: &str) -> String {
    if subdirectory.is_empty() {
        format!("{directory}{name}")
    } else {
        format!("{directory}{subdirectory}/{name}")
    }
}

fn not_found(name: &str, why: &str) -> String {
    let separator = if why.is_empty() { "" } else { ": " };
    format!("{name}: cannot open shared object file{separator}{why}")
}

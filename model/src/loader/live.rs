//! A process that was already running: which rule brought each library that it has mapped?
//!
//! Nobody saw the requests, so they are guessed, and then *replayed*: a guess counts only if its search gives the file
//! that is really mapped. What comes with the program and what other libraries need leaves little to guess; the roots
//! that remain were dlopened. All of this is to be marked "reconstructed".

use std::collections::BTreeSet;
use std::sync::Arc;

use super::files::{FileId, Files};
use super::link_map::{LinkMap, ObjectId, ProcessStart};
use super::search::{Flags, Request, Search};
use super::system::System;

/// A mapped file: its path in `/proc/PID/maps`, and which file it is.
type Mapped = (String, FileId);

/// A mapped library and the search that gives it.
#[derive(Clone, Debug)]
pub struct Reconstructed {
    /// The path in `/proc/PID/maps`.
    pub path: String,
    /// Which file it is.
    pub file: FileId,
    /// The replayed search whose winner is this file; none when no guess gives it.
    pub search: Option<Search>,
}

impl LinkMap {
    /// What a request would be answered with now, without making it.
    #[must_use]
    pub fn predict(&self, request: &Request<'_>, files: &dyn Files) -> Search {
        self.clone().request(request, files)
    }

    /// Explains the libraries that a live process has mapped (`mapped`: ELF objects of `/proc/PID/maps`, in its order),
    /// and gives the link map from which later events can be followed.
    ///
    /// The order of requests is lost, so a library that an earlier one made "already loaded" may be explained by the
    /// rule that would have found it.
    #[must_use]
    pub fn reconstruct(
        system: Arc<System>,
        start: &ProcessStart,
        mapped: &[Mapped],
        files: &dyn Files,
    ) -> (Self, Vec<Reconstructed>) {
        let (mut map, mut searches) = Self::start(system, start, files);
        let real: BTreeSet<FileId> = mapped.iter().map(|(_, file)| *file).collect();
        let (mut roots, mut rest) = roots(&map, mapped, files);
        // A guess may fail until the object that meets its needs is there: again as long as one succeeds.
        loop {
            let mut explained = map.guess_some(&mut roots, &real, &mut searches, files);
            explained = explained || map.guess_some(&mut rest, &real, &mut searches, files);
            if !explained {
                break;
            }
        }
        map.reconcile(
            mapped.iter().map(|(path, file)| (path.as_str(), *file)),
            files,
        );
        let explained = mapped
            .iter()
            .filter(|(_, file)| {
                map.object_of_file(*file)
                    .is_some_and(|id| id != map.executable())
            })
            .map(|(path, file)| {
                let gives = |search: &&Search| {
                    search
                        .winner
                        .as_ref()
                        .is_some_and(|w| w.file == Some(*file))
                };
                // The search that mapped it says more than one that met it again.
                let mapping =
                    |search: &&Search| search.winner.as_ref().is_some_and(|winner| winner.mapped);
                let search = searches.iter().filter(gives).find(mapping);
                Reconstructed {
                    path: path.clone(),
                    file: *file,
                    search: search.cloned(),
                }
            })
            .collect();
        (map, explained)
    }

    /// Guesses all that can be guessed now; whether there was any.
    fn guess_some(
        &mut self,
        pending: &mut Vec<&Mapped>,
        real: &BTreeSet<FileId>,
        searches: &mut Vec<Search>,
        files: &dyn Files,
    ) -> bool {
        let before = pending.len();
        pending.retain(|(path, file)| {
            if self.object_of_file(*file).is_some() {
                return false;
            }
            let search = self.guess(path, *file, real, files);
            searches.extend(search.iter().flat_map(Search::iter).cloned());
            search.is_none()
        });
        pending.len() < before
    }

    /// The request that gives an object: its SONAME as some loaded object would ask for it, else its path.
    fn guess(
        &mut self,
        path: &str,
        file: FileId,
        real: &BTreeSet<FileId>,
        files: &dyn Files,
    ) -> Option<Search> {
        let agrees = |search: &Search| {
            search.error.is_none()
                && search
                    .winner
                    .as_ref()
                    .is_some_and(|winner| winner.file == Some(file))
        };
        let soname = soname(path, file, files);
        let by_name = soname
            .as_deref()
            .filter(|name| self.object_by_name(name).is_none())
            .and_then(|name| {
                let mut requesters: Vec<Option<ObjectId>> = vec![None];
                let own_path = self
                    .objects()
                    .filter(|(_, object)| has_own_path(object.elf.as_deref()));
                requesters.extend(own_path.map(|(id, _)| Some(id)));
                requesters.into_iter().find(|&requester| {
                    // Under this very path: what lies in a search path under another spelling was opened by path.
                    self.first_found(name, requester.unwrap_or(self.executable()), files)
                        .is_some_and(|found| {
                            found.file == Some(file) && (found.path == path || requester.is_none())
                        })
                })
            });
        let name = if by_name.is_some() {
            soname.as_deref()?
        } else {
            path
        };
        let request = Request {
            name,
            requester: by_name.flatten(),
            flags: Flags::default(),
        };
        let before = self.clone();
        let search = self.request(&request, files);
        // Needs that the process has not mapped show that the guess is wrong; the object itself is certain.
        let mapped = search
            .iter()
            .filter_map(|search| search.winner.as_ref())
            .filter(|winner| winner.mapped);
        let real = mapped
            .filter_map(|winner| winner.file)
            .all(|file| real.contains(&file));
        if agrees(&search) && real {
            return Some(search);
        }
        *self = before;
        None
    }
}

fn has_own_path(elf: Option<&crate::elf::ElfFacts>) -> bool {
    elf.is_some_and(|elf| elf.runpath.is_some() || elf.rpath.is_some())
}

fn soname(path: &str, file: FileId, files: &dyn Files) -> Option<String> {
    match files.open(path) {
        super::Opened::File { id, elf: Ok(elf) } if id == file => elf.soname.clone(),
        _ => None,
    }
}

/// The mapped objects that nothing has brought yet: those that no other of them needs, which are to be guessed first, and
/// the rest.
fn roots<'a>(
    map: &LinkMap,
    mapped: &'a [Mapped],
    files: &dyn Files,
) -> (Vec<&'a Mapped>, Vec<&'a Mapped>) {
    let mut needed: BTreeSet<String> = BTreeSet::new();
    for (path, file) in mapped {
        if map.object_of_file(*file).is_none()
            && let super::Opened::File { id, elf: Ok(elf) } = files.open(path)
            && id == *file
        {
            needed.extend(elf.needed.iter().cloned());
        }
    }
    let is_root = |(path, file): &&Mapped| {
        soname(path, *file, files).is_none_or(|soname| !needed.contains(&soname))
    };
    mapped.iter().partition(is_root)
}

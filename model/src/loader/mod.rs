//! Why *that* file: the dynamic loader's search, replayed.
//!
//! A program that needs `libcudart.so.13` rarely says where from. The dynamic loader (ld.so, glibc's) decides, at the
//! moment of the request, by rules that depend on who asks and on what has been loaded before. This module repeats that
//! decision from the same inputs and keeps what the loader throws away: every candidate, the rule that named it, and
//! why it lost. The collector compares the winner with the file that was really mapped; a replay that agrees explains
//! the load, one that differs says so.
//!
//! # The rules, in order
//!
//! For a name *without* a slash (a `DT_NEEDED` entry, `dlopen("libcuda.so.1")`):
//!
//! 1. **already-loaded** — is there an object under that name? Its SONAME counts, its path, and every name under which
//!    it was ever asked for. This is why the order of imports decides which cudart serves a process.
//! 2. **rpath** — `DT_RPATH` of the asking object, then of the object whose need loaded *it*, and so on up to the one
//!    that was dlopened, at last of the executable. What dlopens an object gives it nothing. Skipped whole when the
//!    asking object has a `DT_RUNPATH`; an ancestor that has a RUNPATH adds nothing.
//! 3. **ld-library-path** — `LD_LIBRARY_PATH` of the *initial* environment; a later `setenv` is too late. An empty entry
//!    is the current directory; `;` separates as `:` does.
//! 4. **runpath** — `DT_RUNPATH` of the asking object alone. It is not inherited: what a library finds through it, the
//!    libraries below do not. Hence the classic: LD_LIBRARY_PATH beats the RUNPATH of a wheel (resolution.md 3, class 2),
//!    but not the RPATH of torch.
//! 5. **ld-so-cache** — the one file that ldconfig's index gives for the name ([`cache`]).
//! 6. **ld-default-directory** — the directories compiled into the loader. An object linked with `-z nodefaultlib` closes
//!    these to its own needs, and cache entries that lie in them.
//!
//! A name *with* a slash is that path and nothing else (**absolute-path**; relative ones count from the current
//! directory). `LD_PRELOAD` entries come first of all (**preload**), searched as if the executable asked.
//!
//! # What makes it intricate
//!
//! - Each directory of a search path stands for several: `glibc-hwcaps/x86-64-v4`, … and, until glibc 2.36, the legacy
//!   combinations of `tls`, platform and capabilities ([`System::subdirectories`]).
//! - A subdirectory that is found missing is never looked into again, in any search path of the process. The loader
//!   remembers this per *slot* of a directory name, so that two slots with the same path are both tried once.
//! - A file of another ELF class or machine is passed over; a file that is broken *ends* the search, with a good copy
//!   waiting in the next directory. A file that may not be read is passed over.
//! - A file found under a new path may be the inode of a loaded object: then it is that object, with one more name.
//! - Needs are loaded breadth first. One that is missing ends the request, and all that the request mapped is unmapped;
//!   names and remembered directories stay.
//! - `dlclose` unmaps what nothing holds any more. libcudart opens and closes libcuda.so.1 when it counts devices: forget
//!   the close, and the next search for libcuda seems to be answered by "already loaded" (review-experiments.md 2).
//!
//! # Use
//!
//! A [`LinkMap`] is the loader's memory of one process. Start it with [`LinkMap::start`], feed it the process's events in
//! order, and ask it with [`LinkMap::request`]; the answer is a [`Search`]. A fork's child gets a clone. The file system
//! is behind [`Files`]; the constants of the host's loader are a [`System`].
//!
//! Not covered: `dlmopen` namespaces (each has its own list), `DT_FILTER`/`DT_AUXILIARY`, LD_AUDIT, musl.

pub mod cache;
mod files;
mod link_map;
mod live;
mod path;
mod search;
mod system;

pub use crate::event::{Outcome, Rule};
pub use cache::{CacheEntry, CacheError, LdSoCache};
pub use files::{FileId, Files, Opened};
pub use link_map::{LinkMap, Object, ObjectId, ProcessStart, Reconciled};
pub use live::Reconstructed;
pub use search::{Candidate, Flags, Request, Search, Winner};
pub use system::{Processor, System, default_directories_in, usual_default_directories};

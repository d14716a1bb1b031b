//! Files as the traced process sees them: a process in a container has another root than jittrace.
//!
//! What is looked up for such a process is looked up with its root as the root of the collector's thread, so that
//! absolute links and the loader's directories lead where they lead in there. Nothing of the process is changed.

use std::{
    collections::HashMap,
    fs::{self, File},
    io,
    os::unix::fs::MetadataExt,
};

use rustix::{
    process::{chroot, fchdir},
    thread::{UnshareFlags, unshare_unsafe},
};

/// The roots of the traced processes, where they are not ours.
#[derive(Debug, Default)]
pub(super) struct Roots {
    own: Option<Own>,
    of: HashMap<u32, File>,
    /// How many are inside each other, and of whom.
    inside: Vec<u32>,
}

/// Our own root, and which one it is.
#[derive(Debug)]
struct Own {
    root: File,
    namespace: u64,
    identity: (u64, u64),
    /// The thread's root is its own, so that changing it changes nobody else's.
    private: bool,
}

/// Whether look-ups may be made for a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum View {
    /// Its root is ours.
    Ours,
    /// Its root is now that of this thread; to be left again.
    Entered,
    /// Its files cannot be seen from here.
    Hidden,
}

impl Roots {
    /// A process began, or was found.
    pub(super) fn begin(&mut self, pid: u32) {
        if self.own.is_none() {
            self.own = own().ok();
        }
        let Some(own) = &self.own else { return };
        // A process that is gone, or that may not be looked into, is taken to be where jittrace is.
        let Ok(namespace) = fs::metadata(format!("/proc/{pid}/ns/mnt")).map(|m| m.ino()) else {
            return;
        };
        let Ok(root) = File::open(format!("/proc/{pid}/root")) else {
            return;
        };
        let same = namespace == own.namespace
            && root
                .metadata()
                .is_ok_and(|m| (m.dev(), m.ino()) == own.identity);
        if same {
            self.of.remove(&pid);
        } else {
            self.of.insert(pid, root);
        }
    }

    /// A process ended.
    pub(super) fn end(&mut self, pid: u32) {
        self.of.remove(&pid);
    }

    /// Makes the files of a process those of this thread, until [`Roots::leave`].
    pub(super) fn enter(&mut self, pid: u32) -> View {
        let (Some(root), Some(own)) = (self.of.get(&pid), &mut self.own) else {
            return View::Ours;
        };
        if self.inside.last() == Some(&pid) {
            self.inside.push(pid);
            return View::Entered;
        }
        if !own.private {
            // SAFETY: only the file system attributes of this thread become its own; no memory or descriptor does.
            own.private = unsafe { unshare_unsafe(UnshareFlags::FS) }.is_ok();
        }
        if own.private && become_root(root).is_ok() {
            self.inside.push(pid);
            View::Entered
        } else {
            View::Hidden
        }
    }

    /// Gives this thread its root back.
    pub(super) fn leave(&mut self, view: View) {
        if view != View::Entered {
            return;
        }
        self.inside.pop();
        if self.inside.is_empty()
            && let Some(own) = &self.own
        {
            // It was ours before: nothing can refuse it to who may change roots at all.
            let _ = become_root(&own.root);
        }
    }
}

fn own() -> io::Result<Own> {
    let root = File::open("/")?;
    let metadata = root.metadata()?;
    Ok(Own {
        root,
        namespace: fs::metadata("/proc/self/ns/mnt")?.ino(),
        identity: (metadata.dev(), metadata.ino()),
        private: false,
    })
}

fn become_root(root: &File) -> rustix::io::Result<()> {
    fchdir(root)?;
    chroot(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_beside_us_needs_no_other_root() {
        let mut roots = Roots::default();
        let pid = std::process::id();
        roots.begin(pid);
        assert_eq!(roots.enter(pid), View::Ours);
        assert_eq!(roots.enter(u32::MAX), View::Ours);
    }

    #[test]
    fn another_root_is_entered_and_left_again_where_that_is_allowed() {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join("only-here"), b"").unwrap();
        let root = File::open(place.path()).unwrap();
        // In a thread of its own: roots belong to threads once they are private.
        let seen = std::thread::spawn(move || {
            let mut roots = Roots {
                own: own().ok(),
                of: HashMap::from([(1, root)]),
                inside: Vec::new(),
            };
            let outer = roots.enter(1);
            let inner = roots.enter(1);
            let during = std::path::Path::new("/only-here").exists();
            roots.leave(inner);
            roots.leave(outer);
            let after = std::path::Path::new("/only-here").exists();
            (outer, during, after)
        })
        .join()
        .unwrap();
        let entered = seen.0 == View::Entered;
        assert_eq!(seen.1, entered);
        assert!(!seen.2);
        assert!(std::path::Path::new("/proc/self").exists());
    }
}

//! The collection of an attach: a live process and its descendants.

use std::{io, time::Duration};

use crossbeam_channel::{Receiver, RecvTimeoutError};

use super::{Collected, Word, desk::Desk, procfs};

/// How long `/proc` is left alone between two looks.
const POLL_PROC: Duration = Duration::from_millis(250);

/// Follows a live process by looking at `/proc`, until it ends or the word comes.
pub(super) fn attached(root: u32, mut desk: Desk, words: &Receiver<Word>) -> io::Result<Collected> {
    let mut tree = procfs::Tree::new(root);
    let mut first = true;
    while tree.root_lives() {
        tree.look(&mut desk, first, true);
        desk.flush();
        first = false;
        match words.recv_timeout(POLL_PROC) {
            Ok(_) | Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
    let lives = tree.root_lives();
    if !lives {
        // One more look tells who is gone.
        tree.look(&mut desk, first, true);
    }
    let (model, trouble) = desk.close();
    Ok(Collected {
        still_running: if lives {
            tree.pids().collect()
        } else {
            Vec::new()
        },
        model,
        trouble,
    })
}

//! The collection of an attach: a live process and its descendants. First a snapshot of what `/proc` tells of them, then
//! what happens, as the kernel sees it or, where it may not be asked, as `/proc` shows it a little later.

use std::{
    io,
    time::{Duration, Instant},
};

use crossbeam_channel::{Receiver, RecvTimeoutError};

use super::{
    Collected, Word, desk::Desk, follow::Following, kernel::Kernel, monotonic_ns, procfs,
    stacks::Shared, watch::Watch,
};

/// How long `/proc` is left alone between two looks.
const POLL_PROC: Duration = Duration::from_millis(250);

/// How long the kernel's ring is left alone between two looks.
const POLL: Duration = Duration::from_millis(20);

/// How long the last sights are waited for after the process has ended.
const DRAIN: Duration = Duration::from_millis(200);

/// Follows a live process through the kernel, until it ends or the word comes. `tree` is what it was before the kernel
/// followed it.
pub(super) fn followed(
    mut tree: procfs::Tree,
    mut desk: Desk,
    kernel: Kernel,
    words: &Receiver<Word>,
) -> io::Result<Collected> {
    let mut following = Following::new(kernel, None);
    let mut watch = Watch::default();
    tree.look(&mut desk, true, true);
    for pid in tree.pids() {
        watch.begin(pid);
        following
            .kernel()
            .found(pid, procfs::mapped(pid).unwrap_or_default());
    }
    desk.flush();
    let mut ended: Option<Instant> = None;
    loop {
        following.look(monotonic_ns(), &mut watch, &mut desk);
        desk.flush();
        if ended.is_none() && !tree.root_lives() {
            ended = Some(Instant::now());
        }
        if ended.is_some_and(|at| at.elapsed() >= DRAIN) {
            break;
        }
        match words.recv_timeout(POLL) {
            Ok(_) | Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
    let detaching = following.stop(monotonic_ns(), &mut desk);
    let mut still_running: Vec<u32> = watch.pids().collect();
    still_running.sort_unstable();
    let (model, trouble) = desk.close();
    Ok(Collected {
        model,
        trouble,
        still_running,
        detaching,
    })
}

/// Follows a live process by looking at `/proc`, until it ends or the word comes.
pub(super) fn polled(
    root: u32,
    mut desk: Desk,
    stacks: Shared,
    words: &Receiver<Word>,
) -> io::Result<Collected> {
    let mut tree = procfs::Tree::new(root, stacks);
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
        detaching: None,
    })
}

//! A program on a terminal of its own, for the tests and the bench that drive one.

use std::{
    fs::File,
    os::{fd::OwnedFd, unix::process::CommandExt},
    process::{Child, Command, Stdio},
};

use rustix::{
    fs::{Mode, OFlags, open},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};

/// Starts `command` as the leader of a session on a new pseudo-terminal of so many columns and rows. The end of the
/// terminal emulator, and the program.
pub(crate) fn spawn(mut command: Command, (columns, rows): (u16, u16)) -> (File, Child) {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let master = openpt(flags).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let slave = open(name, flags, Mode::empty()).unwrap();
    let size = Winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&master, size).unwrap();
    let stream = |slave: &OwnedFd| Stdio::from(slave.try_clone().unwrap());
    command
        .stdin(stream(&slave))
        .stdout(stream(&slave))
        .stderr(stream(&slave));
    // SAFETY: two system calls that may be made between fork and exec; the streams are in place by then.
    unsafe {
        command.pre_exec(|| {
            libc::setsid();
            libc::ioctl(libc::STDIN_FILENO, libc::TIOCSCTTY, 0);
            Ok(())
        });
    }
    (File::from(master), command.spawn().unwrap())
}

//! The pseudo-terminal of a command that runs below the view.

use std::{
    fs::File,
    io,
    os::fd::{AsFd, OwnedFd},
};

use rustix::{
    fs::{Mode, OFlags, open},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{OptionalActions, Winsize, tcgetattr, tcsetattr, tcsetwinsize},
};

/// Both ends of a pseudo-terminal.
pub(super) struct Pty {
    /// The keeper's end. The command loses its terminal when the last copy of this is closed.
    pub(super) master: File,
    /// The command's end.
    pub(super) slave: OwnedFd,
}

impl Pty {
    /// A terminal of this size, with the settings that the real one has now.
    pub(super) fn new(columns: u16, rows: u16) -> io::Result<Pty> {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&master)?;
        unlockpt(&master)?;
        let name = ptsname(&master, Vec::new())?;
        let slave = open(
            name,
            OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        resize(&master, columns, rows)?;
        if let Ok(settings) = tcgetattr(io::stdin()) {
            tcsetattr(&slave, OptionalActions::Now, &settings)?;
        }
        Ok(Pty {
            master: File::from(master),
            slave,
        })
    }
}

/// Gives a terminal another size; the kernel tells whoever runs in it.
pub(super) fn resize(master: impl AsFd, columns: u16, rows: u16) -> io::Result<()> {
    let size = Winsize {
        ws_col: columns.max(1),
        ws_row: rows.max(1),
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    Ok(tcsetwinsize(master, size)?)
}

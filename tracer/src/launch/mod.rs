//! Launching a command so that nothing about it changes but one library in its link map.
//!
//! The command is a fork and exec of the main thread, in the same process group and session, with the signal
//! dispositions that jittrace itself was started with (design section 3, "Launch manners").

mod child;
mod dispositions;
mod invoker;
mod session;
mod supervise;
mod target;

pub use child::{Command, LaunchError};
pub use invoker::{Invoker, invoker, variables};
pub use session::{SHIM_NAME, Session};
pub use supervise::{Ended, Stops, block_signals, die_like, supervise};
pub use target::{Reach, find, reach};

//! Reading with py-spy: from the memory of the process (process_vm_readv), without stopping it.

use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind},
};

use jittrace_model::event::Frame;
use py_spy::{Config, PythonSpy, config::LockingStrategy};

use super::{Stack, Unreadable};
use crate::collect::monotonic_ns;

/// A process whose frames change while they are read gives nonsense or an error; another reading mostly does not.
const TRIES: usize = 3;

/// The interpreter of one process, as it lies in its memory.
pub(super) struct Reader(PythonSpy);

impl Reader {
    /// Finds the interpreter: 5 to 12 ms, some hundred for the first of a kind (mechanisms 7).
    pub(super) fn new(pid: u32) -> Result<Reader, Unreadable> {
        let config = Config {
            blocking: LockingStrategy::NonBlocking,
            collect_thread_names: false,
            ..Config::default()
        };
        let pid = i32::try_from(pid)
            .map_err(|_| Unreadable::Interpreter(format!("{pid} is no process")))?;
        guarded(|| PythonSpy::new(pid, &config)).map(Reader)
    }

    /// What its threads are doing now.
    pub(super) fn threads(&mut self) -> Result<Vec<Stack>, Unreadable> {
        let mut read = guarded(|| self.0.get_stack_traces());
        for _ in 1..TRIES {
            if read.is_ok() {
                break;
            }
            read = guarded(|| self.0.get_stack_traces());
        }
        let read_at = monotonic_ns();
        let threads = read?.into_iter().map(|thread| Stack {
            tid: thread.os_thread_id.and_then(|tid| u32::try_from(tid).ok()),
            frames: thread.frames.into_iter().map(frame).collect(),
            read_at,
        });
        Ok(threads.collect())
    }
}

fn frame(frame: py_spy::Frame) -> Frame {
    // `co_qualname` from 3.11 on (`Popen.communicate`); the shim tells `co_name`.
    let function = frame.name.rsplit('.').next().unwrap_or_default();
    Frame {
        function: function.to_owned(),
        file: frame.filename,
        line: u32::try_from(frame.line).unwrap_or(0),
        distribution: None,
    }
}

/// What py-spy says; memory that changes under its hands must not take this process down with it.
fn guarded<T>(read: impl FnOnce() -> Result<T, anyhow::Error>) -> Result<T, Unreadable> {
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(unreadable(&error)),
        Err(_) => Err(Unreadable::Interpreter(
            "its memory made no sense".to_owned(),
        )),
    }
}

fn unreadable(error: &anyhow::Error) -> Unreadable {
    let refused = error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .filter_map(io::Error::raw_os_error)
        .find(|errno| matches!(*errno, libc::EPERM | libc::EACCES));
    match refused {
        Some(errno) => Unreadable::Memory(io::Error::from_raw_os_error(errno)),
        None => {
            let text = error.to_string();
            let first = text.lines().next().unwrap_or_default();
            Unreadable::Interpreter(first.to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_told_from_interpreters_that_are_not_understood() {
        let refused = anyhow::Error::new(io::Error::from_raw_os_error(libc::EPERM))
            .context("Failed to copy PyThreadState");
        assert!(matches!(unreadable(&refused), Unreadable::Memory(_)));
        let odd = anyhow::anyhow!("Unsupported version of Python: 4.0\nand more");
        assert_eq!(
            unreadable(&odd).to_string(),
            "its interpreter was not understood (Unsupported version of Python: 4.0)"
        );
    }

    #[test]
    fn functions_have_the_names_that_the_shim_gives_them() {
        for (name, expected) in [
            ("run", "run"),
            ("Popen.communicate", "communicate"),
            ("make.<locals>.<lambda>", "<lambda>"),
            ("<module>", "<module>"),
        ] {
            let frame = frame(py_spy::Frame {
                name: name.to_owned(),
                filename: "/a.py".to_owned(),
                module: None,
                short_filename: None,
                line: -1,
                locals: None,
                is_entry: false,
                is_shim_entry: false,
            });
            assert_eq!((frame.function.as_str(), frame.line), (expected, 0));
        }
    }
}

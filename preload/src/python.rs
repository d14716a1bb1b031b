//! The Python stack, through the public C API, and only while this thread holds the GIL.
//!
//! Taking the GIL (`PyGILState_Ensure`) in a wrapper deadlocks when another thread holds it and waits for a lock that the
//! caller has (review-experiments.md 3); so frames are taken where it is held anyway, and nowhere else.

use crate::elf::{self, Version};
use crate::session;
use core::ffi::{c_char, c_int, c_long, c_void};
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use jittrace_wire::record::Writer;

/// A Python object.
type Py = *mut c_void;

macro_rules! interpreter {
    ($($field:ident: $name:literal as $type:ty;)*) => {
        /// Functions of the interpreter in this process.
        struct Interpreter { $($field: $type,)* }

        impl Interpreter {
            /// Functions that must be there; 3.8 and older lack some.
            const NAMES: &[&str] = &[$($name),*];

            unsafe fn from_addresses(addresses: &[usize; Self::NAMES.len()]) -> Interpreter {
                let mut next = addresses.iter().copied();
                // SAFETY: as many addresses as fields, each of the function that its type says.
                Interpreter { $($field: unsafe { core::mem::transmute::<usize, $type>(next.next().unwrap_or(0)) },)* }
            }
        }
    };
}

interpreter! {
    is_initialized: "Py_IsInitialized" as unsafe extern "C" fn() -> c_int;
    check: "PyGILState_Check" as unsafe extern "C" fn() -> c_int;
    this_thread: "PyGILState_GetThisThreadState" as unsafe extern "C" fn() -> Py;
    current: "PyThreadState_GetUnchecked|_PyThreadState_UncheckedGet" as unsafe extern "C" fn() -> Py;
    frame: "PyThreadState_GetFrame" as unsafe extern "C" fn(Py) -> Py;
    back: "PyFrame_GetBack" as unsafe extern "C" fn(Py) -> Py;
    code: "PyFrame_GetCode" as unsafe extern "C" fn(Py) -> Py;
    line: "PyFrame_GetLineNumber" as unsafe extern "C" fn(Py) -> c_int;
    attribute: "PyObject_GetAttrString" as unsafe extern "C" fn(Py, *const c_char) -> Py;
    utf8: "PyUnicode_AsUTF8AndSize" as unsafe extern "C" fn(Py, *mut c_long) -> *const c_char;
    release: "Py_DecRef" as unsafe extern "C" fn(Py);
    fetch: "PyErr_Fetch" as unsafe extern "C" fn(*mut Py, *mut Py, *mut Py);
    restore: "PyErr_Restore" as unsafe extern "C" fn(Py, Py, Py);
    clear: "PyErr_Clear" as unsafe extern "C" fn();
}

const COUNT: usize = Interpreter::NAMES.len();
static ADDRESSES: [AtomicUsize; COUNT] = [const { AtomicUsize::new(0) }; COUNT];
static FINALIZING: AtomicUsize = AtomicUsize::new(0);
/// Set when the interpreter's code objects turned out to have no qualified names.
static NO_QUALIFIED_NAMES: AtomicU32 = AtomicU32::new(0);

const NOT_LOOKED: u32 = 0;
const ABSENT: u32 = 1;
const PRESENT: u32 = 2;
static STATE: AtomicU32 = AtomicU32::new(NOT_LOOKED);
/// The loader's counters when it was looked for last.
static LOOKED_AT: AtomicU64 = AtomicU64::new(0);

/// Finds the interpreter; looks again when objects came or went, as it may be loaded later.
fn interpreter() -> Option<Interpreter> {
    let (adds, subs) = elf::find_object(|object| Some(object.counters)).unwrap_or_default();
    let now = adds << 32 | subs & 0xffff_ffff;
    if STATE.load(Relaxed) == NOT_LOOKED || LOOKED_AT.load(Relaxed) != now {
        LOOKED_AT.store(now, Relaxed);
        STATE.store(if look() { PRESENT } else { ABSENT }, Relaxed);
    }
    if STATE.load(Relaxed) != PRESENT {
        return None;
    }
    let mut addresses = [0; COUNT];
    for (address, known) in addresses.iter_mut().zip(&ADDRESSES) {
        *address = known.load(Relaxed);
    }
    if addresses.contains(&0) {
        return None;
    }
    // SAFETY: looked up by these names.
    Some(unsafe { Interpreter::from_addresses(&addresses) })
}

fn look() -> bool {
    elf::find_object(|object| {
        let symbols = object.symbols()?;
        symbols.find(b"PyGILState_Check", Version::Default)?;
        for (name, known) in Interpreter::NAMES.iter().zip(&ADDRESSES) {
            // 3.13 renamed one of them.
            let address = name
                .split('|')
                .find_map(|name| symbols.find(name.as_bytes(), Version::Default));
            known.store(address?, Relaxed);
        }
        let finalizing = symbols.find(b"Py_IsFinalizing", Version::Default);
        let finalizing = finalizing.or_else(|| symbols.find(b"_Py_IsFinalizing", Version::Default));
        FINALIZING.store(finalizing.unwrap_or(0), Relaxed);
        Some(())
    })
    .is_some()
}

impl Interpreter {
    /// This thread's state, when the thread holds the GIL.
    ///
    /// `PyGILState_Check` alone says 1 before initialisation and in processes with subinterpreters, where it is switched
    /// off; so the current thread state must be this thread's too.
    unsafe fn thread_state(&self) -> Option<Py> {
        // SAFETY: functions that need no GIL.
        unsafe {
            if (self.is_initialized)() == 0 || (self.check)() != 1 {
                return None;
            }
            let finalizing = FINALIZING.load(Relaxed);
            if finalizing != 0
                && core::mem::transmute::<usize, unsafe extern "C" fn() -> c_int>(finalizing)() != 0
            {
                return None;
            }
            let state = (self.this_thread)();
            (!state.is_null() && state == (self.current)()).then_some(state)
        }
    }

    /// Calls `with` with the UTF-8 of a text attribute.
    unsafe fn text<T>(
        &self,
        object: Py,
        name: &core::ffi::CStr,
        with: impl FnOnce(&[u8]) -> T,
    ) -> Option<T> {
        // SAFETY: the GIL is held; references are released.
        unsafe {
            let value = (self.attribute)(object, name.as_ptr());
            if value.is_null() {
                (self.clear)();
                return None;
            }
            let mut length = 0;
            let bytes = (self.utf8)(value, &raw mut length);
            let result = if bytes.is_null() {
                (self.clear)();
                None
            } else {
                Some(with(core::slice::from_raw_parts(
                    bytes.cast(),
                    length.max(0) as usize,
                )))
            };
            (self.release)(value);
            result
        }
    }
}

/// Whether this thread runs Python and holds the GIL.
pub(crate) fn holds_gil() -> bool {
    // SAFETY: functions that need no GIL.
    session::owns_memory()
        && interpreter().is_some_and(|interpreter| unsafe { interpreter.thread_state() }.is_some())
}

/// Frames that are written at most, and visited at most.
const WRITTEN: usize = 20;
const VISITED: usize = 80;

/// Appends the Python stack of this thread, innermost first; nothing when it does not hold the GIL.
pub(crate) fn write_frames(writer: &mut Writer<'_>, tag: u8) {
    if !session::owns_memory() {
        return;
    }
    let Some(interpreter) = interpreter() else {
        return;
    };
    // SAFETY: the GIL is held when there is a state.
    unsafe {
        let Some(state) = interpreter.thread_state() else {
            return;
        };
        let (mut kind, mut value, mut traceback) = (
            core::ptr::null_mut(),
            core::ptr::null_mut(),
            core::ptr::null_mut(),
        );
        (interpreter.fetch)(&raw mut kind, &raw mut value, &raw mut traceback);
        let mut frame = (interpreter.frame)(state);
        let (mut written, mut visited, mut folded) = (0, 0, 0_u8);
        while !frame.is_null() && written < WRITTEN && visited < VISITED {
            visited += 1;
            let code = (interpreter.code)(frame);
            let line = (interpreter.line)(frame).max(0) as u32;
            let shown = interpreter.text(code, c"co_filename", |file| {
                if is_machinery(file) {
                    return false;
                }
                let mut write = |name: &[u8]| {
                    writer.frame(tag, file, line, name, folded);
                };
                // 3.11 brought the qualified name. Where there is none it is asked for once: each time would raise an
                // exception, and may collect garbage.
                if NO_QUALIFIED_NAMES.load(Relaxed) == 0 {
                    if interpreter.text(code, c"co_qualname", &mut write).is_some() {
                        return true;
                    }
                    NO_QUALIFIED_NAMES.store(1, Relaxed);
                }
                let _ = interpreter.text(code, c"co_name", &mut write);
                true
            });
            if shown == Some(true) {
                written += 1;
                folded = 0;
            } else {
                folded = folded.saturating_add(1);
            }
            (interpreter.release)(code);
            let back = (interpreter.back)(frame);
            (interpreter.release)(frame);
            frame = back;
        }
        if !frame.is_null() {
            (interpreter.release)(frame);
        }
        (interpreter.restore)(kind, value, traceback);
    }
}

/// Files of the import system, ctypes and subprocess: they stand between the asker and every request.
fn is_machinery(file: &[u8]) -> bool {
    const ENDINGS: [&[u8]; 6] = [
        b"/ctypes/__init__.py",
        b"/ctypes/util.py",
        b"/subprocess.py",
        b"/importlib/__init__.py",
        b"/importlib/_bootstrap.py",
        b"/importlib/_bootstrap_external.py",
    ];
    file.starts_with(b"<frozen importlib") || ENDINGS.iter().any(|ending| file.ends_with(ending))
}

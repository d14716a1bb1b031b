//! Requests for libraries and look-ups of symbols.
//!
//! The functions that depend on their caller are left by tail jump, so their outcome is not seen here. It is told by
//! what follows: objects that announce themselves, the loader's counters, `dlerror`, the next hook of the thread.

use crate::arch::{Next, thunk_address, thunk_at};
use crate::elf;
use crate::text::c_bytes;
use crate::thread::{self, NESTED, Quiet, Request};
use crate::{calls, objects, python, real, session};
use core::ffi::{c_char, c_int, c_void};
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use jittrace_wire::functions;
use jittrace_wire::record::{DlClose, DlError, DlRequest, DlSettled, SymbolLookup, Writer};

/// Appends the object that contains the return address, and the offset in it.
pub(crate) fn write_caller(
    writer: &mut Writer<'_>,
    (object_tag, offset_tag): (u8, u8),
    address: usize,
) {
    let found = elf::find_object(|object| {
        object.contains(address).then(|| {
            writer.text(object_tag, object.path());
            writer.number(offset_tag, address.wrapping_sub(object.base) as u64);
        })
    });
    if found.is_none() {
        writer
            .unreadable(object_tag)
            .number(offset_tag, address as u64);
    }
}

/// Sequence of the request that this thread has open; 0 when none.
pub(crate) fn open_request() -> u32 {
    let thread = thread::this();
    let last = (thread.open as usize).checked_sub(1);
    last.and_then(|last| thread.requests.get(last))
        .map_or(0, |request| request.sequence)
}

/// Closes the requests that have returned: the stack is above them, or their return address is not there any more.
#[inline(never)]
pub(crate) fn settle(stack: usize, handle: Option<usize>) {
    // A vfork child has its parent's requests before it, which are not its own to close.
    if thread::this().open == 0 || !session::owns_memory() {
        return;
    }
    loop {
        let thread = thread::this();
        let Some(last) = (thread.open as usize).checked_sub(1) else {
            return;
        };
        let Some(request) = thread.requests.get(last).copied() else {
            return;
        };
        if stack < request.stack {
            let mut kept = [0; size_of::<usize>()];
            let whole = real::read_memory(request.stack, &mut kept) == kept.len();
            if whole && usize::from_ne_bytes(kept) == request.caller {
                return; // called from within the request: an initialiser asks for something itself
            }
        }
        thread.open = last as u32;
        let mut buffer = [0; 1536];
        let mut writer = Writer::new(&mut buffer, DlSettled::KIND);
        writer.number(DlSettled::request, request.sequence.into());
        // SAFETY: a handle is looked at with care.
        match handle.and_then(|handle| unsafe { elf::behind_handle(handle) }) {
            Some((path, base)) => {
                if request.flags & libc::RTLD_GLOBAL as u32 != 0 {
                    elf::find_object(|object| {
                        (object.base == base).then(|| calls::is_in_global_scope(object))
                    });
                }
                writer
                    .text(DlSettled::by, b"handle")
                    .text(DlSettled::path, path)
                    .number(DlSettled::base, base as u64)
            }
            None => writer.text(DlSettled::by, b"next"),
        };
        session::append(writer);
    }
}

/// A hook that is not about libraries: what the thread asked for before is over.
pub(crate) fn another_call(stack: *const usize) {
    if !session::is_on() || thread::this().open == 0 {
        return;
    }
    if let Some(_quiet) = Quiet::begin() {
        settle(stack as usize, None);
    }
}

/// Whether what this thread is just loading goes into the global scope.
pub(crate) fn is_loading_globally() -> bool {
    let thread = thread::this();
    let last = (thread.open as usize).checked_sub(1);
    let request = last.and_then(|last| thread.requests.get(last));
    request.is_some_and(|request| request.flags & libc::RTLD_GLOBAL as u32 != 0)
}

fn push_request(request: Request) {
    let thread = thread::this();
    let place = (thread.open as usize).min(NESTED - 1);
    if let Some(slot) = thread.requests.get_mut(place) {
        *slot = request;
        thread.open = place as u32 + 1;
    }
}

#[inline(never)]
unsafe fn record_request(
    call: &str,
    name: *const c_char,
    flags: c_int,
    namespace: Option<i64>,
    stack: *const usize,
) {
    let Some(_quiet) = Quiet::begin() else { return };
    settle(stack as usize, None);
    objects::compare(open_request());
    // SAFETY: the return address.
    let caller = unsafe { *stack };
    let mut buffer = [0; 6144];
    let mut writer = Writer::new(&mut buffer, DlRequest::KIND);
    writer.text(DlRequest::call, call.as_bytes());
    if !name.is_null() {
        // SAFETY: the program's string.
        writer.text(DlRequest::name, unsafe { c_bytes(name) });
    }
    writer.number(DlRequest::flags, flags as u64);
    if let Some(namespace) = namespace {
        writer.number(DlRequest::namespace, namespace as u64);
    }
    write_caller(&mut writer, (DlRequest::caller, DlRequest::offset), caller);
    python::write_frames(&mut writer, DlRequest::python);
    let sequence = session::append(writer);
    push_request(Request {
        sequence,
        flags: flags as u32,
        stack: stack as usize,
        caller,
    });
}

pub(crate) unsafe extern "C" fn before_dlopen(
    name: usize,
    flags: usize,
    _: usize,
    stack: *const usize,
) -> Next {
    // SAFETY: dlopen's arguments.
    unsafe { record_request("dlopen", name as *const c_char, flags as c_int, None, stack) };
    Next {
        target: real_address!(dlopen),
        value: 0,
    }
}

pub(crate) unsafe extern "C" fn before_dlmopen(
    space: usize,
    name: usize,
    flags: usize,
    stack: *const usize,
) -> Next {
    // SAFETY: dlmopen's arguments.
    unsafe {
        record_request(
            "dlmopen",
            name as *const c_char,
            flags as c_int,
            Some(space as i64),
            stack,
        )
    };
    Next {
        target: real_address!(dlmopen),
        value: 0,
    }
}

pub(crate) unsafe extern "C" fn before_dlclose(
    handle: usize,
    _: usize,
    _: usize,
    stack: *const usize,
) -> Next {
    if let Some(_quiet) = Quiet::begin() {
        settle(stack as usize, Some(handle));
        objects::compare(open_request());
        // SAFETY: a handle is looked at with care; the return address.
        if let Some((path, base)) = unsafe { elf::behind_handle(handle) } {
            let mut buffer = [0; 3072];
            let mut writer = Writer::new(&mut buffer, DlClose::KIND);
            writer
                .text(DlClose::path, path)
                .number(DlClose::base, base as u64);
            write_caller(&mut writer, (DlClose::caller, DlClose::offset), unsafe {
                *stack
            });
            session::append(writer);
        }
    }
    Next {
        target: real_address!(dlclose),
        value: 0,
    }
}

/// An object's `_init` calls `__gmon_start__` when somebody defines it: that is how objects announce themselves.
pub(crate) unsafe extern "C" fn on_announcement(
    _: usize,
    _: usize,
    _: usize,
    stack: *const usize,
) -> Next {
    if let Some(_quiet) = Quiet::begin() {
        settle(stack as usize, None);
        // SAFETY: the return address.
        objects::announce(unsafe { *stack }, open_request());
    }
    // Another tool may define it too. Every object calls it, so that there is none is remembered.
    static ABSENT: AtomicBool = AtomicBool::new(false);
    let target = if ABSENT.load(Relaxed) {
        0
    } else {
        real_address!(__gmon_start__)
    };
    ABSENT.store(target == 0, Relaxed);
    Next { target, value: 0 }
}

pub(crate) unsafe extern "C" fn before_dlsym(
    handle: usize,
    name: usize,
    _: usize,
    stack: *const usize,
) -> Next {
    let target = real_address!(dlsym);
    // SAFETY: dlsym's arguments.
    unsafe {
        look_up(
            "dlsym",
            handle,
            name as *const c_char,
            stack,
            target,
            || {
                core::mem::transmute::<usize, unsafe extern "C" fn(usize, usize) -> usize>(target)(
                    handle, name,
                )
            },
        )
    }
}

pub(crate) unsafe extern "C" fn before_dlvsym(
    handle: usize,
    name: usize,
    version: usize,
    stack: *const usize,
) -> Next {
    let target = real_address!(dlvsym);
    // SAFETY: dlvsym's arguments.
    unsafe {
        look_up(
            "dlvsym",
            handle,
            name as *const c_char,
            stack,
            target,
            || {
                core::mem::transmute::<usize, unsafe extern "C" fn(usize, usize, usize) -> usize>(
                    target,
                )(handle, name, version)
            },
        )
    }
}

/// A look-up with a real handle does not depend on its caller, so watched names are looked up here and answered with a
/// thunk; everything else goes on to the real function.
unsafe fn look_up(
    call: &str,
    handle: usize,
    name: *const c_char,
    stack: *const usize,
    target: usize,
    real: impl FnOnce() -> usize,
) -> Next {
    let on = Next { target, value: 0 };
    let pseudo = handle == libc::RTLD_DEFAULT as usize || handle == libc::RTLD_NEXT as usize;
    let Some(quiet) = Quiet::begin() else {
        return on;
    };
    settle(stack as usize, if pseudo { None } else { Some(handle) });
    objects::compare(open_request());
    // SAFETY: the program's string.
    let name = unsafe { c_bytes(name) };
    let Some(watched) = functions::find(name) else {
        return on;
    };
    if pseudo || target == 0 {
        return on;
    }
    // The program's errno is what the real function makes of it.
    drop(quiet);
    let address = real();
    let Some(_quiet) = Quiet::begin() else {
        return Next {
            target: 0,
            value: address,
        };
    };
    // SAFETY: the return address.
    let thunk = record_lookup(call, watched, name, address, unsafe { *stack });
    Next {
        target: 0,
        value: thunk.map_or(address, thunk_address),
    }
}

/// Not inlined: its buffer is not to lie on the stack of every look-up. Gives the thunk to hand out, if there is one.
#[inline(never)]
fn record_lookup(
    call: &str,
    watched: usize,
    name: &[u8],
    address: usize,
    caller: usize,
) -> Option<usize> {
    let thunk = if address == 0 {
        None
    } else {
        calls::thunk_for(watched, address)
    };
    if !calls::within_rate(&calls::LOOKUPS) {
        return thunk;
    }
    let mut buffer = [0; 6144];
    let mut writer = Writer::new(&mut buffer, SymbolLookup::KIND);
    writer
        .text(SymbolLookup::call, call.as_bytes())
        .text(SymbolLookup::name, name);
    writer.number(
        SymbolLookup::thunk,
        thunk.map_or(0, |number| number as u64 + 1),
    );
    writer.number(SymbolLookup::result, 0);
    if let Some(object) = elf::object_at(address) {
        writer.text(SymbolLookup::object, object.path());
    }
    write_caller(
        &mut writer,
        (SymbolLookup::caller, SymbolLookup::offset),
        caller,
    );
    python::write_frames(&mut writer, SymbolLookup::python);
    session::append(writer);
    thunk
}

/// Interposed `dlerror`: the only place where the loader says why a request failed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlerror() -> *mut c_char {
    let Some(real) = real!(dlerror: unsafe extern "C" fn() -> *mut c_char) else {
        return core::ptr::null_mut();
    };
    // SAFETY: the function it is.
    let text = unsafe { real() };
    if text.is_null() {
        return text;
    }
    if let Some(_quiet) = Quiet::begin() {
        let request = open_request();
        if calls::within_rate(&calls::ERRORS) {
            let mut buffer = [0; 2048];
            let mut writer = Writer::new(&mut buffer, DlError::KIND);
            // SAFETY: the loader's string.
            writer
                .number(DlError::request, request.into())
                .text(DlError::text, unsafe { c_bytes(text) });
            session::append(writer);
        }
        let thread = thread::this();
        thread.open = thread.open.saturating_sub(1);
        objects::compare(open_request());
    }
    text
}

/// The real function for an address of the shim's own: a thunk, or an exported hook.
fn behind(address: usize) -> usize {
    if let Some(number) = thunk_at(address) {
        return calls::real_behind(number).unwrap_or(address);
    }
    HOOKS
        .iter()
        .find(|(hook, _)| hook() == address)
        .map_or(address, |(_, real)| match real() {
            0 => address,
            real => real,
        })
}

type Address = fn() -> usize;

macro_rules! hooks {
    ($($module:ident::$name:ident),* $(,)?) => {
        &[$((|| crate::$module::$name as *const () as usize, || real_address!($name))),*]
    };
}

/// Exported functions whose address programs hand to `dladdr` to find libc.
static HOOKS: &[(Address, Address)] = hooks![
    arch::dlopen,
    arch::dlsym,
    arch::dlclose,
    arch::dlvsym,
    arch::dlmopen,
    arch::fork,
    arch::vfork,
    dl::dlerror,
    dl::dladdr,
    dl::dladdr1
];

/// Interposed `dladdr`: a thunk answers as the function it stands for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dladdr(address: *const c_void, information: *mut libc::Dl_info) -> c_int {
    match real!(dladdr: unsafe extern "C" fn(*const c_void, *mut libc::Dl_info) -> c_int) {
        // SAFETY: the function it is.
        Some(real) => unsafe { real(behind(address as usize) as *const c_void, information) },
        None => 0,
    }
}

/// Interposed `dladdr1`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dladdr1(
    address: *const c_void,
    information: *mut libc::Dl_info,
    extra: *mut *mut c_void,
    flags: c_int,
) -> c_int {
    match real!(dladdr1: unsafe extern "C" fn(*const c_void, *mut libc::Dl_info, *mut *mut c_void, c_int) -> c_int)
    {
        // SAFETY: the function it is.
        Some(real) => unsafe {
            real(
                behind(address as usize) as *const c_void,
                information,
                extra,
                flags,
            )
        },
        None => 0,
    }
}

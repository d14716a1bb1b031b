//! Watched functions: the thunks that stand for them, and what is recorded when they return.

use crate::arch::{FIRST_LINKED, THUNKS};
use crate::elf::{self, Version};
use crate::text::{Short, c_bytes};
use crate::thread::Quiet;
use crate::{dl, image, python, real, session};
use core::ffi::{c_char, c_int};
use core::sync::atomic::{
    AtomicU32, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};
use jittrace_wire::functions::{Capture, LIBCUDA, WATCHED, Watched, family_of};
use jittrace_wire::record::{Call, Count, SymbolLookup, Writer};

/// A definition with a hidden version.
pub(crate) struct Linked {
    watched: usize,
    version: &'static [u8],
}

/// In the order of the definitions in the assembly.
pub(crate) const LINKED: &[Linked] = &include!(concat!(env!("OUT_DIR"), "/linked.rs"));

/// The real function behind each thunk: its address and, in the bits above it, its line of the table.
///
/// One word, so that no thread ever sees the one without the other.
static TABLE: [AtomicUsize; THUNKS] = [const { AtomicUsize::new(0) }; THUNKS];

/// Bits of a user-space address, five levels of page tables included.
const ADDRESS_BITS: u32 = 57;
const _: () = assert!(WATCHED.len() <= 1 << (usize::BITS - ADDRESS_BITS));

const fn address_in(thunk: usize) -> usize {
    thunk & ((1 << ADDRESS_BITS) - 1)
}

const fn watched_in(thunk: usize) -> usize {
    thunk >> ADDRESS_BITS
}

/// How many events of one kind a process logs before it only counts them.
const RATE: u32 = 1000;

/// A rate guard.
pub(crate) struct Guard {
    name: &'static str,
    count: AtomicU32,
    limit: u32,
}

impl Guard {
    const fn new(name: &'static str, limit: u32) -> Self {
        Guard {
            name,
            count: AtomicU32::new(0),
            limit,
        }
    }
}

pub(crate) static FORKS: Guard = Guard::new("fork", RATE);
pub(crate) static LOOKUPS: Guard = Guard::new("symbol-lookup", RATE);
pub(crate) static ERRORS: Guard = Guard::new("dlerror", RATE);
pub(crate) static FILES: Guard = Guard::new("file", 10 * RATE);
pub(crate) static LOCKS: Guard = Guard::new("lock", RATE);
pub(crate) static MESSAGES: Guard = Guard::new("message", RATE);
/// Thunks that could not be handed out because the pool was used up.
static THUNKS_MISSING: Guard = Guard::new("thunk-pool-exhausted", 0);
/// Names that are not watched, asked of `cuGetProcAddress`.
static UNWATCHED: Guard = Guard::new("cuGetProcAddress", 0);
/// Read at every end: with the session, see there.
#[unsafe(link_section = ".data")]
static CALLS: [AtomicU32; WATCHED.len()] = [const { AtomicU32::new(0) }; WATCHED.len()];

/// Counts an event; whether it may still be logged.
pub(crate) fn within_rate(guard: &Guard) -> bool {
    guard.count.fetch_add(1, Relaxed) < guard.limit
}

/// Says at the end what was counted but not logged.
pub(crate) fn report_counts() {
    for guard in [
        &FORKS,
        &LOOKUPS,
        &ERRORS,
        &FILES,
        &LOCKS,
        &MESSAGES,
        &THUNKS_MISSING,
        &UNWATCHED,
    ] {
        report_count(guard.name, guard.count.load(Relaxed), guard.limit);
    }
    for (watched, count) in WATCHED.iter().zip(&CALLS) {
        report_count(watched.name, count.load(Relaxed), RATE);
    }
}

fn report_count(what: &str, total: u32, limit: u32) {
    if total <= limit {
        return;
    }
    let mut buffer = [0; 256];
    let mut writer = Writer::new(&mut buffer, Count::KIND);
    writer
        .text(Count::what, what.as_bytes())
        .number(Count::total, total.into());
    writer.number(Count::not_logged, (total - limit).into());
    session::append(writer);
}

/// The thunk for a function at this address, when the object that defines it is a CUDA library.
///
/// One for each address, so that a program that compares addresses sees what it expects.
pub(crate) fn thunk_for(watched: usize, address: usize) -> Option<usize> {
    let object = elf::object_at(address)?;
    family_of(object.soname())?;
    let wanted = watched << ADDRESS_BITS | address;
    for (number, thunk) in TABLE.iter().enumerate() {
        let known = match thunk.load(Relaxed) {
            0 => match thunk.compare_exchange(0, wanted, Relaxed, Relaxed) {
                Ok(_) => return Some(number),
                Err(another) => another,
            },
            known => known,
        };
        if address_in(known) == address {
            return Some(number);
        }
    }
    within_rate(&THUNKS_MISSING);
    None
}

/// The function that a thunk or a definition with a hidden version stands for.
pub(crate) fn real_behind(number: usize) -> Option<usize> {
    match number.checked_sub(FIRST_LINKED) {
        Some(linked) => linked_target(linked, 0),
        None => TABLE
            .get(number)
            .map(|thunk| address_in(thunk.load(Relaxed)))
            .filter(|address| *address != 0),
    }
}

/// Load addresses of CUDA libraries in the global scope: those of the start and those opened with `RTLD_GLOBAL`.
static GLOBAL: [AtomicUsize; 64] = [const { AtomicUsize::new(0) }; 64];

/// Remembers that an object is in the global scope, if it is one whose functions are defined here.
pub(crate) fn is_in_global_scope(object: &elf::Object) {
    if family_of(object.soname()).is_none_or(|family| family.versions.is_empty()) {
        return;
    }
    for place in &GLOBAL {
        if place.load(Relaxed) == object.base
            || place
                .compare_exchange(0, object.base, Relaxed, Relaxed)
                .is_ok()
        {
            return;
        }
    }
}

/// Takes an object that is mapped no more out of the global scope: another may be mapped at its address, outside it.
pub(crate) fn is_gone(base: usize) {
    for place in &GLOBAL {
        let _ = place.compare_exchange(base, GONE, Relaxed, Relaxed);
    }
}

/// Stands in the global scope for an object that is gone. Its place is not used again, as order matters.
const GONE: usize = 1;

/// What a hidden version stood for when the loader's counters were these.
struct Known {
    address: AtomicUsize,
    counters: AtomicUsize,
}

static TARGETS: [Known; LINKED.len()] = [const {
    Known {
        address: AtomicUsize::new(0),
        counters: AtomicUsize::new(0),
    }
}; LINKED.len()];

/// The definition that a reference with this version would have been bound to without the shim.
///
/// The loader looks first through the global scope, in the order in which objects came into it, then through the
/// caller's own dependencies; among several files of one SONAME a dependency gets the one that was loaded first. Where
/// nothing but one object defines it, as nearly always, the caller (an address in it) does not matter.
fn linked_target(number: usize, caller: usize) -> Option<usize> {
    let (linked, known) = (LINKED.get(number)?, TARGETS.get(number)?);
    let (adds, subs) = elf::find_object(|object| Some(object.counters))?;
    let counters = (adds << 32 | subs & 0xffff_ffff) as usize;
    if known.counters.load(Acquire) == counters {
        return Some(known.address.load(Relaxed)).filter(|address| *address != 0);
    }
    let name = WATCHED.get(linked.watched)?.name.as_bytes();
    let defined_by = |object: &elf::Object| {
        if object.contains(own_address()) {
            return None;
        }
        object.symbols()?.find(name, Version::Named(linked.version))
    };
    let globals = GLOBAL
        .iter()
        .map(|place| place.load(Relaxed))
        .take_while(|base| *base != 0);
    let global = globals.into_iter().find_map(|base| {
        elf::find_object(|object| (object.base == base).then(|| defined_by(object)).flatten())
    });
    let (mut definitions, mut first) = (0, None);
    if global.is_none() {
        elf::find_object(|object| {
            if let Some(address) = defined_by(object) {
                definitions += 1;
                first.get_or_insert(address);
            }
            None::<()>
        });
    }
    if definitions > 1 {
        let of_the_caller =
            elf::object_at(caller).and_then(|object| elf::first_dependency(object, defined_by));
        return of_the_caller.or(first);
    }
    let address = global.or(first)?;
    known.address.store(address, Relaxed);
    known.counters.store(counters, Release);
    Some(address)
}

fn own_address() -> usize {
    own_address as fn() -> usize as usize
}

type AnyFunction =
    unsafe extern "C" fn(usize, usize, usize, usize, usize, usize, usize, usize) -> usize;

/// Every thunk ends up here: calls the real function and writes down what it did.
///
/// `arguments` are the six in registers; `stack` points to the return address, with further arguments above it.
pub(crate) unsafe extern "C" fn watched_function_called(
    arguments: *const [usize; 6],
    number: usize,
    stack: *const usize,
) -> usize {
    // SAFETY: laid out by the assembly; two words above the return address always are stack.
    let ([a, b, c, d, e, f], caller, g, h) =
        unsafe { (*arguments, *stack, *stack.add(1), *stack.add(2)) };
    let (watched, address) = match number.checked_sub(FIRST_LINKED) {
        Some(linked) => (
            LINKED.get(linked).map_or(0, |line| line.watched),
            linked_target(linked, caller),
        ),
        None => {
            let thunk = TABLE.get(number).map_or(0, |thunk| thunk.load(Relaxed));
            (watched_in(thunk), Some(address_in(thunk)))
        }
    };
    let Some(address) = address.filter(|address| *address != 0) else {
        // Not reached: a reference binds to a hidden version only when a library that has it was found. 999 is
        // "unknown error" in every CUDA library.
        return 999;
    };
    dl::another_call(stack);
    // SAFETY: the function behind the thunk; it reads as many arguments as it has.
    let real = unsafe { core::mem::transmute::<usize, AnyFunction>(address) };
    let begun = session::now();
    // SAFETY: as above.
    let result = unsafe { real(a, b, c, d, e, f, g, h) };
    let duration = session::now().saturating_sub(begun);
    if let (Some(watched_line), Some(count)) = (WATCHED.get(watched), CALLS.get(watched))
        && count.fetch_add(1, Relaxed) < RATE
        && let Some(_quiet) = Quiet::begin()
    {
        let call = Returned {
            watched: watched_line,
            arguments: [a, b, c, d, e, f, g, h],
            result,
            duration,
            number,
            address,
            caller,
        };
        // SAFETY: after the function returned, what it was given and gave can be looked at.
        unsafe { call.record() };
    }
    result
}

struct Returned {
    watched: &'static Watched,
    arguments: [usize; 8],
    result: usize,
    duration: u64,
    number: usize,
    address: usize,
    caller: usize,
}

impl Returned {
    /// Not inlined: its buffer is not to lie on the stack while the real function runs.
    #[inline(never)]
    unsafe fn record(&self) {
        let result = self.result as c_int;
        // SAFETY: arguments are as the function's documentation says.
        unsafe {
            match self.watched.capture {
                Capture::CapabilityAttribute if !matches!(self.argument(1), 75 | 76) => return,
                Capture::ProcAddress => return self.record_proc_address(),
                _ => {}
            }
            let mut buffer = [0; 7168];
            let mut writer = Writer::new(&mut buffer, Call::KIND);
            writer
                .text(Call::function, self.name())
                .number(Call::result, i64::from(result) as u64);
            writer.number(Call::duration, self.duration);
            writer.number(
                Call::thunk,
                if self.number < FIRST_LINKED {
                    self.number as u64 + 1
                } else {
                    0
                },
            );
            if let Some(object) = elf::object_at(self.address) {
                writer
                    .text(Call::object, object.path())
                    .number(Call::base, object.base as u64);
            }
            dl::write_caller(&mut writer, (Call::caller, Call::offset), self.caller);
            self.write_captured(&mut writer, result);
            python::write_frames(&mut writer, Call::python);
            session::append(writer);
        }
    }

    fn argument(&self, number: u8) -> usize {
        self.arguments
            .get(usize::from(number))
            .copied()
            .unwrap_or(0)
    }

    fn name(&self) -> &'static [u8] {
        self.watched.name.trim_end_matches(['*', '_']).as_bytes()
    }

    unsafe fn write_captured(&self, writer: &mut Writer<'_>, result: c_int) {
        let ok = result == 0;
        // SAFETY: the function has returned, so its pointers were good, or it failed and they are read with care.
        unsafe {
            match self.watched.capture {
                Capture::Result | Capture::ProcAddress => {}
                Capture::Int(at) => {
                    if let (true, Some(value)) = (ok, read_int(self.argument(at))) {
                        writer.number(Call::value, i64::from(value) as u64);
                    }
                }
                Capture::Release(major, minor) => {
                    let numbers = (
                        read_int(self.argument(major)),
                        read_int(self.argument(minor)),
                    );
                    if let (true, (Some(major), Some(minor))) = (ok, numbers) {
                        writer.number(
                            Call::value,
                            (i64::from(major) * 1000 + i64::from(minor) * 10) as u64,
                        );
                    }
                }
                Capture::CapabilityAttribute => {
                    if let (true, Some(value)) = (ok, read_int(self.argument(0))) {
                        writer.number(Call::value, i64::from(value) as u64);
                    }
                    let part: &[u8] = if self.argument(1) == 75 {
                        b"compute-capability-major"
                    } else {
                        b"compute-capability-minor"
                    };
                    let mut detail = Short::<64>::new();
                    detail
                        .push(part)
                        .push(b" device=")
                        .push_number(self.argument(2) as u64);
                    writer.text(Call::detail, detail.as_bytes());
                }
                Capture::DeviceProperties => self.write_device_properties(writer, ok),
                Capture::Image(at) => {
                    // A stand-in for the driver may take the image alone.
                    let at = if image::is_image(self.argument(at)) {
                        at
                    } else {
                        0
                    };
                    image::write_facts(writer, Call::image, self.argument(at), None);
                }
                Capture::FileName(at) => {
                    writer.text(Call::detail, c_bytes(self.argument(at) as *const c_char));
                }
                Capture::LinkInput => image::write_facts(
                    writer,
                    Call::image,
                    self.argument(2),
                    Some(self.argument(3)),
                ),
                Capture::LinkFile => {
                    writer.text(Call::detail, c_bytes(self.argument(2) as *const c_char));
                }
                Capture::NvrtcCompile => self.write_compilation(writer, ok),
                Capture::Options => self.write_options(writer),
                Capture::Archs => {
                    let mut highest = None;
                    for at in 0..64 {
                        match read_int(self.argument(0) + 4 * at) {
                            Some(arch)
                                if (20..10_000).contains(&arch)
                                    && highest.is_none_or(|known| arch > known) =>
                            {
                                highest = Some(arch)
                            }
                            _ => break,
                        }
                    }
                    if let (true, Some(arch)) = (ok, highest) {
                        writer.number(Call::value, arch as u64);
                    }
                }
                Capture::Text(at) => {
                    if ok {
                        let mut text = [0; 96];
                        let length = real::read_memory(self.argument(at), &mut text);
                        let read = text.get(..length).unwrap_or_default();
                        writer.text(
                            Call::detail,
                            read.split(|byte| *byte == 0).next().unwrap_or_default(),
                        );
                    }
                }
            }
        }
    }

    /// `cudaDeviceProp` begins with name (256 bytes), uuid (16), luid (8) and a mask in CUDA 10 and later; the capability comes
    /// after the memory sizes, block limits and clock rate, at the same place in 10 to 13 but for `clockRate`.
    unsafe fn write_device_properties(&self, writer: &mut Writer<'_>, ok: bool) {
        const MAJOR: usize = 360;
        if !ok {
            return;
        }
        let (major, minor) = (
            read_int(self.argument(0) + MAJOR),
            read_int(self.argument(0) + MAJOR + 4),
        );
        if let (Some(major @ 1..=99), Some(minor @ 0..=99)) = (major, minor) {
            writer.number(
                Call::value,
                (i64::from(major) * 10 + i64::from(minor)) as u64,
            );
        }
        let mut name = [0; 64];
        let length = real::read_memory(self.argument(0), &mut name);
        let read = name.get(..length).unwrap_or_default();
        writer.text(
            Call::detail,
            read.split(|byte| *byte == 0).next().unwrap_or_default(),
        );
    }

    unsafe fn write_options(&self, writer: &mut Writer<'_>) {
        let (count, options) = (
            self.argument(1).min(64),
            self.argument(2) as *const *const c_char,
        );
        let mut detail = Short::<1024>::new();
        if !options.is_null() {
            for at in 0..count {
                // SAFETY: an array of that many C strings.
                let option = unsafe { c_bytes(*options.add(at)) };
                if at > 0 {
                    detail.push(b" ");
                }
                detail.push(option);
            }
        }
        writer.text(Call::detail, detail.as_bytes());
    }

    /// Options, and the compiler's log when it failed, as the program itself would ask for it.
    unsafe fn write_compilation(&self, writer: &mut Writer<'_>, ok: bool) {
        // SAFETY: nvrtcCompileProgram's arguments; the log functions of the same library.
        unsafe {
            self.write_options(writer);
            if ok {
                return;
            }
            let Some(symbols) = elf::object_at(self.address).and_then(|object| object.symbols())
            else {
                return;
            };
            let size_of = symbols.find(b"nvrtcGetProgramLogSize", Version::Default);
            let log_of = symbols.find(b"nvrtcGetProgramLog", Version::Default);
            let (Some(size_of), Some(log_of)) = (size_of, log_of) else {
                return;
            };
            let mut size = 0_usize;
            let size_of = core::mem::transmute::<
                usize,
                unsafe extern "C" fn(usize, *mut usize) -> c_int,
            >(size_of);
            let log_of = core::mem::transmute::<usize, unsafe extern "C" fn(usize, *mut u8) -> c_int>(
                log_of,
            );
            if size_of(self.argument(0), &raw mut size) != 0 || size == 0 || size > 64 * 1024 {
                return;
            }
            struct Log {
                log_of: unsafe extern "C" fn(usize, *mut u8) -> c_int,
                program: usize,
                size: usize,
                writer: *mut core::ffi::c_void,
            }
            unsafe extern "C" fn read(memory: *mut u8, log: *mut u8) -> isize {
                // SAFETY: as set up below.
                unsafe {
                    let log = &*log.cast::<Log>();
                    if (log.log_of)(log.program, memory) == 0 {
                        let text = core::slice::from_raw_parts(
                            memory,
                            log.size.saturating_sub(1).min(2048),
                        );
                        (*log.writer.cast::<Writer<'_>>()).text(Call::detail, text);
                    }
                }
                0
            }
            let mut log = Log {
                log_of,
                program: self.argument(0),
                size,
                writer: (writer as *mut Writer<'_>).cast(),
            };
            crate::arch::with_stack(size, read, (&raw mut log).cast());
        }
    }

    /// `cuGetProcAddress(name, address*, version, flags[, status*])`: hands out a thunk for a watched name.
    #[inline(never)]
    unsafe fn record_proc_address(&self) {
        // SAFETY: cuGetProcAddress's arguments.
        unsafe {
            let name = c_bytes(self.argument(0) as *const c_char);
            let place = self.argument(1) as *mut usize;
            let ok = self.result as c_int == 0 && !place.is_null() && *place != 0;
            let watched = find_driver_function(name);
            let mut thunk = None;
            let mut defined_by = 0;
            if let (true, Some(watched)) = (ok, watched) {
                defined_by = *place;
                thunk = thunk_for(watched, *place);
                if let Some(number) = thunk {
                    *place = crate::arch::thunk_address(number);
                }
            }
            if ok && watched.is_none() {
                within_rate(&UNWATCHED);
                return;
            }
            if !within_rate(&LOOKUPS) {
                return;
            }
            let mut buffer = [0; 6144];
            let mut writer = Writer::new(&mut buffer, SymbolLookup::KIND);
            writer
                .text(SymbolLookup::call, self.name())
                .text(SymbolLookup::name, name);
            writer.number(
                SymbolLookup::thunk,
                thunk.map_or(0, |number| number as u64 + 1),
            );
            writer.number(SymbolLookup::version, self.argument(2) as c_int as u64);
            writer.number(SymbolLookup::result, i64::from(self.result as c_int) as u64);
            if let Some(object) = elf::object_at(defined_by) {
                writer.text(SymbolLookup::object, object.path());
            }
            dl::write_caller(
                &mut writer,
                (SymbolLookup::caller, SymbolLookup::offset),
                self.caller,
            );
            python::write_frames(&mut writer, SymbolLookup::python);
            session::append(writer);
        }
    }
}

/// `cuGetProcAddress` is asked for base names and picks the variant by version: `cuLinkCreate` gives `cuLinkCreate_v2`.
fn find_driver_function(name: &[u8]) -> Option<usize> {
    WATCHED.iter().position(|watched| {
        watched.family == LIBCUDA
            && (watched.name.as_bytes() == name
                || watched.name.strip_suffix("_v2").map(str::as_bytes) == Some(name))
    })
}

fn read_int(address: usize) -> Option<c_int> {
    let mut bytes = [0; 4];
    (address != 0 && real::read_memory(address, &mut bytes) == 4)
        .then(|| c_int::from_ne_bytes(bytes))
}

//! Which objects are mapped, and what changed since the last look.
//!
//! Objects announce themselves while they are initialised; what nobody announced shows in the loader's counters. The
//! table is guarded by a lock that is only ever tried: whoever finds it taken leaves the change to the next hook.

use crate::arch::system_call;
use crate::elf::{self, Object};
use crate::text::Short;
use crate::{calls, dl, session};
use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use jittrace_wire::record::{DlUnloaded, MAX_RECORD, ObjectLoaded, Start, Writer};

/// As many objects as the table holds; a server start maps about 250.
const CAPACITY: usize = 2048;

#[derive(Clone, Copy)]
struct Known {
    base: usize,
    device: u64,
    inode: u64,
    announced: bool,
    seen: bool,
}

/// In this order: only the first page of so large a table is touched by most programs.
#[repr(C)]
struct Table {
    length: usize,
    known: [MaybeUninit<Known>; CAPACITY],
}

impl Table {
    fn known(&mut self) -> &mut [Known] {
        let length = self.length.min(CAPACITY);
        // SAFETY: the first `length` entries were written.
        unsafe { core::slice::from_raw_parts_mut(self.known.as_mut_ptr().cast(), length) }
    }

    fn add(&mut self, known: Known) {
        if let Some(place) = self.known.get_mut(self.length) {
            place.write(known);
            self.length += 1;
        }
    }
}

struct Shared(UnsafeCell<Table>);
// SAFETY: only reached through `Held`, which one thread has at a time.
unsafe impl Sync for Shared {}

static TABLE: Shared = Shared(UnsafeCell::new(Table {
    known: [const { MaybeUninit::uninit() }; CAPACITY],
    length: 0,
}));

// Used at every start: with the session, see there.
#[unsafe(link_section = ".data")]
static TAKEN: AtomicBool = AtomicBool::new(false);
#[unsafe(link_section = ".data")]
static ADDS: AtomicU64 = AtomicU64::new(0);
#[unsafe(link_section = ".data")]
static SUBS: AtomicU64 = AtomicU64::new(0);

struct Held;

impl Held {
    fn attempt() -> Option<Held> {
        TAKEN
            .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
            .then_some(Held)
    }

    #[allow(clippy::mut_from_ref, reason = "the lock is held")]
    fn table(&self) -> &mut Table {
        // SAFETY: TAKEN is set.
        unsafe { &mut *TABLE.0.get() }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        TAKEN.store(false, Ordering::Release);
    }
}

/// In a fork child: whoever held the table is not there any more.
pub(crate) fn forked() {
    TAKEN.store(false, Ordering::Relaxed);
}

/// Device and inode of an object's file; zeros when it has none or it cannot be asked.
///
/// The program's own file, which has no path in the link map, is at `exe` where that is known.
fn identity(path: &[u8], exe: Option<&[u8]>) -> (u64, u64) {
    const LINK: &[u8] = b"/proc/self/exe";
    match path {
        b"" => match identity_at(exe.unwrap_or(LINK)) {
            (0, 0) if exe.is_some() => identity_at(LINK),
            known => known,
        },
        path => identity_at(path),
    }
}

fn identity_at(path: &[u8]) -> (u64, u64) {
    let mut name = Short::<1024>::new();
    name.push(path);
    // SAFETY: all zero is a valid value; the kernel fills it.
    let mut status: libc::stat = unsafe { core::mem::zeroed() };
    let Some(name) = name.as_c() else {
        return (0, 0);
    };
    let result = system_call(
        libc::SYS_newfstatat,
        [
            libc::AT_FDCWD as usize,
            name as usize,
            &raw mut status as usize,
            0,
            0,
            0,
        ],
    );
    if result == 0 {
        (status.st_dev, status.st_ino)
    } else {
        (0, 0)
    }
}

fn is_own(object: &Object) -> bool {
    object.contains(is_own as fn(&Object) -> bool as usize)
}

fn is_vdso(object: &Object) -> bool {
    object.path().starts_with(b"linux-vdso")
}

/// Appends the objects that were mapped when the process began to its `Start` record; whether all had room.
pub(crate) fn write_start(writer: &mut Writer<'_>, exe: Option<&[u8]>) -> bool {
    let Some(held) = Held::attempt() else {
        return false;
    };
    let when = When::Start { exe };
    list_unknown(held.table(), writer, Start::objects, when).all
}

/// Reports those that had no room in the `Start` record.
pub(crate) fn report_rest_of_start() {
    if let Some(held) = Held::attempt() {
        report_unknown(&held, When::Start { exe: None }, 0);
    }
}

/// Reports the object that contains `address`, which is just being initialised.
pub(crate) fn announce(address: usize, request: u32) {
    let Some(object) = elf::object_at(address) else {
        return;
    };
    if is_own(&object) {
        return;
    }
    if dl::is_loading_globally() {
        calls::is_in_global_scope(&object);
    }
    let Some(held) = Held::attempt() else { return };
    let known = held
        .table()
        .known()
        .iter_mut()
        .find(|known| known.base == object.base);
    let (device, inode) = match known {
        Some(known) if known.announced => return,
        Some(known) => {
            known.announced = true;
            (known.device, known.inode)
        }
        None => {
            let (device, inode) = identity(object.path(), None);
            held.table().add(Known {
                base: object.base,
                device,
                inode,
                announced: true,
                seen: true,
            });
            (device, inode)
        }
    };
    drop(held);
    let mut buffer = [0; 1536];
    let mut writer = Writer::new(&mut buffer, ObjectLoaded::KIND);
    writer
        .number(ObjectLoaded::request, request.into())
        .text(ObjectLoaded::how, b"init");
    writer.object(
        ObjectLoaded::objects,
        object.base as u64,
        device,
        inode,
        object.path(),
    );
    session::append(writer);
}

/// Compares the loader's counters with the last look and reports what no announcement told.
pub(crate) fn compare(request: u32) {
    let counters = elf::find_object(|object| Some(object.counters)).unwrap_or_default();
    if counters == (ADDS.load(Ordering::Relaxed), SUBS.load(Ordering::Relaxed)) {
        return;
    }
    let Some(held) = Held::attempt() else { return };
    for known in held.table().known() {
        known.seen = false;
    }
    report_unknown(&held, When::Later, request);
    report_gone(held);
}

/// When objects are looked for that nobody announced.
#[derive(Clone, Copy)]
enum When<'e> {
    /// As the process begins, with the path of its program.
    Start { exe: Option<&'e [u8]> },
    /// As the loader's counters have changed.
    Later,
}

/// What came of a walk through the objects.
struct Listed {
    /// How many were appended.
    count: usize,
    /// Whether all of them had room.
    all: bool,
}

/// Appends the objects that are not in the table yet, and takes them in.
fn list_unknown(table: &mut Table, writer: &mut Writer<'_>, tag: u8, when: When<'_>) -> Listed {
    let (is_start, exe) = match when {
        When::Start { exe } => (true, exe),
        When::Later => (false, None),
    };
    let mut listed = Listed {
        count: 0,
        all: true,
    };
    elf::find_object(|object| {
        ADDS.store(object.counters.0, Ordering::Relaxed);
        SUBS.store(object.counters.1, Ordering::Relaxed);
        if let Some(known) = table
            .known()
            .iter_mut()
            .find(|known| known.base == object.base)
        {
            known.seen = true;
            return None;
        }
        if is_own(object) || is_vdso(object) || table.length == CAPACITY {
            return None;
        }
        if writer.free() < object.path().len() + 64 {
            listed.all = false;
            return Some(());
        }
        if is_start || dl::is_loading_globally() {
            calls::is_in_global_scope(object);
        }
        let (device, inode) = identity(object.path(), exe);
        writer.object(tag, object.base as u64, device, inode, object.path());
        table.add(Known {
            base: object.base,
            device,
            inode,
            announced: is_start,
            seen: true,
        });
        listed.count += 1;
        None
    });
    listed
}

/// Reports the objects that are not in the table yet: a record holds about a hundred.
#[inline(never)]
fn report_unknown(held: &Held, when: When<'_>, request: u32) {
    const RECORDS: usize = 64;
    let how: &[u8] = match when {
        When::Start { .. } => b"start",
        When::Later => b"count",
    };
    let mut buffer = [0; MAX_RECORD];
    for _ in 0..RECORDS {
        let mut writer = Writer::new(&mut buffer, ObjectLoaded::KIND);
        writer
            .number(ObjectLoaded::request, request.into())
            .text(ObjectLoaded::how, how);
        let listed = list_unknown(held.table(), &mut writer, ObjectLoaded::objects, when);
        if listed.count > 0 {
            session::append(writer);
        }
        if listed.all || listed.count == 0 {
            break;
        }
    }
}

/// Reports the objects of the table that the last walk did not meet, and takes them out.
#[inline(never)]
fn report_gone(held: Held) {
    let table = held.table();
    let mut buffer = [0; MAX_RECORD];
    let mut writer = Writer::new(&mut buffer, DlUnloaded::KIND);
    let mut at = 0;
    let mut gone = 0;
    while at < table.length {
        let Some(known) = table.known().get(at).copied() else {
            break;
        };
        if known.seen {
            at += 1;
            continue;
        }
        if writer.free() > 64 {
            writer.object(
                DlUnloaded::objects,
                known.base as u64,
                known.device,
                known.inode,
                b"",
            );
        } else {
            writer.cut();
        }
        calls::is_gone(known.base);
        gone += 1;
        let last = table.length - 1;
        table.known().swap(at, last);
        table.length = last;
    }
    drop(held);
    if gone > 0 {
        session::append(writer);
    }
}

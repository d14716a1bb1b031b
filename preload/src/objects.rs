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
use jittrace_wire::record::{DlUnloaded, MAX_RECORD, ObjectLoaded, Writer};

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

struct Table {
    known: [MaybeUninit<Known>; CAPACITY],
    length: usize,
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
static TAKEN: AtomicBool = AtomicBool::new(false);
static ADDS: AtomicU64 = AtomicU64::new(0);
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
fn identity(path: &[u8]) -> (u64, u64) {
    let mut name = Short::<1024>::new();
    if path.is_empty() {
        name.push(b"/proc/self/exe");
    } else {
        name.push(path);
    }
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

/// Reports every object that was mapped when the process began.
pub(crate) fn report_start() {
    report_unknown("start", 0);
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
            let (device, inode) = identity(object.path());
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
    report_unknown("count", request);
}

fn report_unknown(how: &'static str, request: u32) {
    let Some(held) = Held::attempt() else { return };
    let table = held.table();
    for known in table.known() {
        known.seen = false;
    }
    let mut buffer = [0; MAX_RECORD];
    let mut visited = 0;
    // A record holds about a hundred objects; the walk is repeated until one leaves nothing out.
    loop {
        let mut writer = Writer::new(&mut buffer, ObjectLoaded::KIND);
        writer
            .number(ObjectLoaded::request, request.into())
            .text(ObjectLoaded::how, how.as_bytes());
        let mut count = 0;
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
                return (count > 0).then_some(());
            }
            if how == "start" || dl::is_loading_globally() {
                calls::is_in_global_scope(object);
            }
            let (device, inode) = identity(object.path());
            writer.object(
                ObjectLoaded::objects,
                object.base as u64,
                device,
                inode,
                object.path(),
            );
            table.add(Known {
                base: object.base,
                device,
                inode,
                announced: how == "start",
                seen: true,
            });
            count += 1;
            None::<()>
        });
        if count == 0 {
            break;
        }
        session::append(writer);
        visited += 1;
        if visited == 64 {
            break;
        }
    }
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

//! The functions behind our own: the next definition in the program's start-up objects, as `RTLD_NEXT` would find it.
//!
//! The link map is walked under the loader's lock. The child of a fork may never get it, when another thread of the
//! parent was inside of the loader; what such a child may do all the same (`_exit`, `execve`, `open`, `write`) is looked
//! up in the objects that were noted before the fork, and nothing else is asked of the link map in it.

use crate::arch::system_call;
use crate::elf::{self, Object, Version};
use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::sync::atomic::{
    AtomicBool, AtomicU8, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

/// Where a function that the shim stands in front of is.
///
/// All zero at first and without its name, whose address the loader would have to fill in: a program that calls none of
/// these functions pays for none of them at its start.
pub(crate) struct Real(AtomicUsize);

impl Real {
    pub(crate) const fn new() -> Self {
        Real(AtomicUsize::new(0))
    }

    /// Its address; looked up the first time, as hooks may be called before our constructor ran. 0 when there is none.
    #[inline]
    pub(crate) fn address(&self, name: &'static str) -> usize {
        match self.0.load(Relaxed) {
            0 => self.look_up(name),
            address => address,
        }
    }

    /// The same as a function pointer of type `F`, which must be the function's own type.
    pub(crate) fn function<F: Copy>(&self, name: &'static str) -> Option<F> {
        const { assert!(size_of::<F>() == size_of::<usize>()) };
        match self.address(name) {
            0 => None,
            // SAFETY: an address of a function whose type the caller states, see `real!`.
            address => Some(unsafe { core::mem::transmute_copy::<usize, F>(&address) }),
        }
    }

    #[cold]
    fn look_up(&self, name: &'static str) -> usize {
        let defined = |object: &Object| object.symbols()?.find(name.as_bytes(), Version::Default);
        let address = match NOTED.in_child() {
            Some(objects) => objects.iter().find_map(defined),
            None => behind_own(defined),
        };
        let address = address.unwrap_or(0);
        self.0.store(address, Relaxed);
        address
    }
}

/// What `visit` gives for the first object behind the shim.
fn behind_own<T>(mut visit: impl FnMut(&Object) -> Option<T>) -> Option<T> {
    let own = Real::look_up as fn(&Real, &'static str) -> usize as usize;
    let mut after_own = false;
    elf::find_object(|object| {
        if !after_own {
            after_own = object.contains(own);
            return None;
        }
        visit(object)
    })
}

/// The first objects behind the shim, noted before the first fork. Start-up objects stay where they are.
struct Noted {
    objects: UnsafeCell<[MaybeUninit<Object>; Noted::MOST]>,
    count: AtomicUsize,
    /// [`Noted::NOTHING`], [`Noted::WRITING`] or [`Noted::DONE`].
    state: AtomicU8,
    /// This is the child of a fork.
    forked: AtomicBool,
    /// Address of the loader's lock of the link map (`_dl_load_write_lock`), where it was recognised.
    lock: AtomicUsize,
    /// The lock is held by a thread that this process does not have.
    lock_is_lost: AtomicBool,
}

static NOTED: Noted = Noted {
    objects: UnsafeCell::new([const { MaybeUninit::uninit() }; Noted::MOST]),
    count: AtomicUsize::new(0),
    state: AtomicU8::new(Noted::NOTHING),
    forked: AtomicBool::new(false),
    lock: AtomicUsize::new(0),
    lock_is_lost: AtomicBool::new(false),
};

/// Whether the link map must not be asked any more: the lock of this fork's child will not be given back.
pub(crate) fn link_map_is_lost() -> bool {
    NOTED.lock_is_lost.load(Relaxed)
}

/// The lock that this thread holds while the loader shows it the link map: a recursive mutex among the loader's own
/// variables (`_rtld_global`) with this thread as its owner.
fn held_lock() -> Option<usize> {
    let tid = u32::try_from(system_call(libc::SYS_gettid, [0; 6])).ok()?;
    let loader = elf::loader()?;
    let start = loader.symbols()?.variable(b"_rtld_global")?;
    // Of a pthread_mutex_t on x86-64: the futex, how often it is held, by whom, by how many, its kind.
    (start..start + 8192)
        .step_by(8)
        .take_while(|at| loader.contains(*at) && loader.contains(at + 20))
        .find(|at| {
            // SAFETY: the loader's own data, which stays mapped.
            let word = |n: usize| unsafe { core::ptr::read_volatile((*at as *const u32).add(n)) };
            matches!(word(0), 1 | 2)
                && word(1) >= 1
                && word(2) == tid
                && word(3) == 1
                && word(4) == 1
        })
}

// SAFETY: written by the thread that has moved `state` to `WRITING`, read after `DONE`.
unsafe impl Sync for Noted {}

impl Noted {
    const NOTHING: u8 = 0;
    const WRITING: u8 = 1;
    const DONE: u8 = 2;
    /// The C library is among the first of any program's objects but for those that preload or link very many.
    const MOST: usize = 64;

    /// What was noted, in the child of a fork.
    fn in_child(&self) -> Option<&[Object]> {
        if !self.forked.load(Relaxed) || self.state.load(Acquire) != Noted::DONE {
            return None;
        }
        let count = self.count.load(Relaxed).min(Noted::MOST);
        // SAFETY: the first `count` were written before `DONE`, and nothing is written after it.
        Some(unsafe { core::slice::from_raw_parts(self.objects.get().cast::<Object>(), count) })
    }
}

/// Runs in the parent, before a fork.
extern "C" fn before_fork() {
    let begun = NOTED
        .state
        .compare_exchange(Noted::NOTHING, Noted::WRITING, Acquire, Relaxed);
    if begun.is_err() {
        // Another thread forks for the first time too: it waits at most for the loader's lock, as this one would.
        while NOTED.state.load(Acquire) == Noted::WRITING {
            system_call(libc::SYS_sched_yield, [0; 6]);
        }
        return;
    }
    let mut count = 0;
    behind_own(|object| {
        if count == 0 && crate::session::is_on() {
            NOTED.lock.store(held_lock().unwrap_or(0), Relaxed);
        }
        // SAFETY: this thread alone writes; the place is inside of the array.
        unsafe {
            NOTED
                .objects
                .get()
                .cast::<Object>()
                .add(count)
                .write(*object);
        }
        count += 1;
        (count == Noted::MOST).then_some(())
    });
    NOTED.count.store(count, Relaxed);
    NOTED.state.store(Noted::DONE, Release);
}

/// Runs in the child of a fork, before it goes on.
extern "C" fn in_child() {
    NOTED.forked.store(true, Relaxed);
    let lock = NOTED.lock.load(Relaxed);
    // SAFETY: the loader's mutex, which stays where it is. Nobody else runs in this process yet.
    if lock != 0 && unsafe { core::ptr::read_volatile(lock as *const u32) } != 0 {
        NOTED.lock_is_lost.store(true, Relaxed);
    }
}

unsafe extern "C" {
    fn __register_atfork(
        prepare: Option<extern "C" fn()>,
        parent: Option<extern "C" fn()>,
        child: Option<extern "C" fn()>,
        object: *const core::ffi::c_void,
    ) -> core::ffi::c_int;
}

/// Sees to it that real functions are found in the children of forks, with a session and without.
pub(crate) fn expect_forks() {
    // SAFETY: handlers that live as long as the shim, which is never unloaded.
    unsafe {
        __register_atfork(Some(before_fork), None, Some(in_child), core::ptr::null());
    }
}

/// Declares the real function behind an exported one and calls it: `real!(dlerror: fn() -> *mut c_char)()`.
macro_rules! real {
    ($name:ident : $type:ty) => {{
        static REAL: $crate::real::Real = $crate::real::Real::new();
        REAL.function::<$type>(stringify!($name))
    }};
}

/// Address of the real function behind an exported one; 0 when there is none.
macro_rules! real_address {
    ($name:ident) => {{
        static REAL: $crate::real::Real = $crate::real::Real::new();
        REAL.address(stringify!($name))
    }};
}

/// Whether the process may read these bytes; asked of the kernel, so that a wrong address does no harm.
pub(crate) fn is_readable(address: usize, length: usize) -> bool {
    let mut byte = 0_u8;
    read_memory(address, core::slice::from_mut(&mut byte)) == 1
        && read_memory(
            address + length.saturating_sub(1),
            core::slice::from_mut(&mut byte),
        ) == 1
}

/// Copies memory of this process whose address may be wrong; gives how many bytes could be read.
pub(crate) fn read_memory(address: usize, target: &mut [u8]) -> usize {
    let local = libc::iovec {
        iov_base: target.as_mut_ptr().cast(),
        iov_len: target.len(),
    };
    let remote = libc::iovec {
        iov_base: address as *mut _,
        iov_len: target.len(),
    };
    let read = system_call(
        libc::SYS_process_vm_readv,
        [
            crate::session::process_id() as usize,
            &raw const local as usize,
            1,
            &raw const remote as usize,
            1,
            0,
        ],
    );
    read.max(0) as usize
}

/// Whether a byte can be read at each of these addresses that is not null; also when the kernel may not be asked, as some
/// containers do not allow the call.
pub(crate) fn may_be_readable<const N: usize>(addresses: [usize; N]) -> bool {
    let length = |address: usize| usize::from(address != 0);
    let mut bytes = [0_u8; N];
    let local = libc::iovec {
        iov_base: bytes.as_mut_ptr().cast(),
        iov_len: addresses.iter().map(|address| length(*address)).sum(),
    };
    let remote = addresses.map(|address| libc::iovec {
        iov_base: address as *mut _,
        iov_len: length(address),
    });
    let read = system_call(
        libc::SYS_process_vm_readv,
        [
            crate::session::process_id() as usize,
            &raw const local as usize,
            1,
            remote.as_ptr() as usize,
            N,
            0,
        ],
    );
    match usize::try_from(read) {
        Ok(read) => read == local.iov_len,
        Err(_) => read != -(libc::EFAULT as isize),
    }
}

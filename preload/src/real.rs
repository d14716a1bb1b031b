//! The functions behind our own: the next definition in the program's start-up objects, as `RTLD_NEXT` would find it.

use crate::arch::system_call;
use crate::elf::{self, Version};
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

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
        let own = Real::look_up as fn(&Real, &'static str) -> usize as usize;
        let mut after_own = false;
        let address = elf::find_object(|object| {
            if !after_own {
                after_own = object.contains(own);
                return None;
            }
            object.symbols()?.find(name.as_bytes(), Version::Default)
        });
        let address = address.unwrap_or(0);
        self.0.store(address, Relaxed);
        address
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

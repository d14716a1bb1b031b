//! Loaded objects and their symbols, read from memory.
//!
//! The shim looks symbols up by itself: `dlsym` and `dlvsym` take the loader's lock, which the program may hold in another
//! thread that waits for this one, and they would clear the program's pending `dlerror` text (mechanisms 4a2).
//! `dl_iterate_phdr` takes only the short lock that every C++ throw takes as well.

use crate::text::c_bytes;
use crate::thread::Shield;
use core::ffi::{c_char, c_int, c_void};
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// An object of the link map.
#[derive(Clone, Copy)]
pub(crate) struct Object {
    /// Difference between addresses in memory and in the file (`l_addr`).
    pub(crate) base: usize,
    /// `l_name`; empty for the program itself. Valid while the object is loaded.
    name: *const c_char,
    headers: *const libc::Elf64_Phdr,
    header_count: usize,
    /// How many objects were ever added to and removed from the link map.
    pub(crate) counters: (u64, u64),
}

#[repr(C)]
struct Dyn {
    tag: i64,
    value: usize,
}

const DT_NEEDED: i64 = 1;
const DT_HASH: i64 = 4;
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_SONAME: i64 = 14;
const DT_GNU_HASH: i64 = 0x6fff_fef5;
const DT_VERSYM: i64 = 0x6fff_fff0;
const DT_VERDEF: i64 = 0x6fff_fffc;

/// The parts of a dynamic section that look-ups need.
#[derive(Clone, Copy)]
pub(crate) struct Symbols {
    base: usize,
    symbols: *const libc::Elf64_Sym,
    strings: *const c_char,
    gnu_hash: *const u32,
    hash: *const u32,
    versions: *const u16,
    definitions: *const u8,
    soname: *const c_char,
}

type Step = unsafe extern "C" fn(*mut libc::dl_phdr_info, usize, *mut c_void) -> c_int;
type Iterate = unsafe extern "C" fn(Step, *mut c_void) -> c_int;

/// The beginning of the loader's `struct r_debug`.
#[repr(C)]
struct Debug {
    version: c_int,
    map: *const LinkMap,
}

/// libc's own function of this name.
///
/// Not the one that a call would be bound to: sanitizers and others interpose `dl_iterate_phdr` and friends, and look the
/// real one up with `dlsym`, which may be where we are called from.
pub(crate) fn in_libc(name: &[u8]) -> Option<usize> {
    // SAFETY: the loader's list. It is walked without a lock, the first time a hook is called, up to libc, which is
    // never unloaded.
    unsafe {
        let debug = crate::arch::loader_debug().cast::<Debug>();
        let mut map = if debug.is_null() {
            core::ptr::null()
        } else {
            (*debug).map
        };
        while !map.is_null() {
            if c_bytes((*map).name).ends_with(b"/libc.so.6") {
                return Symbols::of((*map).base, (*map).dynamic)?.find(name, Version::Default);
            }
            map = (*map).next;
        }
    }
    None
}

fn iterate() -> Iterate {
    // Used at every start: with the session, see there.
    #[unsafe(link_section = ".data")]
    static ITERATE: AtomicUsize = AtomicUsize::new(0);
    let mut address = ITERATE.load(Relaxed);
    if address == 0 {
        unsafe extern "C" fn nothing(_: Step, _: *mut c_void) -> c_int {
            0
        }
        let without = nothing as Iterate as usize;
        address = in_libc(b"dl_iterate_phdr").unwrap_or(without);
        ITERATE.store(address, Relaxed);
    }
    // SAFETY: the function of that name, or the one above.
    unsafe { core::mem::transmute::<usize, Iterate>(address) }
}

/// The vDSO's `clock_gettime`; 0 when there is none.
pub(crate) fn clock_gettime() -> usize {
    static CLOCK: AtomicUsize = AtomicUsize::new(1);
    let known = CLOCK.load(Relaxed);
    if known != 1 {
        return known;
    }
    let found = find_object(|object| {
        let is_vdso = object.path().starts_with(b"linux-vdso");
        is_vdso
            .then(|| {
                object
                    .symbols()?
                    .find(b"__vdso_clock_gettime", Version::Default)
            })
            .flatten()
    });
    CLOCK.store(found.unwrap_or(0), Relaxed);
    found.unwrap_or(0)
}

/// Visits the objects in link-map order until `visit` gives something.
pub(crate) fn find_object<T, F: FnMut(&Object) -> Option<T>>(mut visit: F) -> Option<T> {
    struct Search<'f, T, F> {
        visit: &'f mut F,
        found: Option<T>,
    }
    unsafe extern "C" fn step<T, F: FnMut(&Object) -> Option<T>>(
        info: *mut libc::dl_phdr_info,
        _size: usize,
        search: *mut c_void,
    ) -> c_int {
        // SAFETY: the loader's own structure, and the search that was handed in below.
        let (info, search) = unsafe { (&*info, &mut *search.cast::<Search<'_, T, F>>()) };
        let object = Object {
            base: info.dlpi_addr as usize,
            name: info.dlpi_name,
            headers: info.dlpi_phdr,
            header_count: usize::from(info.dlpi_phnum),
            counters: (info.dlpi_adds, info.dlpi_subs),
        };
        search.found = (search.visit)(&object);
        c_int::from(search.found.is_some())
    }
    if crate::real::link_map_is_lost() {
        return None;
    }
    let mut search = Search {
        visit: &mut visit,
        found: None,
    };
    // Without a session there is nothing but the first look for the real functions, and not one system call.
    let _shield = crate::session::is_on().then(Shield::raise);
    // SAFETY: the callback gets its own data back.
    unsafe { iterate()(step::<T, F>, (&raw mut search).cast()) };
    search.found
}

/// The dynamic loader itself.
pub(crate) fn loader() -> Option<Object> {
    // SAFETY: getauxval has no preconditions.
    let base = unsafe { libc::getauxval(libc::AT_BASE) } as usize;
    find_object(|object| (base != 0 && object.base == base).then_some(*object))
}

/// The object that contains an address.
pub(crate) fn object_at(address: usize) -> Option<Object> {
    find_object(|object| object.contains(address).then_some(*object))
}

/// What `visit` gives for the first of an object and its dependencies, breadth first as the loader searches them.
///
/// Not inlined: its queue is not to lie on the stack while the function that it looks for runs.
#[inline(never)]
pub(crate) fn first_dependency<T>(
    object: Object,
    visit: impl Fn(&Object) -> Option<T>,
) -> Option<T> {
    const MOST: usize = 128;
    let mut queue = [const { MaybeUninit::<Object>::uninit() }; MOST];
    let (mut length, mut at) = (0, 0);
    let mut add = |queue: &mut [MaybeUninit<Object>; MOST], object: Object| {
        // SAFETY: the first `length` entries were written.
        let known = queue
            .iter()
            .take(length)
            .any(|known| unsafe { known.assume_init_ref() }.base == object.base);
        if !known && let Some(place) = queue.get_mut(length) {
            place.write(object);
            length += 1;
        }
        length
    };
    let mut end = add(&mut queue, object);
    while at < end {
        // SAFETY: as above.
        let object = unsafe { queue.get(at)?.assume_init() };
        if let Some(found) = visit(&object) {
            return Some(found);
        }
        object.each_needed(|name| {
            let loaded = find_object(|object| object.is_called(name).then_some(*object));
            if let Some(loaded) = loaded {
                end = add(&mut queue, loaded);
            }
        });
        at += 1;
    }
    None
}

impl Object {
    /// The names of what it was linked to (`DT_NEEDED`), in order.
    fn each_needed(&self, mut visit: impl FnMut(&[u8])) {
        let (Some(symbols), Some(mut entry)) = (self.symbols(), self.dynamic()) else {
            return;
        };
        // SAFETY: the object's own dynamic section, which ends with a null entry, and strings of its own table.
        unsafe {
            while (*entry).tag != 0 {
                if (*entry).tag == DT_NEEDED {
                    visit(c_bytes(symbols.strings.add((*entry).value)));
                }
                entry = entry.add(1);
            }
        }
    }

    /// Whether a dependency of this name is satisfied by the object.
    fn is_called(&self, name: &[u8]) -> bool {
        if name.contains(&b'/') {
            self.path() == name
        } else {
            self.soname() == name
        }
    }

    fn dynamic(&self) -> Option<*const Dyn> {
        let segment = self
            .segments()
            .iter()
            .find(|segment| segment.p_type == libc::PT_DYNAMIC)?;
        Some((self.base + segment.p_vaddr as usize) as *const Dyn)
    }

    fn segments(&self) -> &[libc::Elf64_Phdr] {
        if self.headers.is_null() {
            return &[];
        }
        // SAFETY: as the loader reports them.
        unsafe { core::slice::from_raw_parts(self.headers, self.header_count) }
    }

    pub(crate) fn contains(&self, address: usize) -> bool {
        self.segments().iter().any(|segment| {
            segment.p_type == libc::PT_LOAD
                && address.wrapping_sub(self.base.wrapping_add(segment.p_vaddr as usize))
                    < segment.p_memsz as usize
        })
    }

    /// `l_name`.
    pub(crate) fn path(&self) -> &[u8] {
        // SAFETY: the loader's string.
        unsafe { c_bytes(self.name) }
    }

    /// Its symbol tables; `None` for an object without a dynamic section.
    pub(crate) fn symbols(&self) -> Option<Symbols> {
        // SAFETY: the object's own dynamic section.
        unsafe { Symbols::of(self.base, self.dynamic()?) }
    }

    /// The SONAME, or the file name of an object that has none.
    pub(crate) fn soname(&self) -> &[u8] {
        let soname = match self.symbols() {
            // SAFETY: a string of the object's own table.
            Some(symbols) => unsafe { c_bytes(symbols.soname) },
            None => &[],
        };
        if !soname.is_empty() {
            return soname;
        }
        self.path()
            .rsplit(|byte| *byte == b'/')
            .next()
            .unwrap_or_default()
    }
}

/// Which version of a symbol is wanted.
#[derive(Clone, Copy)]
pub(crate) enum Version<'a> {
    /// What a reference without a version binds to: the default version, else any.
    Default,
    /// Exactly this one.
    Named(&'a [u8]),
}

impl Symbols {
    /// The tables that a dynamic section names.
    unsafe fn of(base: usize, dynamic: *const Dyn) -> Option<Symbols> {
        let mut entry = dynamic;
        let mut symbols = Symbols {
            base,
            symbols: core::ptr::null(),
            strings: core::ptr::null(),
            gnu_hash: core::ptr::null(),
            hash: core::ptr::null(),
            versions: core::ptr::null(),
            definitions: core::ptr::null(),
            soname: core::ptr::null(),
        };
        let mut soname = None;
        // glibc relocates these entries in place, except where the section is read-only (the vDSO).
        let address = |value: usize| {
            if value < base { base + value } else { value }
        };
        // SAFETY: the dynamic section ends with a null entry.
        unsafe {
            while (*entry).tag != 0 {
                let value = (*entry).value;
                match (*entry).tag {
                    DT_SYMTAB => symbols.symbols = address(value) as *const _,
                    DT_STRTAB => symbols.strings = address(value) as *const _,
                    DT_GNU_HASH => symbols.gnu_hash = address(value) as *const _,
                    DT_HASH => symbols.hash = address(value) as *const _,
                    DT_VERSYM => symbols.versions = address(value) as *const _,
                    DT_VERDEF => symbols.definitions = address(value) as *const _,
                    DT_SONAME => soname = Some(value),
                    _ => {}
                }
                entry = entry.add(1);
            }
            if symbols.symbols.is_null() || symbols.strings.is_null() {
                return None;
            }
            if let Some(offset) = soname {
                symbols.soname = symbols.strings.add(offset);
            }
        }
        Some(symbols)
    }

    /// Address of a function that the object defines.
    pub(crate) fn find(&self, name: &[u8], version: Version<'_>) -> Option<usize> {
        const FUNCTION: u8 = 2;
        self.find_of(FUNCTION, name, version)
    }

    /// Address of a variable that the object defines.
    pub(crate) fn variable(&self, name: &[u8]) -> Option<usize> {
        const VARIABLE: u8 = 1;
        self.find_of(VARIABLE, name, Version::Default)
    }

    fn find_of(&self, kind: u8, name: &[u8], version: Version<'_>) -> Option<usize> {
        let mut hidden = None;
        let mut consider = |index: usize| {
            // SAFETY: an index from the object's own hash table.
            let symbol = unsafe { &*self.symbols.add(index) };
            // SAFETY: an offset into the object's own strings.
            let matches = symbol.st_shndx != 0
                && symbol.st_info & 0xf == kind
                && unsafe { c_bytes(self.strings.add(symbol.st_name as usize)) } == name;
            if !matches {
                return None;
            }
            let address = self.base + symbol.st_value as usize;
            // SAFETY: there is a version for each symbol.
            let index = if self.versions.is_null() {
                1
            } else {
                unsafe { *self.versions.add(index) }
            };
            match version {
                Version::Named(wanted) => {
                    (self.version_name(index & 0x7fff) == Some(wanted)).then_some(address)
                }
                Version::Default if index & 0x8000 == 0 => Some(address),
                Version::Default => {
                    hidden.get_or_insert(address);
                    None
                }
            }
        };
        let found = if self.gnu_hash.is_null() {
            self.each_in_hash(name, &mut consider)
        } else {
            self.each_in_gnu_hash(name, &mut consider)
        };
        found.or(hidden)
    }

    fn each_in_gnu_hash(
        &self,
        name: &[u8],
        consider: &mut dyn FnMut(usize) -> Option<usize>,
    ) -> Option<usize> {
        let hash = name.iter().fold(5381_u32, |hash, byte| {
            hash.wrapping_mul(33).wrapping_add(u32::from(*byte))
        });
        // SAFETY: the layout of DT_GNU_HASH: counts, a Bloom filter, buckets, chains.
        unsafe {
            let buckets = *self.gnu_hash;
            let first = *self.gnu_hash.add(1);
            let filter_words = *self.gnu_hash.add(2);
            let shift = *self.gnu_hash.add(3);
            if buckets == 0 || filter_words == 0 {
                return None;
            }
            let filter = self.gnu_hash.add(4).cast::<u64>();
            let word = *filter.add((hash / 64) as usize & (filter_words as usize - 1));
            let bits = 1_u64 << (hash % 64) | 1_u64 << ((hash >> (shift & 31)) % 64);
            if word & bits != bits {
                return None;
            }
            let bucket = filter.add(filter_words as usize).cast::<u32>();
            let chain = bucket.add(buckets as usize);
            let mut index = *bucket.add((hash % buckets) as usize);
            if index < first {
                return None;
            }
            loop {
                let link = *chain.add((index - first) as usize);
                if link | 1 == hash | 1
                    && let Some(found) = consider(index as usize)
                {
                    return Some(found);
                }
                if link & 1 != 0 {
                    return None;
                }
                index += 1;
            }
        }
    }

    fn each_in_hash(
        &self,
        name: &[u8],
        consider: &mut dyn FnMut(usize) -> Option<usize>,
    ) -> Option<usize> {
        if self.hash.is_null() {
            return None;
        }
        let hash = name.iter().fold(0_u32, |hash, byte| {
            let hash = (hash << 4).wrapping_add(u32::from(*byte));
            let high = hash & 0xf000_0000;
            (hash ^ (high >> 24)) & !high
        });
        // SAFETY: the layout of DT_HASH: counts, buckets, chains.
        unsafe {
            let buckets = *self.hash;
            if buckets == 0 {
                return None;
            }
            let mut index = *self.hash.add(2 + (hash % buckets) as usize);
            while index != 0 {
                if let Some(found) = consider(index as usize) {
                    return Some(found);
                }
                index = *self.hash.add(2 + buckets as usize + index as usize);
            }
        }
        None
    }

    /// Name of the version definition with this index.
    fn version_name(&self, index: u16) -> Option<&[u8]> {
        let mut definition = self.definitions;
        if definition.is_null() {
            return None;
        }
        // SAFETY: the layout of DT_VERDEF: a chain of definitions, each with its name in the first auxiliary entry.
        unsafe {
            loop {
                let number = definition.add(4).cast::<u16>().read_unaligned();
                let auxiliary = definition.add(12).cast::<u32>().read_unaligned();
                let next = definition.add(16).cast::<u32>().read_unaligned();
                if number & 0x7fff == index {
                    let name = definition
                        .add(auxiliary as usize)
                        .cast::<u32>()
                        .read_unaligned();
                    return Some(c_bytes(self.strings.add(name as usize)));
                }
                if next == 0 {
                    return None;
                }
                definition = definition.add(next as usize);
            }
        }
    }
}

/// The public beginning of glibc's `struct link_map`, which is what a `dlopen` handle points to.
#[repr(C)]
pub(crate) struct LinkMap {
    pub(crate) base: usize,
    pub(crate) name: *const c_char,
    dynamic: *const Dyn,
    next: *const LinkMap,
}

/// Path and load address behind a handle.
pub(crate) unsafe fn behind_handle<'a>(handle: usize) -> Option<(&'a [u8], usize)> {
    // A handle must be one of the loader's own structures: look for its load address and name among the objects, so
    // that a wrong handle is not followed.
    if handle < 4096
        || !handle.is_multiple_of(align_of::<LinkMap>())
        || !crate::real::is_readable(handle, size_of::<LinkMap>())
    {
        return None;
    }
    // SAFETY: readable, and only believed when the loader knows an object of this base and name.
    let map = unsafe { &*(handle as *const LinkMap) };
    find_object(|object| {
        (object.base == map.base && core::ptr::eq(object.name, map.name)).then_some(())
    })?;
    // SAFETY: a string of the loader.
    Some((unsafe { c_bytes(map.name) }, map.base))
}

//! This machine's files and dynamic loader, as the replay asks for them.

use std::{
    cell::RefCell,
    collections::HashMap,
    fs::{self, File},
    io::ErrorKind,
    os::unix::fs::MetadataExt,
    path::Path,
    sync::Arc,
    time::SystemTime,
};

use jittrace_model::{
    elf::{ElfError, ElfFacts},
    loader::{
        FileId, Files, LdSoCache, Opened, Processor, System, default_directories_in,
        usual_default_directories,
    },
};

/// What one file said about itself.
type Known = Result<Arc<ElfFacts>, ElfError>;

/// The live file system. What an object says about itself is remembered by inode and time; that a file is missing is
/// not, since caches fill up while the program runs.
#[derive(Debug, Default)]
pub(crate) struct LoaderHost {
    objects: RefCell<HashMap<(FileId, i64), Known>>,
    cache: RefCell<Option<(SystemTime, Option<Arc<LdSoCache>>)>>,
}

impl Files for LoaderHost {
    fn open(&self, path: &str) -> Opened {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) => {
                return match error.kind() {
                    ErrorKind::NotFound | ErrorKind::NotADirectory => Opened::Missing,
                    ErrorKind::PermissionDenied => Opened::Denied,
                    _ => Opened::Failed(error.to_string()),
                };
            }
        };
        let metadata = match file.metadata() {
            Ok(metadata) => metadata,
            Err(error) => return Opened::Failed(error.to_string()),
        };
        let id = FileId {
            dev: metadata.dev(),
            inode: metadata.ino(),
        };
        if metadata.is_dir() {
            return Opened::File {
                id,
                elf: Err(ElfError::Malformed("cannot read file data: Is a directory")),
            };
        }
        let key = (id, metadata.mtime());
        if let Some(known) = self.objects.borrow().get(&key) {
            return Opened::File {
                id,
                elf: known.clone(),
            };
        }
        let elf = match super::host_files::map(Path::new(path)) {
            Some(bytes) => ElfFacts::parse(&bytes).map(Arc::new),
            None => Err(ElfError::Malformed("file too short")),
        };
        self.objects.borrow_mut().insert(key, elf.clone());
        Opened::File { id, elf }
    }

    fn is_directory(&self, path: &str) -> bool {
        fs::metadata(path).is_ok_and(|m| m.is_dir())
    }

    fn cache(&self) -> Option<Arc<LdSoCache>> {
        let path = "/etc/ld.so.cache";
        let changed = fs::metadata(path).and_then(|m| m.modified()).ok()?;
        let mut cache = self.cache.borrow_mut();
        if let Some((when, known)) = &*cache
            && *when == changed
        {
            return known.clone();
        }
        let read = fs::read(path)
            .ok()
            .and_then(|bytes| LdSoCache::parse(&bytes).ok())
            .map(Arc::new);
        *cache = Some((changed, read.clone()));
        read
    }
}

/// The constants of this machine's loader, read from the loader and the C library where they can be.
pub(crate) fn system() -> Arc<System> {
    let own = super::host_files::map(Path::new("/proc/self/exe"))
        .and_then(|bytes| ElfFacts::parse(&bytes).ok());
    let machine = own.as_ref().map_or(62, |elf| elf.machine);
    let directories = own
        .and_then(|elf| elf.interpreter)
        .and_then(|path| super::host_files::map(Path::new(&path)))
        .and_then(|bytes| default_directories_in(&bytes))
        .unwrap_or_else(|| {
            usual_default_directories(machine, Path::new("/lib/x86_64-linux-gnu").is_dir())
        });
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    Arc::new(System::glibc(
        glibc_version(),
        machine,
        &Processor::from_cpuinfo(&cpuinfo, machine),
        directories,
    ))
}

/// Major and minor of the running C library.
fn glibc_version() -> (u32, u32) {
    // SAFETY: returns a pointer to a constant string.
    let text = unsafe { std::ffi::CStr::from_ptr(libc::gnu_get_libc_version()) };
    let text = text.to_string_lossy();
    let mut numbers = text.split('.').map_while(|n| n.parse().ok());
    (numbers.next().unwrap_or(2), numbers.next().unwrap_or(36))
}

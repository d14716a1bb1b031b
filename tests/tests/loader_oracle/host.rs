//! This host as the replay sees it, and the constants of its loader.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use jittrace_model::elf::{ElfError, ElfFacts};
use jittrace_model::loader::{
    FileId, Files, LdSoCache, Opened, Processor, System, default_directories_in,
};

/// The live file system, each file read once.
#[derive(Default)]
pub(crate) struct Host {
    opened: RefCell<HashMap<String, Opened>>,
    cache: RefCell<Option<Option<Arc<LdSoCache>>>>,
}

impl Files for Host {
    fn open(&self, path: &str) -> Opened {
        if let Some(known) = self.opened.borrow().get(path) {
            return known.clone();
        }
        let opened = open(path);
        self.opened
            .borrow_mut()
            .insert(path.to_owned(), opened.clone());
        opened
    }

    fn is_directory(&self, path: &str) -> bool {
        fs::metadata(path).is_ok_and(|meta| meta.is_dir())
    }

    fn cache(&self) -> Option<Arc<LdSoCache>> {
        self.cache
            .borrow_mut()
            .get_or_insert_with(|| {
                let bytes = fs::read("/etc/ld.so.cache").ok()?;
                Some(Arc::new(LdSoCache::parse(&bytes).unwrap()))
            })
            .clone()
    }
}

fn open(path: &str) -> Opened {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) => match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => return Opened::Missing,
            ErrorKind::PermissionDenied => return Opened::Denied,
            _ => return Opened::Failed(error.to_string()),
        },
    };
    let meta = file.metadata().unwrap();
    let id = FileId {
        dev: meta.dev(),
        inode: meta.ino(),
    };
    if meta.is_dir() {
        let elf = Err(ElfError::Malformed("cannot read file data: Is a directory"));
        return Opened::File { id, elf };
    }
    let bytes = fs::read(path).unwrap();
    let elf = ElfFacts::parse(&bytes).map(Arc::new);
    Opened::File { id, elf }
}

/// The constants of this host's loader, all of them read from the host.
pub(crate) fn system() -> Arc<System> {
    let own = ElfFacts::parse(&fs::read(std::env::current_exe().unwrap()).unwrap()).unwrap();
    let loader = fs::read(own.interpreter.clone().unwrap()).unwrap();
    let directories = default_directories_in(&loader).unwrap();
    let libc = directories
        .iter()
        .find_map(|directory| fs::read(format!("{directory}/libc.so.6")).ok());
    let libc = ElfFacts::parse(&libc.unwrap()).unwrap();
    let version = libc.greatest_defined_version("GLIBC_").unwrap();
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap();
    let processor = Processor::from_cpuinfo(&cpuinfo, own.machine);
    Arc::new(System::glibc(
        (version[0], version[1]),
        own.machine,
        &processor,
        directories,
    ))
}

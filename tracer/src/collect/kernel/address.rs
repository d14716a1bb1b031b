//! From an address in a process to the object that holds it.
//!
//! A probe tells where it was and whence it was called as addresses. They are looked up in `/proc/PID/maps`, which is
//! read once for a process and again when an address is not in it.

use std::{collections::HashMap, fs};

/// A place in an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// The object's path, as the process names it.
    pub(crate) object: String,
    /// Bytes from the object's load address.
    pub(crate) offset: u64,
}

/// One mapping of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mapping {
    start: u64,
    end: u64,
    /// Where the object begins in memory.
    base: u64,
    path: String,
}

/// The memory maps of the processes whose addresses were asked for.
#[derive(Debug, Default)]
pub(crate) struct Addresses {
    maps: HashMap<u32, Vec<Mapping>>,
}

impl Addresses {
    /// The object that holds an address, `None` where no file does or the process is gone.
    pub(crate) fn resolve(&mut self, pid: u32, address: u64) -> Option<Place> {
        if let Some(known) = self.maps.get(&pid)
            && let Some(place) = find(known, address)
        {
            return Some(place);
        }
        let text = fs::read(format!("/proc/{pid}/maps")).ok()?;
        let fresh = parse(&String::from_utf8_lossy(&text));
        let place = find(&fresh, address);
        self.maps.insert(pid, fresh);
        place
    }

    /// Whether an address of this process has been asked for before.
    pub(crate) fn knows(&self, pid: u32) -> bool {
        self.maps.contains_key(&pid)
    }

    /// The process runs another program now, or none any more.
    pub(crate) fn forget(&mut self, pid: u32) {
        self.maps.remove(&pid);
    }
}

fn find(maps: &[Mapping], address: u64) -> Option<Place> {
    let mapping = maps.iter().find(|m| (m.start..m.end).contains(&address))?;
    Some(Place {
        object: mapping.path.clone(),
        offset: address.saturating_sub(mapping.base),
    })
}

fn parse(text: &str) -> Vec<Mapping> {
    let mut maps: Vec<Mapping> = Vec::new();
    for line in text.lines() {
        // start-end perms offset major:minor inode   path
        let mut fields = line.splitn(6, ' ');
        let (Some(range), Some(path)) = (fields.next(), fields.nth(4)) else {
            continue;
        };
        let path = path.trim_start().trim_end_matches(" (deleted)");
        let bounds = range.split_once('-').and_then(|(start, end)| {
            Some((
                u64::from_str_radix(start, 16).ok()?,
                u64::from_str_radix(end, 16).ok()?,
            ))
        });
        let Some((start, end)) = bounds.filter(|_| path.starts_with('/')) else {
            continue;
        };
        // The parts of an object lie one behind the other.
        let base = maps
            .last()
            .filter(|last| last.path == path)
            .map_or(start, |last| last.base);
        maps.push(Mapping {
            start,
            end,
            base,
            path: path.to_owned(),
        });
    }
    maps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_belong_to_objects() {
        let maps = parse(
            "1000-2000 r--p 00000000 fe:00 5    /opt/a b/libx.so\n\
             2000-4000 r-xp 00001000 fe:00 5    /opt/a b/libx.so\n\
             5000-6000 rw-p 00000000 00:00 0 \n\
             7000-8000 r-xp 00000000 fe:00 6    /opt/liby.so (deleted)\n\
             9000-a000 r-xp 00000000 00:00 0    [vdso]\n",
        );
        let place = |object: &str, offset| {
            Some(Place {
                object: object.to_owned(),
                offset,
            })
        };
        let cases = [
            (0x2010, place("/opt/a b/libx.so", 0x1010)),
            (0x7001, place("/opt/liby.so", 1)),
            (0x5000, None),
            (0x9000, None),
            (0x4000, None),
        ];
        for (address, expected) in cases {
            assert_eq!(find(&maps, address), expected, "{address:#x}");
        }
    }

    #[test]
    fn a_function_of_this_program_is_found() {
        let mut addresses = Addresses::default();
        let address = parse as *const () as u64;
        let place = addresses.resolve(std::process::id(), address).unwrap();
        let exe = std::env::current_exe().unwrap();
        assert_eq!(place.object, exe.to_str().unwrap());
    }
}

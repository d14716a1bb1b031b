//! Facts about JIT caches: whose a file is, what it was built with, what kind of directory it lies in.

use std::{
    collections::{HashMap, HashSet},
    ffi::CString,
    os::unix::fs::MetadataExt,
    path::Path,
};

use jittrace_model::{
    cache::{ArtifactKind, BuildFile, Place, built_with, kind_of, ninja, place_of, triton},
    component,
    elf::ElfFacts,
    event::{CacheFact, DirectoryFact, Fact},
    image,
    toolkit::{Context, NoFiles, Version, identify},
};

use super::host_files::{HostFiles, map};

/// What was told of each cache file, and when it was last changed.
#[derive(Debug, Default)]
pub(super) struct CacheFacts {
    told: HashMap<String, State>,
    directories: HashSet<String>,
}

/// What changes when a file does: seconds and nanoseconds of its modification time, and its size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct State {
    seconds: i64,
    nanoseconds: i64,
    size: u64,
}

impl CacheFacts {
    /// Tells what a path in a cache is; again when the file has changed since.
    pub(super) fn look(
        &mut self,
        path: &str,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Vec<Fact> {
        let Some(place) = place_of(Path::new(path), variable, &HostFiles) else {
            return Vec::new();
        };
        let state = Path::new(path).metadata().map_or_else(
            |_| State::default(),
            |m| State {
                seconds: m.mtime(),
                nanoseconds: m.mtime_nsec(),
                size: m.size(),
            },
        );
        let is_known = self.told.get(path).is_some_and(|before| *before == state);
        if is_known || !is_told(place.kind) {
            return Vec::new();
        }
        self.told.insert(path.to_owned(), state);
        let mut facts = Vec::new();
        if self.directories.insert(place.root.clone()) {
            facts.extend(directory(&place.root).map(Fact::Directory));
        }
        facts.push(Fact::Cache(Box::new(fact(path, &place, state))));
        facts
    }
}

/// Whether a file's name is that of a recipe or a result.
pub(super) fn is_artifact(path: &str) -> bool {
    is_told(kind_of(path.rsplit('/').next().unwrap_or(path)))
}

/// Recipes and results; sources, objects and logs say nothing about the toolkit.
fn is_told(kind: ArtifactKind) -> bool {
    matches!(
        kind,
        ArtifactKind::BuildFile | ArtifactKind::Library | ArtifactKind::Cubin | ArtifactKind::Ptx
    )
}

fn fact(path: &str, place: &Place, state: State) -> CacheFact {
    let on_disk = Path::new(path);
    let beside = on_disk.with_file_name("build.ninja");
    let recipe = std::fs::read_to_string(beside)
        .ok()
        .map(|text| ninja::read(&text));
    let mut fact = CacheFact {
        path: path.to_owned(),
        directory: place.root.clone(),
        owner: component::name_of(&place.owner),
        key: place.key.clone(),
        cuda_home: recipe.as_ref().and_then(|r| r.cuda_home.clone()),
        nvcc: recipe.as_ref().and_then(|r| r.nvcc.clone()),
        archs: recipe
            .as_ref()
            .map(|r| r.archs.iter().map(ToString::to_string).collect())
            .unwrap_or_default(),
        mtime: state.seconds,
        size: (state != State::default()).then_some(state.size),
        ..CacheFact::default()
    };
    if place.kind != ArtifactKind::BuildFile {
        artifact(on_disk, recipe.as_ref(), &mut fact);
    }
    if fact.archs.is_empty() && place.kind == ArtifactKind::Cubin {
        let beside = std::fs::read_to_string(on_disk.with_extension("json")).ok();
        let kernel = beside.as_deref().and_then(triton::read);
        fact.archs
            .extend(kernel.and_then(|k| k.arch).map(|a| a.to_string()));
    }
    if fact.archs.is_empty() {
        fact.archs = place.archs.iter().map(ToString::to_string).collect();
    }
    fact
}

fn artifact(path: &Path, recipe: Option<&BuildFile>, fact: &mut CacheFact) {
    let Some(bytes) = map(path) else { return };
    if let Some(best) = built_with(&bytes, recipe, &version_of).into_iter().next() {
        fact.built_with = Some(best.to_string());
        fact.built_with_from = Some(best.from.word().to_owned());
    }
    if let Some(images) = image::read(&bytes) {
        fact.archs = images.archs().iter().map(ToString::to_string).collect();
    }
    if let Ok(elf) = ElfFacts::parse(&bytes) {
        fact.needed = elf.needed;
    }
}

/// The version of a compiler, or of the compiler under a toolkit's root.
fn version_of(path: &Path) -> Option<Version> {
    let compiler = if path.is_dir() {
        path.join("bin/nvcc")
    } else {
        path.to_owned()
    };
    let bytes = map(&compiler)?;
    let context = Context {
        files: &NoFiles,
        owner: None,
    };
    identify(&compiler, &bytes, &context).version
}

/// The file system that a directory lies on.
fn directory(path: &str) -> Option<DirectoryFact> {
    let there = Path::new(path).ancestors().find(|p| p.is_dir())?;
    let spelled = CString::new(there.as_os_str().as_encoded_bytes()).ok()?;
    let kind = rustix::fs::statfs(spelled.as_c_str()).ok()?.f_type as i64 as u32;
    let (filesystem, network) = filesystem(kind);
    let mounted = rustix::fs::statvfs(spelled.as_c_str()).ok()?.f_flag;
    Some(DirectoryFact {
        path: path.to_owned(),
        filesystem: filesystem.to_owned(),
        network,
        writable: Some(
            rustix::fs::access(spelled.as_c_str(), rustix::fs::Access::WRITE_OK).is_ok(),
        ),
        noexec: mounted.contains(rustix::fs::StatVfsMountFlags::NOEXEC),
    })
}

/// Name of a file system by its magic number (`statfs(2)`), and whether other hosts may write there too.
fn filesystem(magic: u32) -> (&'static str, bool) {
    match magic {
        0x6969 => ("nfs", true),
        0xff53_4d42 | 0xfe53_4d42 | 0x517b => ("smb", true),
        0x0bd0_0bd0 => ("lustre", true),
        0x00c3_6400 => ("ceph", true),
        0x4750_4653 => ("gpfs", true),
        0x1983_0326 => ("beegfs", true),
        0x6573_5546 => ("fuse", true),
        0x0102_1997 => ("9p", true),
        0x0102_1994 => ("tmpfs", false),
        0xef53 => ("ext4", false),
        0x5846_5342 => ("xfs", false),
        0x9123_683e => ("btrfs", false),
        0x794c_7630 => ("overlayfs", false),
        0x2fc1_2fc1 => ("zfs", false),
        _ => ("other", false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_is_not_there_yet_is_judged_by_its_parent() {
        let place = tempfile::tempdir().unwrap();
        let fact = directory(&place.path().join("not/there").to_string_lossy()).unwrap();
        assert!(!fact.network && !fact.filesystem.is_empty());
        assert_eq!(fact.writable, Some(true));
    }
}

//! On a real CUDA stack, what is read from the files equals what NVIDIA's own tools say when they run.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use jittrace_model::distribution::Index;
use jittrace_model::elf::ElfFacts;
use jittrace_model::image;
use jittrace_model::toolkit::{
    Arch, Context, DriverKind, Files, Identity, LocalFiles, Part, Places, ToolkitKind, Version,
    VersionFrom, candidates, identify, survey, version_in_tool_string,
};
use std::path::{Path, PathBuf};
use support::{output, site_packages, stack};

fn identity(path: &Path, index: &Index) -> Identity {
    let files = LocalFiles;
    let real = path.canonicalize().unwrap();
    let context = Context {
        files: &files,
        owner: index.owner(&real),
    };
    let mut found = None;
    assert!(
        files.with_bytes(path, &mut |bytes| found =
            Some(identify(path, bytes, &context))),
        "{}",
        path.display()
    );
    found.unwrap()
}

fn index(site: &Path) -> Index {
    let mut index = Index::new();
    index.add_site_packages(&site.canonicalize().unwrap(), &LocalFiles);
    index
}

/// Every tool's version in its file is the one that it prints.
#[test]
fn tools_say_what_their_files_say() {
    let Some(stack) = stack() else { return };
    let site = site_packages(&stack);
    let index = index(&site);
    let directories = [
        site.join("nvidia/cu13/bin"),
        site.join("nvidia/cu13/nvvm/bin"),
        site.join("nvidia/cuda_nvcc/bin"),
        site.join("triton/backends/nvidia/bin"),
        stack.join("toolkits/cuda-13.0/bin"),
        stack.join("toolkits/cuda-12.4/bin"),
        stack.join("toolkits/cuda-12.4/nvvm/bin"),
    ];
    let mut compared = 0;
    for path in directories
        .iter()
        .flat_map(|directory| std::fs::read_dir(directory).unwrap().flatten())
        .map(|entry| entry.path())
    {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if !Part::of_file_name(&name).is_tool() || name == "nvcc.profile" {
            continue;
        }
        let identity = identity(&path, &index);
        // cicc answers no --version: its release is its toolkit's, which nvcc beside it states.
        let asked = if identity.part == Part::Cicc {
            path.parent().unwrap().join("../../bin/nvcc")
        } else {
            path.clone()
        };
        let printed = output(&asked, &["--version"]);
        let printed = version_in_tool_string(&printed)
            .unwrap_or_else(|| panic!("{} prints {printed}", path.display()));
        assert_eq!(identity.version, Some(printed), "{}", path.display());
        assert_eq!(
            identity.version_from,
            Some(VersionFrom::ToolString),
            "{}",
            path.display()
        );
        assert!(!identity.is_script && !identity.needs_probe);
        assert_eq!(identity.disagreement(), None, "{}", path.display());
        compared += 1;
    }
    assert!(compared >= 20, "only {compared} tools compared");
}

/// The runtime's version in its code is the one that the call returns.
#[test]
fn cudart_returns_what_its_code_says() {
    let Some(stack) = stack() else { return };
    let site = site_packages(&stack);
    let index = index(&site);
    for path in [
        site.join("nvidia/cu13/lib/libcudart.so.13"),
        site.join("torchvision.libs/libcudart.faf08d9a.so.13"),
        stack.join("toolkits/cuda-12.4/lib64/libcudart.so.12"),
        stack.join("toolkits/cuda-13.0/lib64/libcudart.so"),
    ] {
        let script = format!(
            "import ctypes; v=ctypes.c_int(); ctypes.CDLL({:?}).cudaRuntimeGetVersion(ctypes.byref(v)); print(v.value)",
            path.display().to_string()
        );
        let returned: u32 = output(&stack.join("venv/bin/python"), &["-c", &script])
            .trim()
            .parse()
            .unwrap();
        let identity = identity(&path, &index);
        let immediate = identity
            .readings
            .iter()
            .find(|reading| reading.from == VersionFrom::CudartImmediate)
            .unwrap();
        assert_eq!(
            Some(immediate.version),
            Version::from_cuda_number(returned),
            "{}",
            path.display()
        );
        assert_eq!(identity.disagreement(), None, "{identity:#?}");
    }
    let renamed = identity(
        &site.join("torchvision.libs/libcudart.faf08d9a.so.13"),
        &index,
    );
    assert_eq!(renamed.renamed.as_deref(), Some("faf08d9a"));
    assert_eq!(renamed.root.unwrap().kind, ToolkitKind::Bundled);
    let wheel = identity(&site.join("nvidia/cu13/lib/libcudart.so.13"), &index);
    assert_eq!(
        (wheel.version, wheel.version_from),
        (
            Some(Version::exact(13, 0, 96)),
            Some(VersionFrom::WheelMetadata)
        )
    );
    assert_eq!(wheel.root.unwrap().kind, ToolkitKind::Wheel);
}

/// Libraries with a known release: what is found, and by which evidence.
#[test]
fn libraries_of_the_stack() {
    let Some(stack) = stack() else { return };
    let site = site_packages(&stack);
    let index = index(&site);
    let rows: [(PathBuf, Part, Version, VersionFrom); 8] = [
        (
            site.join("nvidia/cu13/lib/libnvrtc.so.13"),
            Part::Nvrtc,
            Version::exact(13, 0, 88),
            VersionFrom::ToolString,
        ),
        (
            site.join("nvidia/cu13/lib/libnvrtc.alt.so.13"),
            Part::Nvrtc,
            Version::exact(13, 0, 88),
            VersionFrom::ToolString,
        ),
        (
            site.join("nvidia/cu13/lib/libnvrtc-builtins.so.13.0"),
            Part::NvrtcBuiltins,
            Version::exact(13, 0, 88),
            VersionFrom::WheelMetadata,
        ),
        (
            site.join("nvidia/cu13/lib/libnvvm.so.4"),
            Part::Nvvm,
            Version::exact(13, 0, 88),
            VersionFrom::ToolString,
        ),
        (
            site.join("nvidia/cuda_nvcc/nvvm/lib64/libnvvm.so"),
            Part::Nvvm,
            Version::exact(12, 8, 93),
            VersionFrom::ToolString,
        ),
        (
            site.join("nvidia/cu13/lib/libcupti.so.13"),
            Part::Cupti,
            Version::exact(13, 0, 85),
            VersionFrom::WheelMetadata,
        ),
        (
            site.join("nvidia/cu13/include/cuda.h"),
            Part::Headers,
            Version::exact(13, 0, 96),
            VersionFrom::WheelMetadata,
        ),
        (
            stack.join("toolkits/cuda-12.4/include/cuda_runtime_api.h"),
            Part::Headers,
            Version::release(12, 4),
            VersionFrom::CudartH,
        ),
    ];
    for (path, part, version, from) in rows {
        let identity = identity(&path, &index);
        assert_eq!(
            (identity.part, identity.version, identity.version_from),
            (part, Some(version), Some(from)),
            "{identity:#?}"
        );
        assert_eq!(identity.disagreement(), None, "{identity:#?}");
    }
}

#[test]
fn the_driver_and_the_stub() {
    let Some(stack) = stack() else { return };
    let none = Index::new();
    let driver = identity(&stack.join("driver/libcuda.so.1"), &none);
    assert_eq!(
        (driver.part, driver.driver),
        (Part::Libcuda, Some(DriverKind::Driver))
    );
    assert_eq!(
        driver
            .driver_release
            .as_ref()
            .map(|release| release.as_str()),
        Some("550.163.01")
    );
    assert_eq!(
        driver.version.map(Version::without_patch),
        Some(Version::release(12, 4))
    );
    assert_eq!(driver.disagreement(), None, "{driver:#?}");
    let stub = identity(
        &stack.join("toolkits/cuda-13.0/lib64/stubs/libcuda.so"),
        &none,
    );
    assert_eq!(
        (stub.part, stub.driver),
        (Part::Libcuda, Some(DriverKind::Stub))
    );
    assert_eq!(stub.driver_release, None);
}

/// The architectures in the big libraries are the ones that cuobjdump lists. The stack's cuobjdump (12.8) names
/// no suffix for images of 13.x, so only the numbers are compared; suffixes are tested on images made here.
#[test]
fn archs_are_those_that_cuobjdump_lists() {
    let Some(stack) = stack() else { return };
    let site = site_packages(&stack);
    let cuobjdump = site.join("triton/backends/nvidia/bin/cuobjdump");
    for library in [
        "torch/lib/libtorch_cuda_linalg.so",
        "sgl_kernel/sm100/common_ops.abi3.so",
        "torch/lib/libtorch_cuda.so",
    ] {
        let differences = compare_archs(&cuobjdump, &site.join(library));
        assert_eq!(differences, Some(Vec::new()), "{library}");
    }
}

/// What cuobjdump lists and what is read natively, where they differ; none for a file without device code.
fn compare_archs(cuobjdump: &Path, path: &Path) -> Option<Vec<String>> {
    let mut facts = None;
    LocalFiles.with_bytes(path, &mut |bytes| facts = image::read(bytes));
    let facts = facts?;
    let listed = |option: &str| {
        let mut archs: Vec<String> = output(cuobjdump, &[option, path.to_str().unwrap()])
            .lines()
            .filter_map(|line| Some(line.rsplit('.').nth(1)?.to_owned()))
            .filter(|arch| arch.starts_with("sm_"))
            .map(|arch| arch.trim_end_matches(['a', 'f']).to_owned())
            .collect();
        archs.sort();
        archs.dedup();
        archs
    };
    let numbers = |archs: &mut dyn Iterator<Item = Arch>| {
        let mut numbers: Vec<String> = archs.map(|arch| format!("sm_{}", arch.number())).collect();
        numbers.sort();
        numbers.dedup();
        numbers
    };
    let mut differences = Vec::new();
    if facts.truncated {
        differences.push("not read to its end".to_owned());
    }
    let sass = numbers(&mut facts.sass.iter().copied());
    let ptx = numbers(&mut facts.ptx.iter().filter_map(|ptx| ptx.target));
    for (option, read) in [("--list-elf", sass), ("--list-ptx", ptx)] {
        let listed = listed(option);
        if read != listed {
            differences.push(format!("{option}: read {read:?}, listed {listed:?}"));
        }
    }
    Some(differences)
}

/// The same over every file of the stack, and SONAME and needs against readelf. Takes minutes, with a full stack many:
/// asked for by `JITTRACE_EVERY_FILE=1`.
#[test]
fn every_file_of_the_stack() {
    if std::env::var_os("JITTRACE_EVERY_FILE").is_none() {
        eprintln!("skipped: JITTRACE_EVERY_FILE is not set");
        return;
    }
    let Some(stack) = stack() else { return };
    let cuobjdump = site_packages(&stack).join("triton/backends/nvidia/bin/cuobjdump");
    let (mut objects, mut images, mut wrong) = (0, 0, Vec::new());
    let mut seen = std::collections::HashSet::new();
    let mut directories = vec![stack];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(&directory).unwrap().flatten() {
            let path = entry.path();
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                directories.push(path);
                continue;
            }
            let is_elf = LocalFiles
                .head(&path, 4)
                .is_some_and(|head| head == b"\x7fELF");
            if !kind.is_file() || !is_elf || !seen.insert(path.canonicalize().unwrap()) {
                continue;
            }
            objects += 1;
            wrong.extend(
                compare_dynamic_section(&path)
                    .into_iter()
                    .map(|difference| format!("{}: {difference}", path.display())),
            );
            if let Some(differences) = compare_archs(&cuobjdump, &path) {
                images += 1;
                wrong.extend(
                    differences
                        .into_iter()
                        .map(|difference| format!("{}: {difference}", path.display())),
                );
            }
        }
    }
    eprintln!("{objects} ELF files, {images} of them with device code");
    assert!(objects > 50 && images > 3);
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// SONAME and needed libraries as readelf tells them.
fn compare_dynamic_section(path: &Path) -> Vec<String> {
    let listed = output(Path::new("readelf"), &["-dW", path.to_str().unwrap()]);
    let named = |tag: &str| -> Vec<String> {
        listed
            .lines()
            .filter(|line| line.contains(tag))
            .filter_map(|line| Some(line.split_once('[')?.1.split_once(']')?.0.to_owned()))
            .collect()
    };
    let mut facts = None;
    LocalFiles.with_bytes(path, &mut |bytes| facts = ElfFacts::parse(bytes).ok());
    let Some(facts) = facts else {
        return vec!["it does not parse".to_owned()];
    };
    let mut differences = Vec::new();
    let soname = named("(SONAME)");
    if facts.soname != soname.first().cloned() {
        differences.push(format!("SONAME {:?}, readelf {soname:?}", facts.soname));
    }
    let needed = named("(NEEDED)");
    if facts.needed != needed {
        differences.push(format!("needed {:?}, readelf {needed:?}", facts.needed));
    }
    differences
}

#[test]
fn toolkits_of_the_stack_are_found_from_one_of_them() {
    let Some(stack) = stack() else { return };
    let places = Places {
        cuda_home: Some(stack.join("toolkits/cuda-12.4").display().to_string()),
        site_packages: vec![site_packages(&stack).display().to_string()],
        ..Places::default()
    };
    let files = LocalFiles;
    let found: Vec<(String, Version)> = candidates(&places, &files)
        .into_iter()
        .filter_map(|candidate| {
            let toolkit = survey(Path::new(&candidate.root), &files, &|_| None)?;
            Some((
                format!(
                    "{} by {}",
                    Path::new(&candidate.root).file_name()?.to_str()?,
                    candidate.found_by
                ),
                toolkit.version()?.0,
            ))
        })
        .collect();
    let has = |what: &str, version| {
        assert!(
            found.contains(&(what.to_owned(), version)),
            "{what}: {found:?}"
        )
    };
    has("cuda-12.4 by CUDA_HOME", Version::exact(12, 4, 131));
    has("cuda-13.0 by neighbour", Version::exact(13, 0, 88));
    has("cu13 by wheel", Version::exact(13, 0, 88));
    has("cuda_nvcc by wheel", Version::exact(12, 8, 93));
}

/// cuda-bindings links the runtime statically; torch's libraries and NVIDIA's own runtime are no such copies.
#[test]
fn a_static_runtime_shows() {
    let Some(stack) = stack() else { return };
    let site = site_packages(&stack);
    let none = Index::new();
    let bindings = std::fs::read_dir(site.join("cuda/bindings/_internal"))
        .unwrap()
        .flatten()
        .map(|entry| entry.path());
    let runtime = bindings
        .filter(|path| {
            path.file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with("runtime."))
        })
        .find(|path| path.extension().is_some_and(|extension| extension == "so"));
    assert!(identity(&runtime.unwrap(), &none).static_cudart);
    for path in [
        "torch/lib/libc10_cuda.so",
        "nvidia/cu13/lib/libcudart.so.13",
    ] {
        assert!(!identity(&site.join(path), &none).static_cudart, "{path}");
    }
}

//! From the bytes of the ring buffer to [`Observation`]s.

use std::{
    collections::HashMap,
    ffi::{OsStr, OsString},
    fs, io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use jittrace_ebpf::{
    CAPTURE_TEXT, CallRecord, ExecFailedRecord, ExecRecord, ExecTextRecord, ExitRecord, FileRecord,
    ForkRecord, Head, TEXT_IMAGE, at, flag, kind, read,
};

use super::{
    event::{
        Call, Captured, Exec, ExecFailed, Exit, Field, FileCall, KernelEvent, Missing, Observation,
    },
    objects::FileId,
    shapes,
    watched::Function,
};

/// A record that is not what the kernel programs write: a defect of this program, told and skipped.
#[derive(Debug, thiserror::Error)]
#[error("a record of {length} bytes of kind {kind} is not one of this version's kernel programs")]
pub(crate) struct Foreign {
    kind: u32,
    length: usize,
}

/// Copies the fixed part of a record and gives the text behind it.
///
/// `T` is a record without text. It is `#[repr(C)]`, made of integers and valid for any bit pattern.
fn split<T: Copy>(bytes: &[u8]) -> Option<(T, &[u8])> {
    let text = bytes.get(size_of::<T>()..)?;
    // SAFETY: there are at least size_of::<T>() bytes, and T is valid for any of them; the source may be unaligned.
    Some((unsafe { bytes.as_ptr().cast::<T>().read_unaligned() }, text))
}

/// What a call's cookie stands for.
pub(crate) type ObjectOf<'a> =
    &'a dyn Fn(u32) -> Option<std::sync::Arc<super::event::WatchedObject>>;

/// A record in Rust types.
pub(crate) struct Decoded {
    pub(crate) observation: Observation,
    /// Whether anybody wants to know; a path that matches no pattern is not told.
    pub(crate) matters: bool,
}

/// Puts records back together: an exec comes in two.
#[derive(Default)]
pub(crate) struct Decoder {
    /// Texts whose exec has not come, by thread (initial view).
    texts: HashMap<u32, ExecText>,
}

/// Texts that may wait for their exec; there are more only when execs are lost.
const WAITING_TEXTS: usize = 256;

impl Decoder {
    /// Decodes one record. `None`: it only prepares another.
    pub(crate) fn decode(
        &mut self,
        bytes: &[u8],
        object_of: ObjectOf<'_>,
    ) -> Result<Option<Decoded>, Foreign> {
        let foreign = || Foreign {
            kind: split::<Head>(bytes).map_or(0, |(head, _)| head.kind),
            length: bytes.len(),
        };
        let (head, _) = split::<Head>(bytes).ok_or_else(foreign)?;
        let thread = head.task.initial.tid;
        let event = match head.kind {
            kind::EXEC_TEXT => {
                let text = exec_text(bytes).ok_or_else(foreign)?;
                if self.texts.len() >= WAITING_TEXTS {
                    self.texts.clear();
                }
                self.texts.insert(thread, text);
                return Ok(None);
            }
            kind::FORK => fork(bytes).map(|event| (event, true)),
            kind::EXEC => exec(bytes, self.texts.remove(&thread)).map(|event| (event, true)),
            kind::EXEC_FAILED => exec_failed(bytes).map(|event| (event, true)),
            kind::EXIT => exit(bytes).map(|event| (event, true)),
            kind::FILE => file(bytes),
            kind::CALL_ENTRY | kind::CALL_RETURN => {
                call(bytes, object_of).map(|event| (event, true))
            }
            _ => None,
        };
        let (event, matters) = event.ok_or_else(foreign)?;
        Ok(Some(Decoded {
            observation: Observation {
                time_ns: head.time,
                task: head.task,
                event,
            },
            matters,
        }))
    }
}

fn fork(bytes: &[u8]) -> Option<KernelEvent> {
    let (record, _) = split::<ForkRecord>(bytes)?;
    Some(KernelEvent::Fork {
        child: record.child,
    })
}

fn exit(bytes: &[u8]) -> Option<KernelEvent> {
    let (record, _) = split::<ExitRecord>(bytes)?;
    Some(KernelEvent::Exit(Exit::from_status(record.status)))
}

fn prefix(bytes: &[u8], length: u32) -> Option<&[u8]> {
    bytes.get(..length as usize)
}

fn text(bytes: &[u8]) -> OsString {
    OsStr::from_bytes(bytes).to_os_string()
}

/// The texts of an area in which each ends with NUL.
fn ended_by_nul(area: &[u8]) -> impl Iterator<Item = &[u8]> {
    let area = area.strip_suffix(b"\0").unwrap_or(area);
    let empty = area.is_empty();
    area.split(|byte| *byte == 0).filter(move |_| !empty)
}

/// Arguments and environment that were told ahead of their exec.
struct ExecText {
    argv: Field<Vec<OsString>>,
    env: Field<Vec<(OsString, OsString)>>,
}

fn exec_text(bytes: &[u8]) -> Option<ExecText> {
    let (record, area) = split::<ExecTextRecord<0>>(bytes)?;
    let area = prefix(area, record.text_len)?;
    let missing = if record.head.flags & flag::FAULT != 0 {
        Missing::Fault(libc::EFAULT)
    } else {
        Missing::Cut
    };
    let pid = record.head.task.own.tgid;
    let args_len = record.args_len as usize;
    let argv = match area.get(..args_len) {
        Some(args) => Ok(args.to_vec()),
        None => from_process(pid, "cmdline").ok_or(missing),
    };
    let env = if area.len() == record.area_len as usize {
        Ok(area.get(args_len..)?.to_vec())
    } else {
        from_process(pid, "environ").ok_or(missing)
    };
    Some(ExecText {
        argv: argv.map(|area| ended_by_nul(&area).map(text).collect()),
        env: env.map(|area| ended_by_nul(&area).filter_map(captured_variable).collect()),
    })
}

/// What a process still tells of itself where its record has no room for all, or was lost.
fn from_process(pid: u32, name: &str) -> Option<Vec<u8>> {
    // An ended process reads as empty.
    fs::read(format!("/proc/{pid}/{name}"))
        .ok()
        .filter(|bytes| pid != 0 && !bytes.is_empty())
}

fn exec(bytes: &[u8], told: Option<ExecText>) -> Option<KernelEvent> {
    let (record, _) = split::<ExecRecord>(bytes)?;
    let pid = record.head.task.own.tgid;
    let told = told.unwrap_or_else(|| ExecText {
        argv: from_process(pid, "cmdline")
            .map(|area| ended_by_nul(&area).map(text).collect())
            .ok_or(Missing::Lost),
        env: from_process(pid, "environ")
            .map(|area| ended_by_nul(&area).filter_map(captured_variable).collect())
            .ok_or(Missing::Lost),
    });
    Some(KernelEvent::Exec(Box::new(Exec {
        parent: record.parent,
        caller_tid: record.caller,
        uid: record.uid,
        exe: FileId::from_kernel(record.exe_device, record.exe_inode),
        filename: text(prefix(&record.filename, record.filename_len)?),
        cwd: directory(
            prefix(&record.cwd, record.cwd_len)?,
            record.head.flags & flag::CUT_CWD != 0,
            || link_of(pid, libc::AT_FDCWD),
        ),
        argv: told.argv,
        env: told.env,
    })))
}

/// `NAME=VALUE`, where the name is on the allow-list. Other values go no further than this.
fn captured_variable(entry: &[u8]) -> Option<(OsString, OsString)> {
    let at = entry.iter().position(|byte| *byte == b'=')?;
    let (name, value) = (entry.get(..at)?, entry.get(at + 1..)?);
    jittrace_wire::environment::is_captured(name).then(|| (text(name), text(value)))
}

/// Joins the names, which come innermost first; where they are cut, what `otherwise` finds.
fn directory(
    names: &[u8],
    cut: bool,
    otherwise: impl FnOnce() -> Option<PathBuf>,
) -> Field<PathBuf> {
    if cut {
        return otherwise().ok_or(Missing::Cut);
    }
    let names: Vec<&[u8]> = ended_by_nul(names).collect();
    let mut path = PathBuf::from("/");
    path.extend(names.iter().rev().map(|name| OsStr::from_bytes(name)));
    Ok(path)
}

fn exec_failed(bytes: &[u8]) -> Option<KernelEvent> {
    let (record, _) = split::<ExecFailedRecord>(bytes)?;
    let filename = match record.filename_len {
        0 if record.head.flags & flag::FAULT != 0 => Err(Missing::Fault(libc::EFAULT)),
        length => Ok(text(prefix(&record.filename, length)?)),
    };
    Some(KernelEvent::ExecFailed(Box::new(ExecFailed {
        errno: i32::try_from(-record.result).unwrap_or(0),
        filename,
        directory: record.directory,
        argv: ended_by_nul(prefix(&record.args, record.args_len)?)
            .map(text)
            .collect(),
        argv_cut: record.head.flags & (flag::TRUNCATED | flag::FAULT) != 0,
    })))
}

/// The call, and whether it matters.
fn file(bytes: &[u8]) -> Option<(KernelEvent, bool)> {
    let (record, texts) = split::<FileRecord<0>>(bytes)?;
    let operation = shapes::operation(record.number, record.open_flags)?;
    let flags = record.head.flags;
    let part = |at: u32, length: u32| {
        texts
            .get(at as usize..)
            .and_then(|texts| prefix(texts, length))
    };
    let base = match record.base_at {
        0 => None,
        at => directory(
            part(at, record.base_len)?,
            flags & flag::CUT_CWD != 0,
            || link_of(record.head.task.own.tgid, record.directory),
        )
        .ok(),
    };
    let path = against(base.as_deref(), part(0, record.path_len)?);
    let to = match record.path2_at {
        0 => None,
        at if record.directory2 == record.directory => {
            Some(against(base.as_deref(), part(at, record.path2_len)?))
        }
        at => {
            let base = link_of(record.head.task.own.tgid, record.directory2);
            Some(against(base.as_deref(), part(at, record.path2_len)?))
        }
    };
    let interesting = |path: &Path| {
        use jittrace_wire::paths;
        let path = path.as_os_str().as_bytes();
        paths::interest(path).is_some() || paths::is_cache_directory(path)
    };
    let loading = (record.loading != 0).then_some(record.loading);
    let fault = flags & flag::FAULT != 0;
    // What the loader tries is told whatever its name is: these are the candidates of a search.
    let matters =
        fault || loading.is_some() || interesting(&path) || to.as_deref().is_some_and(interesting);
    let outcome = if record.result < 0 {
        Err(i32::try_from(-record.result).unwrap_or(i32::MAX))
    } else {
        Ok(record.result)
    };
    let field = |path: PathBuf, length: u32| match length {
        0 if fault => Err(Missing::Fault(libc::EFAULT)),
        _ if flags & flag::TRUNCATED != 0 => Err(Missing::Cut),
        _ => Ok(path),
    };
    let call = FileCall {
        operation,
        path: field(path, record.path_len),
        to: to.map(|to| field(to, record.path2_len)),
        outcome,
        begin_ns: record.begin,
        loading,
    };
    Some((KernelEvent::File(Box::new(call)), matters))
}

/// A directory of a process, if it still says so.
fn link_of(pid: u32, descriptor: i32) -> Option<PathBuf> {
    if pid == 0 {
        return None;
    }
    fs::read_link(match descriptor {
        libc::AT_FDCWD => format!("/proc/{pid}/cwd"),
        open => format!("/proc/{pid}/fd/{open}"),
    })
    .ok()
}

fn against(directory: Option<&Path>, path: &[u8]) -> PathBuf {
    let path = Path::new(OsStr::from_bytes(path));
    match directory {
        Some(directory) => directory.join(path),
        None => path.to_path_buf(),
    }
}

fn call(bytes: &[u8], object_of: ObjectOf<'_>) -> Option<KernelEvent> {
    let (record, texts) = split::<CallRecord<0>>(bytes)?;
    let cookie = jittrace_ebpf::Cookie(record.cookie);
    let function = Function::by_index(cookie.spec())?;
    let returned = record.head.kind == kind::CALL_RETURN;
    let mut captured = [const { Captured::Nothing }; jittrace_ebpf::CAPTURES];
    let spec = function.spec();
    let told = record.values.iter().zip(record.status).zip(record.text_len);
    for (i, ((place, capture), ((value, status), length))) in captured
        .iter_mut()
        .zip(&spec.captures)
        .zip(told)
        .enumerate()
    {
        if capture.at == at::RETURN && !returned {
            continue;
        }
        if capture.read != read::NOTHING && status != 0 {
            *place = reread(&record, capture).unwrap_or(Captured::Missing(Missing::Fault(-status)));
            continue;
        }
        let room = if capture.read == read::IMAGE {
            0
        } else {
            i * CAPTURE_TEXT
        };
        let bytes = || texts.get(room..).and_then(|texts| prefix(texts, length));
        *place = match capture.read {
            read::INT32 | read::INT64 => Captured::Number(*value as i64),
            read::TEXT | read::TEXT_BEHIND => Captured::Text {
                text: text(bytes()?),
                cut: length as usize >= CAPTURE_TEXT - 1,
            },
            read::BYTES | read::IMAGE => {
                debug_assert!(length <= TEXT_IMAGE);
                Captured::Bytes {
                    address: *value,
                    bytes: bytes()?.to_vec(),
                }
            }
            _ => Captured::Nothing,
        };
    }
    let call = Box::new(Call {
        function,
        object: object_of(cookie.object()),
        begin_ns: record.begin,
        return_address: record.return_address,
        instruction: record.instruction,
        args: record.args,
        result: returned.then_some(record.result),
        captured,
    });
    Some(if returned {
        KernelEvent::Returned(call)
    } else {
        KernelEvent::Entered(call)
    })
}

/// Reads a text that the program passes in once more, from the process itself.
///
/// At the entry of a function a literal may not be paged in, and a probe must not wait for a page (mechanisms 2). The
/// process goes on meanwhile, but what it passes as a name stays where it is.
fn reread(record: &CallRecord<0>, capture: &jittrace_ebpf::Capture) -> Option<Captured> {
    let pointer = record.args.get(usize::from(capture.from))?;
    let address = pointer.checked_add(u64::from(capture.offset))?;
    if capture.read != read::TEXT || *pointer == 0 {
        return None;
    }
    let bytes = process_memory(record.head.task.own.tgid, address, CAPTURE_TEXT).ok()?;
    let length = bytes.iter().position(|byte| *byte == 0);
    Some(Captured::Text {
        text: text(prefix(&bytes, length.unwrap_or(bytes.len()) as u32)?),
        cut: length.is_none(),
    })
}

/// Up to `most` bytes of a process's memory; not over the end of a page where the next one does not exist.
fn process_memory(pid: u32, address: u64, most: usize) -> io::Result<Vec<u8>> {
    let pid = libc::pid_t::try_from(pid).map_err(io::Error::other)?;
    let to_page_end = 4096 - (address % 4096) as usize;
    let mut bytes = vec![0; most];
    let mut last = io::Error::from_raw_os_error(libc::EFAULT);
    for length in [most, most.min(to_page_end)] {
        let local = libc::iovec {
            iov_base: bytes.as_mut_ptr().cast(),
            iov_len: length,
        };
        let remote = libc::iovec {
            iov_base: address as *mut libc::c_void,
            iov_len: length,
        };
        // SAFETY: `local` is `length` bytes of `bytes`; the remote side is checked by the kernel.
        match unsafe { libc::process_vm_readv(pid, &raw const local, 1, &raw const remote, 1, 0) } {
            read @ 1.. => {
                bytes.truncate(usize::try_from(read).unwrap_or(0));
                return Ok(bytes);
            }
            0 => {}
            _ => last = io::Error::last_os_error(),
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_of<T: Copy>(record: &T) -> Vec<u8> {
        // SAFETY: records are plain integers without padding.
        unsafe {
            std::slice::from_raw_parts(std::ptr::from_ref(record).cast::<u8>(), size_of::<T>())
        }
        .to_vec()
    }

    fn file_record<const N: usize>(number: libc::c_long, paths: &[&str]) -> FileRecord<N> {
        let mut record = FileRecord {
            head: Head {
                kind: kind::FILE,
                ..Head::default()
            },
            begin: 1,
            result: -2,
            open_flags: 0,
            loading: 0,
            number: number as u32,
            directory: libc::AT_FDCWD,
            directory2: libc::AT_FDCWD,
            path_len: paths[0].len() as u32,
            path2_at: if paths.len() > 1 { N as u32 / 2 } else { 0 },
            path2_len: paths.get(1).map_or(0, |path| path.len() as u32),
            base_at: 0,
            base_len: 0,
            text: [b'#'; N],
        };
        for (i, path) in paths.iter().enumerate() {
            record.text[i * N / 2..i * N / 2 + path.len()].copy_from_slice(path.as_bytes());
        }
        record
    }

    fn decoded(bytes: &[u8]) -> Option<KernelEvent> {
        let decoded = Decoder::default()
            .decode(bytes, &|_| None)
            .unwrap()
            .unwrap();
        decoded.matters.then_some(decoded.observation.event)
    }

    #[test]
    fn paths_are_kept_by_pattern_and_candidates_of_the_loader_always() {
        let interesting = file_record::<192>(libc::SYS_openat, &["/usr/local/cuda/include/cuda.h"]);
        let Some(KernelEvent::File(file)) = decoded(&bytes_of(&interesting)) else {
            panic!("cuda.h is of interest")
        };
        assert_eq!(
            file.path,
            Ok(PathBuf::from("/usr/local/cuda/include/cuda.h"))
        );
        assert_eq!(file.outcome, Err(2));
        let mut other = file_record::<192>(libc::SYS_openat, &["/usr/lib/libz.so.1"]);
        assert!(decoded(&bytes_of(&other)).is_none());
        other.loading = 7;
        assert!(
            matches!(decoded(&bytes_of(&other)), Some(KernelEvent::File(file)) if file.loading == Some(7))
        );
        let renamed = file_record::<512>(
            libc::SYS_rename,
            &["/x/a.tmp", "/home/u/.triton/cache/k.cubin"],
        );
        let Some(KernelEvent::File(file)) = decoded(&bytes_of(&renamed)) else {
            panic!("into a cache")
        };
        assert_eq!(
            file.to,
            Some(Ok(PathBuf::from("/home/u/.triton/cache/k.cubin")))
        );
    }

    #[test]
    fn cut_records_are_refused_and_never_read_beyond() {
        let whole = bytes_of(&file_record::<192>(
            libc::SYS_openat,
            &["/usr/local/cuda/include/cuda.h"],
        ));
        for length in 0..size_of::<FileRecord<0>>() + 30 {
            assert!(
                Decoder::default()
                    .decode(&whole[..length], &|_| None)
                    .is_err(),
                "accepted {length} bytes"
            );
        }
        let mut lying = file_record::<192>(libc::SYS_openat, &["/a"]);
        lying.path_len = 10_000;
        assert!(
            Decoder::default()
                .decode(&bytes_of(&lying), &|_| None)
                .is_err()
        );
    }

    #[test]
    fn areas_of_texts() {
        let cases: &[(&[u8], &[&[u8]])] = &[
            (b"", &[]),
            (b"a\0", &[b"a"]),
            (b"a\0\0b\0", &[b"a", b"", b"b"]),
            (b"a\0b", &[b"a", b"b"]),
        ];
        for (area, texts) in cases {
            assert_eq!(ended_by_nul(area).collect::<Vec<_>>(), *texts, "{area:?}");
        }
        assert_eq!(
            directory(b"c\0b\0a\0", false, || None),
            Ok(PathBuf::from("/a/b/c"))
        );
        assert_eq!(directory(b"", false, || None), Ok(PathBuf::from("/")));
        assert_eq!(directory(b"c\0b\0", true, || None), Err(Missing::Cut));
    }

    #[test]
    fn only_listed_variables_leave() {
        assert!(captured_variable(b"CUDA_HOME=/opt/cuda").is_some());
        assert!(captured_variable(b"MY_SECRET=1").is_none());
        assert!(captured_variable(b"nonsense").is_none());
    }
}

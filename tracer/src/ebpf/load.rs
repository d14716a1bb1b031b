//! Loading the embedded kernel programs and attaching those that are attached once: fork, exec, exit, system calls.

use std::os::fd::{AsFd, OwnedFd};

use aya::{
    Ebpf, EbpfLoader, Pod,
    maps::{Array, HashMap as BpfHashMap, MapData},
    programs::{ProgramError, RawTracePoint, TracePoint, UProbe},
};
use jittrace_ebpf::{
    BORING_MAP, CONSTANTS, CallSpec, Constants, ENDING, FILE_RING_MAP, FOLLOWED_MAP, FileShape,
    RING_BYTES, RING_MAP, SHAPES_MAP, SPECS_MAP, report,
};

use super::{
    btf::Btf,
    error::SourceError,
    perf,
    shapes::{self, Call},
    tracefs::Tracefs,
    watched::Function,
};

/// The object that `ebpf/build.sh` built; `ebpf/object.lock` says from what.
static OBJECT: &[u8] = aya::include_bytes_aligned!("../../../ebpf/jittrace.bpf.o");

/// Smallest ring worth having, in bytes.
const SMALLEST_RING: u32 = 1 << 20;

/// Inode of the initial pid namespace (PROC_PID_INIT_INO).
const INITIAL_PID_NAMESPACE: u64 = 0xefff_fffc;

/// A shared type that both sides lay out alike, as aya wants to see it.
#[repr(transparent)]
#[derive(Clone, Copy)]
struct Shared<T>(T);

// SAFETY: #[repr(C)] structs of integers without padding, valid for any bit pattern.
unsafe impl Pod for Shared<Constants> {}
// SAFETY: as above.
unsafe impl Pod for Shared<CallSpec> {}
// SAFETY: as above.
unsafe impl Pod for Shared<FileShape> {}

/// The set of followed processes.
pub(crate) type Followed = BpfHashMap<MapData, u32, u32>;

/// Programs in the kernel. Dropping them detaches and unloads everything.
pub(crate) struct Loaded {
    pub(crate) ebpf: Ebpf,
    /// Whether probes can carry a cookie (5.15); otherwise each function has programs of its own.
    pub(crate) cookies: bool,
    /// Size of either ring in bytes.
    pub(crate) ring_bytes: u32,
    /// Whether tracefs is a private mount.
    pub(crate) private_tracefs: bool,
    /// Attached tracepoints.
    _tracepoints: Vec<OwnedFd>,
}

/// Loads everything that does not depend on a traced process, and attaches it. Nothing is told before a process is
/// followed.
pub(crate) fn load(without_cookies: bool) -> Result<Loaded, SourceError> {
    let constants = Shared(Btf::of_running_kernel()?.constants(own_pid_namespace()?)?);
    let (mut ebpf, ring_bytes) = load_object(&constants)?;
    let cookies = !without_cookies && aya::features().bpf_cookie();
    describe_calls(&mut ebpf)?;
    let tracefs = Tracefs::open().map_err(SourceError::Tracefs)?;
    let mut tracepoints = Vec::new();
    for (entry, exit, calls) in [
        ("exec_enter", "exec_exit", shapes::EXEC),
        ("file_enter", "file_exit", shapes::FILES),
    ] {
        for (program, moment) in [(entry, "sys_enter"), (exit, "sys_exit")] {
            attach_to_calls(
                &mut ebpf,
                &tracefs,
                program,
                moment,
                calls,
                &mut tracepoints,
            )?;
        }
    }
    for (program, tracepoint) in [
        ("process_exec", "sched_process_exec"),
        ("process_exit", "sched_process_exit"),
        // Last: a child that is followed has all the others already.
        ("process_fork", "sched_process_fork"),
    ] {
        let program: &mut RawTracePoint = of_kind(&mut ebpf, program)?;
        program.load().map_err(|error| {
            SourceError::refused(format!("loading the program for {tracepoint}"), &error)
        })?;
        program.attach(tracepoint).map_err(|error| {
            SourceError::refused(format!("attaching to tracepoint {tracepoint}"), &error)
        })?;
    }
    trim();
    Ok(Loaded {
        ebpf,
        cookies,
        ring_bytes,
        private_tracefs: tracefs.private,
        _tracepoints: tracepoints,
    })
}

/// Gives freed memory back to the system: reading the kernel's types takes tens of megabytes for a moment, and what
/// watches a server for days is not to keep them.
pub(super) fn trim() {
    #[cfg(target_env = "gnu")]
    // SAFETY: takes no pointers; glibc allows it at any time, in any thread.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Loads the object, with a smaller ring where the memory may not be locked (before 5.11 it counts against
/// RLIMIT_MEMLOCK, which need not be raisable).
fn load_object(constants: &Shared<Constants>) -> Result<(Ebpf, u32), SourceError> {
    let mut bytes = RING_BYTES;
    loop {
        let loaded = EbpfLoader::new()
            .override_global(CONSTANTS, constants, true)
            .map_max_entries(RING_MAP, bytes)
            .map_max_entries(FILE_RING_MAP, bytes)
            .load(OBJECT);
        match loaded {
            Ok(ebpf) => return Ok((ebpf, bytes)),
            Err(error) => {
                let refused = SourceError::refused("creating the BPF maps", &error);
                let may_be_size = matches!(refused.errno(), Some(libc::EPERM | libc::ENOMEM));
                if !may_be_size || bytes <= SMALLEST_RING {
                    return Err(refused);
                }
                bytes /= 2;
            }
        }
    }
}

/// Inode of this process's pid namespace; 0 when it is the initial one.
fn own_pid_namespace() -> Result<u32, SourceError> {
    use std::os::unix::fs::MetadataExt;
    let namespace = std::fs::metadata("/proc/self/ns/pid")
        .map_err(|error| SourceError::refused("looking at /proc/self/ns/pid", &error))?
        .ino();
    Ok(if namespace == INITIAL_PID_NAMESPACE {
        0
    } else {
        u32::try_from(namespace).unwrap_or(0)
    })
}

/// Fills the tables that drive the programs.
fn describe_calls(ebpf: &mut Ebpf) -> Result<(), SourceError> {
    let full = |error| SourceError::refused("filling the BPF tables", &error);
    let mut specs: Array<_, Shared<CallSpec>> =
        Array::try_from(map(ebpf, SPECS_MAP)?).map_err(full)?;
    for (index, function) in (0u32..).zip(Function::all()) {
        specs.set(index, Shared(function.spec()), 0).map_err(full)?;
    }
    let mut table: BpfHashMap<_, u32, Shared<FileShape>> =
        BpfHashMap::try_from(map(ebpf, SHAPES_MAP)?).map_err(full)?;
    for call in shapes::EXEC.iter().chain(shapes::FILES) {
        table
            .insert(call.number, Shared(call.shape), 0)
            .map_err(full)?;
    }
    let mut boring: BpfHashMap<_, [u8; ENDING], u32> =
        BpfHashMap::try_from(map(ebpf, BORING_MAP)?).map_err(full)?;
    for ending in shapes::BORING
        .iter()
        .filter_map(|name| shapes::ending(name))
    {
        boring.insert(ending, 1, 0).map_err(full)?;
    }
    Ok(())
}

fn map<'a>(ebpf: &'a mut Ebpf, name: &str) -> Result<&'a mut aya::maps::Map, SourceError> {
    ebpf.map_mut(name)
        .ok_or_else(|| SourceError::Object(format!("it has no map {name}")))
}

/// The map `name`, taken out for good.
pub(crate) fn take_map(ebpf: &mut Ebpf, name: &str) -> Result<aya::maps::Map, SourceError> {
    ebpf.take_map(name)
        .ok_or_else(|| SourceError::Object(format!("it has no map {name}")))
}

/// The set of followed processes.
pub(crate) fn followed(ebpf: &mut Ebpf) -> Result<Followed, SourceError> {
    Followed::try_from(take_map(ebpf, FOLLOWED_MAP)?)
        .map_err(|error| SourceError::refused("opening the set of followed processes", &error))
}

/// The program `name`, as the kind it should be.
fn of_kind<'a, P>(ebpf: &'a mut Ebpf, name: &str) -> Result<&'a mut P, SourceError>
where
    &'a mut P: TryFrom<&'a mut aya::programs::Program, Error = ProgramError>,
{
    ebpf.program_mut(name)
        .ok_or_else(|| SourceError::Object(format!("it has no program {name}")))?
        .try_into()
        .map_err(|_| SourceError::Object(format!("program {name} is of another kind")))
}

/// Attaches `program` to one moment of each call. A call that this kernel does not have (openat2 before 5.6) is left out.
fn attach_to_calls(
    ebpf: &mut Ebpf,
    tracefs: &Tracefs,
    program: &str,
    moment: &str,
    calls: &[Call],
    attached: &mut Vec<OwnedFd>,
) -> Result<(), SourceError> {
    let loaded: &mut TracePoint = of_kind(ebpf, program)?;
    loaded
        .load()
        .map_err(|error| SourceError::refused(format!("loading the program {program}"), &error))?;
    let descriptor = loaded
        .fd()
        .map_err(|error| SourceError::refused(format!("opening the program {program}"), &error))?;
    let mut none = None;
    let before = attached.len();
    for call in calls {
        let name = format!("{moment}_{}", call.name);
        let id = match tracefs.id("syscalls", &name) {
            Ok(id) => id,
            Err(error) => {
                none = Some(error);
                continue;
            }
        };
        let event = perf::attach_tracepoint(descriptor.as_fd(), id).map_err(|error| {
            SourceError::refused(format!("attaching to tracepoint syscalls:{name}"), &error)
        })?;
        attached.push(event);
    }
    match none {
        Some(error) if attached.len() == before => Err(SourceError::refused(
            format!("finding the tracepoints syscalls:{moment}_* (CONFIG_FTRACE_SYSCALLS)"),
            &error,
        )),
        _ => Ok(()),
    }
}

/// What a probe does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Probe {
    /// At the first instruction.
    Entry,
    /// At a `ret`.
    Ret,
    /// A return probe of the kernel's.
    Return,
}

impl Loaded {
    /// Has every entry of function `index` told: what the cookie says per object where there are cookies.
    pub(crate) fn tell_entries(&mut self, index: u16) -> Result<(), SourceError> {
        let full = |error| SourceError::refused("filling the BPF tables", &error);
        let mut specs: Array<_, Shared<CallSpec>> =
            Array::try_from(map(&mut self.ebpf, SPECS_MAP)?).map_err(full)?;
        let index = u32::from(index);
        let Shared(mut spec) = specs.get(&index, 0).map_err(full)?;
        spec.report |= report::ENTRY;
        specs.set(index, Shared(spec), 0).map_err(full)
    }

    /// The program for a probe of function `index`, loaded.
    pub(crate) fn call_program(
        &mut self,
        probe: Probe,
        index: u16,
    ) -> Result<&mut UProbe, SourceError> {
        let stem = match probe {
            Probe::Entry => "entry",
            Probe::Ret => "ret",
            Probe::Return => "return",
        };
        let name = if self.cookies {
            format!("call_{stem}")
        } else {
            format!("{stem}_{index}")
        };
        let program: &mut UProbe = of_kind(&mut self.ebpf, &name)?;
        match program.load() {
            Ok(()) | Err(ProgramError::AlreadyLoaded) => Ok(program),
            Err(error) => Err(SourceError::refused(
                format!("loading the program {name}"),
                &error,
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use aya::programs::{ProgramError, UProbe};

    use super::*;

    /// Instructions that the verifier may walk for one program: a few tens of nanoseconds each, before a command starts.
    const MOST_WALKED: u32 = 60_000;

    /// A count that depends on the kernel's release and the programs alone.
    #[test]
    fn the_verifier_is_soon_done_with_each_program() {
        let mut loaded = match load(false) {
            Ok(loaded) => loaded,
            Err(refused) => {
                println!("skipped: {refused}");
                return;
            }
        };
        for name in ["call_entry", "call_ret", "call_return"] {
            let program: &mut UProbe = of_kind(&mut loaded.ebpf, name).unwrap();
            match program.load() {
                Ok(()) | Err(ProgramError::AlreadyLoaded) => {}
                Err(error) => panic!("{name}: {error}"),
            }
        }
        let mut walked = Vec::new();
        for (name, program) in loaded.ebpf.programs() {
            if let Some(count) = program
                .info()
                .ok()
                .and_then(|i| i.verified_instruction_count())
            {
                walked.push((count, name.to_owned()));
            }
        }
        walked.sort();
        println!("{walked:#?}");
        assert!(
            walked.iter().all(|(count, _)| *count < MOST_WALKED),
            "{walked:#?}"
        );
    }
}

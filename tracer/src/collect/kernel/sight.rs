//! What must be asked of a process at the moment it is seen, because it may be gone a moment later: which program it
//! runs, in which objects the addresses of a call lie, what a module image holds, which Python code asked.

use std::{fs, path::PathBuf, thread::JoinHandle};

use crossbeam_channel::{Receiver, Sender, unbounded};
use jittrace_model::event::Image;

use super::{
    super::{
        procfs,
        replay::Mapped,
        stacks::{Shared, Stack},
    },
    address::{Addresses, Place},
    asked::Asked,
    image::{self, Memory},
};
use crate::ebpf::{Call, KernelEvent, Observation};

/// An observation together with what was asked at once.
#[derive(Debug)]
pub(crate) struct Sight {
    /// What the kernel told.
    pub(crate) observation: Observation,
    /// The program's file, for an exec whose process was still there.
    pub(crate) exe: Option<PathBuf>,
    /// Who called.
    pub(crate) caller: Option<Place>,
    /// Where the called function is, when the probe itself does not say.
    pub(crate) object: Option<Place>,
    /// What the module image is, for a call that hands one over.
    pub(crate) image: Option<Image>,
    /// What the process has mapped, at the first call that is seen of its program.
    pub(crate) mapped: Option<Vec<Mapped>>,
    /// The Python code that asked for it, as it was found a moment later.
    pub(crate) python: Option<Stack>,
}

/// Looks at every observation as it comes and passes it on. Ends with the source.
pub(super) fn look(
    observations: Receiver<Observation>,
    stacks: Option<Shared>,
) -> std::io::Result<(Receiver<Sight>, JoinHandle<()>)> {
    // Unbounded: while the collector is busy with a file, the kernel's ring must go on being emptied.
    let (to, sights) = unbounded();
    let thread = std::thread::Builder::new()
        .name("jittrace-sight".to_owned())
        .spawn(move || pass_on(&observations, &to, stacks.map(Asked::new)))?;
    Ok((sights, thread))
}

fn pass_on(observations: &Receiver<Observation>, to: &Sender<Sight>, mut asked: Option<Asked>) {
    let mut addresses = Addresses::default();
    for observation in observations {
        // First of all: each moment makes them less true.
        let python = asked.as_mut().and_then(|asked| asked.of(&observation));
        let sight = Sight {
            python,
            ..sight(observation, &mut addresses)
        };
        if to.send(sight).is_err() {
            return;
        }
    }
}

fn sight(observation: Observation, addresses: &mut Addresses) -> Sight {
    let pid = observation.task.own.tgid;
    let mut sight = Sight {
        observation,
        exe: None,
        caller: None,
        object: None,
        image: None,
        mapped: None,
        python: None,
    };
    if pid == 0 {
        return sight;
    }
    match &sight.observation.event {
        KernelEvent::Exec(_) => {
            addresses.forget(pid);
            sight.exe = fs::read_link(format!("/proc/{pid}/exe")).ok();
        }
        KernelEvent::Exit(_) => addresses.forget(pid),
        KernelEvent::Entered(call) | KernelEvent::Returned(call) => {
            if !addresses.knows(pid) {
                sight.mapped = procfs::mapped(pid).ok();
            }
            let (caller, object, image) = places(pid, call, addresses);
            (sight.caller, sight.object, sight.image) = (caller, object, image);
        }
        _ => {}
    }
    sight
}

fn places(
    pid: u32,
    call: &Call,
    addresses: &mut Addresses,
) -> (Option<Place>, Option<Place>, Option<Image>) {
    let caller = addresses.resolve(pid, call.return_address);
    let object = match call.object {
        Some(_) => None,
        None => addresses.resolve(pid, call.instruction),
    };
    let image = call
        .image()
        .and_then(|(address, copied)| image::facts(&Memory::of(pid, address, copied), address));
    (caller, object, image)
}

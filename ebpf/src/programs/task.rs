//! Who a task is, in the three pid views, and whether it is followed.

use aya_ebpf::{
    helpers::{bpf_get_current_pid_tgid, bpf_get_current_task, bpf_ktime_get_ns},
    macros::map,
    maps::HashMap,
};
use jittrace_ebpf::{Head, MAX_FOLLOWED, TaskId, TaskViews};

use crate::kernel::{constant, kernel};

/// Deepest nesting of pid namespaces (MAX_PID_NS_LEVEL).
const PID_NAMESPACE_LEVELS: u32 = 32;

/// Followed processes by their tgid in the tracer's view.
#[map]
static FOLLOWED: HashMap<u32, u32> = HashMap::with_max_entries(MAX_FOLLOWED, 0);

/// The running task, as the key of everything remembered between two probes.
#[inline(always)]
pub(crate) fn current_key() -> u64 {
    bpf_get_current_pid_tgid()
}

/// `struct task_struct` of the running task.
#[inline(always)]
pub(crate) fn current() -> u64 {
    // SAFETY: the helper has no precondition.
    unsafe { bpf_get_current_task() }
}

/// CLOCK_MONOTONIC, ns.
#[inline(always)]
pub(crate) fn now() -> u64 {
    // SAFETY: the helper has no precondition.
    unsafe { bpf_ktime_get_ns() }
}

/// The head of a record about the running task.
#[inline(always)]
pub(crate) fn head(kind: u32, flags: u32) -> Head {
    Head {
        kind,
        flags,
        time: now(),
        task: views(current()),
    }
}

/// The views of `task`, which may be another than the running one. Zeros for what cannot be read.
#[inline(never)]
pub(crate) fn fill_views(views: &mut TaskViews, task: u64) -> u32 {
    views.initial.tgid = kernel(task, constant!(task_tgid));
    views.initial.tid = kernel(task, constant!(task_pid));
    let leader: u64 = kernel(task, constant!(task_group_leader));
    let (own_tgid, inner_tgid) = numbers(leader);
    let (own_tid, inner_tid) = numbers(task);
    views.inner = TaskId {
        tgid: inner_tgid,
        tid: inner_tid,
    };
    views.own = if constant!(own_pid_namespace) == 0 {
        views.initial
    } else {
        TaskId {
            tgid: own_tgid,
            tid: own_tid,
        }
    };
    views.own.tgid
}

/// As [`fill_views`], by value.
#[inline(always)]
pub(crate) fn views(task: u64) -> TaskViews {
    let mut views = TaskViews::default();
    fill_views(&mut views, task);
    views
}

/// The number of one task in the tracer's pid namespace (0: not visible there) and in its own.
#[inline(always)]
fn numbers(task: u64) -> (u32, u32) {
    let pid: u64 = kernel(task, constant!(task_thread_pid));
    let level: u32 = kernel(pid, constant!(pid_level));
    let numbers = pid + constant!(pid_numbers);
    let inner = kernel(
        numbers,
        u64::from(level) * constant!(upid_size) + constant!(upid_nr),
    );
    if constant!(own_pid_namespace) == 0 {
        return (0, inner);
    }
    let mut own = 0;
    for i in 0..PID_NAMESPACE_LEVELS {
        if i > level {
            break;
        }
        let upid = u64::from(i) * constant!(upid_size);
        let namespace: u64 = kernel(numbers, upid + constant!(upid_ns));
        let inode: u32 = kernel(namespace, constant!(pid_namespace_inum));
        if u64::from(inode) == constant!(own_pid_namespace) {
            own = kernel(numbers, upid + constant!(upid_nr));
            break;
        }
    }
    (own, inner)
}

/// The running process in the tracer's view.
#[inline(always)]
fn current_process() -> u32 {
    if constant!(own_pid_namespace) == 0 {
        return (bpf_get_current_pid_tgid() >> 32) as u32;
    }
    let leader: u64 = kernel(current(), constant!(task_group_leader));
    numbers(leader).0
}

/// Whether the running process is followed.
#[inline(always)]
pub(crate) fn followed() -> bool {
    FOLLOWED.get_ptr(current_process()).is_some()
}

/// Follows the process `tgid` (tracer's view).
#[inline(always)]
pub(crate) fn follow(tgid: u32) -> Result<(), i32> {
    FOLLOWED.insert(tgid, 1, 0)
}

/// Stops following the running process. Only one caller is told that it did.
#[inline(always)]
pub(crate) fn unfollow_current() -> bool {
    FOLLOWED.remove(current_process()).is_ok()
}

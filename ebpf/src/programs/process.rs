//! Fork and exit: how the set of followed processes grows and shrinks.

use aya_ebpf::{macros::raw_tracepoint, programs::RawTracePointContext};
use jittrace_ebpf::{ExitRecord, ForkRecord, kind, lost};

use crate::{
    call, exec, file,
    kernel::{constant, kernel},
    ring::{count_lost, tell},
    task::{current_key, follow, followed, head, unfollow_current, views},
};

/// `SIGNAL_GROUP_EXIT` of include/linux/sched/signal.h: the process ends as a whole.
const SIGNAL_GROUP_EXIT: u32 = 4;

/// `sched_process_fork(parent, child)`: in the parent, before the child runs.
#[raw_tracepoint(tracepoint = "sched_process_fork")]
pub(crate) fn process_fork(ctx: RawTracePointContext) -> i32 {
    let child: u64 = ctx.arg(1);
    let tgid: u32 = kernel(child, constant!(task_tgid));
    let tid: u32 = kernel(child, constant!(task_pid));
    if tgid != tid || !followed() {
        return 0;
    }
    let child = views(child);
    if child.own.tgid != 0 && follow(child.own.tgid).is_err() {
        count_lost(lost::FOLLOW);
    }
    let head = head(kind::FORK, 0);
    tell(lost::FORK, |record: *mut ForkRecord| {
        // SAFETY: reserved memory of this type; written whole.
        unsafe { record.write(ForkRecord { head, child }) };
        true
    });
    0
}

/// `sched_process_exit(task)`: in the thread that ends. The last one tells the end of the process.
#[raw_tracepoint(tracepoint = "sched_process_exit")]
pub(crate) fn process_exit(_ctx: RawTracePointContext) -> i32 {
    if !followed() {
        return 0;
    }
    let key = current_key();
    call::forget(key);
    exec::forget(key);
    file::forget(key);
    let task = crate::task::current();
    let signal: u64 = kernel(task, constant!(task_signal));
    let live: u32 = kernel(signal, constant!(signal_live));
    // Two last threads may both find that none is left; removing the process from the set decides between them.
    if live != 0 || !unfollow_current() {
        return 0;
    }
    let flags: u32 = kernel(signal, constant!(signal_flags));
    let status: u32 = if flags & SIGNAL_GROUP_EXIT != 0 {
        kernel(signal, constant!(signal_group_exit_code))
    } else {
        let leader: u64 = kernel(task, constant!(task_group_leader));
        kernel(leader, constant!(task_exit_code))
    };
    let head = head(kind::EXIT, 0);
    tell(lost::EXIT, |record: *mut ExitRecord| {
        // SAFETY: reserved memory of this type; written whole.
        unsafe {
            record.write(ExitRecord {
                head,
                status,
                reserved: 0,
            })
        };
        true
    });
    0
}

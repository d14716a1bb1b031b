//! Calls of watched functions, by uprobes at their entry and at their `ret` instructions.
//!
//! No return probe of the kernel's is needed for that: a uretprobe swaps the return address, and then the dynamic
//! loader no longer finds its caller and C++ can no longer unwind (mechanisms 4d). At a `ret` the stack pointer is what
//! it was at the entry, so a frame is known by its thread and stack pointer, however calls nest. A uretprobe, which the
//! tracer uses for a short list of plain C functions, sees the pointer eight bytes higher.

use aya_ebpf::bindings::pt_regs;
use aya_ebpf::{
    EbpfContext,
    helpers::generated::{bpf_get_attach_cookie, bpf_probe_read_user},
    macros::{map, uprobe, uretprobe},
    maps::{Array, LruHashMap},
    programs::{ProbeContext, RetProbeContext},
};
use jittrace_ebpf::{
    CAPTURE_TEXT, CAPTURES, CallRecord, CallSpec, Capture, Cookie, MAX_SPECS, NO_FILTER, RESULT,
    TEXT_IMAGE, TEXT_SMALL, at, kind, lost, read, report,
};

use crate::{
    kernel::{user, user_text},
    ring::{count_lost, tell},
    task::{current_key, followed, head, now},
};

#[map]
static SPECS: Array<CallSpec> = Array::with_max_entries(MAX_SPECS, 0);

/// A call that has not returned.
#[repr(C)]
#[derive(Clone, Copy)]
struct Frame {
    thread: u64,
    stack: u64,
}

/// What is remembered of it.
#[repr(C)]
#[derive(Clone, Copy)]
struct Entered {
    begin: u64,
    return_address: u64,
    cookie: u64,
    /// `LOADING` of this thread before the call.
    outer: u64,
    args: [u64; 6],
}

#[map]
static ENTERED: LruHashMap<Frame, Entered> = LruHashMap::with_max_entries(8192, 0);

/// When the innermost watched call of the dynamic loader began, by thread.
#[map]
static LOADING: LruHashMap<u64, u64> = LruHashMap::with_max_entries(8192, 0);

/// When the watched dlopen that the thread is inside of began, 0 outside.
#[inline(always)]
pub(crate) fn loading(key: u64) -> u64 {
    // SAFETY: the entry belongs to this thread alone.
    unsafe { LOADING.get(key) }.copied().unwrap_or(0)
}

/// Forgets that a thread which ends or becomes another program was inside the loader.
#[inline(always)]
pub(crate) fn forget(key: u64) {
    let _ = LOADING.remove(key);
}

/// Entry of a watched function.
#[uprobe]
pub(crate) fn call_entry(ctx: ProbeContext) -> u32 {
    // SAFETY: the context is this program's own.
    let cookie = unsafe { bpf_get_attach_cookie(ctx.as_ptr()) };
    entered(ctx.regs, cookie)
}

/// A `ret` instruction of a watched function.
#[uprobe]
pub(crate) fn call_ret(ctx: ProbeContext) -> u32 {
    // SAFETY: the context is this program's own.
    let cookie = unsafe { bpf_get_attach_cookie(ctx.as_ptr()) };
    // SAFETY: as above; registers of the probed task.
    let stack = unsafe { (*ctx.regs).rsp };
    returned(ctx.regs, stack, cookie)
}

/// Return of a function on the allow-list.
#[uretprobe]
pub(crate) fn call_return(ctx: RetProbeContext) -> u32 {
    // SAFETY: the context is this program's own.
    let cookie = unsafe { bpf_get_attach_cookie(ctx.as_ptr()) };
    // SAFETY: as above; the return address has been popped.
    let stack = unsafe { (*ctx.regs).rsp } - 8;
    returned(ctx.regs, stack, cookie)
}

/// The spec of a cookie.
#[inline(always)]
fn spec(cookie: u64) -> Option<&'static CallSpec> {
    SPECS.get(u32::from(Cookie(cookie).spec()))
}

/// Programs for kernels without attach cookies: one set per watched function, its index in the name and in the code.
/// They differ in a constant only and call the same functions, so they cost a few instructions each, and none of them is
/// loaded where cookies exist.
macro_rules! slots {
    ($($slot:literal $entry:ident $ret:ident $return:ident)*) => {$(
        #[uprobe]
        pub(crate) fn $entry(ctx: ProbeContext) -> u32 {
            entered(ctx.regs, $slot)
        }

        #[uprobe]
        pub(crate) fn $ret(ctx: ProbeContext) -> u32 {
            // SAFETY: the context is this program's own.
            let stack = unsafe { (*ctx.regs).rsp };
            returned(ctx.regs, stack, $slot)
        }

        #[uretprobe]
        pub(crate) fn $return(ctx: RetProbeContext) -> u32 {
            // SAFETY: the context is this program's own; the return address has been popped.
            let stack = unsafe { (*ctx.regs).rsp } - 8;
            returned(ctx.regs, stack, $slot)
        }
    )*};
}

slots! {
    0 entry_0 ret_0 return_0
    1 entry_1 ret_1 return_1
    2 entry_2 ret_2 return_2
    3 entry_3 ret_3 return_3
    4 entry_4 ret_4 return_4
    5 entry_5 ret_5 return_5
    6 entry_6 ret_6 return_6
    7 entry_7 ret_7 return_7
    8 entry_8 ret_8 return_8
    9 entry_9 ret_9 return_9
    10 entry_10 ret_10 return_10
    11 entry_11 ret_11 return_11
    12 entry_12 ret_12 return_12
    13 entry_13 ret_13 return_13
    14 entry_14 ret_14 return_14
    15 entry_15 ret_15 return_15
    16 entry_16 ret_16 return_16
    17 entry_17 ret_17 return_17
    18 entry_18 ret_18 return_18
    19 entry_19 ret_19 return_19
    20 entry_20 ret_20 return_20
    21 entry_21 ret_21 return_21
    22 entry_22 ret_22 return_22
    23 entry_23 ret_23 return_23
    24 entry_24 ret_24 return_24
    25 entry_25 ret_25 return_25
    26 entry_26 ret_26 return_26
    27 entry_27 ret_27 return_27
    28 entry_28 ret_28 return_28
    29 entry_29 ret_29 return_29
    30 entry_30 ret_30 return_30
    31 entry_31 ret_31 return_31
    32 entry_32 ret_32 return_32
    33 entry_33 ret_33 return_33
    34 entry_34 ret_34 return_34
    35 entry_35 ret_35 return_35
    36 entry_36 ret_36 return_36
    37 entry_37 ret_37 return_37
    38 entry_38 ret_38 return_38
    39 entry_39 ret_39 return_39
    40 entry_40 ret_40 return_40
    41 entry_41 ret_41 return_41
    42 entry_42 ret_42 return_42
    43 entry_43 ret_43 return_43
    44 entry_44 ret_44 return_44
    45 entry_45 ret_45 return_45
    46 entry_46 ret_46 return_46
    47 entry_47 ret_47 return_47
}

#[inline(never)]
fn entered(regs: *mut pt_regs, cookie: u64) -> u32 {
    if !followed() {
        return 0;
    }
    let Some(spec) = spec(cookie) else { return 0 };
    // SAFETY: the registers of the probed task, read where the verifier allows.
    let (args, stack, instruction) = unsafe {
        let r = &*regs;
        ([r.rdi, r.rsi, r.rdx, r.rcx, r.r8, r.r9], r.rsp, r.rip)
    };
    if spec.filter_argument != NO_FILTER {
        let value = pick(&args, 0, spec.filter_argument as u8) as u32;
        if value < spec.filter_from || value > spec.filter_to {
            return 0;
        }
    }
    let key = current_key();
    let entered = Entered {
        begin: now(),
        return_address: user(stack).unwrap_or(0),
        cookie,
        outer: loading(key),
        args,
    };
    if spec.report & report::LOADER != 0 {
        let _ = LOADING.insert(key, entered.begin, 0);
    }
    if spec.report & report::RETURN != 0 {
        let _ = ENTERED.insert(Frame { thread: key, stack }, entered, 0);
    }
    if spec.report & report::ENTRY != 0 || Cookie(cookie).tells_entry() {
        told(
            &entered,
            spec,
            Moment {
                kind: kind::CALL_ENTRY,
                instruction,
                result: 0,
            },
        );
    }
    0
}

#[inline(never)]
fn returned(regs: *mut pt_regs, stack: u64, cookie: u64) -> u32 {
    if !followed() {
        return 0;
    }
    let key = current_key();
    let frame = Frame { thread: key, stack };
    // SAFETY: the entry belongs to this thread alone.
    let Some(&entered) = (unsafe { ENTERED.get(frame) }) else {
        // Calls whose entry was filtered end here too, and other functions that share the code behind a table.
        let alone = spec(cookie).is_some_and(|spec| {
            let by_spec = spec.report & report::ENTRY != 0 && spec.report & report::LOADER == 0;
            spec.filter_argument == NO_FILTER && !by_spec && !Cookie(cookie).tells_entry()
        });
        if alone {
            count_lost(lost::UNPAIRED);
        }
        return 0;
    };
    if entered.cookie != cookie {
        return 0;
    }
    let _ = ENTERED.remove(frame);
    let Some(spec) = spec(cookie) else { return 0 };
    if spec.report & report::LOADER != 0 {
        let _ = if entered.outer == 0 {
            LOADING.remove(key)
        } else {
            LOADING.insert(key, entered.outer, 0)
        };
    }
    // SAFETY: the registers of the probed task.
    let (result, instruction) = unsafe { ((*regs).rax, (*regs).rip) };
    told(
        &entered,
        spec,
        Moment {
            kind: kind::CALL_RETURN,
            instruction,
            result,
        },
    );
    0
}

/// Which half of a call is told.
struct Moment {
    kind: u32,
    instruction: u64,
    result: u64,
}

/// Writes the record, in the class of size that the spec asks for.
#[inline(always)]
fn told(entered: &Entered, spec: &CallSpec, moment: Moment) {
    match spec.text {
        0 => tell_call::<0>(entered, spec, &moment),
        TEXT_SMALL => tell_call::<{ TEXT_SMALL as usize }>(entered, spec, &moment),
        _ => tell_call::<{ TEXT_IMAGE as usize }>(entered, spec, &moment),
    }
}

#[inline(always)]
fn tell_call<const N: usize>(entered: &Entered, spec: &CallSpec, moment: &Moment) {
    let head = head(moment.kind, 0);
    tell(lost::CALL, |record: *mut CallRecord<N>| {
        // SAFETY: reserved memory of this type; the fields are written one by one, texts up to their length.
        unsafe {
            (*record).head = head;
            (*record).begin = entered.begin;
            (*record).cookie = entered.cookie;
            (*record).return_address = entered.return_address;
            (*record).instruction = moment.instruction;
            (*record).result = moment.result;
            (*record).args = entered.args;
            let text: *mut u8 = (&raw mut (*record).text).cast();
            // Written out, not looped: each capture then has its place in the record as a constant.
            macro_rules! capture {
                ($i:literal) => {
                    let mut got = Got {
                        value: 0,
                        status: 0,
                        length: 0,
                    };
                    // At the entry, what the function is going to write stays empty.
                    if moment.kind == kind::CALL_RETURN || spec.captures[$i].at == at::EITHER {
                        got = take::<N>(
                            &spec.captures[$i],
                            entered,
                            moment.result,
                            text,
                            $i * CAPTURE_TEXT,
                        );
                    }
                    (*record).values[$i] = got.value;
                    (*record).status[$i] = got.status;
                    (*record).text_len[$i] = got.length;
                };
            }
            const { assert!(CAPTURES == 4) };
            capture!(0);
            capture!(1);
            capture!(2);
            capture!(3);
        }
        true
    });
}

/// One captured value.
struct Got {
    value: u64,
    status: i32,
    length: u32,
}

/// Reads one capture. Texts go to `text + room_at`; the record has N bytes of text.
#[inline(always)]
unsafe fn take<const N: usize>(
    capture: &Capture,
    entered: &Entered,
    result: u64,
    text: *mut u8,
    room_at: usize,
) -> Got {
    let pointer = pick(&entered.args, result, capture.from);
    let address = pointer.wrapping_add(u64::from(capture.offset));
    let mut got = Got {
        value: 0,
        status: 0,
        length: 0,
    };
    match capture.read {
        read::INT32 => match user::<i32>(address) {
            Ok(value) => got.value = i64::from(value) as u64,
            Err(error) => got.status = error,
        },
        read::INT64 => match user::<u64>(address) {
            Ok(value) => got.value = value,
            Err(error) => got.status = error,
        },
        read::TEXT | read::TEXT_BEHIND if N >= TEXT_SMALL as usize => {
            let source = if capture.read == read::TEXT {
                Ok(address)
            } else {
                user::<u64>(address)
            };
            match source {
                Ok(source) => {
                    got.value = source;
                    // SAFETY: the class has room for one text per capture.
                    match user_text::<CAPTURE_TEXT>(unsafe { text.add(room_at) }, source) {
                        Ok(length) => got.length = length,
                        Err(error) => got.status = error,
                    }
                }
                Err(error) => got.status = error,
            }
        }
        read::BYTES if N >= TEXT_SMALL as usize => {
            got.value = address;
            // SAFETY: the class has room for one text per capture.
            let read = unsafe {
                bpf_probe_read_user(
                    text.add(room_at).cast(),
                    CAPTURE_TEXT as u32,
                    address as *const _,
                )
            };
            if read == 0 {
                got.length = CAPTURE_TEXT as u32
            } else {
                got.status = read as i32
            }
        }
        read::IMAGE if N >= TEXT_IMAGE as usize => {
            got.value = address;
            // The image may be shorter than the room, and end at the end of its mapping: then what lies before the
            // next page boundary is taken.
            // SAFETY: the class has room for TEXT_IMAGE bytes.
            let whole =
                unsafe { bpf_probe_read_user(text.cast(), TEXT_IMAGE, address as *const _) };
            if whole == 0 {
                got.length = TEXT_IMAGE;
            } else {
                let mut rest = 4096 - (address & 4095) as u32;
                if rest > TEXT_IMAGE {
                    rest = TEXT_IMAGE;
                }
                // SAFETY: as above.
                let part = unsafe { bpf_probe_read_user(text.cast(), rest, address as *const _) };
                if part == 0 {
                    got.length = rest
                } else {
                    got.status = part as i32
                }
            }
        }
        _ => {}
    }
    got
}

/// Argument `from`, or the result. A ladder, because a variable index into the stack is refused by the verifier.
#[inline(always)]
fn pick(args: &[u64; 6], result: u64, from: u8) -> u64 {
    match from {
        0 => args[0],
        1 => args[1],
        2 => args[2],
        3 => args[3],
        4 => args[4],
        5 => args[5],
        RESULT => result,
        _ => 0,
    }
}

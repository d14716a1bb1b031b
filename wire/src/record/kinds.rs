//! Every kind of record and its fields. To add a field, add a line with a new tag; to add a record, add a block with
//! a new number. Tags and numbers are never reused.

use super::Header;
use super::encode::{Encoded, Writer};
use super::fields::{Fields, Frame, List, Object, Put, Tag, Take, Text};

/// How a field is found among the fields of a record.
trait Find<'a>: Sized {
    fn find(tag: Tag, fields: Fields<'a>) -> Self;
}

fn first<'a, T: Take<'a>>(tag: Tag, mut fields: Fields<'a>) -> Option<T> {
    fields.find(|field| field.tag == tag).and_then(T::take)
}

impl<'a> Find<'a> for u64 {
    fn find(tag: Tag, fields: Fields<'a>) -> Self {
        first(tag, fields).unwrap_or_default()
    }
}

impl<'a> Find<'a> for Option<i64> {
    fn find(tag: Tag, fields: Fields<'a>) -> Self {
        first(tag, fields)
    }
}

impl<'a> Find<'a> for Text<'a> {
    fn find(tag: Tag, fields: Fields<'a>) -> Self {
        first(tag, fields).unwrap_or_default()
    }
}

impl<'a, T: Take<'a> + 'a> Find<'a> for List<'a, T> {
    fn find(tag: Tag, fields: Fields<'a>) -> Self {
        List::over(tag, fields.rest)
    }
}

macro_rules! records {
    ($( $(#[$doc:meta])* $number:literal $name:ident { $( $(#[$field_doc:meta])* $tag:literal $field:ident: $type:ty, )* } )*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Copy, PartialEq, Default)]
            pub struct $name<'a> {
                $( $(#[$field_doc])* pub $field: $type, )*
                #[doc(hidden)]
                pub _lives: core::marker::PhantomData<&'a ()>,
            }

            impl<'a> $name<'a> {
                /// The number of this kind of record.
                pub const KIND: u8 = $number;

                fn read(fields: Fields<'a>) -> Self {
                    $name {
                        $( $field: Find::find($tag, fields), )*
                        _lives: core::marker::PhantomData,
                    }
                }

                fn write(&self, writer: &mut Writer<'_>) {
                    $( self.$field.put($tag, writer); )*
                }
            }

            impl $name<'_> {
                $( tag_constant!($field, $tag); )*
            }
        )*

        /// One record, decoded; texts and lists borrow from the bytes it was read from.
        #[derive(Debug, Clone, Copy, PartialEq)]
        #[non_exhaustive]
        pub enum Record<'a> {
            $( $(#[$doc])* $name($name<'a>), )*
        }

        impl<'a> Record<'a> {
            pub(crate) fn read(kind: u8, fields: Fields<'a>) -> Option<Self> {
                match kind {
                    $( $number => Some(Record::$name($name::read(fields))), )*
                    _ => None,
                }
            }

            /// The number of this record's kind.
            #[must_use]
            pub fn kind(&self) -> u8 {
                match self { $( Record::$name(_) => $number, )* }
            }

            /// Writes the record into `buffer` and gives its bytes; what does not fit is cut and marked.
            pub fn encode<'b>(&self, header: Header, buffer: &'b mut [u8]) -> Encoded<'b> {
                let mut writer = Writer::new(buffer, self.kind());
                match self { $( Record::$name(body) => body.write(&mut writer), )* }
                writer.finish(header)
            }
        }
    };
}

macro_rules! tag_constant {
    ($field:ident, $tag:literal) => {
        #[doc = concat!("Tag of the field `", stringify!($field), "`, for writers that append it piece by piece.")]
        #[allow(non_upper_case_globals, reason = "named as the field it stands for")]
        pub const $field: Tag = $tag;
    };
}

records! {
    /// A process began: by exec (written by the shim's constructor) or by fork.
    1 Start {
        /// Parent process id at that moment.
        1 ppid: u64,
        /// Real user id.
        2 uid: u64,
        /// How many arguments there were; more than `argv` holds when the record is cut.
        3 argc: u64,
        /// For a fork child: sequence of the parent's [`Fork`] record; 0 for a start by exec.
        4 fork: u64,
        /// Inode of `/proc/self/ns/pid`. 0: the same as that of the process that made this one, or of the launcher
        /// (see [`crate::launcher_mount`]).
        5 pid_namespace: u64,
        /// Inode of `/proc/self/ns/mnt`. 0: the launcher's.
        6 mount_namespace: u64,
        /// `exec` or `fork`.
        7 how: Text<'a>,
        /// Target of `/proc/self/exe`.
        8 exe: Text<'a>,
        /// Current directory.
        9 cwd: Text<'a>,
        // 10 and 11 held what the collector knows by itself: $PLATFORM, libc's release.
        /// The arguments, credentials masked.
        12 argv: List<'a, Text<'a>>,
        /// `NAME=VALUE` of the variables in [`crate::environment`].
        13 env: List<'a, Text<'a>>,
        /// The path of the shim in this process.
        14 shim: Text<'a>,
        /// For a start by exec: the objects mapped when the process began, the program first. Those that did not fit
        /// follow in [`ObjectLoaded`] records.
        15 objects: List<'a, Object<'a>>,
    }

    /// The process ends by its own will. Absent after a signal, after exec and after a raw system call.
    2 Exit {
        /// The exit code as given, not cut to 8 bits.
        1 code: Option<i64>,
        /// `exit`, `_exit` or `destructor` (no code known).
        2 how: Text<'a>,
    }

    /// About to fork: the frames that led to a child's exec, which the child itself cannot take.
    3 Fork {
        /// `fork` or `vfork`.
        1 call: Text<'a>,
        /// Object that called.
        2 caller: Text<'a>,
        /// Offset of the return address in that object.
        3 offset: u64,
        /// Python stack, innermost first.
        4 python: List<'a, Frame<'a>>,
    }

    /// About to start a program. What follows: a [`Start`] of the same pid (or of the child), or an [`ExecFailed`].
    4 ExecAttempt {
        /// The libc function: `execve`, `posix_spawnp`, `system` …
        1 call: Text<'a>,
        /// The file asked for; the command line for `system` and `popen`.
        2 path: Text<'a>,
        /// How many arguments there were.
        3 argc: u64,
        /// In a fork child: the parent's [`Fork`] record, by sequence and pid; 0 otherwise.
        4 fork: u64,
        /// Parent process id of the process that makes the attempt.
        5 ppid: u64,
        /// What the child's environment does to following: `followed`, `restored` (our entry put back), `cleared`
        /// (nothing of ours is left), `dropped` (our entry taken out, see the [`NotFollowed`] of this attempt).
        6 environment: Text<'a>,
        /// Object that called.
        7 caller: Text<'a>,
        /// Offset of the return address in that object.
        8 offset: u64,
        /// File descriptor of `fexecve`, directory of `execveat`.
        9 descriptor: Option<i64>,
        /// Value of PATH that the call searches, for `execvp`, `execlp`, `execvpe`, `posix_spawnp`.
        10 search: Text<'a>,
        /// Python stack, innermost first.
        11 python: List<'a, Frame<'a>>,
        /// The arguments, credentials masked.
        12 argv: List<'a, Text<'a>>,
        /// The toolkit variables of the environment given to the child, where they differ from the caller's own.
        13 env: List<'a, Text<'a>>,
    }

    /// A start of a program failed.
    5 ExecFailed {
        /// Sequence of the [`ExecAttempt`], of the same pid.
        1 attempt: u64,
        /// `errno`.
        2 errno: u64,
        /// The file asked for.
        3 path: Text<'a>,
    }

    /// A call that starts and stays (`posix_spawn`, `system`, `popen`) came back.
    6 Spawned {
        /// Sequence of the [`ExecAttempt`], of the same pid.
        1 attempt: u64,
        /// The child, for `posix_spawn`.
        2 child: u64,
        /// What the call returned, for `system` the wait status.
        3 result: Option<i64>,
    }

    /// The parent knows that its child will not speak.
    7 NotFollowed {
        /// Sequence of the [`ExecAttempt`], of the same pid.
        1 attempt: u64,
        /// `cleared-environment`, `static`, `setuid`, `musl`, `32-bit`, `sanitizer`, `other-machine`.
        2 reason: Text<'a>,
        /// The file that was examined: the program, or the interpreter of a script.
        3 path: Text<'a>,
    }

    /// A library is asked for. Its outcome: the [`ObjectLoaded`] records of this request, then [`DlSettled`] or [`DlError`].
    8 DlRequest {
        /// `dlopen` or `dlmopen`.
        1 call: Text<'a>,
        /// The name as given; absent for `dlopen(NULL)`.
        2 name: Text<'a>,
        /// `RTLD_*`.
        3 flags: u64,
        /// Object that called: its RPATH or RUNPATH takes part in the search.
        4 caller: Text<'a>,
        /// Offset of the return address in that object.
        5 offset: u64,
        /// Namespace of `dlmopen`.
        6 namespace: Option<i64>,
        /// Python stack, innermost first.
        7 python: List<'a, Frame<'a>>,
    }

    /// The thread went on after a request: what the next hook showed about it.
    9 DlSettled {
        /// Sequence of the [`DlRequest`], of the same pid.
        1 request: u64,
        /// `handle` (the returned handle was used: see `path`) or `next` (something else was called).
        2 by: Text<'a>,
        /// `l_name` behind the handle.
        3 path: Text<'a>,
        /// Load address behind the handle.
        4 base: u64,
    }

    /// Objects that are now mapped.
    10 ObjectLoaded {
        /// Sequence of the [`DlRequest`] that this thread has open; 0 when none.
        1 request: u64,
        /// `start` (present when the process began), `init` (announced itself while it was initialised) or `count`
        /// (found when the loader's counters had moved).
        2 how: Text<'a>,
        /// The objects, in link-map order.
        3 objects: List<'a, Object<'a>>,
    }

    /// Objects that are no longer mapped.
    11 DlUnloaded {
        /// The objects as they were known.
        1 objects: List<'a, Object<'a>>,
    }

    /// `dlerror` gave a text to the program.
    12 DlError {
        /// Sequence of the [`DlRequest`] that this thread has open; 0 when the error is about something else.
        1 request: u64,
        /// The text.
        2 text: Text<'a>,
    }

    /// `dlclose` was called.
    13 DlClose {
        /// `l_name` behind the handle.
        1 path: Text<'a>,
        /// Load address behind the handle.
        2 base: u64,
        /// Object that called.
        3 caller: Text<'a>,
        /// Offset of the return address in that object.
        4 offset: u64,
    }

    /// A watched function was looked up.
    14 SymbolLookup {
        /// `dlsym`, `dlvsym`, `cuGetProcAddress`, `cuGetProcAddress_v2`.
        1 call: Text<'a>,
        /// The name asked for.
        2 name: Text<'a>,
        /// The object that defines it; absent when it was not found.
        3 object: Text<'a>,
        /// Number of the thunk handed out, from 1, which later [`Call`]s name; 0 when the real address was handed out.
        4 thunk: u64,
        /// CUDA version asked for, of `cuGetProcAddress`.
        5 version: u64,
        /// What `cuGetProcAddress` returned; 0 for `dlsym`.
        6 result: Option<i64>,
        /// Object that called.
        7 caller: Text<'a>,
        /// Offset of the return address in that object.
        8 offset: u64,
        /// Python stack, innermost first.
        9 python: List<'a, Frame<'a>>,
    }

    /// A watched function returned.
    15 Call {
        /// The function.
        1 function: Text<'a>,
        /// The object that defines it.
        2 object: Text<'a>,
        /// What it returned.
        3 result: Option<i64>,
        /// The value it gave through its pointer: a version, a count, major * 1000 + minor * 10 for pairs.
        4 value: Option<i64>,
        /// Nanoseconds between call and return.
        5 duration: u64,
        /// Object that called.
        6 caller: Text<'a>,
        /// Offset of the return address in that object.
        7 offset: u64,
        /// Number of the thunk it came through; 0 for a call bound by the loader.
        8 thunk: u64,
        /// First facts of a module image: `ptx version=8.7 target=sm_120a`, `cubin sm_90`, `fatbin sm_90 sm_120 ptx:sm_120`.
        9 image: Text<'a>,
        /// File name, option, requested attribute or the compiler's log, by function.
        10 detail: Text<'a>,
        /// Python stack, innermost first; empty when the call was made without the GIL (see the thunk's look-up).
        11 python: List<'a, Frame<'a>>,
        /// Load address of the object that defines it.
        12 base: u64,
    }

    /// Something said about toolkits went over a standard stream or came in through a pipe.
    16 Message {
        /// `stdout`, `stderr`, or `pipe` for what was read from another program.
        1 stream: Text<'a>,
        /// Name of the pattern, see [`crate::messages`].
        2 pattern: Text<'a>,
        /// The line, at most 300 bytes, credentials masked.
        3 text: Text<'a>,
        /// Descriptor.
        4 descriptor: Option<i64>,
    }

    /// A file of interest was touched.
    17 File {
        /// The libc function.
        1 call: Text<'a>,
        /// `open`, `create`, `stat`, `access`, `readlink`, `rename`, `unlink`, `mkdir`, `rmdir`, `opendir`, `lock`, `unlock`.
        2 op: Text<'a>,
        /// Why the path is of interest, see [`crate::paths::Interest`].
        3 interest: Text<'a>,
        /// The path as given.
        4 path: Text<'a>,
        /// Second path of a rename, target of a link.
        5 second: Text<'a>,
        /// `errno`; 0 when it succeeded.
        6 errno: u64,
        /// Open flags, lock operation.
        7 flags: u64,
        /// Nanoseconds that a lock was waited for.
        8 wait: u64,
        /// What the file said before it was overwritten.
        9 old_text: Text<'a>,
        /// Directory that a relative path starts from, when it is not the current one.
        10 directory: Text<'a>,
        /// Object that called.
        11 caller: Text<'a>,
        /// Offset of the return address in that object.
        12 offset: u64,
        /// Current directory of a relative path.
        13 cwd: Text<'a>,
        /// Python stack, innermost first, for opens of toolkit files.
        14 python: List<'a, Frame<'a>>,
    }

    /// Events of one kind that were counted only, beyond the rate guard.
    18 Count {
        /// What was counted.
        1 what: Text<'a>,
        /// How many in this process so far, the logged ones included.
        2 total: u64,
        /// How many of them were not logged.
        3 not_logged: u64,
    }

    /// The shim has something to say about itself.
    19 Note {
        /// The text.
        1 text: Text<'a>,
    }
}

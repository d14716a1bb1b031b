//! Where the members of kernel types lie, from the running kernel's BTF.
//!
//! The kernel programs read a handful of `task_struct` members and their kin. aya-ebpf has no CO-RE access (mechanisms
//! 1), so the offsets are looked up here and handed over as constants. Only structures and their members are read; the
//! format is that of Documentation/bpf/btf.rst.

use std::{collections::HashMap, fs, io, path::Path};

use jittrace_ebpf::Constants;

/// Where the kernel publishes its own types (CONFIG_DEBUG_INFO_BTF).
pub(crate) const KERNEL_BTF: &str = "/sys/kernel/btf/vmlinux";

/// Why an offset is not known.
#[derive(Debug, thiserror::Error)]
pub enum BtfError {
    /// The kernel publishes no BTF, or it cannot be read.
    #[error(
        "{KERNEL_BTF} cannot be read ({0}); the kernel must be built with CONFIG_DEBUG_INFO_BTF=y"
    )]
    Unreadable(#[source] io::Error),
    /// The bytes are not BTF as this version knows it.
    #[error("{KERNEL_BTF} is not BTF of version 1: {0}")]
    Malformed(&'static str),
    /// This kernel has no such member.
    #[error(
        "this kernel's BTF has no member `{member}` in `struct {structure}`; please report the kernel release"
    )]
    Missing {
        /// The structure asked for.
        structure: &'static str,
        /// The member asked for.
        member: &'static str,
    },
}

/// A structure or union: its members.
#[derive(Clone, Copy)]
struct Members {
    /// First byte of the first member, in the type section.
    start: usize,
    /// How many.
    count: usize,
    /// Offsets carry a bit-field size in their upper byte.
    bit_fields: bool,
}

/// The kernel's types.
pub(crate) struct Btf {
    types: Vec<u8>,
    strings: Vec<u8>,
    /// Structures and unions by type id.
    members: HashMap<u32, Members>,
    /// Structures by name.
    named: HashMap<Vec<u8>, u32>,
}

const KIND_STRUCT: u32 = 4;
const KIND_UNION: u32 = 5;

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_ne_bytes(bytes.try_into().ok()?))
}

impl Btf {
    /// Reads the running kernel's types.
    pub(crate) fn of_running_kernel() -> Result<Self, BtfError> {
        let bytes = fs::read(Path::new(KERNEL_BTF)).map_err(BtfError::Unreadable)?;
        Self::parse(&bytes).map_err(BtfError::Malformed)
    }

    fn parse(bytes: &[u8]) -> Result<Self, &'static str> {
        if bytes.get(..3) != Some(&[0x9f, 0xeb, 1]) {
            return Err("no BTF header in this byte order");
        }
        let header = |at| {
            u32_at(bytes, at)
                .map(|word| word as usize)
                .ok_or("the header is cut")
        };
        let start = header(4)?;
        let section = |offset: usize, length: usize| {
            let from = start.checked_add(offset)?;
            bytes
                .get(from..from.checked_add(length)?)
                .map(<[u8]>::to_vec)
        };
        let types = section(header(8)?, header(12)?).ok_or("the type section is cut")?;
        let strings = section(header(16)?, header(20)?).ok_or("the string section is cut")?;
        let mut btf = Self {
            types,
            strings,
            members: HashMap::new(),
            named: HashMap::new(),
        };
        btf.index().ok_or("a type is cut or of an unknown kind")?;
        Ok(btf)
    }

    /// One walk over all types; every type's length follows from its kind.
    fn index(&mut self) -> Option<()> {
        let mut at = 0;
        let mut id = 0;
        while at < self.types.len() {
            id += 1;
            let name = u32_at(&self.types, at)?;
            let info = u32_at(&self.types, at + 4)?;
            let (kind, count) = ((info >> 24) & 0x1f, (info & 0xffff) as usize);
            let body = at + 12;
            if kind == KIND_STRUCT || kind == KIND_UNION {
                let members = Members {
                    start: body,
                    count,
                    bit_fields: info >> 31 == 1,
                };
                self.members.insert(id, members);
                if kind == KIND_STRUCT && name != 0 {
                    let name = self.string(name)?.to_vec();
                    self.named.entry(name).or_insert(id);
                }
            }
            at = body
                + match kind {
                    // int, variable, declaration tag
                    1 | 14 | 17 => 4,
                    // array
                    3 => 12,
                    KIND_STRUCT | KIND_UNION => 12 * count,
                    // enum, function prototype
                    6 | 13 => 8 * count,
                    // data section, enum64
                    15 | 19 => 12 * count,
                    // pointer, forward, typedef, volatile, const, restrict, function, float, type tag
                    2 | 7..=12 | 16 | 18 => 0,
                    _ => return None,
                };
        }
        Some(())
    }

    fn string(&self, at: u32) -> Option<&[u8]> {
        self.strings
            .get(at as usize..)?
            .split(|byte| *byte == 0)
            .next()
    }

    /// Offset of `member` in `struct structure`, in bytes; members of anonymous structures and unions inside it too.
    pub(crate) fn offset(
        &self,
        structure: &'static str,
        member: &'static str,
    ) -> Result<u32, BtfError> {
        self.named
            .get(structure.as_bytes())
            .and_then(|id| self.member(*id, member.as_bytes(), 0))
            .map(|bits| bits / 8)
            .ok_or(BtfError::Missing { structure, member })
    }

    /// Offset in bits.
    fn member(&self, id: u32, wanted: &[u8], depth: u32) -> Option<u32> {
        let members = self.members.get(&id)?;
        for i in 0..members.count {
            let at = members.start + 12 * i;
            let name = u32_at(&self.types, at)?;
            let kind = u32_at(&self.types, at + 4)?;
            let raw = u32_at(&self.types, at + 8)?;
            let offset = if members.bit_fields {
                raw & 0x00ff_ffff
            } else {
                raw
            };
            if name == 0 {
                // Anonymous nesting is shallow; the bound only guards against a malformed cycle.
                if depth < 8
                    && let Some(inner) = self.member(kind, wanted, depth + 1)
                {
                    return Some(offset + inner);
                }
            } else if self.string(name)? == wanted {
                return Some(offset);
            }
        }
        None
    }

    /// The size of `struct structure`, in bytes.
    fn size(&self, structure: &'static str) -> Result<u32, BtfError> {
        self.named
            .get(structure.as_bytes())
            .and_then(|id| self.members.get(id))
            .and_then(|members| u32_at(&self.types, members.start - 4))
            .ok_or(BtfError::Missing {
                structure,
                member: "(size)",
            })
    }

    /// All that the kernel programs want to know.
    pub(crate) fn constants(&self, own_pid_namespace: u32) -> Result<Constants, BtfError> {
        Ok(Constants {
            own_pid_namespace,
            task_pid: self.offset("task_struct", "pid")?,
            task_tgid: self.offset("task_struct", "tgid")?,
            task_thread_pid: self.offset("task_struct", "thread_pid")?,
            task_group_leader: self.offset("task_struct", "group_leader")?,
            task_real_parent: self.offset("task_struct", "real_parent")?,
            task_signal: self.offset("task_struct", "signal")?,
            task_mm: self.offset("task_struct", "mm")?,
            task_fs: self.offset("task_struct", "fs")?,
            task_files: self.offset("task_struct", "files")?,
            files_fdt: self.offset("files_struct", "fdt")?,
            fdtable_fd: self.offset("fdtable", "fd")?,
            fdtable_max: self.offset("fdtable", "max_fds")?,
            file_path: self.offset("file", "f_path")?,
            task_exit_code: self.offset("task_struct", "exit_code")?,
            pid_level: self.offset("pid", "level")?,
            pid_numbers: self.offset("pid", "numbers")?,
            upid_size: self.size("upid")?,
            upid_nr: self.offset("upid", "nr")?,
            upid_ns: self.offset("upid", "ns")?,
            pid_namespace_inum: self.offset("pid_namespace", "ns")?
                + self.offset("ns_common", "inum")?,
            signal_live: self.offset("signal_struct", "live")?,
            signal_flags: self.offset("signal_struct", "flags")?,
            signal_group_exit_code: self.offset("signal_struct", "group_exit_code")?,
            mm_arg_start: self.offset("mm_struct", "arg_start")?,
            mm_arg_end: self.offset("mm_struct", "arg_end")?,
            mm_env_end: self.offset("mm_struct", "env_end")?,
            fs_pwd: self.offset("fs_struct", "pwd")?,
            path_mnt: self.offset("path", "mnt")?,
            path_dentry: self.offset("path", "dentry")?,
            dentry_parent: self.offset("dentry", "d_parent")?,
            dentry_name: self.offset("dentry", "d_name")? + self.offset("qstr", "name")?,
            vfsmount_root: self.offset("vfsmount", "mnt_root")?,
            mount_mnt: self.offset("mount", "mnt")?,
            mount_parent: self.offset("mount", "mnt_parent")?,
            mount_mountpoint: self.offset("mount", "mnt_mountpoint")?,
            bprm_filename: self.offset("linux_binprm", "filename")?,
            bprm_file: self.offset("linux_binprm", "file")?,
            file_inode: self.offset("file", "f_inode")?,
            inode_ino: self.offset("inode", "i_ino")?,
            inode_sb: self.offset("inode", "i_sb")?,
            super_block_dev: self.offset("super_block", "s_dev")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A BTF of one string section and one type section.
    fn image(types: &[u32], strings: &[u8]) -> Vec<u8> {
        let types: Vec<u8> = types.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let mut bytes = vec![0x9f, 0xeb, 1, 0];
        for word in [
            24,
            0,
            types.len() as u32,
            types.len() as u32,
            strings.len() as u32,
        ] {
            bytes.extend(word.to_ne_bytes());
        }
        bytes.extend(types);
        bytes.extend(strings);
        bytes
    }

    /// struct outer { int a; union { int b; struct inner { int c; } ; } } with outer's union anonymous at 8.
    fn nested() -> Vec<u8> {
        let strings = b"\0int\0outer\0a\0b\0c\0";
        let types = [
            // 1: int
            1,
            1 << 24,
            4,
            32, //
            // 2: struct { c at 4 } (anonymous)
            0,
            4 << 24 | 1,
            8,
            15,
            1,
            32, //
            // 3: union { b at 0; struct 2 at 0 } (anonymous)
            0,
            5 << 24 | 2,
            8,
            13,
            1,
            0,
            0,
            2,
            0, //
            // 4: struct outer { a at 0; union 3 at 8 }
            5,
            4 << 24 | 2,
            16,
            11,
            1,
            0,
            0,
            3,
            64,
        ];
        image(&types, strings)
    }

    #[test]
    fn members_of_anonymous_members_are_found() {
        let btf = Btf::parse(&nested()).unwrap();
        assert_eq!(btf.offset("outer", "a").unwrap(), 0);
        assert_eq!(btf.offset("outer", "b").unwrap(), 8);
        assert_eq!(btf.offset("outer", "c").unwrap(), 12);
        assert_eq!(btf.size("outer").unwrap(), 16);
        assert!(matches!(
            btf.offset("outer", "d"),
            Err(BtfError::Missing { .. })
        ));
    }

    #[test]
    fn cut_or_foreign_bytes_are_refused() {
        let whole = nested();
        for length in 0..whole.len() {
            assert!(
                Btf::parse(&whole[..length]).is_err(),
                "accepted {length} of {} bytes",
                whole.len()
            );
        }
        assert!(Btf::parse(b"\x7fELF").is_err());
    }
}

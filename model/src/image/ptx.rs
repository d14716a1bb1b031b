//! PTX text: its ISA version, target and writer, from the first lines.

use crate::toolkit::{Arch, Version, version_in_tool_string};
use serde::{Deserialize, Serialize};

/// How much of a PTX text is looked at for its header.
const HEADER: usize = 64 << 10;

/// What the header of a PTX text says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ptx {
    /// `.version`: the PTX ISA.
    pub isa: Version,
    /// `.target`: the virtual architecture, which PTX spells `sm_…`. `None` if the text breaks off before it.
    pub target: Option<Arch>,
    /// The release of the NVIDIA compiler that signed it in a comment; LLVM's back end does not.
    pub compiler: Option<Version>,
}

/// Reads the header of a PTX text (a file, or the image handed to `cuModuleLoadData`, NUL-terminated or not).
///
/// `None` if no `.version` comes before the first other directive.
#[must_use]
pub fn read(bytes: &[u8]) -> Option<Ptx> {
    let head = bytes.get(..bytes.len().min(HEADER))?;
    let head = head.split(|byte| *byte == 0).next()?;
    let mut compiler = None;
    let mut isa = None;
    let mut in_comment = false;
    for line in head.split(|byte| *byte == b'\n') {
        let line = std::str::from_utf8(line).ok()?.trim();
        if compiler.is_none() {
            compiler = version_in_tool_string(line);
        }
        if in_comment || line.starts_with("/*") {
            in_comment = !line.contains("*/");
            continue;
        }
        if line.is_empty() || line.starts_with("//") {
            continue;
        }
        match (
            isa,
            line.strip_prefix(".version"),
            line.strip_prefix(".target"),
        ) {
            (None, Some(version), _) => isa = Some(Version::parse(version)?),
            (Some(isa), _, Some(target)) => {
                let name = target.split([',', '/']).next().unwrap_or(target);
                let target = Arch::parse(name).map(|arch| Arch {
                    is_virtual: true,
                    ..arch
                });
                return Some(Ptx {
                    isa,
                    target,
                    compiler,
                });
            }
            (None, None, _) => return None,
            (Some(_), ..) => break,
        }
    }
    isa.map(|isa| Ptx {
        isa,
        target: None,
        compiler,
    })
}

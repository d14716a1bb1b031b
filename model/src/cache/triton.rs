//! Triton's cache: the JSON beside each kernel.

use crate::toolkit::{Arch, Suffix, Version};
use serde::{Deserialize, Serialize};

/// What `<key>/<kernel>.json` says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kernel {
    /// The kernel's name.
    pub name: String,
    /// The GPU that it was compiled for. Triton adds `a` from 9.0 on when it runs ptxas; the JSON does not say so.
    pub arch: Option<Arch>,
    /// Triton's version, in releases that write it.
    pub triton_version: Option<String>,
    /// The PTX ISA that was asked for; `None` where ptxas decided it.
    pub ptx_isa: Option<Version>,
    /// libdevice and other libraries that were linked in, by path.
    pub extern_libraries: Vec<String>,
}

/// Reads the text of a kernel's JSON; `None` if it is no such file (a group's JSON, for one).
#[must_use]
pub fn read(json: &str) -> Option<Kernel> {
    let json: serde_json::Value = serde_json::from_str(json).ok()?;
    let target = json.get("target")?;
    let number = target
        .get("arch")
        .and_then(serde_json::Value::as_u64)
        .and_then(|number| u32::try_from(number).ok());
    let isa = json
        .get("ptx_version")
        .and_then(serde_json::Value::as_u64)
        .and_then(|isa| u32::try_from(isa).ok());
    let libraries = json
        .get("extern_libs")
        .and_then(serde_json::Value::as_array);
    Some(Kernel {
        name: json
            .get("name")
            .and_then(serde_json::Value::as_str)
            .unwrap_or_default()
            .to_owned(),
        arch: number
            .filter(|number| (20..1000).contains(number))
            .map(|number| Arch::real(number, Suffix::None)),
        triton_version: json
            .get("triton_version")
            .and_then(serde_json::Value::as_str)
            .map(str::to_owned),
        ptx_isa: isa.map(|isa| Version::release(isa / 10, isa % 10)),
        extern_libraries: libraries
            .into_iter()
            .flatten()
            .filter_map(|pair| Some(pair.get(1)?.as_str()?.to_owned()))
            .collect(),
    })
}

/// The files of a kernel, from the text of a `__grp__<kernel>.json`.
#[must_use]
pub fn read_group(json: &str) -> Vec<String> {
    let json: Option<serde_json::Value> = serde_json::from_str(json).ok();
    let children = json
        .as_ref()
        .and_then(|json| json.get("child_paths"))
        .and_then(serde_json::Value::as_object);
    children
        .into_iter()
        .flatten()
        .filter_map(|(_, path)| Some(path.as_str()?.to_owned()))
        .collect()
}

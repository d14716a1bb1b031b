//! Why a compile ran again: ninja and make compare the times of files. A source that is newer than what was made of it
//! is compiled anew, whether its text has changed or a package manager, a checkout or a layer of an image has only
//! written it again.

use super::{Purpose, Tool, ToolCommand, absolute};

/// What the collector's note is about that tells which source is newer than what was made of it.
pub const REBUILT_SINCE: &str = "rebuilt-since";

/// What a compile makes, and of what, as absolute paths: its main output and its sources. `None` for what is no compile
/// of sources, and for one that names no output.
#[must_use]
pub fn made_of(command: &ToolCommand, cwd: &str) -> Option<(String, Vec<String>)> {
    let compiles = matches!(command.tool, Tool::Nvcc | Tool::HostCompiler)
        && matches!(command.purpose, Purpose::Compile | Purpose::Build);
    let output = command.outputs.first().filter(|_| compiles)?;
    let sources: Vec<String> = command
        .sources
        .iter()
        .filter(|source| is_source(source))
        .map(|source| absolute(cwd, source))
        .collect();
    (!sources.is_empty()).then(|| (absolute(cwd, output), sources))
}

/// Whether a name is that of a source, and not of an object or a library.
fn is_source(name: &str) -> bool {
    ["cu", "cpp", "cc", "cxx", "c"]
        .iter()
        .any(|end| name.rsplit_once('.').is_some_and(|(_, e)| e == *end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_compile_makes_and_of_what() {
        for (line, made) in [
            (
                "/t/bin/nvcc -gencode=arch=compute_90,code=sm_90 -c ../csrc/page.cu -o page.cuda.o",
                Some(("/c/page.cuda.o", vec!["/c/../csrc/page.cu"])),
            ),
            (
                "c++ -MMD -c /s/bind.cpp -o /c/bind.o",
                Some(("/c/bind.o", vec!["/s/bind.cpp"])),
            ),
            ("c++ page.cuda.o bind.o -shared -o page.so", None),
            ("nvcc --version", None),
            ("nvcc -c x.cu", None),
            ("ptxas -o k.cubin k.ptx", None),
        ] {
            let words: Vec<&str> = line.split(' ').collect();
            let found = made_of(&super::super::parse(&words), "/c");
            let found = found
                .as_ref()
                .map(|(o, s)| (o.as_str(), s.iter().map(String::as_str).collect::<Vec<_>>()));
            assert_eq!(found, made, "{line}");
        }
    }
}

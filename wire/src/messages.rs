//! What tools and programs say about toolkits. The line is what people paste; verdicts quote it.

/// Longest piece of a line that is kept, in bytes.
pub const MAX_MESSAGE: usize = 300;

/// A sentence to recognise: all `parts` in one line, in this order. Letter case matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pattern {
    /// Name in the log, kebab-case.
    pub name: &'static str,
    /// Pieces of the line, in order.
    pub parts: &'static [&'static str],
}

const fn says(name: &'static str, parts: &'static [&'static str]) -> Pattern {
    Pattern { name, parts }
}

/// The table (facts: resolution.md 3, real-stack.md 1–4); the first match names the line.
#[rustfmt::skip]
pub const PATTERNS: &[Pattern] = &[
    says("unsupported-gpu-architecture", &["Unsupported gpu architecture"]),
    says("value-not-defined-for-option", &["Value '", "' is not defined"]),
    says("ptx-version-unsupported", &["Unsupported .version"]),
    says("ptx-version-unsupported", &["unsupported PTX version"]),
    says("ptx-version-unsupported", &["the provided PTX was compiled with an unsupported toolchain"]),
    says("objects-newer-than-linker", &["newer than toolkit"]),
    says("tool-killed", &["raised SIG"]),
    says("tool-killed", &["died due to signal "]),
    says("tool-killed", &["internal compiler error: Killed"]),
    says("tool-killed", &["died with <Signals.SIG"]),
    says("tool-killed", &["egmentation fault"]),
    says("host-headers-clash", &["exception specification is incompatible with that of previous function"]),
    says("arch-list-unset", &["arch_list[-1] +="]),
    says("arch-unknown-to-torch", &["Unknown CUDA arch ("]),
    says("nvcc-fatal", &["nvcc fatal"]),
    says("ptxas-fatal", &["ptxas fatal"]),
    says("ptxas-error", &["ptxas ", "error"]),
    says("tool-fatal", &["fatal   :"]),
    says("requires-cuda", &["requires CUDA"]),
    says("requires-cuda", &["only supported on CUDA ", " and above"]),
    says("requires-cuda", &["CUDA ", " or newer is required"]),
    says("requires-nvcc", &["NVCC version should be"]),
    says("requires-gpus", &["GPUs with sm"]),
    says("no-supported-architectures", &["No supported CUDA architectures"]),
    says("device-capability", &["Failed to get device capability"]),
    says("cannot-open-shared-object", &["cannot open shared object file"]),
    says("undefined-symbol", &["undefined symbol"]),
    says("symbol-version-missing", &["version `", "' not found"]),
    says("library-unusable", &[": file too short"]),
    says("library-unusable", &[": invalid ELF header"]),
    says("library-unusable", &[": wrong ELF class"]),
    says("library-unusable", &[": failed to map segment from shared object"]),
    says("library-unusable", &[": cannot enable executable stack"]),
    says("library-unusable", &[": cannot allocate memory in static TLS block"]),
    says("no-kernel-image", &["no kernel image is available"]),
    says("no-kernel-image", &["CUDA capability sm_", "is not compatible with the current"]),
    says("no-kernel-image", &["supports CUDA capabilities sm_"]),
    says("nvrtc-arch", &["invalid value for --gpu-architecture"]),
    says("libdevice-missing", &["libdevice not found"]),
    says("libdevice-missing", &["find libdevice directory"]),
    says("library-not-loadable", &["nable to load any of {lib"]),
    says("library-not-loadable", &["Failure finding \"lib"]),
    says("driver-insufficient", &["driver version is insufficient"]),
    says("driver-too-old", &["NVIDIA driver on your system is too old"]),
    says("no-driver", &["Found no NVIDIA driver"]),
    says("driver-mismatch", &["system has unsupported display driver / cuda driver combination"]),
    says("compat-unsupported", &["forward compatibility was attempted on non supported HW"]),
    says("package-binary-missing", &["CUDA binary not found at "]),
    says("driver-not-ready", &["system not yet initialized"]),
    says("mps-unavailable", &["MPS client failed to connect"]),
    says("mps-unavailable", &["MPS server is not ready"]),
    says("nvml-driver-mismatch", &["river/library version mismatch"]),
    says("cuda-mismatch", &["detected CUDA version", "mismatches"]),
    says("cuda-mismatch", &["nstalled CUDA version ", "does not match the version torch was compiled with"]),
    says("cuda-mismatch", &["ompiled with a version of Cuda that does not match"]),
    says("headers-incompatible", &["CUDA compiler", "CUDA toolkit headers", "incompatible"]),
    says("unsupported-host-compiler", &["unsupported GNU version"]),
    says("unsupported-host-compiler", &["unsupported clang version"]),
    says("nvcc-not-found", &["Could not find nvcc"]),
    says("nvcc-not-found", &["nvcc: not found"]),
    says("nvcc-not-found", &["nvcc: No such file"]),
    says("nvcc-not-found", &["ailed to find nvcc"]),
    says("nvcc-not-found", &["nvcc was not found"]),
    says("nvcc-not-found", &["No CMAKE_CUDA_COMPILER could be found"]),
    says("cuda-home-missing", &["CUDA_HOME environment variable is not set"]),
    says("cuda-home-missing", &["CUDA_HOME does not exist"]),
    says("cuda-home-missing", &["No CUDA runtime is found"]),
    says("command-not-found", &[": not found"]),
    says("command-not-found", &[": command not found"]),
    says("program-not-found", &["No such file or directory: '"]),
    says("library-not-found-by-ld", &["cannot find -l"]),
    says("cudart-multiple", &["ultiple libcudart"]),
    says("cudnn-mismatch", &["CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH"]),
    says("cudnn-mismatch", &["cuDNN version incompatibility"]),
    says("cudnn-mismatch", &["oaded runtime CuDNN library: ", "compiled with"]),
    says("not-writable", &["ermission denied"]),
    says("not-writable", &["Read-only file system"]),
    says("not-writable", &["No space left on device"]),
    says("program-not-found", &["cannot execute '", ": No such file or directory"]),
    says("header-not-found", &["fatal error: ", ": No such file or directory"]),
    says("header-not-found", &["could not open source file", ".h\""]),
    says("nvrtc-builtins", &["nvrtc", "failed to open", "builtins"]),
    says("nvrtc-error", &["NVRTC_ERROR"]),
    says("libcuda-not-found", &["libcuda.so cannot found"]),
    says("ptxas-codegen", &["Internal Triton PTX codegen error"]),
    says("ptxas-too-old", &["ptxas does not support CC"]),
    says("cuda-error", &["CUDA error:"]),
    says("cuda-error", &["CUDA_ERROR_"]),
    says("cuda-error", &["Triton Error [CUDA]:"]),
    says("no-device", &["no CUDA-capable device is detected"]),
    says("no-device", &["No CUDA GPUs are available"]),
    says("compiler-missing", &["ailed to find C compiler"]),
    says("ninja-missing", &["Ninja is required"]),
    says("ninja-missing", &["'ninja'", "No such file"]),
    says("toolkit-release", &["Cuda compilation tools, release"]),
];

/// A line that one of the patterns fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found<'a> {
    /// The pattern's name.
    pub pattern: &'static str,
    /// The line without its end, at most [`MAX_MESSAGE`] bytes, cut around the pattern when it is longer.
    pub line: &'a [u8],
}

/// The first line from `text` that one of the patterns fits, and what follows it.
#[must_use]
pub fn find(text: &[u8]) -> Option<(Found<'_>, &[u8])> {
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest
            .iter()
            .position(|byte| *byte == b'\n' || *byte == b'\r')
            .unwrap_or(rest.len());
        let (line, after) = rest.split_at(end);
        let after = after.get(1..).unwrap_or_default();
        if let Some((pattern, at)) = match_line(line) {
            let start = if line.len() > MAX_MESSAGE {
                at.saturating_sub(120).min(line.len() - MAX_MESSAGE)
            } else {
                0
            };
            let line = &line[start..line.len().min(start + MAX_MESSAGE)];
            return Some((Found { pattern, line }, after));
        }
        rest = after;
    }
    None
}

/// Name of the first pattern of the table that fits, and where its first part lies.
///
/// One pass over the line: which patterns may begin here is told by the next three bytes.
fn match_line(line: &[u8]) -> Option<(&'static str, usize)> {
    let mut best: Option<(usize, usize)> = None;
    for (at, three) in line.windows(3).enumerate() {
        let mut candidates = BEGINNINGS[0][usize::from(three[0])]
            & BEGINNINGS[1][usize::from(three[1])]
            & BEGINNINGS[2][usize::from(three[2])];
        while candidates != 0 {
            let number = candidates.trailing_zeros() as usize;
            candidates &= candidates - 1;
            if best.is_none_or(|(known, _)| number < known)
                && PATTERNS
                    .get(number)
                    .is_some_and(|pattern| fits(pattern, line.get(at..).unwrap_or_default()))
            {
                best = Some((number, at));
            }
        }
    }
    best.and_then(|(number, at)| Some((PATTERNS.get(number)?.name, at)))
}

/// Bit `n` of `BEGINNINGS[i][b]` says that byte `i` of pattern `n` is `b`.
const BEGINNINGS: [[u128; 256]; 3] = {
    assert!(PATTERNS.len() <= 128, "one bit a pattern: widen BEGINNINGS");
    let mut table = [[0; 256]; 3];
    let mut number = 0;
    while number < PATTERNS.len() {
        let first = PATTERNS[number].parts[0].as_bytes();
        let mut at = 0;
        while at < 3 {
            table[at][first[at] as usize] |= 1 << number;
            at += 1;
        }
        number += 1;
    }
    table
};

/// Whether `text` begins with the first part and has the others after it, in order.
fn fits(pattern: &Pattern, text: &[u8]) -> bool {
    let mut rest = text;
    for (number, part) in pattern.parts.iter().enumerate() {
        let at = if number == 0 {
            text.starts_with(part.as_bytes()).then_some(0)
        } else {
            position(rest, part.as_bytes())
        };
        let Some(at) = at else { return false };
        rest = &rest[at + part.len()..];
    }
    true
}

fn position(text: &[u8], part: &[u8]) -> Option<usize> {
    let first = *part.first()?;
    let last = text.len().checked_sub(part.len())?;
    (0..=last).find(|&at| text[at] == first && &text[at..at + part.len()] == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn toolkit_messages_are_found_and_other_lines_are_not() {
        let cases = [
            (
                "nvcc fatal   : Unsupported gpu architecture 'compute_120f'",
                Some("unsupported-gpu-architecture"),
            ),
            (
                "nvcc fatal   : Value 'sm_120' is not defined for option 'gpu-architecture'",
                Some("value-not-defined-for-option"),
            ),
            (
                "Failed to get device capability: SM 12.x requires CUDA >= 12.9.",
                Some("requires-cuda"),
            ),
            (
                "ptxas /tmp/x.ptx, line 9; fatal   : Unsupported .version 9.0; current version is '8.7'",
                Some("ptx-version-unsupported"),
            ),
            (
                "ImportError: libcudart.so.12: cannot open shared object file: No such file or directory",
                Some("cannot-open-shared-object"),
            ),
            (
                "RuntimeError: FlashInfer requires GPUs with sm75 or higher",
                Some("requires-gpus"),
            ),
            (
                "x.cu:1:10: fatal error: curand_kernel.h: No such file or directory",
                Some("header-not-found"),
            ),
            ("everything is fine and dandy", None),
            ("", None),
        ];
        for (line, pattern) in cases {
            assert_eq!(
                find(line.as_bytes()).map(|(found, _)| found.pattern),
                pattern,
                "{line}"
            );
        }
    }

    #[test]
    fn lines_are_taken_one_by_one_and_cut_around_the_pattern() {
        let mut long = std::vec![b'x'; 1000];
        long.extend_from_slice(b" nvcc fatal   : boom\nsecond\n");
        let (found, rest) = find(&long).unwrap();
        assert!(found.line.len() <= MAX_MESSAGE && found.line.ends_with(b"boom"));
        assert_eq!(rest, b"second\n");
    }
}

//! Which environment variables are captured. Values of anything else are not even read.

/// Families of variables that choose a toolkit, a library, a cache or an architecture.
pub const PREFIXES: &[&str] = &[
    "CUDA_",
    "TRITON_",
    "FLASHINFER_",
    "TORCH_",
    "TORCHINDUCTOR_",
    "PYTORCH_",
    "DG_",
    "DEEP_GEMM_",
    "TVM_FFI_",
    "TVM_",
    "TILELANG_",
    "SGLANG_",
    "SGL_",
    "VLLM_",
    "CUPY_",
    "NUMBA_",
    "NVCC_",
    "NVRTC_",
    "NVTE_",
    "NVIDIA_",
    "JAX_",
    "XLA_",
    "CUTE_DSL_",
    "CUDNN_",
    "BNB_",
    "NCCL_",
    "JITTRACE_",
    "PROTON_",
];

/// Single variables.
pub const NAMES: &[&str] = &[
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "LD_AUDIT",
    "LD_BIND_NOW",
    "GLIBC_TUNABLES",
    "PATH",
    "HOME",
    "XDG_CACHE_HOME",
    "TMPDIR",
    "CONDA_PREFIX",
    "VIRTUAL_ENV",
    "PYTHONPATH",
    "PYTHONHOME",
    "CC",
    "CXX",
    "CUDAHOSTCXX",
    "CUDACXX",
    "CPATH",
    "C_INCLUDE_PATH",
    "CPLUS_INCLUDE_PATH",
    "LIBRARY_PATH",
    "MAX_JOBS",
    "RANK",
    "LOCAL_RANK",
    "WORLD_SIZE",
    "CICC_PATH",
    "CUDAToolkit_ROOT",
    "CUDADIR",
];

/// Whether the variable of this name may be captured.
///
/// Asked for every variable at every start of a program: which entries may fit is told by the first two letters.
#[must_use]
pub fn is_captured(name: &[u8]) -> bool {
    let [first, second, ..] = name else {
        return false;
    };
    let mut candidates = BEGINNINGS[0][letter(*first)] & BEGINNINGS[1][letter(*second)];
    while candidates != 0 {
        let number = candidates.trailing_zeros() as usize;
        candidates &= candidates - 1;
        let fits = match number.checked_sub(PREFIXES.len()) {
            None => PREFIXES
                .get(number)
                .is_some_and(|prefix| name.starts_with(prefix.as_bytes())),
            Some(number) => NAMES
                .get(number)
                .is_some_and(|known| known.as_bytes() == name),
        };
        if fits {
            return !crate::secrets::is_secret_name(name);
        }
    }
    false
}

/// Bit `n` of `BEGINNINGS[i][l]` says that byte `i` of entry `n`, prefixes before names, is the letter `l`.
static BEGINNINGS: [[u64; LETTERS]; 2] = {
    assert!(PREFIXES.len() + NAMES.len() <= 64, "one bit an entry");
    let mut table = [[0; LETTERS]; 2];
    let mut number = 0;
    while number < PREFIXES.len() + NAMES.len() {
        let entry = if number < PREFIXES.len() {
            PREFIXES[number].as_bytes()
        } else {
            NAMES[number - PREFIXES.len()].as_bytes()
        };
        table[0][letter(entry[0])] |= 1 << number;
        table[1][letter(entry[1])] |= 1 << number;
        number += 1;
    }
    table
};

const LETTERS: usize = 32;

/// The low bits tell the letters apart; other bytes that share them are sorted out by the comparison that follows.
const fn letter(byte: u8) -> usize {
    byte as usize % LETTERS
}

/// The name in a `NAME=VALUE` entry; the whole entry when it has no `=`.
#[must_use]
pub fn name_of(entry: &[u8]) -> &[u8] {
    entry.split(|byte| *byte == b'=').next().unwrap_or(entry)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_toolkit_variables_are_captured() {
        let cases = [
            ("CUDA_HOME", true),
            ("PATH", true),
            ("FLASHINFER_CUDA_ARCH_LIST", true),
            ("XLA_FLAGS", true),
            ("SGLANG_API_KEY", false),
            ("VLLM_API_TOKEN", false),
            ("USER", false),
            ("AWS_SECRET_ACCESS_KEY", false),
            ("PATHS", false),
            ("CC", true),
            ("C", false),
            ("path", false),
            ("JAX", false),
            ("JAX_PLATFORMS", true),
            ("", false),
        ];
        for (name, expected) in cases {
            assert_eq!(is_captured(name.as_bytes()), expected, "{name}");
        }
    }

    #[test]
    fn the_name_ends_at_the_first_equals_sign() {
        assert_eq!(name_of(b"A=b=c"), b"A");
        assert_eq!(name_of(b"A"), b"A");
    }
}

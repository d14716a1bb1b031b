#!/bin/sh
# Rebuilds the kernel programs from source and compares them with the committed object, byte for byte.
#
#   ebpf/build.sh            build and compare; status 1 when the committed object or its lock is not of these sources
#   ebpf/build.sh --update   build and replace object and lock
#
# Needs what README.md says: a rustc 1.96 with the sources of its standard library, and bpf-linker 0.13 with the LLVM of
# that rustc. RUSTC, CARGO and BPF_LINKER name them, if they are not at their usual places.
set -eu
cd "$(dirname "$0")"

RUSTC=${RUSTC:-/usr/bin/rustc}
CARGO=${CARGO:-/usr/bin/cargo}
BPF_LINKER=${BPF_LINKER:-bpf-linker}
OBJECT=jittrace.bpf.o
LOCK=object.lock

fail() {
    echo "ebpf/build.sh: $1" >&2
    exit 2
}

[ -x "$RUSTC" ] || fail "$RUSTC is missing; install Debian's rustc-web (1.96), or set RUSTC"
[ -x "$CARGO" ] || fail "$CARGO is missing; install Debian's cargo-web (1.96), or set CARGO"
command -v "$BPF_LINKER" >/dev/null || fail "bpf-linker is missing; see README.md, or set BPF_LINKER"
[ -f "$("$RUSTC" --print sysroot)/lib/rustlib/src/rust/library/core/src/lib.rs" ] ||
    fail "the sources of the standard library are missing; install rust-web-src"

target=$(mktemp -d)
trap 'rm -rf "$target"' EXIT
separator=$(printf '\037')

# build-std is a nightly switch; with a stable compiler and the sources of the same release it is this variable away.
# Neither paths nor debug information go into the object: it is the same wherever it is built.
RUSTC_BOOTSTRAP=1 RUSTC="$RUSTC" CARGO_TARGET_DIR="$target" \
    CARGO_ENCODED_RUSTFLAGS="-Clinker=$BPF_LINKER${separator}-Cdebuginfo=0" \
    "$CARGO" build --locked --release -Zbuild-std=core --target bpfel-unknown-none --features programs --bin jittrace-bpf
built=$target/bpfel-unknown-none/release/jittrace-bpf

# The test `ebpf_object` computes the same, so that a change of the sources without a rebuild is found without a toolchain.
sources=$(find Cargo.toml Cargo.lock src -type f | LC_ALL=C sort | xargs sha256sum | sha256sum | cut -d' ' -f1)
{
    echo "sources $sources"
    echo "object $(sha256sum "$built" | cut -d' ' -f1)"
    echo "rustc $("$RUSTC" --version | cut -d' ' -f2)"
    echo "llvm $("$RUSTC" --version --verbose | sed -n 's/^LLVM version: //p')"
    echo "linker $("$BPF_LINKER" --version | tr ' ' '\n' | sed -n 2p)"
} >"$target/lock"

if [ "${1:-}" = --update ]; then
    cp "$built" "$OBJECT"
    chmod 644 "$OBJECT"
    cp "$target/lock" "$LOCK"
    echo "ebpf/$OBJECT and ebpf/$LOCK replaced"
    exit 0
fi
status=0
cmp "$built" "$OBJECT" || status=1
diff -u "$LOCK" "$target/lock" || status=1
[ $status = 0 ] && echo "ebpf/$OBJECT is what these sources give"
exit $status

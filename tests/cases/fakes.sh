# fakes.sh — sourced by every reproduction; needs sh, python3, cc; no GPU, no network
W=$(mktemp -d) && cd "$W" || exit 1
tk() { # tk DIR VERSION "ARCH ARCH…" : a fake toolkit tree with nvcc, ptxas, include, lib64
  mkdir -p "$1/bin" "$1/include" "$1/lib64"
  for t in nvcc ptxas; do
    cat > "$1/bin/$t" <<EOS
#!/bin/sh
V=$2; A=" $3 "; me=$t; out=; arch=; src=
for a in "\$@"; do case \$a in
  --version|-V) echo "\$me: fake NVIDIA tool"; echo "Cuda compilation tools, release \$V, V\$V.0"; exit 0;;
  -arch=*|--gpu-name=*) arch=\${a#*=};;
  -out=*) out=\${a#*=};;
  *.ptx|*.cu) src=\$a;;
esac; done
case "\$A" in *" \$arch "*) ;; *) echo "\$me fatal   : Value '\$arch' is not defined (fake \$V)" >&2; exit 255;; esac
[ \$me = nvcc ] && { "\${0%/*}/ptxas" --gpu-name=\$arch \$src || exit; }
[ -n "\$out" ] && echo "cubin by \$V for \$arch" > "\$out"; exit 0
EOS
    chmod +x "$1/bin/$t"
  done
}
so() { # so FILE SONAME 'C code' [more cc flags…] : a tiny shared library
  f=$1; n=$2; c=$3; shift 3; mkdir -p "$(dirname "$f")"
  printf '%s\n' "$c" | cc -xc - -xnone -shared -fPIC -Wl,-soname,"$n" -o "$f" "$@"
}
rt() { # rt FILE SONAME VERSION : a fake CUDA runtime
  so "$1" "$2" "int cudaRuntimeGetVersion(int*v){*v=$3;return 0;} static int h; void*fakeHandle(void){return &h;} int fakeUse(void*p){return p==&h?0:400;}"
}

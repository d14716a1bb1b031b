#!/usr/bin/env bash
# record.sh STACK JITTRACE [NAME…]: records the traces in this directory anew, on a stack with torch, FlashInfer and two
# toolkits (STACK/venv, STACK/toolkits/cuda-{12.4,13.0}, STACK/fake-sm: a driver stand-in that tells of an sm_120 GPU).
# `attach` is recorded without privilege: what an ordinary user is refused is a part of it.
# Paths of the machine are rewritten, so that the traces tell nothing of it: STACK is /opt/stack, the rest /home/user.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
stack=$(cd "$1" && pwd) jittrace=$(realpath "$2"); shift 2
work=$(mktemp -d /tmp/record.XXXXXX); trap 'rm -rf "$work"' EXIT; cd "$work"
old=$stack/toolkits/cuda-12.4 new=$stack/toolkits/cuda-13.0
export FLASHINFER_WORKSPACE_BASE=$work/home PATH=$stack/venv/bin:$PATH

cat > app.py <<'P'
import importlib
import torch
from flashinfer.jit import core
spec = importlib.import_module("flashinfer.jit.page").gen_page_module()
spec.build_and_load()
print("loaded", torch.version.cuda)
P
cat > ranks.py <<'P'
"""Eight ranks that compile the same kernel, each without looking at the others."""
import multiprocessing, os, subprocess
def rank(number):
    cache = os.path.abspath("kernels"); os.makedirs(cache, exist_ok=True)
    open(f"rank{number}.cu", "w").write("__global__ void scale(float *p) { p[threadIdx.x] *= 2.f; }\n")
    subprocess.run([os.environ["CUDA_HOME"] + "/bin/nvcc", "-arch=sm_90a", "-cubin", "-o", f"{cache}/scale.cubin", f"rank{number}.cu"], check=True)
if __name__ == "__main__":
    ranks = [multiprocessing.get_context("fork").Process(target=rank, args=(n,)) for n in range(8)]
    [r.start() for r in ranks]; [r.join() for r in ranks]
P
cat > server.py <<'P'
import subprocess, sys, time
import torch
print("ready", flush=True); time.sleep(8)
subprocess.run([sys.argv[1], "--version"]); time.sleep(2)
P

record() { # NAME COMMAND…: traces a command and keeps its trace
  name=$1; shift
  timeout 580 "$jittrace" --no-tui --report none -o "$work/$name.jtrace" -- "$@" || true
}
keep() {
  sed -e "s#$stack#/opt/stack#g" -e "s#$work#/home/user/work#g" -e "s#$HOME/.pyenv#/opt/python#g" -e "s#$HOME#/home/user#g" \
    -e "1s#\"name\":\"$(hostname)\"#\"name\":\"gpu-box\"#" -e "1s#$(uname -r)#6.8.0-generic#" "$work/$1.jtrace" | gzip -9n > "$here/$1.jtrace.gz"
  ls -l "$here/$1.jtrace.gz"
}
# Attaches as an ordinary user to a process of that user. Run as root, this shows the stack at /opt to a process without
# any privilege, in a mount namespace of its own.
as_a_user() {
  python=$(realpath "$stack/venv/bin/python"); home=$(dirname "$(dirname "$python")")
  install -m 755 "$jittrace" "$work/jittrace"; mkdir -m 777 "$work/out"; chmod 755 "$work"
  cat > inside.sh <<P
export PYTHONPATH=/opt/stack/venv/lib/python3.12/site-packages LD_LIBRARY_PATH=/opt/python/lib PATH=/usr/bin:/bin HOME=$work/out
cd $work/out
/opt/python/bin/python3.12 ../server.py /opt/stack/toolkits/cuda-12.4/bin/nvcc & pid=\$!
sleep 5; timeout 60 ../jittrace attach --no-tui --report none -o attach.jtrace \$pid; wait \$pid
P
  unshare -m bash -c "mount -t tmpfs none /opt && mkdir /opt/stack /opt/python && mount --bind '$stack' /opt/stack \
    && mount --bind '$home' /opt/python && setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all bash inside.sh"
  mv out/attach.jtrace "$work/attach.jtrace"
}
for name in ${*:-sm120 healthy two-majors storm attach}; do
  case $name in
    sm120) PYTHONPATH=$stack/fake-sm PATH=$old/bin:$PATH record sm120 python app.py ;;
    healthy) PYTHONPATH=$stack/fake-sm CUDA_HOME=$new record healthy python app.py ;;
    two-majors) LD_LIBRARY_PATH=$old/lib64 FLASHINFER_CUDA_ARCH_LIST=9.0 CUDA_HOME=$old record two-majors python app.py ;;
    storm) CUDA_HOME=$new record storm python ranks.py ;;
    attach) as_a_user ;;
  esac
  rm -rf "$work/home"; keep "$name"
done

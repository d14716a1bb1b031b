# conda: the environment's nvcc has its headers under targets/x86_64-linux/include, and nobody adds it.
. "$CASES/fakes.sh"
E=miniconda3/envs/llm; tk $E 12.8 "sm_90"; mkdir -p $E/conda-meta $E/targets/x86_64-linux/include $E/lib; rm -r $E/lib64; echo '#define CUDART_VERSION 12080' > $E/targets/x86_64-linux/include/cuda_runtime.h
echo '{"name":"cuda-nvcc","version":"12.8.93","files":["bin/nvcc"]}' > $E/conda-meta/cuda-nvcc-12.8.93-0.json
cat > app.py <<'P'
import os, shutil, subprocess
home = os.path.dirname(os.path.dirname(shutil.which("nvcc")))
subprocess.run([home + "/bin/nvcc", "--version"], check=True, stdout=subprocess.DEVNULL)
r = subprocess.run(["c++", "-xc", "-E", "-I" + home + "/include"] + (["-I" + os.environ["EXTRA"]] if "EXTRA" in os.environ else []) + ["-"], input="#include <cuda_runtime.h>\n", text=True, capture_output=True)
if r.returncode: raise RuntimeError("Error building extension: " + r.stderr)
P
PATH=$W/$E/bin:$PATH CONDA_PREFIX=$W/$E $RUN python3 app.py
EXTRA=$W/$E/targets/x86_64-linux/include PATH=$W/$E/bin:$PATH CONDA_PREFIX=$W/$E $RUN python3 app.py

# D18: many ranks compile the same kernel; concurrent cache on a network filesystem
# After triton-lang/triton#11512. Expected untraced: expected: six ok, ranks 6 and 7 FileNotFoundError.
. "$CASES/fakes.sh"
tk site-packages/triton/backends/nvidia 12.8 "sm_90a"; mkdir -p shared/cache nodeB-view
cat > app.py <<'P'
import multiprocessing as mp, os, subprocess
KEY, VIEW = "shared/cache/abc123", "nodeB-view/abc123"                      # nodeB-view: a directory listing not refreshed yet
def rank(r, bar, q):
    bar.wait()                                                             # cold start: every rank misses together
    os.makedirs(f"{KEY}/tmp.{r}")
    subprocess.run(["site-packages/triton/backends/nvidia/bin/ptxas", "--gpu-name=sm_90a", f"-out={KEY}/tmp.{r}/k.cubin", "k.ptx"], check=True)
    os.replace(f"{KEY}/tmp.{r}/k.cubin", KEY + "/k.cubin"); os.rmdir(f"{KEY}/tmp.{r}")
    try: open((KEY if r < 6 else VIEW) + "/k.cubin").read(); q.put((r, "ok"))
    except FileNotFoundError as e: q.put((r, type(e).__name__))
if __name__ == "__main__":
    n = 8; bar, q = mp.Barrier(n), mp.Queue()
    ps = [mp.Process(target=rank, args=(r, bar, q)) for r in range(n)]
    [p.start() for p in ps]; [p.join() for p in ps]; print(sorted(q.get() for _ in ps))
P
$RUN python3 app.py                                       # 8 ptxas runs for one key; ranks 6 and 7 fail reading it back

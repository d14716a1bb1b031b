# A compiler cache's server, which was there before, compiles for its client.
. "$CASES/fakes.sh"
tk cuda-13.0 13.0 "sm_90a"; mkdir -p bin; mkfifo asked answered
cat > bin/sccache <<'S'
#!/bin/sh
if [ "$1" = --start-server ]; then
    while read -r line; do [ "$line" = stop ] && exit; $line && echo ok > answered; done < asked
    exec "$0" --start-server
fi
echo "$*" > asked; read -r said < answered; [ "$said" = ok ]
S
chmod +x bin/sccache; cd "$W"; bin/sccache --start-server & echo $! > server
cat > app.py <<'P'
import subprocess
subprocess.run(["bin/sccache", "cuda-13.0/bin/nvcc", "-arch=sm_90a", "-out=k.o", "k.cu"], check=True)
P
$RUN python3 app.py
echo stop > asked; wait

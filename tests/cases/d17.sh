# D17: build helper (ninja) missing from PATH
# After vllm-project/vllm#49029. Expected untraced: expected: FileNotFoundError; then "ninja ran".
. "$CASES/fakes.sh"
python3 -m venv --without-pip venv; printf '#!/bin/sh\necho ninja ran\n' > venv/bin/ninja; chmod +x venv/bin/ninja
echo 'import subprocess; subprocess.run(["ninja", "-v"])' > app.py
PATH=/usr/bin:/bin $RUN venv/bin/python app.py 2>&1 | tail -1                    # bad: FileNotFoundError
PATH=$W/venv/bin:/usr/bin:/bin $RUN venv/bin/python app.py                       # good (what "activate" does)

"""A server that starts, or does not."""
import torch.version

import flashinfer

print("torch was built for CUDA", torch.version.cuda)
try:
    flashinfer.check_cuda_arch()
except RuntimeError as error:
    raise SystemExit("RuntimeError: %s" % error)
print("serving")

#!/bin/sh
# A stand-in for nvcc @RELEASE@, for `jittrace demo`: it knows its release and compiles nothing.
case "$*" in
*--version* | *-V*)
  echo "nvcc: stand-in for NVIDIA (R) Cuda compiler driver"
  echo "Cuda compilation tools, release @RELEASE@, V@RELEASE@.0"
  ;;
*) echo "stand-in nvcc @RELEASE@: would compile $*" ;;
esac

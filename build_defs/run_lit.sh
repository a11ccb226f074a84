#!/bin/bash
# Runs one lit test; lit comes with LLVM.
exec python3 external/llvm/build/utils/lit/lit.py -v "$1"

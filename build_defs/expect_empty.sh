#!/bin/bash
# Succeeds if the file is empty; otherwise prints it: it is a dependency path that must not be.
if [ -s "$1" ]; then
  echo "forbidden dependency:"
  cat "$1"
  exit 1
fi

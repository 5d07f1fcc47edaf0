#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# aarch64_cc.sh OUT ARGS...: runs the cross compiler, or says how to install it (weft_aarch64_static_test).
out=$1
shift
if ! command -v aarch64-linux-gnu-gcc >/dev/null; then
  echo "aarch64-linux-gnu-gcc is missing; run './bazelw --packages=test' once" >&2
  exit 1
fi
exec aarch64-linux-gnu-gcc -o "$out" "$@" -lpthread -lm

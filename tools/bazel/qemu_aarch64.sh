#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# qemu_aarch64.sh PROGRAM ARGS...: runs a static 64-bit Arm program, natively if this machine is one.
if [ "$(uname -m)" = aarch64 ]; then
  exec "$@"
fi
if ! command -v qemu-aarch64-static >/dev/null; then
  echo "qemu-aarch64-static is missing; run './bazelw --packages=test' once" >&2
  exit 1
fi
exec qemu-aarch64-static "$@"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# embed.sh OUT NAME=FILE...: writes a C source with `const unsigned char NAME[]`, each with a file's bytes and a zero.
set -euo pipefail
out=$1
shift
{
  printf '// Made by tools/bazel/embed.sh.\n'
  for pair in "$@"; do
    printf 'extern const unsigned char %s[];\nconst unsigned char %s[] = {\n' "${pair%%=*}" "${pair%%=*}"
    od -An -v -tu1 -w24 -- "${pair#*=}" | sed -e 's/^ *//' -e 's/  */,/g' -e 's/$/,/'
    printf '0};\n'
  done
} >"$out"

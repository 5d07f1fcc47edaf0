#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# embed_scenarios.sh OUT FILE...: writes the table of sim/scenario/shipped.h.
set -euo pipefail
out=$1
shift
{
  printf '// Made by tools/bazel/embed_scenarios.sh.\n#include "sim/scenario/shipped.h"\n'
  printf 'const weft_sim_shipped_file weft_sim_shipped_files[] = {\n'
  for file in "$@"; do
    name=${file##*/}
    printf '{"%s",\n' "${name%.*}"
    sed -e 's/[\\"]/\\&/g' -e 's/^/"/' -e 's/$/\\n"/' -- "$file"
    printf '},\n'
  done
  printf '};\nconst size_t weft_sim_shipped_count = %d;\n' "$#"
} >"$out"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The shared library in ISA-L's place: what it exports, and a program that finds all of ISA-L in it.
# usage: isal_library_test.sh LIBRARY PROGRAM
set -euo pipefail
library=$1 program=$2

exported=$(nm -D --defined-only "$library" | awk '{print $3}' | sort)
for name in $exported; do
  case $name in
    ec_* | gf_* | xor_gen* | xor_check* | pq_gen* | pq_check*) ;;
    *)
      printf '%s is exported, and no name of ISA-L\n' "$name" >&2
      exit 1
      ;;
  esac
done
[ "$(wc -l <<<"$exported")" -eq 27 ] || {
  printf 'exported:\n%s\n' "$exported" >&2
  exit 1
}

[ "$("$program")" = '1001 losses of 4 recovered' ]
WEFT_BACKEND=scalar "$program" >/dev/null
# A row that is none ends the program, and it says why.
if said=$(WEFT_BACKEND=abacus "$program" 2>&1); then
  printf 'WEFT_BACKEND=abacus was taken\n' >&2
  exit 1
fi
[[ $said == *abacus* ]] || {
  printf 'no word of abacus: %s\n' "$said" >&2
  exit 1
}

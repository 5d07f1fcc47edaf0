#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Python on an installed copy. $1: tools/install, $2: libweft.a, $3: the document with an example, then what is run
set -euo pipefail
command -v python3 >/dev/null || {
  echo 'SKIPPED: needs python3'
  exit 0
}
cp -RL -- . "$TEST_TMPDIR/tree" # the script finds its tree through links
prefix=$TEST_TMPDIR/prefix
mkdir -p "$prefix/share/weft"
echo 'raise ImportError("of before")' >"$prefix/share/weft/weft.py" # an earlier version had one file
WEFT_ARCHIVE=$PWD/$2 "$TEST_TMPDIR/tree/$1" "$prefix" >/dev/null
export PYTHONPATH=$prefix/share/weft PYTHONDONTWRITEBYTECODE=1 WEFT_INCLUDE=$prefix/include WEFT_DOCUMENT=$3
[ ! -e "$prefix/share/weft/weft.py" ] || exit 1
if [ -n "${DEVICE_DOUBLE:-}" ]; then # that archive's lib/, and of the other one what it lacks
  mapfile -t names < <(nm -g --defined-only "$2" 2>/dev/null | sed -n 's/.* [TRD] \(weft_.*\)/-Wl,-u,\1/p' | sort -u)
  export WEFT_LIBRARY=$TEST_TMPDIR/libweft_double.so WEFT_BACKEND=cuda-double
  "${CC:-cc}" -shared -o "$WEFT_LIBRARY" "${names[@]}" "$DEVICE_DOUBLE" "$2" -lsodium -lm -lpthread -lstdc++ -ldl -lrt
fi
for program in "${@:4}"; do
  python3 "$program"
done
# Nothing of the library's inside is seen from outside.
! nm -D --defined-only "$prefix/lib/libweft.so" | grep -v ' weft_' | grep . || exit 1

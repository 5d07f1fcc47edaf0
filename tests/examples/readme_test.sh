#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What README.md shows is what there is: its C code stands in an example, and the demo's clip has the digest that it
# names. $1: README.md, $2: the example, $3: the program.
set -eu
awk '/^```/ { in_c = $0 == "```c"; next } in_c' "$1" >"$TEST_TMPDIR/shown"
[ "$(wc -l <"$TEST_TMPDIR/shown")" -ge 15 ]
awk -v shown="$TEST_TMPDIR/shown" '
  BEGIN { while ((getline line <shown) > 0) wanted = wanted line "\n" }
  { all = all $0 "\n" }
  END { if (!index(all, wanted)) { print "README.md shows code that is not in " FILENAME; exit 1 } }' "$2"
digest=$(sed -n 's/^16 of 16 peers hold BLAKE2b \([0-9a-f]*\) = input$/\1/p' "$1")
"$3" demo --peers 1 | grep -x "1 of 1 peers hold BLAKE2b $digest = input"

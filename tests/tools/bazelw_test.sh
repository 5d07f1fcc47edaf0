#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A tree in a folder whose name Debian's Bazel cannot read is refused in words that say so, and nothing is installed.
# What Bazel's environment says of MPI changes as it is installed, so that a server that runs already looks again.
# The folder that the user stands in stays, also where the way there leads through a link; outside the tree Bazel stands
# in the tree, and what it runs is told where the user is.
# $1: bazelw.
set -u
bazelw=$PWD/$1
for version in '' 4.1.4; do
  printf '#!/bin/sh\n[ "$*" = "--modversion mpi-c" ] && [ -n "%s" ] && echo %s\n' "$version" "$version" >"$TEST_TMPDIR/pkg-config"
  # shellcheck disable=SC2016 # the double's own
  printf '#!/bin/sh\necho "$* by MPI <$WEFT_MPI>"\n' >"$TEST_TMPDIR/bazel"
  chmod +x "$TEST_TMPDIR/pkg-config" "$TEST_TMPDIR/bazel"
  said=$(PATH=$TEST_TMPDIR:$PATH WEFT_MPI=old WEFT_BAZEL=$TEST_TMPDIR/bazel "$bazelw" build //:weft)
  [ "$said" = "build //:weft by MPI <$version>" ] || { echo "bazelw handed over: $said"; exit 1; }
done

mkdir -p -- "$TEST_TMPDIR/tree/within"
cp -L -- "$1" "$TEST_TMPDIR/tree/bazelw"
ln -s tree "$TEST_TMPDIR/link"
printf '#!/bin/sh\npwd -P\n' >"$TEST_TMPDIR/bazel"
for way in tree link; do
  said=$(cd -- "$TEST_TMPDIR/$way/within" && WEFT_BAZEL=$TEST_TMPDIR/bazel ../bazelw build :all)
  [ "$said" = "$(cd -- "$TEST_TMPDIR/tree/within" && pwd -P)" ] || { echo "through $way Bazel stands in $said"; exit 1; }
done
mkdir -p -- "$TEST_TMPDIR/out side"
# shellcheck disable=SC2016 # the double's own
printf '#!/bin/sh\npwd -P\necho "$WEFT_CALLED_FROM"\n' >"$TEST_TMPDIR/bazel"
said=$(cd -- "$TEST_TMPDIR/out side" && WEFT_CALLED_FROM=/old WEFT_BAZEL=$TEST_TMPDIR/bazel ../tree/bazelw run //:weft)
wanted=$(cd -- "$TEST_TMPDIR/tree" && pwd -P && cd -- "$TEST_TMPDIR/out side" && pwd -P)
[ "$said" = "$wanted" ] || { echo "from outside Bazel stands in, and tells: $said"; exit 1; }

if ! { command -v dpkg-query && command -v apt-get; } >/dev/null; then
  echo 'SKIPPED: not a Debian system'
  exit 0
fi
folder=$TEST_TMPDIR/wéft
mkdir -p -- "$folder/tools"
cp -L -- "$1" "$folder/bazelw"
printf '[build]\n' >"$folder/tools/packages.txt"
: >"$folder/WORKSPACE"
cd -- "$folder" || exit 1
code=0
env -u WEFT_BAZEL ./bazelw --output_user_root="$TEST_TMPDIR/out" info release >"$TEST_TMPDIR/said" 2>&1 || code=$?
if [ "$code" -ne 1 ] || ! grep -F 'only letters of ASCII' "$TEST_TMPDIR/said" >/dev/null; then
  echo "bazelw ended with $code and said:"
  cat "$TEST_TMPDIR/said"
  exit 1
fi

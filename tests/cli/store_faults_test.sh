#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `weft store` where something is in the way: an update that is pending, shards that this user may
# not open, other things under their names, links to disks that are away. No call waits for any of
# them.
set -euo pipefail
# shellcheck source=tests/cli/expect.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/expect.sh"

weft=$PWD/$1
program=(timeout 60 "$weft" store)
work=$(mktemp -d -p "${TEST_TMPDIR:-/tmp}")
cd -- "$work"
head -c 1000003 /dev/urandom >in
head -c 100 /dev/urandom >news
expect 0 encode -k 4 -m 2 --stripe 64Ki in --output-dir d

# poke FILE OFFSET: changes the byte there
poke() {
  local old
  old=$(od -An -tu1 -j"$2" -N1 "$1")
  printf '%b' "\\x$(printf %02x $((old ^ 255)))" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

# --- a pending update: committed, then a limit on the size of files keeps it from the shards

cp -r d pending
if ! (ulimit -f 100 && "$weft" --version >/dev/null 2>&1); then
  echo "SKIPPED: a pending update: the thread sanitizer cannot start within a limit on files"
else
  code=0
  (ulimit -f 100 && exec "$weft" store update --offset 900000 pending news >out 2>err) || code=$?
  [ "$code" = 3 ] || fail "an update that could not be carried out: exit $code: $(cat err)"
  says "is committed all the same" err
  [ -e pending/update.journal ] || fail "there is no journal"
  cp in patched
  dd if=news of=patched bs=1M seek=900000 oflag=seek_bytes conv=notrunc status=none
  expect 1 verify pending
  says "update.journal: its update is committed, but not all shards have it yet: scrub or repair" err
  says "the file is whole, but an update is pending" err
  [ ! -s out ] || fail "verify reports success: $(cat out)"
  expect 1 verify pending --json
  says '"exit_code":1,"status":"WEFT_E_DAMAGED","error":"the file is whole, but an update is pending' out
  says '"update_pending":true' out
  expect 0 info pending
  says "generation  2; its update is not yet in all shards" out
  expect 0 decode pending --output copy
  cmp patched copy || fail "decode with a pending update"
  expect 0 scrub pending
  expect 0 verify pending
  expect 0 decode pending --output copy
  cmp patched copy || fail "an update that was completed"
fi

cp -r d cut
: >cut/update.journal
expect 1 verify cut
says "cut/update.journal is truncated" err

# --- a call that was killed as it gave shards their names: they are read, but `mv shard-*.weft`
# would leave one behind

cp -r d waiting
mv waiting/shard-003.weft waiting/shard-003.weft.new
expect 0 verify waiting
says "shard-003.weft.new: it is good, and the next scrub, repair or update gives it its name" err
expect 0 info waiting
says "  shard-003.weft.new: it is good" out
expect 0 info waiting --json
says '"shard":3,"state":"good","message":"shard-003.weft.new: it is good' out
expect 0 scrub waiting
[[ -e waiting/shard-003.weft && ! -s err ]] || fail "a shard that has its name: $(cat err)"
expect 0 verify waiting
[ ! -s err ] || fail "a shard that had its name: $(cat err)"

# --- an input that is longer than what is there

expect 2 update --offset 1000000 d news
says "an update keeps the length; encode a longer file anew, into another folder" err
expect 0 verify d

# --- shards that this user may not open

# Without the capability to open everything; a user who is not root lacks it anyway.
drop=-dac_override,-dac_read_search
lacking=(setpriv "--bounding-set=$drop" "--inh-caps=$drop")
touch closed
chmod 000 closed
[ ! -r closed ] && lacking=(env)
if "${lacking[@]}" true 2>/dev/null && ! "${lacking[@]}" cat closed >/dev/null 2>&1; then
  program=(timeout 60 "${lacking[@]}" "$weft" store)
  cp -r d theirs
  rm theirs/shard-005.weft
  poke theirs/shard-003.weft 70000
  chmod 000 theirs/shard-001.weft
  before=$(stat -c %i:%y theirs/shard-001.weft)
  expect 0 info theirs
  says "4 of 6 are readable" out
  says "shard-001.weft: Permission denied" out
  "${program[@]}" read theirs --length 65536 2>err | cmp - <(head -c 65536 in) || fail "a read beside a shard that may not be opened"
  expect 3 decode theirs --output /dev/null # of the stripe with the corrupt chunk too little is left
  says "3 of its 6 chunks are intact, and 4 are needed; 1 cannot be read (shard-001.weft: Permission denied)" err
  expect 3 verify theirs
  says "cannot be restored from what can be read" err
  says "theirs/shard-001.weft: Permission denied: it is needed: allow reading it" err
  expect 3 update --offset 0 theirs news
  says "theirs/shard-001.weft: Permission denied: nothing was changed; allow reading and writing it" err
  poke theirs/shard-003.weft 70000
  for call in scrub repair; do
    expect 3 $call theirs
    says "theirs/shard-001.weft: Permission denied: it was left as it is: allow reading and writing it, or move it away" err
  done
  says "shard-005.weft: it is missing (repaired)" err
  [ "$(stat -c %i:%y theirs/shard-001.weft)" = "$before" ] || fail "a shard that may not be opened was changed"
  expect 1 verify theirs
  says "1 of 6 shards is damaged, missing or unreadable; the file is whole\$" err
  expect 3 repair theirs --json
  says '"state":"unreadable","message":"shard-001.weft: Permission denied","read_error":"Permission denied"' out
  expect 0 decode theirs --output /dev/null
  chmod 644 theirs/shard-001.weft
  expect 0 repair theirs
  expect 0 verify theirs
  chmod 444 theirs # its names may be listed, but no file in it opened
  for call in info verify repair "decode --output /dev/null"; do
    # shellcheck disable=SC2086 # words
    expect 3 $call theirs
    says "theirs: Permission denied" err
  done
  chmod 755 theirs
  program=(timeout 60 "$weft" store)
else
  echo "SKIPPED: shards that may not be opened: a user whom permissions bind is needed"
fi

# --- other things under a shard's name, which repair replaces

# other TEXT CODE COMMAND...: the command makes it at the name that follows
other() {
  local text=$1 code=$2 at=o/shard-001.weft
  shift 2
  rm -rf o
  cp -r d o
  rm $at
  "$@" $at
  expect 1 verify o
  says "shard-001.weft: $text" err
  expect 0 decode o --output copy
  cmp in copy || fail "decode where $text"
  expect 0 update --offset 0 o <(head -c 100 in)
  expect "$code" repair o
  [ "$code" = 0 ] || return 0
  [[ -f $at && ! -L $at ]] || fail "no shard after a repair where $text"
  expect 0 verify o
}
other "it is a pipe" 0 mkfifo
other "Is a directory" 1 mkdir
other "it does not begin like a shard" 0 ln -s /dev/zero
other "Too many levels of symbolic links" 0 ln -s shard-001.weft
other "it is missing: its link leads nowhere" 0 ln -s /nowhere/shard-001.weft
rm o/shard-001.weft
ln -s /nowhere/shard-001.weft o/shard-001.weft
expect 0 repair o
says "shard-001.weft was a link: the rebuilt shard is in the folder itself" err

# --- one shard of an empty file, where the shards of another were: no empty output for that

expect 0 encode -k 4 -m 2 /dev/null --output-dir void
expect 0 decode void --output nothing
[ ! -s nothing ] || fail "an empty file"
rm void/shard-00[0-2].weft
printf old >kept
expect 1 decode void --output kept
says "fewer than 4 shards can be read" err
[ "$(cat kept)" = old ] || fail "an empty file, made from too few shards, replaced the output"
expect 1 read void
expect 1 verify void

# --- limits on open files: the soft one is raised; a hard one that is too low is named

program=(bash -c 'ulimit -Sn 64 && exec "$@"' - timeout 60 "$weft" store)
expect 0 encode -k 100 -m 100 --stripe 4Ki in --output-dir wide
rm wide/shard-00*.weft
expect 0 repair wide
expect 0 verify wide
expect 0 decode wide --output copy
cmp in copy || fail "a wide set within a soft limit of 64 files"
program=(bash -c 'ulimit -n 64 && exec "$@"' - timeout 60 "$weft" store)
expect 3 encode -k 100 -m 100 in --output-dir none
says "Too many open files; a call opens up to twice as many files as there are shards: raise" err
[ ! -e none ] || fail "an encode that could not open its files left a folder"
expect 3 decode wide --output copy
says "raise the limit (ulimit -n)" err
rm wide/shard-0[0-4]*.weft # the others can be opened, but not all that replace these
program=(bash -c 'ulimit -n 180 && exec "$@"' - timeout 60 "$weft" store)
expect 3 repair wide
says "raise the limit (ulimit -n)" err
program=(timeout 60 "$weft" store)
expect 0 repair wide

cd /
rm -rf -- "$work"
[ "$failures" -eq 0 ]

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `weft store` works as users call it: exit codes and messages, pipes, JSON. How it ends early is
# store_stop_test.sh.
set -euo pipefail
# shellcheck source=tests/cli/expect.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/expect.sh"

weft=$PWD/$1
program=("$weft" store)
work=$(mktemp -d -p "${TEST_TMPDIR:-/tmp}")
cd -- "$work"

# poke FILE OFFSET: changes the byte there
poke() {
  local old
  old=$(od -An -tu1 -j"$2" -N1 "$1")
  printf '%b' "\\x$(printf %02x $((old ^ 255)))" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

# --- round trips, pipes

head -c 3000001 /dev/urandom >in
head -c 1000 /dev/urandom >key
head -c 1000 /dev/urandom >wrong
expect 0 encode -k 4 -m 2 --stripe 256Ki in --output-dir d
expect 0 decode d --output copy
cmp in copy || fail "decode"
[ ! -s err ] || fail "a progress bar or message in a pipe: $(cat err)"
"$weft" store encode -k 3 -m 2 --code cauchy_good:w=4:packet=512 - --output-dir piped <in >/dev/null || fail "stdin"
"$weft" store decode piped --output - 2>/dev/null | cmp - in || fail "decode to a pipe"
"$weft" store read d --offset 1234567 --length 5000 2>/dev/null | cmp - <(tail -c +1234568 in | head -c 5000) || fail read
expect 0 read d --offset 3000000 --output part
cmp part <(tail -c 1 in) || fail "read to the end"
expect 0 read d --offset 0 --length 0
for m in 1 9223372036854775807; do # their sum overflows
  expect 2 encode -k 9223372036854775807 -m "$m" in --output-dir none
  says '-k must be 1..256' err
done
printf old >part # an impossible range leaves what was there
expect 2 read d --offset 3000000 --length 2 --output part
[ "$(cat part)" = old ] || fail "a read that failed changed its output"

{
  dd bs=1000 count=1 status=none of=begun
  "$weft" store encode -k 3 -m 2 - --output-dir rest >/dev/null 2>err || fail "stdin, read in part"
} <in
[ ! -s err ] || fail "stdin, read in part: $(cat err)"
"$weft" store decode rest --output - 2>/dev/null | cmp - <(tail -c +1001 in) || fail "what was left of stdin"

# --- more than fits into memory: 600 MB through a process that may have 256 MB, including threads'
# stacks

limited() (
  ulimit -v 262144
  "$weft" store "$@"
)
stream() { { openssl enc -aes-128-ctr -K "$(printf %032d 7)" -iv "$(printf %032d 0)" -nosalt -in /dev/zero 2>/dev/null || true; } | head -c 600000007; }
if ! command -v openssl >/dev/null || ! limited --help >/dev/null 2>&1; then
  echo "SKIPPED: larger than memory: it needs openssl, and a program that runs within 256 MB (sanitizers do not)"
else
  stream | limited encode -k 4 -m 2 --threads 2 - --output-dir large >/dev/null || fail "encode of more than memory"
  rm large/shard-000.weft large/shard-005.weft
  limited decode large --threads 2 --output - 2>/dev/null | cmp - <(stream) || fail "decode of more than memory"
  limited repair large >/dev/null 2>&1 || fail "repair of more than memory"
  expect 0 verify large
fi
rm -rf large

# --- a block device, there and back

dd if=/dev/urandom of=disk.img bs=512 count=20011 status=none
if device=$(losetup --find --show disk.img 2>/dev/null); then
  expect 0 encode -k 4 -m 2 "$device" --output-dir block
  { # as standard input it is read from its current position, as a file is
    dd bs=512 count=3 status=none of=begun
    "$weft" store encode -k 3 -m 2 - --output-dir block_rest >/dev/null 2>err || fail "a device, read in part: $(cat err)"
  } <"$device"
  "$weft" store decode block_rest --output - 2>/dev/null | cmp - <(tail -c +1537 disk.img) || fail "what was left of a device"
  rm block/shard-002.weft
  dd if=/dev/zero of="$device" bs=512 count=20011 conv=fsync status=none
  expect 0 decode block --output "$device"
  sync "$device"
  losetup --detach "$device"
  "$weft" store decode block --output - 2>/dev/null | cmp - disk.img || fail "block device"
  [ "$(stat -c %s disk.img)" = $((20011 * 512)) ] || fail "the device's size"
  # A device that is too small, or in use (for example mounted), stays as it was.
  truncate -s $((20010 * 512)) small.img
  device=$(losetup --find --show small.img)
  expect 3 decode block --output "$device"
  says "$device: No space left on device" err
  code=0
  python3 - "$device" "$weft" store read block --length 512 --output "$device" >out 2>err <<'PYTHON' || code=$?
import os, subprocess, sys
held = os.open(sys.argv[1], os.O_RDONLY | os.O_EXCL)
sys.exit(subprocess.call(sys.argv[2:]))
PYTHON
  { [ $code = 3 ] && grep -q "$device: Device or resource busy" err; } || fail "a device in use: exit $code, $(cat err)"
  losetup --detach "$device"
  cmp -n $((20010 * 512)) small.img /dev/zero || fail "a device was overwritten in vain"
else
  echo "SKIPPED: block device: it needs root and a loop device"
fi

# --- damage, with exact messages

expect 0 verify d
poke d/shard-001.weft 300
expect 1 verify d
says "shard-001.weft: 1 of its chunks corrupt, the first in stripe 0" err
says "1 of 6 shards is damaged, missing or unreadable; the file is whole, and repair fixes that\$" err
expect 0 scrub d
expect 0 verify d
rm d/shard-002.weft
poke d/shard-003.weft 20
expect 0 decode d --output copy
cmp in copy || fail "degraded decode"
says "shard-002.weft: it is missing" err
says "shard-003.weft: its header is corrupt" err
expect 1 scrub d
says "2 of 6 shards are damaged, missing or unreadable; the file is whole, and repair fixes that\$" err
expect 0 info d --json
says '"usable_shards":4' out
says '"state":"missing"' out
cp d/shard-004.weft four
: >d/shard-004.weft
expect 1 decode d --output copy2
says "stripe [0-9]*: 3 of its 6 chunks are intact, and 4 are needed" err
[ ! -e copy2 ] || fail "a decode that failed left a file"
expect 1 read d --output copy2
[ ! -e copy2 ] || fail "a read that failed left a file"
compgen -G '*.weft-part' && fail "a decode that failed left a scratch file"
expect 1 repair d
cp four d/shard-004.weft
expect 0 repair d --json
says '"mended_shards":2' out
expect 0 verify d
cp piped/shard-001.weft d/shard-001.weft
expect 1 verify d
says "shard-001.weft: it belongs to another file" err
expect 0 repair d

# --- JSON: on standard output, or alone on standard error where the data goes to standard output

for call in "info d" "verify d" "decode d --output copy" "read d --output copy" "decode d --output absent/x"; do
  # shellcheck disable=SC2086 # words
  { "$weft" store $call --json 2>err || true; } | python3 -m json.tool >out || fail "no JSON of weft store $call: $(cat err)"
done
rm d/shard-000.weft
for call in "decode d --output -" "read d" "read absent"; do
  # shellcheck disable=SC2086 # words
  { "$weft" store $call --json 2>&1 >copy || true; } | python3 -m json.tool >out || fail "other text beside the JSON of weft store $call"
done
expect 0 repair d

# --- existing outputs: a link stays one, a file that others may not read keeps its mode, a folder
# is reported at once

printf old >target
chmod 600 target
ln -s target link
expect 0 decode d --output link
[ -L link ] || fail "a link was replaced"
cmp in target || fail "decode through a link"
[ "$(stat -c %a target)" = 600 ] || fail "the mode of a file that was replaced: $(stat -c %a target)"
ln -s nowhere dangling
expect 3 decode d --output dangling
[[ ! -e nowhere && -L dangling ]] || fail "decode to a link that leads nowhere"
expect 3 decode d --output d
says "d: Is a directory" err
expect 3 decode d --output d/
says "d/: Is a directory" err
printf before >appended
"$weft" store read d --length 5 --output /dev/stdout >>appended 2>/dev/null || fail "read to /dev/stdout"
cmp appended <(printf before && head -c 5 in) || fail "standard output by its other name"
for threads in 1 2; do # whichever of them writes
  {
    "$weft" store decode d --threads "$threads" --output - 2>err || printf '%s' "$?" >code
  } | head -c 1 >/dev/null
  [ "$(cat code)" = 3 ] || fail "a reader that went: exit code $(cat code) with $threads threads"
  says "the output: Broken pipe" err
done

# --- small stripes: what follows each chunk may take more than a tenth of its size, which encode
# says before it begins

head -c 5000 in >little
# stripes SIZE WORDS OPTION...
stripes() {
  local size=$1 words=$2
  shift 2
  rm -rf little_d
  expect 0 encode "$@" --stripe "$size" little --output-dir little_d
  if [ -n "$words" ]; then says "$words" err; else [ ! -s err ] || fail "--stripe $size: $(cat err)"; fi
  expect 0 decode little_d --output copy
  cmp little copy || fail "--stripe $size"
}
stripes 1 "chunks of 1 byte, and each is followed by 32 bytes: the shards take about 46.2 times the file's size, not 1.4"
stripes 3190 "chunks of 319 bytes, and each is followed by 32 bytes: the shards take about 1.5 times"
stripes 3191 ''
stripes 5 "chunks of 8 bytes" -k 4 -m 2 -c cauchy_good:w=4:packet=2
stripes 5 '' -k 4 -m 2 -c cauchy_good:w=4:packet=512
sleep 5 | "$weft" store encode --stripe 1 - --output-dir early >/dev/null 2>err &
for ((i = 0; i < 50; i++)); do
  [ ! -s err ] || break
  sleep 0.1
done
says "46.2 times" err
kill "$!"
wait "$!" 2>/dev/null || true

# --- update

head -c 700000 /dev/urandom >changes
expect 0 update --offset 1000003 d changes
cp in changed
dd if=changes of=changed bs=1M seek=1000003 oflag=seek_bytes conv=notrunc status=none
expect 0 decode d --output copy
cmp changed copy || fail "update"
expect 0 verify d
expect 2 update --offset 3000000 d changes
says "go past the end of the data, which has 3000001 bytes" err
expect 0 verify d

# --- a file that is shorter than its stated length, as one that is truncated while it is read

short=/sys/kernel/mm/transparent_hugepage/enabled
if [ -r $short ] && [ "$(stat -c %s $short)" -gt "$(wc -c <$short)" ]; then
  expect 0 encode -k 2 -m 1 $short --output-dir short
  says "had $(stat -c %s $short) bytes when it was opened, and $(cat $short | wc -c) when it was read" err
  expect 3 update --offset 0 d $short # a part of it is not put in
  says "had $(stat -c %s $short) bytes when it was opened, and $(cat $short | wc -c) when it was read: nothing was changed" err
  expect 0 verify d
else
  echo "SKIPPED: a file shorter than its size: this system has none of that name"
fi

# --- keys

expect 0 encode -k 2 -m 1 --key key in --output-dir keyed
expect 0 decode keyed --key key --output copy
expect 5 decode keyed --output copy
says "was encoded with a key, which must be given" err
expect 5 decode keyed --key wrong --output copy
says "this is not the key" err
expect 5 decode d --key key --output copy
expect 0 info keyed
says "headers not checked" out
"$weft" store decode keyed --key - --output copy <key >/dev/null || fail "a key from standard input"
cmp in copy || fail "decode by a key from standard input"
expect 2 encode - --key - --output-dir both
says "cannot both be standard input" err
expect 2 update keyed - --key /dev/stdin --offset 0

# --- command line, missing files

expect 2
expect 2 nonsense
expect 2 encode in
expect 2 encode in --output-dir d
says "shard-000.weft exists" err
expect 2 encode -k 200 -m 100 in --output-dir e
expect 2 encode --code nonsense in --output-dir e
expect 2 encode --stripe x in --output-dir e
expect 2 decode d
expect 2 decode d --stripe 5 --output x
expect 2 read d --offset 3000002
for place in 0x10 0x1p4 ' 3' +3 -3 nan inf 1e3x; do
  expect 2 read d "--offset=$place" --length 1 --output part
done
expect 3 encode absent --output-dir e
expect 3 decode absent --output x
expect 3 decode d --output absent/x
expect 4 decode d --output x --backend nonsense
expect 2 decode d --output x -k 3 # an option of another subcommand
says "Unknown option -k" err
expect 2 encode in
says "--output-dir is required" err
expect 2 encode in in --output-dir e
says "needs IN, not 2 arguments (" err
expect 2 update d --offset 0
says "needs FOLDER FILE, not 1 argument (" err
expect 2 encode -k 300 in --output-dir e
says "not 300 and 4" err
expect 2 encode --threads 65 in --output-dir e
says "--threads must be 1..64, not 65" err
expect 2 encode --threads 0 in --output-dir e
says "--threads must be 1..64, not 0" err
# What a call does not use it does not take.
for call in 'info --threads 2 d' 'info --backend scalar d' 'update --threads 2 --offset 0 d in'; do
  # shellcheck disable=SC2086 # words
  expect 2 $call
  says 'Unknown option' err
done
expect 2 encode --code cauchy_good:x=4 in --output-dir e
says "no such setting" err
expect 2 encode --code cauchy_good:w=4 in --output-dir e # the packets' size may not be left out
says "w and packet, both" err
expect 2 encode in --output-dir ''
says "--output-dir needs FOLDER, not an empty string" err
expect 2 decode '' --output x
says "needs FOLDER, not an empty string" err
expect 2 info d --json=false
says "--json accepts no value, but has 'false'" err
expect 2 update --offset x d in
says "not 'x'" err
expect 2 read d --offset 1.5 # it was rounded, to another byte
says "not '1.5'" err
expect 2 update --offset 9007199254740993 d in
says "offset 9007199254740993 is past" err
if [ -w /dev/full ]; then
  expect 3 decode d --output /dev/full
  says "/dev/full: No space left on device" err
fi
expect 0 read --help
says "First byte of the range (0)" out
mkdir empty
expect 1 info empty
says "there are no shards here" err
[ ! -e e ] || fail "an encode that failed left a folder"

# --- the output must not be a shard of the input, under whatever name

ln d/shard-001.weft linked
for output in d/shard-000.weft d/../d/shard-005.weft linked; do
  expect 2 decode d --output "$output"
  says 'holds a shard of it' err
  expect 2 read d --output "$output"
done
rm linked
expect 0 verify d

# --- a named pipe without a writer under a shard's name counts as a shard that cannot be read,
# without waiting for it

rm -rf piped
cp -r d piped
mv piped/shard-001.weft kept
mkfifo piped/shard-001.weft
code=0
timeout 20 "$weft" store verify piped >out 2>err || code=$?
[ "$code" = 1 ] || fail "a pipe as a shard: exit $code: $(cat err)"
says 'shard-001.weft: ' err
expect 0 repair piped
cmp -s kept piped/shard-001.weft || expect 0 verify piped
mkfifo piped/update.journal
code=0
timeout 20 "$weft" store verify piped >out 2>err || code=$?
[ "$code" != 124 ] || fail "a pipe as a journal is waited for"
rm -r piped kept

rm -rf -- "$work"
[ "$failures" -eq 0 ]

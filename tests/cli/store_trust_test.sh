#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `weft store` where it must not be trusted blindly: outputs that would overwrite the set, modes,
# links, long names, what scripts are told when a call fails, and forged headers.
set -euo pipefail
# shellcheck source=tests/cli/expect.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/expect.sh"

weft=$PWD/$1
program=(timeout 60 "$weft" store)
work=$(mktemp -d -p "${TEST_TMPDIR:-/tmp}")
cd -- "$work"

head -c 100000 /dev/urandom >in
expect 0 encode -k 3 -m 2 --stripe 30000 in --output-dir d
cp -r d kept

# --- names of the set's own are refused as outputs, whether such a file exists or not

for output in d/update.journal d/update.journal.new d/shard-002.weft.new d/shard-099.weft d/../d/update.journal; do
  expect 2 decode d --output "$output"
  expect 2 read d --output "$output"
done
ln -s d/update.journal by_link
touch by_link # a file of that name, which the link leads to
rm d/update.journal
expect 3 decode d --output by_link
expect 0 decode d --output d/copy
cmp in d/copy || fail "an output of another name in the folder"
rm d/copy by_link
expect 0 verify d

# --- a user who may not read the shards may not read what repair and update make of them

chmod 600 d/*
rm d/shard-001.weft
(umask 022 && expect 0 repair d)
[ "$(stat -c %a d/shard-001.weft)" = 600 ] || fail "the mode of a shard made anew: $(stat -c %a d/shard-001.weft)"
mkfifo input
"$weft" store update --offset 0 d input >/dev/null 2>err &
pid=$!
exec 7>input
while [ ! -e d/update.journal.new ]; do sleep 0.01; done
[ "$(stat -c %a d/update.journal.new)" = 600 ] || fail "the mode of a journal: $(stat -c %a d/update.journal.new)"
exec 7>&-
wait "$pid" || fail "an update by nothing: $(cat err)"
[ ! -e d/update.journal.new ] || fail "an update by nothing left a journal"

# --- a user who may not read a file may not read its shards, nor what is decoded from them

mode() { [ "$(stat -c %a "$2")" = "$1" ] || fail "the mode of $2: $(stat -c %a "$2"), not $1"; }
cp in private
for modes in "600 600 600" "640 640 640" "444 644 644" "666 644 644"; do
  read -r its shards decoded <<<"$modes"
  rm -rf p p_copy
  chmod "$its" private
  (umask 022 && expect 0 encode -k 2 -m 1 private --output-dir p)
  for shard in p/*; do mode "$shards" "$shard"; done
  (umask 022 && expect 0 decode p --output p_copy)
  mode "$decoded" p_copy
done
rm -rf p
chmod 600 private
(umask 022 && "$weft" store encode -k 2 -m 1 - --output-dir p <private >/dev/null) || fail "encode of a private standard input"
for shard in p/*; do mode 600 "$shard"; done
rm -rf p
(umask 022 && head -c 100000 private | "$weft" store encode -k 2 -m 1 - --output-dir p >/dev/null) || fail "encode of a pipe"
for shard in p/*; do mode 644 "$shard"; done
chmod 600 p/*
# A replaced file keeps its mode, whatever the umask, and its owner and group.
printf old >replaced
chmod 664 replaced
(umask 077 && expect 0 decode p --output replaced)
mode 664 replaced
if chown 12345:23456 replaced 2>/dev/null; then
  chmod 640 replaced
  (umask 022 && expect 0 decode p --output replaced)
  [ "$(stat -c %u:%g:%a replaced)" = 12345:23456:640 ] || fail "what was replaced is now $(stat -c %u:%g:%a replaced)"
  # With another group than before: shards of a group's file, and what is decoded from a group's
  # shards.
  chgrp 23456 private p/*
  chmod 640 private p/*
  rm -rf q q_copy
  (umask 022 && expect 0 encode -k 2 -m 1 private --output-dir q && expect 0 decode p --output q_copy)
  for file in q/* q_copy; do mode 600 "$file"; done
  # Where owner and group cannot be kept: in a user namespace that knows neither.
  for modes in "640 600" "644 644" "664 644"; do
    chown 12345:23456 replaced
    chmod "${modes% *}" replaced
    chown 0:0 p/*
    if unshare -Ur true 2>/dev/null; then
      (umask 022 && unshare -Ur "$weft" store decode p --output replaced >/dev/null 2>err) || fail "decode in a user namespace: $(cat err)"
      mode "${modes#* }" replaced
    else
      echo "SKIPPED: owners that cannot be kept: they need user namespaces"
    fi
  done
else
  echo "SKIPPED: owners and groups that are kept: they need root"
fi

# --- a set that root repairs stays its owner's

rm -rf p q owned
expect 0 encode -k 2 -m 1 in --output-dir owned
if chown -R 12345:23456 owned 2>/dev/null; then
  chmod 640 owned/*
  rm owned/shard-001.weft
  (umask 022 && expect 0 repair owned)
  [ "$(stat -c %u:%g:%a owned/shard-001.weft)" = 12345:23456:640 ] || fail "what root made anew is $(stat -c %u:%g:%a owned/shard-001.weft)"
  chmod 600 owned/*
  "$weft" store update --offset 0 owned input >/dev/null 2>err &
  pid=$!
  exec 7>input
  while [ ! -e owned/update.journal.new ]; do sleep 0.01; done
  sleep 0.1
  [ "$(stat -c %u:%g:%a owned/update.journal.new)" = 12345:23456:600 ] || fail "root's journal is $(stat -c %u:%g:%a owned/update.journal.new)"
  exec 7>&-
  wait "$pid" || fail "an update by nothing, of root: $(cat err)"
  chown 1:1 owned/shard-000.weft # if owners differ, none is kept
  rm owned/shard-001.weft
  expect 0 repair owned
  [ "$(stat -c %u owned/shard-001.weft)" = "$(id -u)" ] || fail "of several owners it took one"
else
  echo "SKIPPED: a set of another owner: it needs root"
fi

# --- a shard of which one chunk was repaired and another was not

cp -r kept half
# poke FILE OFFSET: changes a byte, whatever it is
poke() {
  local old
  old=$(od -An -tu1 -j "$2" -N 1 "$1")
  printf '%b' "\\x$(printf %02x $((old ^ 255)))" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}
poke half/shard-000.weft 300
for shard in 0 1 2; do poke half/shard-00$shard.weft $((256 + 10032 + 50)); done
expect 1 scrub half
says "shard-000.weft: 2 of its chunks corrupt, the first in stripe 0 (1 of 2 repaired)" err
says "shard-001.weft: 1 of its chunks corrupt, the first in stripe 1$" err
poke half/shard-001.weft 300
expect 1 scrub half --json
says '"corrupt_chunks":2,"unread_chunks":0,"rewritten_chunks":1,"write_error":"","mended":false' out

# --- outputs that are descriptors by another name: written to, not replaced

printf 'log\n' >log
ln -s /dev/fd/8 link_8
for name in /dev/fd/8 /proc/self/fd/8 /proc/thread-self/fd/8 link_8; do
  printf 'log\n' >log
  "$weft" store decode kept --output "$name" 8>>log >/dev/null 2>err || fail "decode to $name: $(cat err)"
  cat <(printf 'log\n') in | cmp - log || fail "the file behind $name"
done
"$weft" store read kept --length 5 --output /dev/stderr 2>read_out >/dev/null || fail "read to standard error"
head -c 5 in | cmp - read_out || fail "what was read to standard error"
expect 3 decode kept --output /dev/fd/99
says "Bad file descriptor" err
sleep 60 8>>log &
other=$!
expect 2 decode kept --output "/proc/$other/fd/8"
kill "$other"

# --- numbers are decimal, and key and data may not come from one pipe

expect 0 encode -k 010 -m 02 in --output-dir decimal
[[ -e decimal/shard-011.weft && ! -e decimal/shard-012.weft ]] || fail "-k 010 is 10"
for bad in 0x4 x '' 1.5; do expect 2 encode -k "$bad" -m 1 in --output-dir none; done
for name in - /dev/stdin /dev/fd/0 /proc/self/fd/0; do
  got=0
  head -c 5000 in | "$weft" store encode --key "$name" -k 2 -m 1 /proc/self/fd/0 --output-dir none >/dev/null 2>err || got=$?
  [ "$got" = 2 ] || fail "key $name and data of one pipe: exit $got, $(cat err)"
done

# --- an output in a folder that may be written but not read

mkdir -m 777 open
mkdir -m 333 open/blind
as_nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)
if [ "$(id -u)" = 0 ] && chmod 755 . && "${as_nobody[@]}" test -x "$weft" -a -r kept/shard-000.weft 2>/dev/null; then
  "${as_nobody[@]}" "$weft" store decode kept --output open/blind/copy >/dev/null 2>err || fail "into a folder that cannot be read: $(cat err)"
  cmp in open/blind/copy || fail "what was written into a folder that cannot be read"
else
  echo "SKIPPED: a folder that cannot be read: it needs root, and a place that others may enter"
fi

# --- an input that grows

"$weft" store encode -k 2 -m 1 - --output-dir grown >out 2>err < <(head -c 1000 in) || fail "a short input: $(cat err)"
cp in grows
{ while [ ! -e grown_enough ]; do head -c 300 in >>grows; done; } &
writer=$!
for _ in 1 2 3 4 5 6; do
  rm -rf grown
  expect 0 encode -k 4 -m 2 grows --output-dir grown
done
touch grown_enough
wait "$writer"
expect 0 decode grown --output grown_copy
head -c "$(stat -c %s grown_copy)" grows | cmp - grown_copy || fail "the beginning of an input that grows"

# --- reading a set with a pending update without the key

head -c 100 in >key
expect 0 encode --key key -k 2 -m 1 in --output-dir keyed
cp keyed/shard-000.weft keyed/update.journal
expect 0 info keyed
says "an update may be pending; give the key" out
expect 0 info keyed --json
says '"update_pending":null' out

# --- links: one to a disk that is away is not a free name; nothing is written through a link

mkdir linked
ln -s /nonexistent/disk linked/shard-001.weft
expect 2 encode -k 2 -m 1 in --output-dir linked
says "shard-001.weft exists" err
printf mine >victim
for there in victim absent; do
  ln -s "$PWD/$there" d/shard-001.weft.new
  rm d/shard-001.weft
  expect 0 repair d
  [[ -f d/shard-001.weft && ! -L d/shard-001.weft ]] || fail "repair made a link to $there"
done
[[ "$(cat victim)" = mine && ! -e absent ]] || fail "repair wrote through a link"
expect 0 verify d

# --- long names

long=$(printf 'n%.0s' $(seq 255))
expect 0 decode d --output "$long"
cmp in "$long" || fail "decode to a long name"
deep=$PWD
for _ in $(seq 4); do deep=$deep/$(printf 'f%.0s' $(seq 200)); done
mkdir -p "$deep"
expect 3 info "$deep/absent"
says "/absent: No such file or directory" err
expect 1 info "$deep" # whatever the reason: it is reported
says "/f*: there are no shards here" err
expect 3 encode "$deep/absent" --output-dir e
says "/absent: No such file or directory" err
expect 3 info "$(printf 'f/%.0s' $(seq 2045))"
says "File name too long" err

# --- JSON of every failure; for the command line, see json_errors_test.sh

json() { # CODE WORD ARGUMENT...
  local code=$1 word=$2
  shift 2
  expect "$code" "$@" --json
  [ -s out ] || mv err out
  python3 -c 'import json, sys
got = json.load(open("out"))
assert got["exit_code"] == int(sys.argv[1]), got
assert sys.argv[2] in got["error"], got' "$code" "$word" 2>err || fail "JSON of weft store $*: $(cat err out)"
}
json 3 "absent: No such file" encode absent --output-dir e
json 2 "exists: encode needs" encode in --output-dir d
json 3 "absent: No such file" update d absent --offset 0
json 3 "absent: No such file" verify d --key absent
json 3 "absent: No such file" read d --key absent
printf short >short
json 2 "at least 16 bytes" info d --key short
json 4 "backend nonsense" repair d --backend nonsense
json 4 "backend nonsense" decode d --output - --backend nonsense
json 3 "absent" scrub absent

# --- what is lost is reported: stripes 1 and 2 of four

for shard in 0 1 2; do
  for stripe in 1 2; do
    printf '\377\0\377' | dd of=d/shard-00$shard.weft bs=1 seek=$((256 + stripe * 10032 + 5)) conv=notrunc status=none
  done
done
for call in verify scrub repair; do
  expect 1 $call d --json
  says '"lost":\[{"first_stripe":1,"last_stripe":2,"offset":30000,"length":60000}\]' out
  says "bytes 30000 to 89999 of the file are lost, at least in part" err
done
expect 0 read d --length 30000 --output part
cmp part <(head -c 30000 in) || fail "what is left of a set that lost stripes"
expect 1 decode d --output copy
says "are lost" err

# --- forged headers: forge FOLDER OFFSET BYTES VALUE, in all shards, with matching digests

forge() {
  python3 - "$@" <<'PYTHON'
import glob, hashlib, sys
folder, at, count, value = sys.argv[1], *map(int, sys.argv[2:])
for path in glob.glob(folder + "/shard-*.weft"):
    with open(path, "r+b") as f:
        h = bytearray(f.read(256))
        h[at:at + count] = value.to_bytes(count, "big")
        h[192:224] = hashlib.blake2b(h[:192], digest_size=32, key=bytes(h[56:88])).digest()
        h[224:256] = hashlib.blake2b(h[:224], digest_size=32).digest()
        f.seek(0)
        f.write(h)
PYTHON
}

forged() { # OFFSET BYTES VALUE: every call ends soon, and none says that all is well
  rm -rf f
  cp -r kept f
  forge f "$@"
  for call in "verify f" "scrub f" "repair f" "decode f --output copy" "update f --offset 0 in" "info f"; do
    code=0
    # shellcheck disable=SC2086 # words
    (ulimit -v "$limit" && exec timeout 20 "$weft" store $call) >out 2>err </dev/null || code=$?
    [ "$code" = 1 ] || [ "$code" = 4 ] || [ "$code" = 2 ] || [[ $call = info* && $code = 0 ]] ||
      fail "header with $* at its place: $call: exit $code: $(cat err)"
  done
}
limit=$((1 << 20))
(ulimit -v $limit && "$weft" --version >/dev/null 2>&1) || limit=unlimited
forged 24 8 $((1 << 62))       # length
forged 24 8 $(((1 << 62) - 1)) # and not whole stripes
forged 24 8 99999999999999999
forged 20 4 $((1 << 30)) # chunk
forged 20 4 1
forged 12 2 256 # k and m
forged 16 2 0 # all the same shard
forged 10 2 255
forged 18 1 1
forged 32 8 0
forged 32 8 $(((1 << 62) + 1))
# A later format is no damage, and nothing to repair.
rm -rf f
cp -r kept f
forge f 8 2 2
cp -r f untouched
for call in "verify f" "scrub f" "repair f" "decode f --output later" "read f" "update f --offset 0 in" "info f"; do
  # shellcheck disable=SC2086 # words
  expect 3 $call
  says "f: all 5 of its shards have a format version other than 1, which this weft reads" err
done
diff -r f untouched || fail "shards of a later format were changed"
[ ! -e later ] || fail "an output from shards of a later format"
expect 3 info f --json
says '"status": *"WEFT_E_VERSION"' out
poke f/shard-000.weft 100 # and one that is corrupt
expect 1 verify f
says "f: 4 of its 5 shards have another format version" err
# One such shard: reading goes on with the others, writing leaves it alone.
rm -rf f g
cp -r kept f
cp -r kept g
forge g 8 2 2
cp g/shard-001.weft f
cp -r f untouched_too
for call in "scrub f" "repair f" "update f --offset 0 in"; do
  # shellcheck disable=SC2086 # words
  expect 3 $call
  says "f/shard-001.weft has a format version other than 1, which this weft writes" err
done
expect 0 decode f --output copy
cmp in copy || fail "decode beside a shard of a later format"
expect 1 verify f
says "shard-001.weft: it has another format version" err
diff -r f untouched_too || fail "a shard of a later format, or one beside it, was changed"
# A generation that has no next one.
rm -rf f
cp -r kept f
forge f 32 8 $((1 << 62))
expect 2 update f --offset 0 in
expect 0 decode f --output copy
cmp in copy || fail "the last of all generations"

# --- a journal whose head claims more records than there are: a file of 1 TB that takes no room

rm -rf f
cp -r kept f
if truncate -s 1T f/update.journal 2>/dev/null; then
  python3 - <<'PYTHON'
import hashlib
with open("f/shard-000.weft", "rb") as f:
    shard = f.read(256)
n = 1 << 40
head = b"WEFTJRNL" + b"\0\1" + bytes(6) + shard[40:56]
head += (2).to_bytes(8, "big") + (n // 65 - 9).to_bytes(8, "big") + n.to_bytes(8, "big") + b"\x1f" + bytes(39)
head += hashlib.blake2b(head, digest_size=32, key=shard[56:88]).digest()
with open("f/update.journal", "r+b") as f:
    f.write(head)
PYTHON
  expect 1 verify f
  says "update.journal is corrupt" err
fi

# A journal of a later version is not corrupt, and must not be removed by hand.
rm -rf f
cp -r kept f
python3 - <<'PYTHON'
import hashlib
with open("f/shard-000.weft", "rb") as f:
    shard = f.read(256)
head = b"WEFTJRNL" + b"\0\2" + bytes(6) + shard[40:56] + bytes(64)
with open("f/update.journal", "wb") as f:
    f.write(head + hashlib.blake2b(head, digest_size=32, key=shard[56:88]).digest())
PYTHON
for call in "verify f" "repair f" "decode f --output copy"; do
  # shellcheck disable=SC2086 # words
  expect 3 $call
  says "update.journal has a format version other than 1, which this weft reads" err
done
[ -e f/update.journal ] || fail "a journal of a later version was removed"

cd /
rm -rf -- "$work"
[ "$failures" -eq 0 ]

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `weft store` ends early: kill -9 at random moments, Ctrl-C, a full disk, a folder that cannot be
# written, a limit on the size of files, closed standard files. Death at every single call is
# //tests/store:crash_test.
set -euo pipefail
# shellcheck source=tests/cli/expect.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/expect.sh"

weft=$PWD/$1
program=("$weft" store)
work=$(mktemp -d -p "${TEST_TMPDIR:-/tmp}")
cd -- "$work"
seed=${WEFT_TEST_SEED:-$$}
printf 'WEFT_TEST_SEED=%s\n' "$seed"
RANDOM=$seed

head -c 3000001 /dev/urandom >in
expect 0 encode -k 4 -m 2 --stripe 256Ki in --output-dir d

# --- closed standard files: what is printed must not end up in a shard, nor count as printed

head -c 700000 /dev/urandom >changes
rm d/shard-001.weft
code=0
"$weft" store repair d <&- >&- 2>&- || code=$?
[ "$code" = 3 ] || fail "repair without standard output: exit $code"
"$weft" store update --offset 0 d changes <&- >&- 2>&- || true
"$weft" store scrub d <&- >&- 2>&- || true
expect 0 verify d

# --- a limit on the size of files

within() (
  ulimit -f 100
  "$weft" store "$@" >out 2>err
)
if ! within --help; then
  echo "SKIPPED: a limit on the size of files: the thread sanitizer cannot start within one"
else
  within encode -k 2 -m 1 in --output-dir limited && fail "encode fitted into a limit"
  says "File too large" err
  [ ! -e limited ] || fail "an encode that met a limit left a folder"
  mkfifo pausing # an input that pauses does not delay the error
  (
    exec 7>pausing
    head -c 300000 in >&7 || true
    for ((i = 0; i < 300; i++)); do
      [ ! -e told ] || exit 0
      sleep 0.1
    done
    touch paused
  ) &
  within encode -k 2 -m 1 --stripe 64Ki --threads 2 pausing --output-dir limited && fail "a pipe fitted into a limit"
  touch told
  wait "$!"
  says "File too large" err
  [ ! -e paused ] || fail "an encode that met a limit told it only once its input went on"
  rm -f pausing told paused
fi

# --- kill -9 at random moments

head -c 20000000 /dev/urandom >big
cp big other
head -c 6000000 /dev/urandom >changes
dd if=changes of=other bs=1M seek=3000001 oflag=seek_bytes conv=notrunc status=none

# took ARGUMENT...: in milliseconds
took() {
  local from
  from=$(date +%s%N)
  expect 0 "$@"
  printf '%d\n' $((($(date +%s%N) - from) / 1000000 + 1))
}

# killed MS ARGUMENT...: kills it within about as long as it takes; true if it was killed before its
# end
killed() {
  local pid delay code=0 at=$((RANDOM % $1))
  shift
  "$weft" store "$@" >/dev/null 2>&1 </dev/null &
  pid=$!
  printf -v delay '%d.%03d' $((at / 1000)) $((at % 1000))
  sleep "$delay"
  kill -9 "$pid" 2>/dev/null || true
  wait "$pid" 2>/dev/null || code=$?
  [ "$code" -eq 137 ]
}

encode_ms=$(took encode -k 4 -m 2 --stripe 256Ki big --output-dir k)
rm -f k/shard-001.weft k/shard-004.weft
repair_ms=$(took repair k)
update_ms=$(took update --offset 3000001 k changes)
expect 0 verify k
expect 0 decode k --output copy
cmp -s other copy || fail "what was timed did not do its work"
dead=0
for i in $(seq 25); do
  rm -rf k
  killed "$encode_ms" encode -k 4 -m 2 --stripe 256Ki big --output-dir k && dead=$((dead + 1))
  if "$weft" store decode k --output copy >/dev/null 2>err; then
    cmp -s big copy || fail "round $i: a killed encode decodes to other bytes"
  else
    grep -qE "there are no shards here|No such file" err || fail "round $i: $(cat err)"
    expect 0 encode -k 4 -m 2 --stripe 256Ki big --output-dir k
  fi
  rm -f k/shard-001.weft k/shard-004.weft
  killed "$repair_ms" repair k && dead=$((dead + 1))
  expect 0 decode k --output copy
  cmp -s big copy || fail "round $i: a killed repair lost bytes"
  killed "$update_ms" update --offset 3000001 k changes && dead=$((dead + 1))
  expect 0 decode k --output copy
  cmp -s big copy || cmp -s other copy || fail "round $i: a killed update left a mixture"
  expect 0 repair k
  expect 0 verify k
  [ "$(find k -type f | wc -l)" -eq 6 ] || fail "round $i: leftovers: $(ls k)"
done
printf '%d of 75 calls were killed before their end\n' "$dead"
[ "$dead" -ge 25 ] || fail "only $dead calls were killed before their end"

# --- Ctrl-C

mkfifo slow
"$weft" store encode slow --output-dir stopped >/dev/null 2>err &
pid=$!
exec 7>slow
cat big >&7
kill -TERM "$pid"
cat big >&7 || true
exec 7>&-
code=0
wait "$pid" || code=$?
[ "$code" = 143 ] || fail "after SIGTERM: exit $code: $(cat err)"
[ ! -e stopped ] || fail "an interrupted encode left a folder"

# While an input has nothing to read, an output no room, or a pipe no other end.
interrupt() { # SIGNAL ARGUMENT...: weft store must end by it, and say so
  local code=0 wanted=$((128 + $(kill -l "$1")))
  python3 - "$1" "$weft" store "${@:2}" 2>err <<'PYTHON' || code=$?
import signal, subprocess, sys, time
signal.signal(signal.SIGINT, signal.SIG_DFL)  # a runner may have ignored it, which would be inherited
child = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
time.sleep(1)
child.send_signal(signal.Signals["SIG" + sys.argv[1]])
try:
    sys.exit(child.wait(timeout=20))
except subprocess.TimeoutExpired:
    child.kill()
    sys.exit("it goes on waiting")
PYTHON
  [ "$code" = "$wanted" ] || fail "weft store ${*:2}, after SIG$1: exit $code, not $wanted: $(cat err)"
  says interrupted err
}
interrupt INT encode - --output-dir stopped
[ ! -e stopped ] || fail "an encode that was interrupted as it waited left a folder"
interrupt HUP encode - --output-dir stopped
[ ! -e stopped ] || fail "an encode whose terminal was closed left a folder"
interrupt INT encode slow --output-dir stopped
interrupt INT decode d --output slow
interrupt INT update --offset 0 d -
for threads in 1 2; do
  interrupt TERM decode d --output - --threads "$threads"
  interrupt INT read d --offset 1 --threads "$threads"
done
# A signal that was ignored when the program began stays so: SIGHUP under nohup, SIGINT of what a
# script starts with `&`.
for signal in HUP INT; do
  (
    trap '' "$signal"
    "$weft" store encode slow --output-dir "un$signal" >/dev/null 2>err &
    pid=$!
    exec 7>slow
    kill "-$signal" "$pid"
    cat in >&7
    exec 7>&-
    wait "$pid"
  ) || fail "with SIG$signal ignored: exit $?: $(cat err)"
  expect 0 verify "un$signal"
done
expect 0 verify d

# --- a full disk, a folder that cannot be written: these need a user namespace

cat >inside.sh <<'EOF'
set -u
weft=$1
mkdir -p disk && mount -t tmpfs -o size=6m tmpfs disk || exit 77
"$weft" store encode -k 4 -m 2 big --output-dir disk/d 2>err && { echo "encode fitted into a full disk"; exit 1; }
grep -q "No space left on device" err || { echo "full disk: $(cat err)"; exit 1; }
[ ! -e disk/d ] || { echo "encode left something on a full disk"; exit 1; }
"$weft" store encode -k 4 -m 2 in --output-dir disk/d >/dev/null || exit 1
rm disk/d/shard-000.weft disk/d/shard-001.weft
fallocate -l "$(($(df --output=avail -B1 disk | tail -n 1) - 500000))" disk/filler || exit 1
"$weft" store repair disk/d 2>err && { echo "repair fitted into a full disk"; exit 1; }
"$weft" store decode disk/d --output copy 2>/dev/null && cmp in copy || { echo "repair on a full disk lost bytes"; exit 1; }
"$weft" store update --offset 1 disk/d changes 2>err && { echo "update fitted into a full disk"; exit 1; }
"$weft" store decode disk/d --output copy 2>/dev/null && cmp in copy || { echo "update on a full disk lost bytes"; exit 1; }
rm disk/filler
"$weft" store repair disk/d 2>/dev/null >&2 && "$weft" store verify disk/d >/dev/null || { echo "repair afterwards"; exit 1; }
rm disk/d/shard-000.weft
mount -o remount,ro disk || exit 77
"$weft" store decode disk/d --output copy 2>/dev/null && cmp in copy || { echo "decode from a read-only disk"; exit 1; }
for call in repair scrub "update --offset 1"; do
  code=0
  "$weft" store $call disk/d $([ "$call" = "update --offset 1" ] && echo changes) >/dev/null 2>err || code=$?
  [ $code = 3 ] && grep -q "Read-only file system" err || { echo "$call, read-only: $code $(cat err)"; exit 1; }
done
"$weft" store encode in --output-dir disk/e 2>err && exit 1
grep -q "Read-only file system" err || { echo "encode, read-only: $(cat err)"; exit 1; }
EOF
code=0
unshare -Urm bash inside.sh "$weft" >said 2>&1 || code=$?
if [ "$code" = 77 ] || ! unshare -Urm true 2>/dev/null; then
  echo "SKIPPED: full disk and read-only disk: they need user namespaces that may mount a tmpfs"
elif [ "$code" != 0 ]; then
  fail "full or read-only disk: $(cat said)"
fi

rm -rf -- "$work"
[ "$failures" -eq 0 ]

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `weft peer join` to a file whose close fails (the stream was played, but is not on the disk)
# reports an error of the output, whatever else ended the peer.
weft=$(readlink -f -- "$1")
late=$(readlink -f -- "$2")
# shellcheck source=tests/net/processes.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/processes.sh"

head -c 1000000 /dev/urandom >in.bin
"$weft" peer source --input in.bin --listen 127.0.0.1:0 --rate 24M </dev/null 2>source.log &
pids+=("$!")
for ((i = 0; i < 200; i++)); do
  port=$(sed -n 's/.* listen=[^ ]*:\([0-9]*\).*/\1/p' source.log)
  [ -n "$port" ] && break
  sleep 0.05
done

join() { # NAME OUTPUT EVENT: runs until its log has the event
  "$late" peer join --source "127.0.0.1:$port" --output "$2" --startup 0 --linger 1 </dev/null >std.bin 2>"$1.log" &
  pid=$!
  pids+=("$pid")
  for ((i = 0; i < 200; i++)); do
    grep -qs "^info $3" "$1.log" && break
    sleep 0.05
  done
}

told() { # NAME TEXT: expects that it ends with 3, and says so once
  wait "$pid"
  local code=$?
  [ "$code" -eq 3 ] || fail "$1: exit $code, not 3"
  [ "$(grep -c "$2: No space left on device" "$1.log")" -eq 1 ] || fail "$1: it does not say so once"
}

join file out.bin ended
cmp in.bin out.bin || fail "the file"
told file out.bin
join standard - ended
cmp in.bin std.bin || fail "standard output"
told standard 'standard output'
join stopped out2.bin stream
kill -TERM "$pid"
told stopped out2.bin
join interrupted out3.bin stream
kill -INT "$pid"
told interrupted out3.bin
join device /dev/null ended # this one has nothing to report
wait "$pid" || fail "to /dev/null: exit $?"
"$late" peer join --source "127.0.0.1:$port" --output /dev/full --startup 0 </dev/null 2>full.log &
pid=$!
told full /dev/full
mkfifo pipe
"$late" peer join --source "127.0.0.1:$port" --output pipe --startup 0 </dev/null 2>pipe.log &
pid=$!
head -c 1000 pipe >/dev/null
wait "$pid"
code=$?
[ "$code" -eq 3 ] || fail "a reader that goes: exit $code, not 3"
grep -q 'pipe: Broken pipe' pipe.log || fail "a reader that goes: it does not say so"
exit "$bad"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Real peers use a policy from a file (--scheme ./FILE), compiled as its user does, and a wrong one
# ends its peer with an error.
#
#   policy_test.sh WEFT SOURCE
weft=$PWD/$1 policy=$PWD/$2 include=$PWD/peer/engine/include
# shellcheck source=tests/net/processes.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/processes.sh"

compile() { # NAME < SOURCE: makes NAME.so
  "${CC:-cc}" -std=c11 -shared -fPIC -O2 -I"$include" -o "$1.so" -x c -
}
compile own <"$policy"
compile wrong <<'EOT'
#include <weft/peer_policy.h>
static bool pick(void *user, const weft_policy_view *view, const weft_rng *rng, weft_policy_choice *out) {
  (void)user, (void)rng;
  *out = (weft_policy_choice){.neighbour = view->neighbours, .segment = view->first, .count = 1};
  return view->neighbours > 0;
}
WEFT_POLICY_FILE = {WEFT_POLICY_LAYOUT, {.name = "wrong", .pick = pick}};
EOT

head -c 600000 /dev/urandom >in.bin
for mode in --rate=8M --linger=1; do
  start source source --input in.bin --listen 127.0.0.1:0 --scheme ./own.so "$mode"
  port=$(port_of source)
  timeout 60 "$weft" peer join --source "127.0.0.1:$port" --output out.bin --startup 0 --linger 0 --scheme ./own.so 2>join.log ||
    fail "join exits $?"
  cmp in.bin out.bin || fail "$mode: other bytes came"
  kill -TERM "$pid" 2>/dev/null
  wait "$pid"
done

start source source --input in.bin --listen 127.0.0.1:0 --rate 8M --scheme ./wrong.so
port=$(port_of source)
timeout 60 "$weft" peer join --source "127.0.0.1:$port" --output out.bin --timeout 1 2>join.log
code=$?
[ "$code" -eq 1 ] || [ "$code" -eq 3 ] || fail "join of a source that is gone exits $code"
wait "$pid"
code=$?
[ "$code" -eq 2 ] || fail "a source whose policy is wrong exits $code"
grep -q '^weft peer: the policy wrong made a choice outside its view' source.log || fail 'it does not say why'
[ "$(wc -l <source.log)" -lt 20 ] || fail "it says $(wc -l <source.log) lines"

expect 2 "--scheme needs push, pull or a file such as ./policy.so, not 'own.so'" join --source 127.0.0.1:1 --output out.bin --scheme own.so
expect 3 './nosuch.so' source --input in.bin --scheme ./nosuch.so
exit "$bad"

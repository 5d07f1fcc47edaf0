#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `weft sim` uses a policy from a file (scheme = ./FILE), compiled as its user does: its decisions,
# what is reported of it, and which files are refused.
set -euo pipefail
# shellcheck source=tests/cli/expect.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/expect.sh"

weft=$PWD/$1
program=("$weft")
source=$PWD/$2
include=$PWD/peer/engine/include
work=${TEST_TMPDIR:-$(mktemp -d)}
cd -- "$work"
rm -rf sweep

small=(--peers 30 --duration 10s --arrival together --departure stay --quiet)
compile() { # NAME < SOURCE: makes NAME.so
  "${CC:-cc}" -std=c11 -Wall -Wextra -Werror -shared -fPIC -O2 -I"$include" -o "$1.so" -x c -
}
state() { sed -n 's/.*"state_hash":"\([0-9a-f]*\)".*/\1/p' out; }
run() { # SCHEME OPTION...: its state in $state
  expect 0 sim "${small[@]}" --json --no-files --scheme "$@"
  state=$(state)
  [ -n "$state" ] || fail "--scheme $1: no state hash"
}

compile most_behind <"$source"
run push --threads 1
push=$state
run ./most_behind.so --threads 1
own=$state
[ "$own" != "$push" ] || fail 'a policy of its own sends what push does'
says '"policy":{"name":"most-behind","blake2b":"'"$(b2sum -l 256 most_behind.so | cut -d' ' -f1)"'"}' out
says '"scheme":"./most_behind.so"' out
run "$work/most_behind.so" --threads 3
[ "$state" = "$own" ] || fail 'three threads end in another state than one'
cp most_behind.so $'p\xff.so'
run $'./p\xff.so'
python3 -c 'import json; r = json.load(open("out")); assert r["parameters"]["stream"]["scheme"] == "./p\ufffd.so", r' ||
  fail 'a name that is no text has no place in run.json'
expect 0 sim "${small[@]}" --out bytes --scheme $'./p\xff.so'
python3 -c 'import csv; [r] = csv.DictReader(open("bytes/summary.csv", encoding="utf-8")); assert r["scheme"] == "./p\ufffd.so", r' ||
  fail 'a name that is no text is as it was in summary.csv'

# It may leave decisions to weft's own policy, and may be wrong.
compile as_push <<'EOT'
#include <weft/peer_policy.h>
static bool pick(void *user, const weft_policy_view *view, const weft_rng *rng, weft_policy_choice *out) {
  (void)user;
  return weft_policy_push.pick(weft_policy_push.user, view, rng, out);
}
WEFT_POLICY_FILE = {WEFT_POLICY_LAYOUT, {.name = "as-push", .pick = pick}};
EOT
run ./as_push.so
[ "$state" = "$push" ] || fail 'what asks push is not push'
compile nonsense <<'EOT'
#include <weft/peer_policy.h>
static bool pick(void *user, const weft_policy_view *view, const weft_rng *rng, weft_policy_choice *out) {
  (void)user, (void)rng;
  *out = (weft_policy_choice){.neighbour = view->neighbours + 7, .segment = UINT64_MAX, .count = 9999};
  return true;
}
WEFT_POLICY_FILE = {WEFT_POLICY_LAYOUT, {.name = "nonsense", .pick = pick}};
EOT
wrong 2 'the policy nonsense made a choice outside its view' sim "${small[@]}" --no-files --scheme ./nonsense.so

# A sweep runs again what another file of that name decides, and nothing else.
runs() { find sweep/runs -name run.json | wc -l; }
cp most_behind.so swept.so
expect 0 sim "${small[@]}" --sweep scheme=push,./swept.so --out sweep
[ "$(runs)" -eq 2 ] || fail "a sweep of two schemes has $(runs) runs"
expect 0 sim "${small[@]}" --sweep scheme=push,./swept.so --out sweep
[ "$(runs)" -eq 2 ] || fail "the same sweep again has $(runs) runs"
cp as_push.so swept.so
expect 0 sim "${small[@]}" --sweep scheme=push,./swept.so --out sweep
[ "$(runs)" -eq 3 ] || fail "with another policy in the file the sweep has $(runs) runs"

# A scenario may name a policy; that of a server ignores it.
printf '[stream]\nscheme = ./most_behind.so\n' >own.ini
expect 0 sim own.ini "${small[@]}" --json --no-files
[ "$(state)" != "$push" ] || fail 'a scenario with a policy of its own runs push'
expect 0 sim streaming-server --scheme ./nosuch.so --peers 2 --segment-blocks 8 --duration 5s --quiet --no-files

wrong 3 './nosuch.so' sim --scheme ./nosuch.so --no-files
wrong 2 "'most_behind.so', which is not one of push, .*, or a file such as ./policy.so" sim --scheme most_behind.so --no-files
wrong 2 'scheme is too long' sim --scheme "./$(printf '%0300d' 0)" --no-files
wrong 2 'own.ini: ' sim --scheme ./own.ini --no-files
compile empty <<<'int weft_policy_elsewhere;'
wrong 2 'empty.so does not define a policy' sim --scheme ./empty.so --no-files
sed 's/{WEFT_POLICY_LAYOUT,/{WEFT_POLICY_LAYOUT + 1,/' "$source" | compile old
wrong 2 'old.so was compiled for another version' sim --scheme ./old.so --no-files
for lacks in '.name = "most-behind",' ', .pick = most_behind'; do
  sed "s/$lacks//" "$source" | "${CC:-cc}" -shared -fPIC -I"$include" -o lacking.so -x c - 2>compiler
  wrong 2 'lacking.so lacks a name, or both pick and ask' sim --scheme ./lacking.so --no-files
done
exit "$failures"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Errors under --json, of the command line and of what it names, are one JSON object on standard
# output, with the text on standard error; only on standard error where `weft store` writes data to
# the other; and a line of the log where `weft peer` keeps that in JSON.
set -euo pipefail
# shellcheck source=tests/cli/expect.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/expect.sh"

weft=$PWD/$1
program=("$weft")
cd -- "${TEST_TMPDIR:-$(mktemp -d)}"

# object FILE CODE COMMAND TEXT: FILE holds exactly one object, which says so
object() {
  python3 - "$@" <<'PYTHON' || fail "$3 --json: $1 holds $(cat "$1")"
import json, sys
path, code, command, text = sys.argv[1:]
told = open(path).read()
assert told.count("\n") == 1 and told.endswith("\n"), told
got = json.loads(told)
assert got["exit_code"] == int(code) and got["command"] == command and got["version"], got
assert text in got["error"], got
PYTHON
}

# told CODE COMMAND TEXT ARGUMENT...: the object on standard output, the text on standard error
told() {
  local code=$1 command=$2 text=$3
  shift 3
  expect "$code" "$@"
  object out "$code" "$command" "$text"
  says "^weft $command: .*$text" err
  [ "$(wc -l <err)" = 1 ] || fail "$*: standard error has $(cat err)"
}

# alone CODE COMMAND TEXT ARGUMENT...: the object on standard error, nothing else anywhere
alone() {
  local code=$1 command=$2 text=$3
  shift 3
  expect "$code" "$@"
  object err "$code" "$command" "$text"
  [ ! -s out ] || fail "$*: standard output has $(cat out)"
}

# logged CODE COMMAND TEXT ARGUMENT...: as alone, for weft peer, and a line of its log
logged() {
  alone "$1" "$2" "$3" peer "${@:4}"
  python3 -c 'import json; line = json.load(open("err")); assert (line["level"], line["event"]) == ("error", "failed") and line["time"]' ||
    fail "weft peer ${*:4}: no line of a log: $(cat err)"
}

head -c 1000 /dev/urandom >in
expect 0 store encode -k 2 -m 1 in --output-dir d

expect 2 nosuch --json
object out 2 '' "unknown command 'nosuch'"
says "^weft: unknown command 'nosuch'" err
expect 2 --json demo
object out 2 '' "options go after the command"
says "^weft: options go after the command, but '--json' comes first" err
told 2 demo 'Unknown option' demo --json --no-such-option
told 2 demo "unexpected argument 'x'" demo x --json
told 2 demo 'peers must be' demo --peers 0 --json
told 2 demo 'not an empty string' demo --json --input ''
told 3 demo 'missing: No such file' demo --json --input missing
told 4 demo 'no-such-row' demo --json --backend no-such-row
told 2 sim 'Unknown option' sim --json --no-such-option
told 2 sim "no scenario 'nosuch'" sim --json nosuch
told 2 sim 'loss needs' sim --json --loss x --no-files
told 2 sim 'json is for one run' sim --json --seeds 2
told 2 sim "no scenario 'nosuch'" sim --json --show nosuch
told 3 sim 'No such file' sim --json --no-files --arrival trace --trace missing
told 2 backends "unexpected argument 'x'" backends --json x
told 2 store "unknown call 'dance'" store dance --json
told 2 'store encode' 'needs IN, not 0 arguments' store encode --json
told 2 'store encode' 'output-dir is required' store encode in --json
told 2 'store encode' "unknown code 'x'" store encode in --code x --output-dir e --json
told 2 'store decode' 'output is required' store decode d --json
told 2 'store info' 'Unknown option' store info d --json --no-such-option
told 3 'store info' 'absent: No such file' store info absent --json
told 2 'store read' 'offset needs' store read d --offset x --output copy --json
told 3 'store decode' 'absent' store decode absent --output copy --json
printf x >"$(printf 'a\377b')"
told 2 demo 'unexpected argument' demo --json "$(printf 'a\377b')" # invalid UTF-8

alone 2 'store read' 'offset needs' store read d --offset x --json
alone 2 'store read' 'Unknown option' store read d --json --no-such-option
alone 2 'store decode' 'needs FOLDER' store decode --output - --json
alone 2 'store decode' 'Unknown option' store decode d -o - --json --no-such-option
alone 2 'store decode' 'Unknown option' store decode d --output=/dev/stdout --json --no-such-option
alone 3 'store read' 'absent: No such file' store read absent --json

logged 2 peer "needs source, join or tracker, not 'relay'" relay --log-format json
logged 2 peer "needs source, join or tracker, not ''" '' --log-format json
logged 2 peer "needs source, join or tracker, not '--log-format'" --log-format json source
logged 2 peer "needs source, join or tracker, not '--log-format=json'" --log-format=json
WEFT_PEER_LOG_FORMAT=json logged 2 peer "needs source, join or tracker, not ''" ''
WEFT_PEER_LOG_FORMAT=json logged 2 peer 'needs source, join or tracker'
logged 2 'peer source' 'Unknown option' source --log-format json --no-such-option
logged 2 'peer source' 'Unknown option' source --no-such-option --log-format=json
logged 2 'peer tracker' "unexpected argument 'x'" tracker x --log-format json
logged 2 peer 'input is missing' source --log-format json
logged 2 peer 'rate needs' source --input in --rate fast --log-format json
logged 2 peer 'absent.conf' source --log-format json --config absent.conf
logged 3 peer 'absent: No such file' source --log-format json --input absent
logged 4 peer 'backend no-such-row' source --log-format json --input in --backend no-such-row
logged 5 peer 'source-key needs' join --log-format json --source 127.0.0.1:9 --output x --source-key x
logged 2 'peer source' 'Unknown option' source --log-format text --no-such-option --log-format json
WEFT_PEER_LOG_FORMAT=json logged 2 peer 'input is missing' source
WEFT_PEER_LOG_FORMAT=json WEFT_PEER_LISTN=:1 logged 2 peer 'WEFT_PEER_LISTN in the environment' source
printf '[peer]\nlog-format = json\n' >json.conf
logged 2 peer 'input is missing' source --config json.conf
printf '[peer]\nlistn=:1\nlog-format = json\n' >listn.conf
logged 2 peer "'listn' is not an option" source --config listn.conf --input in

# Calls without --json print none, and success is one object as before.
wrong 2 'Unknown option' demo --no-such-option
wrong 2 "accepts no value, but has 'false'" demo --json=false
wrong 2 'unexpected argument' demo -- --json
wrong 2 '^weft peer source: Unknown option' peer source --no-such-option
wrong 2 '^usage: weft peer source' peer
wrong 2 '^weft peer: .*needs text or json' peer source --input in --log-format jsn
WEFT_PEER_LOG_FORMAT=json wrong 2 '^weft peer: .*input is missing' peer source --log-format text
wrong 2 '^weft peer: .*input is missing' peer source --config json.conf --log-format text
WEFT_NOBODY_READS=1 expect 0 backends --json
says 'WEFT_NOBODY_READS in the environment' err
python3 -c 'import json; assert "backends" in json.load(open("out"))' || fail "a remark beside JSON: $(cat out)"
if [ -w /dev/full ]; then
  code=0
  "$weft" backends --json >/dev/full 2>err || code=$?
  [ "$code" = 3 ] || fail "a full disk: exit $code"
  says 'standard output could not be written' err
fi

[ "$failures" = 0 ] || exit 1
printf 'errors under --json: all as documented\n'

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Names of files with control characters, which a terminal would obey, appear escaped in all that is
# printed for people, and whole in JSON.
set -euo pipefail
# shellcheck source=tests/cli/expect.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/expect.sh"

program=("$PWD/$1")
cd -- "${TEST_TMPDIR:-$(mktemp -d)}"

name=$'n\e[2J\nweft: all is well\r\xc2\x9b1m\x9b' # to be shown in one line
shown='n\\x1b\[2J\\x0aweft: all is well\\x0d\\xc2\\x9b1m' # what follows is no UTF-8

# shows FILE: FILE has the name, escaped, in one line
shows() {
  says "$shown" "$1"
  if LC_ALL=C grep -qP '[\x01-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|m\x9b' "$1" || grep -q '^weft: all' "$1"; then
    fail "$1 is not printable: $(cat -v "$1")"
  fi
}

# refused ARGUMENT...: an error that names what was named so
refused() {
  local got=0
  "${program[@]}" "$@" >out 2>err </dev/null || got=$?
  [ "$got" != 0 ] || fail "$*: exit 0"
  shows err
}

refused "$name"
refused demo "$name"
refused demo --input "$name"
refused demo --peers "$name"
refused demo "--json=$name"
refused "--$name" # of no command
refused store verify "$name"
refused store encode "$name" --output-dir d
refused sim "$name"
refused sim --scheme "./$name"
refused sim --show "$name"
refused peer join --source "$name" --output -
refused peer source --input "$name" --rate 1M --listen "$name:1"
refused bench "$name"
refused bench rlnc "$name"
refused bench rlnc "--$name"
refused bench rlnc --rows "$name"
refused bench rlnc --operations "$name"
refused bench storage --shapes "$name"
refused bench compare "$name" "$name"
WEFT_BACKEND=$name refused demo

head -c 1000 /dev/urandom >in
expect 0 store encode -k 2 -m 1 in --output-dir "$name"
shows out
expect 0 store verify "$name"
shows out
printf x >"$name/shard-000.weft"
expect 0 store repair "$name"
shows out
cp in "$name/in"
expect 0 demo --input "$name/in" --peers 2
shows out
expect 0 sim --duration 9s --peers 2 --out "$name/run"
shows out
expect 0 sim --duration 9s --peers 2 --sweep loss=0,0.01 --out "$name/runs"
shows out

expect 3 store verify $'no\e' --json
python3 -c 'import json; assert "no\x1b" in json.load(open("out"))["error"]' || fail "JSON: $(cat out)"

# JSON has them whole, but escapes all that a terminal may obey: DEL and the controls above 0x7F, too.
whole=$'a bc\e\x7f\xc2\x9b\xc3\xa9'
# json WHERE: FILE is such JSON, and its field WHERE has the name
json() {
  if LC_ALL=C grep -qP '[^\x20-\x7e]' "$2"; then
    fail "$2 is not printable: $(cat -v "$2")"
  fi
  python3 - "$1" "$2" "$whole" <<'PYTHON' || fail "$2 lacks the name: $(cat -v "$2")"
import json, sys
where, file, name = sys.argv[1:]
texts = [json.loads(line).get(where, '') for line in open(file)]
sys.exit(not any(name in text for text in texts))
PYTHON
}
expect 3 store verify "$whole" --json
json error out
expect 3 peer source --input "$whole" --rate 1M --log-format json
json error err
printf '[network]\npeers = 2\n' >"$whole"
expect 0 sim "$whole" --duration 9s --no-files --json
json scenario out
expect 3 peer join --source "$whole.invalid:1" --output - --log-format json
json error err

exit "$((failures > 0))"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `weft sim` refuses wrong scenarios, values, traces and folders, and says why.
set -euo pipefail
# shellcheck source=tests/cli/expect.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/expect.sh"

weft=$PWD/$1
program=("$weft")
work=${TEST_TMPDIR:-$(mktemp -d)}
cd -- "$work"

small=(--peers 30 --duration 15s --arrival together --departure stay --threads 2)

expect 0 sim --show lossy-mobile
cp out shown.ini
wrong 2 "there is no scenario 'lossy-mobil'.*similar: lossy-mobile" sim --show lossy-mobil
expect 0 sim lossy-mobile --peers 20 --duration 5s --no-files
grep '^state hash' out >shipped-state
expect 0 sim shown.ini --peers 20 --duration 5s --no-files
grep '^state hash' out | cmp -s - shipped-state || fail "what --show shows runs otherwise"
: >nothing.ini
expect 0 sim nothing.ini --peers 20 --duration 5s --no-files
grep '^state hash' out >default-state
expect 0 sim --keys
cp out keys.ini
[ "$(grep -c '^#\?[a-z-]* =' keys.ini)" -ge 70 ] || fail "--keys has few keys"
expect 0 sim keys.ini --peers 20 --duration 5s --no-files
grep '^state hash' out | cmp -s - default-state || fail "what --keys shows is not what holds without it"
printf '[network]\npeers = 10\npears = 3\n' >key.ini
wrong 2 "key.ini:3: there is no key 'pears' in \[network\]; similar: peers$" sim key.ini
printf '# a comment\n[network]\n\npeers = many\n' >value.ini
wrong 2 'value.ini:4: peers needs a whole number' sim value.ini
printf '[stream]\nlag = 5 s\n' >group.ini
wrong 2 'group.ini:2: lag belongs in \[engine\]' sim group.ini
printf '[engine]\nlag = 5\n' >unit.ini
wrong 2 'unit.ini:2: lag needs a time such as' sim unit.ini
printf '[network]\npeers = 10\n[nonsense]\na = 1\n' >name.ini
wrong 2 'name.ini:3: there is no group \[nonsense\], only \[stream\] \[engine\] \[network\] .*\[class NAME\]$' sim name.ini
printf '[network]\npeers 10\n' >line.ini
wrong 2 'line.ini:2: ' sim line.ini
printf '[network]\nloss = 0.1\nlosses = 2\n[stream]\nrate = 1M\n[network]\n loss=0.2\n' >twice.ini
wrong 2 'twice.ini:7: loss is already set in \[network\] on line 2$' sim twice.ini
printf '[stream]\n#rate = 1M\nrate = 2M\n\nrate = 2M\n' >same.ini
wrong 2 'same.ini:5: rate is already set in \[stream\] on line 3$' sim same.ini
printf '[network]\n  peers = many\n' >blank.ini
wrong 2 'blank.ini:2: peers needs a whole number' sim blank.ini
printf '[network]\nclasses = mine:1\n[class mine]\nupload = 2M\nspeed = 3\n' >class.ini
wrong 2 "class.ini:5: a class has no key 'speed'" sim class.ini
printf '[network]\npeers[de] = 5\n' >translated.ini
wrong 2 "translated.ini:2: there is no key 'peers\[de\]' in \[network\]" sim translated.ini
printf '[stream]\n[network] # of five\npeers = 5\n' >remark.ini
wrong 2 'remark.ini:2: this is not a \[group\]' sim remark.ini
printf '[network]\rpeers = 5\r' >returns.ini
wrong 2 'returns.ini:1: this is not a \[group\]' sim returns.ini
printf '\357\273\277[network]\r\npeers = 5\r\n' >windows.ini # a byte order mark
expect 0 sim windows.ini --duration 5s --no-files
grep -q '^  viewers  *5$' out || fail "a text of Windows: $(cat out)"
printf '\357\273\277[network]\r\npeers = 5\r\npeers = 6\r\n' >windows.ini
wrong 2 'windows.ini:3: peers is already set in \[network\] on line 2' sim windows.ini
printf '{\n"scenario": "x",\n' >run.json
wrong 2 '^weft sim: run.json:[0-9]*: this is not JSON$' sim run.json
for wrong_one in '}|it has no parameters: it is not a run.json' \
  ', "parameters": {"network": {"peers": "many"}}}|peers needs a whole number' \
  ', "parameters": {"network": {"peers": 4}}}|peers in \[network\] is not a text$' \
  ", \"parameters\": {\"network\": {\"pears\": \"4\"}}}|there is no key 'pears' in \[network\]\$" \
  ', "parameters": {"classes": [{"name": "mine", "upload_bits_per_s": 5e6}]}}|class mine is not among classes$' \
  ', "parameters": {"classes": [{"name": "plain", "upload_bits_per_s": 5}]}}|upload must be 1000 to' \
  ', "parameters": {"classes": [{"name": "plain"}]}}|class plain has no number upload_bits_per_s$' \
  ', "parameters": {"classes": [{}]}}|a class has no name$'; do
  printf '{"scenario": "x"%s\n' "${wrong_one%%|*}" >run.json
  wrong 2 "^weft sim: run.json: ${wrong_one#*|}" sim run.json
done
printf '[network]\nclasses = dsl:1 mine:1\n[class mine]\nupload = 2M\nline = 1M\n' >line.ini
wrong 2 'class mine: line is below its upload$' sim line.ini
wrong 2 "there is no key\|Unknown option" sim --no-such-key 1
wrong 2 '--scheme is .dance., which is not one of push' sim --scheme dance
wrong 2 '--loss must be 0 to 0.9, not 2' sim --loss 2
wrong 2 '--loss must be 0 to 0.9, not 0.95' sim --loss '95 %'
wrong 2 "--loss needs a share such as 0.05 or 5 %, not '5 %%'" sim --loss '5 %%'
wrong 2 "--loss needs a share such as 0.05 or 5 %, not ' '" sim --loss ' '
# Decimal numbers alone, in any kind of value.
for number in 0x10 +3 0X1p4 infinity nan; do
  wrong 2 "--peers needs a whole number such as 4 or 20M, not '$number'" sim --peers "$number"
  wrong 2 "--seeds needs a whole number such as 10\|integer value" sim --seeds "$number"
  wrong 2 "--loss needs a share such as 0.05 or 5 %, not '$number'" sim --loss "$number"
  wrong 2 "--duration needs a time such as .*, not '$number s'" sim --duration "$number s"
  wrong 2 "--stay-mean needs a time such as 5 min, not '$number s'" sim --stay-mean "$number s"
  wrong 2 '--matrix may have up to 8 rows of delays' sim --matrix "1 $number; $number 1"
  wrong 2 'classes: the weight of dsl must be' sim --classes "dsl:$number"
  printf '0\n%s 5\n' "$number" >numbers.txt
  wrong 2 'numbers.txt:2' sim --arrival trace --trace numbers.txt --peers 5 --no-files
done
wrong 2 "--arrivals-per-s needs a number such as 0.5, not '5 %'" sim --arrivals-per-s '5 %'
wrong 2 'source-upload is below rate' sim --source-upload 100k
wrong 2 "--rate needs a whole number such as 4 or 20M, not '8.0000001k'" sim --rate 8.0000001k
# Whole numbers whose product is not exact in binary.
printf '[network]\nclasses = mine:1\n[class mine]\nupload = 8.2M\ndownload = 33.3M\ndelay = 1.001 ms\n' >digits.ini
expect 0 sim digits.ini --peers 3 --duration 5s --lag 3s --rate 1.001M --source-upload 2.01M --arrivals-per-s 8.2k --no-files --json
for value in '"rate":"1001000"' '"source-upload":"2010000"' '"arrivals-per-s":"8200"' \
  '"upload_bits_per_s":8200000,"download_bits_per_s":33300000' '"delay_ms":1.00[01]'; do
  says "$value" out
done
wrong 2 'download is below rate' sim --mode vod --rate 18M --source-upload 1G --segment-blocks 1024 --block-bytes 4096 --lag 8s --startup 4s
wrong 2 'neighbours-max must be at least' sim --neighbours 20 --neighbours-max 4
wrong 2 'source-neighbours is more than' sim --source-neighbours 200
wrong 2 'source-neighbours is below neighbours' sim download --source-neighbours 2 --no-files
wrong 2 '--requests must be 0 to 32' sim --requests 33 --no-files
wrong 2 'checksum-every needs segment-blocks of at most 128' sim polluted --segment-blocks 256 --window 48 --no-files
wrong 2 'scheme = rarest needs fidelity = bytes or auto' sim --scheme rarest --fidelity rank --no-files
wrong 2 'coded-only needs a coded scheme' sim --scheme rarest --coded-only true --no-files
for setting in 'nat = 100 %' 'symmetric = 1'; do
  printf '[network]\npeers = 4\nclasses = mine:1\n[class mine]\n%s\n' "$setting" >all.ini
  expect 0 sim all.ini --duration 5s --quiet --no-files
done
for wrong_one in 'nat = 1.1:nat must be 0 to 1' 'loss = 1:loss must be 0 to 0.9999' 'delay = 20 s:delay must be 0 s to 10 s'; do
  printf '[network]\npeers = 4\nclasses = mine:1\n[class mine]\n%s\n' "${wrong_one%%:*}" >all.ini
  wrong 2 "all.ini:5: ${wrong_one#*:}\$" sim all.ini --duration 5s --quiet --no-files
done
printf '[network]\npeers = 10\nclasses = plain:1 runs:1\n[class runs]\nloss = 0.9\nburst = 2\n' >runs.ini
wrong 2 'class runs: loss is more than burst / (1 + burst) = 0.6667' sim runs.ini --no-files
sed -i -e 's/^loss = .*/loss = 0.66/' -e 's/^burst = .*/burst = 2/' runs.ini
expect 0 sim runs.ini --duration 5s --no-files
wrong 2 'duration must be at least two segments, and one lasts 0.6827 s' sim --duration 1s
wrong 2 'duration must be at least two segments, and one lasts 5.461 s' sim streaming-server --duration 10s
wrong 2 'lag must be at least two segments, and one lasts 0.6827 s' sim --lag 1s
expect 0 sim storage-swarm --peers 40 --objects 20 --duration 2d --no-files
cp out days
expect 0 sim storage-swarm --peers 40 --objects 20 --duration 48h --no-files
grep '^state hash' out | cmp -s - <(grep '^state hash' days) || fail "two days are not 48 hours"
wrong 2 'window holds less than lag' sim --window 2
wrong 2 'a lag of 8 s needs 33 segments of 0.2621 s each, but window is 32; raise window or' sim --rate 2M --source-upload 9M --lag 8s --window 32
expect 0 sim --rate 2M --source-upload 9M --lag 8s --window 33 --peers 5 --duration 5s --no-files
wrong 2 'raise window and segment-blocks, or lower lag' sim --rate 200M --source-upload 900M --lag 60s --window 4096
wrong 2 'peers must be at least twice' sim storage-swarm --peers 20
wrong 2 'data-shards and parity-shards must be at most 256' sim storage-swarm --peers 999 --data-shards 200 --parity-shards 100
for below in 1 8; do
  wrong 2 'repair-below must be 0 (all) or above data-shards' sim storage-swarm --peers 40 --repair-below $below --no-files
done
for below in 0 9 16; do
  expect 0 sim storage-swarm --peers 40 --duration 48h --repair-below $below --no-files
done
wrong 2 'repair-below is more than all shards' sim storage-swarm --peers 40 --repair-below 17 --no-files
wrong 2 'a segment is shorter than 1 us' sim vod --classes server:1 --rate 1G --source-upload 1G --segment-blocks 1 --block-bytes 64 --no-files
wrong 2 'a segment is shorter than 1 us' sim streaming-server --classes server:1 --rate 1G --segment-blocks 1 --block-bytes 64 --no-files
wrong 2 'this machine has .*fidelity = rank$' sim --peers 20M --fidelity bytes
wrong 2 'this machine has .*lower objects, shard-bytes or the number of shards$' sim storage-swarm --objects 1M --shard-bytes 1Mi
wrong 2 'this machine has .*lower peers, segment-blocks or block-bytes$' sim streaming-server --peers 20M
wrong 2 "fidelity is 'byte', which is not one of bytes, coefficients, rank, auto$" sim --fidelity byte
wrong 2 "there is no scenario 'no-such', and no file of that name (weft sim --list" sim no-such
wrong 2 "'flash-crwod', and no file of that name; similar: flash-crowd (" sim flash-crwod
wrong 2 '; similar: storage-swarm (' sim storage
wrong 2 'directory' sim /
printf '[network]\npeers = 10\n\0\377' >binary.ini
wrong 2 '^weft sim: binary.ini: not a text file' sim binary.ini
wrong 3 'no-such-trace' sim --arrival trace --trace no-such-trace --no-files
wrong 3 'no-such-träce' sim --arrival trace --trace no-such-träce --no-files
wrong 3 '^weft sim: /: Is a directory' sim --arrival trace --trace / --no-files
wrong 2 '--gnuplot is for files' sim --gnuplot --no-files
wrong 2 '--gnuplot plots runs over a swept key, so it needs --sweep' sim --gnuplot --seeds 2
wrong 2 '--out is for files' sim --out x --no-files
: >no-arrivals
wrong 2 'no-arrivals: a trace has one arrival per line' sim --arrival trace --trace no-arrivals --no-files
for line in abc '1,4' '1 4 x' '1 -4' '1 nan' 'inf' '-1' '1 4s'; do # none of them may be read in part
  printf '0 2\n%s\n' "$line" >odd-trace
  wrong 2 '^weft sim: odd-trace:2: a trace has one arrival per line' sim --arrival trace --trace odd-trace --no-files
  wrong 2 '^weft sim: odd-trace:2: a trace has one arrival per line' sim streaming-server --arrival trace --trace odd-trace --no-files
done
{ printf '#%0400d\n\n0 2\n' 7 && printf '1%400s\n%300s\n0.5\n' '' ''; } >falling-trace
wrong 2 'falling-trace:6: a trace has' sim --arrival trace --trace falling-trace --no-files
wrong 3 '^weft sim: no-such-trace: No such file' sim streaming-server --arrival trace --trace no-such-trace --no-files
{ printf '#%0400d\n\n' 7 && printf '0\n0.5\t20 \r\n1e0\n'; } >good-trace
expect 0 sim --arrival trace --trace good-trace --no-files --duration 5s
grep -q '^  viewers  *3$' out || fail "three arrivals: $(cat out)"
printf '0\n1\n2\n' >long-trace
wrong 2 '^weft sim: long-trace:3: more arrivals than peers: raise peers$' sim --arrival trace --trace long-trace --peers 2 --no-files
wrong 2 '^weft sim: long-trace:3: more arrivals than peers' sim streaming-server --arrival trace --trace long-trace --peers 2 --no-files
wrong 2 'class fibr is not one of dsl, cable, .*, and there is no \[class fibr\]' sim --classes fibr:1 --no-files
for matrix in '10;20 30' '1 2;3 4;5' '1 2;3 4 5' '1;2' '1 2 3' ';' '1 2;;3 4' '1,2'; do # none may be read in part
  wrong 2 '--matrix ' sim --peers 10 --duration 5s --latency matrix --matrix "$matrix" --no-files
done
for matrix in '1 2;3 1' '1 2 3;2 1 4;3 5 1'; do
  wrong 2 '--matrix must be square and symmetric' sim --peers 10 --duration 5s --latency matrix --matrix "$matrix" --no-files
done
wrong 2 '--matrix needs latency = matrix$' sim --peers 10 --duration 5s --isps 2 --matrix '1 2; 2 4' --no-files
wrong 2 '--trace needs arrival = trace$' sim --peers 10 --duration 5s --trace good-trace --no-files
wrong 2 'isps must be at least the number of rows of matrix' sim --peers 10 --duration 5s --latency matrix --matrix '1 2; 2 4;' --isps 1 --no-files
wrong 2 'isps must be at least the number of rows of matrix' sim streaming-server --latency matrix --matrix '1 2; 2 4;' --no-files
expect 0 sim --peers 10 --duration 5s --latency matrix --matrix '1 2; 2 4;' --isps 2 --no-files
for classes in dsl:inf dsl:1e400 dsl:nan dsl:0 dsl:-1 'dsl:1e308 plain:1e308'; do
  wrong 2 'classes: the weight of ' sim --peers 10 --duration 5s --classes "$classes" --no-files
done
wrong 2 '--classes: dsl is named twice' sim --peers 10 --duration 5s --classes 'dsl:1 plain:2 dsl:3' --no-files
wrong 2 "--duration needs a time such as .*, not 'never'" sim --peers 10 --duration never --no-files
wrong 2 '--duration must be 1 s to 1000000 s (11.6 d)$' sim storage-swarm --duration 30d --no-files
wrong 2 "--repair-after needs a time such as .*, not 'never'" sim storage-swarm --peers 40 --repair-after never --no-files
expect 0 sim --peers 10 --duration 5s --no-files
says 'duration is not longer than lag: nothing is played$' err
expect 0 sim --peers 10 --duration 5s --lag 3s --failure-at never --no-files
[ ! -s err ] || fail "a failure that never comes: $(cat err)"
for failing in 'flash-crowd --failure-at 5s' 'streaming-server --failure-at 5h --coding-rate 450M'; do
  # shellcheck disable=SC2086 # words
  expect 0 sim $failing --peers 10 --duration "$([ "${failing%%-*}" = flash ] && echo 5s || echo 11s)" --no-files
  says 'failure-at is not before the end of the run (duration): no peer fails$' err
done
for at in '0 s' 0; do
  expect 0 sim --peers 10 --duration 5s --lag 3s --failure-at "$at" --no-files
  says 'failure-at is 0 s, before any peer arrives: no peer fails$' err
done
# A session opens while its dial waits, for 5 s: four delays.
far=(--peers 5 --classes plain:1 --source-upload 20M --latency uniform --arrival together --duration 40s --lag 4s --no-files)
expect 0 sim "${far[@]}" --delay-min 1250ms --delay-max 1300ms
says 'every path takes 1.25 s or more, which a dial does not wait for: no session opens$' err
says '^  never_played  *5$' out
expect 0 sim "${far[@]}" --delay-min 1249ms --delay-max 1249ms
[ ! -s err ] || fail "sessions that open: $(cat err)"
says '^  never_played  *[0-4]$' out
expect 0 sim "${small[@]}" --sweep failure-at=5s,20s,30s --quiet --out idle
[ "$(grep -c 'no peer fails' err)" = 1 ] || fail "a sweep of failures: $(cat err)"
for failing in 'flash-crowd --failure-at 4s' 'download --failure-at 5h --bulk-bytes 100k'; do # when bulk ends is unknown
  # shellcheck disable=SC2086
  expect 0 sim $failing --peers 10 --duration 5s --lag 3s --no-files
  [ ! -s err ] || fail "$failing: $(cat err)"
done
wrong 2 'ahead needs mode = bulk$' sim --ahead 3 --no-files
for ahead in 0 3; do
  expect 0 sim download --peers 10 --bulk-bytes 4M --ahead $ahead --no-files
  grep '^state hash' out >>ahead-states
done
[ "$(sort -u ahead-states | wc -l)" = 2 ] || fail "--ahead 3 changes nothing"
wrong 2 "--source-delay needs class or a time such as .*, not 'never'" sim --source-delay never --no-files
wrong 2 'code foo with .* is not possible: there is no such code' sim storage-swarm --peers 40 --code foo --no-files
wrong 2 'code raid6 with .* and 8 parity shards of .* is not possible' sim storage-swarm --peers 40 --code raid6 --no-files
wrong 2 'shards of 65535 bytes is not possible' sim storage-swarm --peers 40 --code cauchy_good:w=4:packet=512 --shard-bytes 65535 --no-files
expect 0 sim --peers 3 --mode bulk --bulk-bytes 1M --departure stay --no-files # some come when others have everything
printf '5\n5.5\n' >late.txt
expect 0 sim --peers 2 --mode bulk --bulk-bytes 4M --window 2 --topology tracker --arrival trace --trace late.txt --departure stay --no-files # only the source holds the beginning
wrong 1 'no progress for ten minutes: peers that lack data have no neighbour that sends it' sim --peers 20 --mode bulk --bulk-bytes 1M --scheme source-only --topology graph --arrival together --no-files
for fidelity in bytes coefficients rank; do
  wrong 4 'backend no-such-row: ' sim --peers 20 --duration 10s --fidelity "$fidelity" --backend no-such-row --no-files
  expect 0 sim --peers 20 --duration 5s --fidelity "$fidelity" --backend scalar --no-files
done
wrong 2 "not 'peers'" sim --sweep peers
expect 2 sim --seeds 2 --json
says 'json is for one run' err
wrong 2 'needs DIR, not an empty string' sim --out ''
wrong 2 'seeds.*not 0 and 0' sim --seeds 0
mkdir -p scriptless/figures.gp
wrong 3 'scriptless: Is a directory' sim "${small[@]}" --out scriptless --gnuplot
expect 0 sim --help
says 'window of a peer, in segments \[24\]' out
if [ -w /dev/full ]; then
  code=0
  "$weft" sim "${small[@]}" --no-files >/dev/full 2>err || code=$?
  [ "$code" = 3 ] || fail "a full disk: exit $code"
fi
expect 0 sim "${small[@]}" --out results
mkdir -p closed && cp results/run.json closed/ && mkdir closed/peers.csv.part
wrong 3 'closed' sim "${small[@]}" --out closed
cmp -s results/run.json closed/run.json || fail "an earlier result was changed by a run that failed"

# An impossible folder is reported before the run, which may take hours.
: >no-folder
for out in no-folder no-folder/x no-folder/x/y; do
  code=0
  timeout 20 "$weft" sim million --out "$out" >/dev/null 2>err || code=$?
  [ "$code" = 3 ] || fail "a folder that cannot be: exit $code"
  says "$out: No" err
done
expect 0 sim "${small[@]}" --out made/
[ -e made/run.json ] || fail "a folder with a slash behind"
# As with a sweep, missing parent folders are made.
expect 0 sim "${small[@]}" --out above/it/made
[ -e above/it/made/run.json ] || fail "a folder below one that was not there"

[ "$failures" = 0 ] || exit 1
printf 'weft sim: all that is wrong is refused\n'

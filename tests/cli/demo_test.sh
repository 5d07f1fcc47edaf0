#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `weft demo` works as users call it: inputs of every kind, wrong arguments, JSON, determinism,
# Ctrl-C.
set -euo pipefail
# shellcheck source=tests/cli/expect.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/expect.sh"

weft=$PWD/$1
program=("$weft")
weft_with_fault=$PWD/$2 # one byte of one peer comes out wrong
work=${TEST_TMPDIR:-$(mktemp -d)}
cd -- "$work"

small=(--peers 5 --segment-blocks 16 --block-bytes 256)
digest_of() { sed -n 's/.*"input_blake2b":"\([0-9a-f]*\)".*/\1/p'; }

# --- inputs

head -c 100000 /dev/urandom >odd         # no multiple of a block
head -c $((16 * 256 * 3)) /dev/urandom >even # three whole segments
printf x >one
: >empty
for input in odd even one empty; do
  for loss in 0 0.05 0.5; do
    expect 0 demo "${small[@]}" --input "$input" --loss "$loss"
    says "^5 of 5 peers hold BLAKE2b [0-9a-f]\{64\} = input$" out
    [ ! -s err ] || fail "a progress bar or message in a pipe: $(cat err)"
  done
  "$weft" demo "${small[@]}" --input - --json <"$input" | digest_of >from_stdin
  "$weft" demo "${small[@]}" --input "$input" --json | digest_of >from_file
  cmp -s from_stdin from_file || fail "standard input and file differ for $input"
done
# What another program has read of standard input is neither streamed nor missed.
{
  dd bs=1000 count=1 status=none of=begun
  "$weft" demo "${small[@]}" --input - >out 2>err
} <odd || fail "an input that was read in part: $(cat err)"
[ ! -s err ] || fail "an input that was read in part: $(cat err)"
says '^96.7 KiB of' out
if command -v b2sum >/dev/null; then # an independent BLAKE2b
  "$weft" demo "${small[@]}" --input odd --json | digest_of >ours
  b2sum -l 256 odd | cut -d ' ' -f 1 >theirs
  cmp -s ours theirs || fail "BLAKE2b differs from b2sum's"
fi

# If a file is truncated while it is read, the run goes on with what was there, and says so.
head -c 3000000 /dev/urandom >shrinking
python3 - "$weft" <<'PYTHON' || fail "a file cut while it was read: $(cat out err)"
import os, subprocess, sys
with open("out", "w") as out, open("err", "w") as err:
    run = subprocess.Popen([sys.argv[1], "demo", "--peers", "2", "--window", "1", "--segment-blocks", "8", "--block-bytes",
                            "256", "--input", "shrinking"], stdin=subprocess.DEVNULL, stdout=out, stderr=err)
    while run.poll() is None and os.path.getsize("shrinking") > 200000:
        if os.path.exists(f"/proc/{run.pid}/fdinfo"):
            for number in os.listdir(f"/proc/{run.pid}/fd"):
                try:
                    name = os.readlink(f"/proc/{run.pid}/fd/{number}")
                    at = int(open(f"/proc/{run.pid}/fdinfo/{number}").readline().split()[1])
                except OSError:
                    continue
                if name.endswith("/shrinking") and at > 0:
                    os.truncate("shrinking", 200000)
    assert run.wait() == 0
assert "2 of 2 peers hold" in open("out").read()
said = open("err").read()
assert "shrinking was truncated while it was read" in said and "of its 3000000 bytes" in said, said
PYTHON

# --- shapes

expect 0 demo --clip 300k --peers 1
expect 0 demo --clip 300k --peers 40 --degree 2 --segment-blocks 8 --block-bytes 1024
expect 0 demo --clip 20k --segment-blocks 1 --block-bytes 1000 --peers 3
expect 0 demo --clip 20k --segment-blocks 64 --block-bytes 1 --peers 3 --upload 1G
expect 0 demo --clip 300k --window 1 --peers 4
expect 0 demo --clip 300k --batch 1 --coded-only --peers 4
expect 0 demo --peers 8 --clip 200k --segment-blocks 16 --block-bytes 1024 --loss 0.9 # the most that it takes
expect 0 demo "${small[@]}" --clip 100k --backend scalar --threads 2
# Windows that no machine could fill, and an input of one segment.
expect 0 demo --peers 300 --window 4096 --segment-blocks 16 --block-bytes 4096 --clip 60k
expect 0 demo --peers 300 --window 4096 --segment-blocks 16 --block-bytes 4096 --input one

# --- the same seed, the same run

state() { "$weft" demo "${small[@]}" --clip 100k "$@" | grep 'state hash'; }
state --seed 7 >a
state --seed 7 --backend scalar --threads 3 >b
state --seed 8 >c
cmp -s a b || fail "the state hash depends on backend or threads"
state --seed 7 --delay-min 10 --delay-max 30 >b
state --seed 7 --delay-min 10ms --delay-max 0.03s >c2
cmp -s b c2 || fail "a delay of 10 is not one of 10ms"
state --seed 7 --loss 0.12 >b
state --seed 7 --loss '12 %' >c2
cmp -s b c2 || fail "a loss of 12 % is not one of 0.12"
if cmp -s a c; then fail "the state hash does not depend on the seed"; fi

# --- JSON

expect 0 demo "${small[@]}" --input odd --json
python3 - out <<'PYTHON' || fail "JSON"
import json, sys
text = open(sys.argv[1]).read()
run = json.loads(text)
assert text.count("\n") == 1 and text.endswith("\n")
assert run["ok"] is True and run["peers_same"] == run["peers"] == 5 == len(run["per_peer"])
assert run["input"] == "odd" and run["input_bytes"] == 100000
sent = dict(run["sent_bytes"])
assert sent.pop("all") == sum(sent.values()), sent
assert sent["useful"] == 5 * 100000 and sent["lost"] > 0
for peer in run["per_peer"]:
    assert peer["same"] and peer["blake2b"] == run["input_blake2b"] and peer["decode_s"] > 0
    assert peer["packets_received"] == sum(
        peer[k] for k in ("innovative", "dependent", "late", "outside_window")), peer
PYTHON
printf x >'a"b\c'
expect 0 demo "${small[@]}" --input 'a"b\c' --json
python3 -c 'import json; assert json.load(open("out"))["input"] == "a\"b\\c"' || fail "quoting"

# --- errors are reported, with the documented code

wrong 3 'missing: No such file' demo --input missing
wrong 3 'Is a directory' demo --input .
wrong 2 '--input needs FILE, not an empty string' demo --input ''
wrong 2 "--json accepts no value, but has 'false'" demo --json=false
wrong 2 '--peers must be 1..65535, not 0' demo --peers 0
expect 0 demo -p 3 -n 8 -k 512 --clip 10k
grep 'peers hold' out >parted
expect 0 demo -p3 -n8 -k512 --clip 10k # what directly follows a letter is its value, too
grep 'peers hold' out | cmp -s - parted || fail "-p3 is not -p 3: $(cat out)"
wrong 2 'x.*-p' demo -px
wrong 3 '^weft demo: -p2: No such file' demo --input -p2 # and a value stays one
wrong 2 'x.*--peers' demo --peers x
for number in 0x10 010 +3 ' 3' -010; do
  for way in --peers -p; do
    wrong 2 "$way needs a whole number such as 10, not '$number'" demo "$way" "$number"
  done
  wrong 2 "-p needs a whole number such as 10, not '$number'" demo "-p$number"
  wrong 2 "--seed needs a whole number such as 10, not '$number'" demo --peers 3 "--seed=$number"
done
wrong 2 '--segment-blocks must be 1..1024, not 1025' demo --segment-blocks 1025
wrong 2 '--block-bytes must be' demo --block-bytes -1
wrong 2 '--loss must be 0..0.9, not 1' demo --loss 1
wrong 2 '--loss must be' demo --loss nan
wrong 2 "--loss must be a share such as 0.05 or 5%, not '5 x'" demo --loss '5 x'
wrong 2 "--loss must be a share such as 0.05 or 5%, not ' '" demo --loss ' '
wrong 2 '--degree must be' demo --degree 1
wrong 2 '--window must be' demo --window 0
wrong 2 '--batch must be' demo --batch 1000
wrong 2 '--upload needs' demo --upload fast
wrong 2 'delays must be' demo --delay-min 5 --delay-max 4
wrong 2 'delays must be' demo --delay-min 5ms --delay-max 10001
wrong 2 "--delay-min needs milliseconds, or a time such as 20ms, not '5x'" demo --delay-min 5x
wrong 2 '--clip' demo --clip 1M --input odd
wrong 2 "unexpected argument 'odd'" demo odd
wrong 2 'Unknown option' demo --no-such-option
wrong 4 'no-such-row' demo --backend no-such-row
wrong 4 'lower --peers' demo --peers 60000 --segment-blocks 1024 --block-bytes 1048576
# An input of unknown length may fill them.
wrong 4 'lower --peers' demo --peers 60000 --window 4096 --input - </dev/null
wrong 2 "unknown command 'dance'" dance
wrong 2 'usage: weft COMMAND'
WEFT_BACKEND=no-such-row wrong 4 'no-such-row' demo
if [ -w /dev/full ]; then
  code=0
  "$weft" demo "${small[@]}" --clip 10k >/dev/full 2>err || code=$?
  [ "$code" = 3 ] || fail "a full disk: exit $code"
  code=0
  "$weft" bench --help >/dev/full 2>err || code=$?
  [ "$code" = 3 ] || fail "a full disk under bench: exit $code"
fi

# A row that is compiled in but not available: forced by flag or environment, it is refused by name.
"$weft" backends >rows # a file: reading only part of a pipe may end its writer by SIGPIPE
absent=$(awk '$2 == "host" && $3 == "no" { print $1; exit }' rows)
if [ -n "$absent" ]; then
  wrong 4 "backend $absent: this machine lacks" demo --backend "$absent"
  WEFT_BACKEND=$absent wrong 4 "backend $absent: this machine lacks" demo
  wrong 2 "row '$absent': this machine lacks" bench mul --rows "$absent"
else
  printf 'skipped: this machine has every row; a row that is absent cannot be forced\n'
fi
grep -q 'device *yes' rows || wrong 4 'backend cuda: this machine lacks' demo --backend cuda
wrong 2 "row 'no-such-row'" bench rlnc --rows no-such-row
wrong 2 "unexpected argument 'x'" backends x
wrong 2 "unknown command 'dance'" help dance
wrong 2 "unexpected argument 'x'" help demo x
wrong 2 "unexpected argument 'x'" help store encode x
wrong 2 "unknown comparison 'dance'" bench dance
wrong 2 "n does not accept '0', only 1 to 1024" bench decoder --n 0
wrong 2 "pauses does not accept '1s', only 1 to 100000" bench pool --pauses 1s
wrong 2 "rows needs one row, not 'scalar,best'" bench pool --rows scalar,best
wrong 2 "there is no 'dance'; there are tasks, encode" bench pool --operations dance
wrong 2 'accepts no argument' --version x
# The report on standard output is only JSON, and no file is called `-`.
for place in - /dev/stdout; do
  expect 0 bench banks --quick --json "$place"
  python3 -c 'import json; assert json.load(open("out"))["command"][:3] == ["weft", "bench", "banks"]' || fail "bench --json $place: $(head -n 3 out)"
  says '^weft bench banks' err
done
[ -z "$(find . -name "-*")" ] || fail "bench --json - wrote a file of that name"
"$weft" bench banks --quick --json - >out 2>&- || fail "bench --json - without a standard error: exit $?"
python3 -c 'import json; json.load(open("out"))' || fail "bench --json - without a standard error: $(head -c 100 out)"
code=0
"$weft" bench banks --quick --json - >&- 2>err || code=$?
[ "$code" = 3 ] || fail "bench --json - without a standard output: exit $code"
if [ -w /dev/full ]; then
  code=0
  "$weft" bench banks --quick --json - >/dev/full 2>err || code=$?
  [ "$code" = 3 ] || fail "a full disk under bench --json -: exit $code"
fi
printf old >kept.json
code=0
(
  ulimit -f 1
  "$weft" bench banks --quick --json kept.json >/dev/null 2>err
) || code=$?
[ "$code" = 3 ] || fail "a report that does not fit: exit $code"
[ "$(cat kept.json)" = old ] || fail "a report that does not fit leaves $(head -c 100 kept.json)"
mkfifo report
timeout 60 "$weft" bench banks --quick --json report >/dev/null 2>err &
python3 -c 'import json; json.load(open("report"))' || fail "a report into a pipe: $(cat err)"
wait "$!" || fail "a report into a pipe: exit $?"
[ -p report ] || fail "a pipe was replaced by the report"
wrong 3 'unable to open missing: No such file' bench compare missing missing
wrong 3 'compare: [.]: Is a directory' bench compare . .

# --- a peer that differs

program=("$weft_with_fault")
expect 1 demo "${small[@]}" --input odd
says '^4 of 5 peers hold BLAKE2b' out
[ "$(grep -c 'DIFFER$' out)" = 1 ] || fail "which peer differs? $(cat out)"
expect 1 demo "${small[@]}" --input odd --json
says '"peers_same":4,"ok":false' out
program=("$weft")

# --- progress, on a terminal only

python3 - "$weft" <<'PYTHON' || fail "no progress bar on a terminal"
import os, pty, subprocess, sys
ours, theirs = pty.openpty()
run = subprocess.Popen([sys.argv[1], "demo", "--clip", "4M", "--peers", "4"],
                       stdout=subprocess.DEVNULL, stderr=theirs)
os.close(theirs)
seen = b""
try:
    while piece := os.read(ours, 4096):
        seen += piece
except OSError:  # Linux reports the end of a terminal so
    pass
assert run.wait() == 0
assert b"] " in seen and b"% " in seen and b"decoded" in seen, seen
assert seen.endswith(b"\r\x1b[K"), seen  # wiped
PYTHON

# --- memory: four times the input takes the same memory, once all windows have been full

rss_kib() { # of a run on a clip of this length; the sanitizer keeps little freed memory
  ASAN_OPTIONS=${ASAN_OPTIONS:-}:quarantine_size_mb=1 python3 - "$weft" "$1" <<'PYTHON'
import resource, subprocess, sys
subprocess.run([sys.argv[1], "demo", "--clip", sys.argv[2], "--peers", "2", "--window", "4",
                "--segment-blocks", "32", "--json"], stdout=subprocess.DEVNULL, check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
PYTHON
}
short=$(rss_kib 24M)
long=$(rss_kib 96M)
[ "$long" -lt $((short + 8192)) ] || fail "memory grows with the input: $short KiB, then $long KiB"

# --- help

expect 0 --help && says 'demo' out
expect 0 help demo && says '--segment-blocks' out
expect 0 demo --help && says '--segment-blocks' out
expect 0 --version && says '^weft [0-9]' out
expect 0 help bench && says 'weft bench' out
expect 0 backends && says 'scalar *host *yes' out
expect 0 backends --json
python3 - out <<'EOF' || fail "backends --json: $(cat out)"
import json, sys
told = json.load(open(sys.argv[1]))
row = [row for row in told["backends"] if row["name"] == "scalar"]
assert len(row) == 1 and row[0]["memory"] == "host" and row[0]["here"] is True and row[0]["technique"], told
EOF

# --- interruption, while it works and while it waits for input

interrupt() { # SIGNAL CODE ARGUMENT...
  local signal=$1 wanted=$2 code=0
  shift 2
  python3 - "$signal" "$weft" "$@" >out 2>err <<'PYTHON' || code=$?
import signal, subprocess, sys, time
signal.signal(signal.SIGINT, signal.SIG_DFL)  # a runner may have ignored it, which would be inherited
child = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE)
time.sleep(2)
child.send_signal(getattr(signal, sys.argv[1]))
sys.exit(child.wait(timeout=60))
PYTHON
  [ "$code" = "$wanted" ] || fail "$signal: exit $code, not $wanted: $(cat err)"
  says 'interrupted' err
}
interrupt SIGINT 130 demo --clip 4G
interrupt SIGTERM 143 demo --clip 4G
interrupt SIGINT 130 demo --input -

# A report into a full pipe that is not read.
"$weft" store encode -k 2 -m 1 odd --output-dir shards >/dev/null
python3 - "$weft" <<'PYTHON' || fail "a signal while nobody reads the report"
import os, signal, subprocess, sys, time
calls = [["demo", "--clip", "10k", "--peers", "5", "--segment-blocks", "16", "--block-bytes", "256"],
         ["demo", "--clip", "10k", "--peers", "5", "--segment-blocks", "16", "--block-bytes", "256", "--json"],
         ["sim", "--peers", "5", "--duration", "5 s", "--no-files"],
         ["sim", "--peers", "5", "--duration", "5 s", "--no-files", "--json"],
         ["sim", "--peers", "5", "--duration", "5 s", "--seeds", "2", "--out", "swept"],
         ["store", "info", "shards"],
         ["store", "verify", "shards", "--json"]]
read, write = os.pipe()
os.set_blocking(write, False)
for piece in (bytes(65536), b"x"):
    try:
        while True:
            os.write(write, piece)
    except BlockingIOError:
        pass
os.set_blocking(write, True)
running = [subprocess.Popen([sys.argv[1], *call], stdout=write, stderr=subprocess.PIPE) for call in calls]
time.sleep(5)
for run in running:
    run.send_signal(signal.SIGTERM)
bad = 0
for run in running:
    try:
        said = run.communicate(timeout=20)[1]
    except subprocess.TimeoutExpired:
        run.kill()
        said = b"it went on waiting"
    if run.returncode != 143 or b"interrupted" not in said:
        bad = 1
        print(run.args[1:], run.returncode, said, file=sys.stderr)
sys.exit(bad)
PYTHON

[ "$failures" = 0 ] || exit 1
printf 'weft demo: all as documented\n'

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `weft sim` as users call it: shipped scenarios, wrong files and flags, results and their agreement,
# sweeps that were killed, the page in a browser, ranks of MPI.
set -euo pipefail
# shellcheck source=tests/cli/expect.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/expect.sh"

weft=$PWD/$1
program=("$weft")
mpi=${2:+$PWD/$2}
work=${TEST_TMPDIR:-$(mktemp -d)}
cd -- "$work"

small=(--peers 30 --duration 15s --arrival together --departure stay --threads 2)

# --- every shipped scenario, cut down

expect 0 sim --list
says '^flash-crowd ' out
while read -r name _; do
  case $name in
    download) expect 0 sim "$name" --peers 10 --bulk-bytes 300k --no-files ;;
    storage-swarm) expect 0 sim "$name" --peers 40 --duration 48h --no-files ;;
    *) expect 0 sim "$name" --peers 24 --duration 12s --no-files ;;
  esac
  says '^state hash [0-9a-f]\{64\}$' out
done < <("$weft" sim --list)

# --- without a swarm

expect 0 sim streaming-server --peers 12 --duration 11s --coding-rate 100M --out server
says '^  coding_load ' out
for file in run.json summary.csv peers.csv series.csv report.html; do
  [ -s "server/$file" ] || fail "no server/$file"
done
expect 0 sim storage-swarm --peers 40 --duration 48h --sweep code=cauchy,vandermonde --seeds 2 --out store
[ "$(wc -l <store/summary.csv)" = 5 ] || fail "store/summary.csv has $(wc -l <store/summary.csv) lines"
expect 0 sim storage-swarm --peers 40 --duration 48h --out hours
for file in run.json summary.csv report.html; do
  [ -s "hours/$file" ] || fail "no hours/$file"
done
[ "$(wc -l <hours/series.csv)" = 49 ] || fail "hours/series.csv has $(wc -l <hours/series.csv) lines"

# --- schemes

for scheme in push pull source-only rarest; do
  expect 0 sim "${small[@]}" --scheme "$scheme" --source-upload 60M --no-files --neighbours 12 --neighbours-max 24
  says '^  continuity ' out
done

# --- results say the same in every form

expect 0 sim "${small[@]}" --out results --gnuplot
for file in run.json summary.csv peers.csv series.csv trace.jsonl report.html figures.gp; do
  [ -s "results/$file" ] || fail "no results/$file"
done
python3 - results <<'PYTHON' || fail "results"
import csv, json, re, sys
folder = sys.argv[1]
run = json.load(open(f"{folder}/run.json"))
assert run["scenario"] == "flash-crowd" and run["ranks"] == 1 and len(run["state_hash"]) == 64
assert run["parameters"]["network"]["peers"] == "30" and run["wall_s"] > 0
m = run["metrics"]
assert m["viewers"] == 30 and m["wrong_bytes"] == 0 and 0 < m["continuity"] <= 1, m
shares = [m["share_" + k] for k in ("useful", "dependent", "duplicate", "polluted", "header", "control", "lost")]
assert 0.97 < sum(shares) < 1.001, sum(shares)  # what is under way at the end is in none
rows = list(csv.DictReader(open(f"{folder}/summary.csv")))
assert len(rows) == 1 and rows[0]["state_hash"] == run["state_hash"]
for name, value in m.items():
    text = rows[0][name]
    assert (text == "") == (value is None) and (value is None or abs(float(text) - value) <= 1e-8 * abs(value) + 1e-12), name
peers = list(csv.DictReader(open(f"{folder}/peers.csv")))
assert len(peers) == 30
due, in_time = sum(int(p["due"]) for p in peers), sum(int(p["in_time"]) for p in peers)
assert due and abs(in_time / due - m["continuity"]) < 1e-9
series = list(csv.DictReader(open(f"{folder}/series.csv")))
assert sum(int(s["due"]) for s in series) >= due and len(series) == 16
kinds = {json.loads(line)["event"] for line in open(f"{folder}/trace.jsonl")}
assert {"join", "data", "play"} <= kinds, kinds
page = open(f"{folder}/report.html").read()
data = json.loads(re.search(r"const run = (\{.*?\});</script>", page, re.S).group(1))
assert data["metrics"] == m or all(a is None or abs(a - m[k]) < 1e-6 * abs(a) + 1e-9 for k, a in data["metrics"].items())
assert sum(data["series"]["due"]) == sum(int(s["due"]) for s in series)
assert not re.search(r"(src|href)\s*=\s*[\"']?https?:", page), "the page needs the network"
assert data["swarm"]["frames"] and data["rank"]["mean"] and len(data["classes"]) == 3 and data["kind"] == "swarm"
PYTHON
python3 - <<'PYTHON' || fail "the services' pages"
import csv, json, re
def page(folder, kind):
    text = open(f"{folder}/report.html").read()
    assert not re.search(r"(src|href)\s*=\s*[\"']?https?:", text), "the page needs the network"
    data = json.loads(re.search(r"const run = (\{.*?\});</script>", text, re.S).group(1))
    run = json.load(open(f"{folder}/run.json"))
    assert data["kind"] == kind and data["state_hash"] == run["state_hash"] and "swarm" not in data
    return data, run["metrics"]
data, m = page("server", "server")
v = data["server"]
assert len(v["second"]) == 11 and sum(v["requests"]) <= m["requests"] and sum(v["again"]) <= m["requests_again"]
assert abs(sum(v["coding_load"]) / 11 - m["coding_load"]) < 1e-3 and sum(v["requests"]) > 0
assert abs(sum(v["coded_bytes"]) - m["coding_load"] * 11 * 100e6) < 0.02 * sum(v["coded_bytes"])
d = v["delays"]
for name, key in (("coded", "coded"), ("answered", "answer")):
    assert d[name] == sorted(d[name]) and 0.99 < d[name][-1] <= 1
    at = next(i for i, share in enumerate(d[name]) if share >= 0.5)  # the median, to one step
    assert d["ms"][max(0, at - 1)] <= m[key + "_p50_ms"] * 1.001 and m[key + "_p50_ms"] <= d["ms"][at] * 1.001
assert all(c["received_mb"] > 0 for c in data["classes"] if c["viewers"])
data, m = page("hours", "store")
v, rows = data["store"], list(csv.DictReader(open("hours/series.csv")))
assert v["hour"] == list(range(1, 49)) and v["hours_per_point"] == 1 and v["objects"] == 200
for name in ("online", "coded_readable", "copied_readable", "coded_lost", "copied_lost", "coded_repair_bytes", "copied_repair_bytes"):
    assert v[name] == [float(r[name]) for r in rows], name
assert sum(v["coded_repair_bytes"]) <= m["coded_repair_bytes"] and v["coded_lost"][-1] <= m["coded_lost"]
PYTHON

# A name that a comma or a quote in it would split; shares told in percent.
printf '[network]\npeers = 8\nloss = 2%%\nclasses = "x",y:1\n[class "x",y]\nloss = 0.5 %%\nnat = 10 %%\n' >'two, "three".ini'
expect 0 sim 'two, "three".ini' --duration 15s --arrival together --departure stay --threads 2 --flash-share '50 %' --out named
python3 - <<'PYTHON' || fail "names and shares"
import csv, json
rows, run = list(csv.DictReader(open("named/summary.csv"))), json.load(open("named/run.json"))
assert [rows[0][k] for k in ("scenario", "scheme", "fidelity")] == ['two, "three"', "push", "bytes"], rows
assert float(rows[0]["continuity"]) == run["metrics"]["continuity"]
p = run["parameters"]
assert p["network"]["loss"] == "0.02" and p["churn"]["flash-share"] == "0.5"
assert p["classes"][0]["loss"] == 0.005 and p["classes"][0]["nat"] == 0.1
assert {r["class"] for r in csv.DictReader(open("named/peers.csv"))} == {'"x",y'}
PYTHON

# --- the page in a browser

# Opens a page: its charts are there, nothing on the console, and its picture in FOLDER.png.
open_page() { # FOLDER CHARTS [FLAG]
  HOME=$work timeout 120 "$browser" ${3:+"$3"} --headless=new --no-sandbox --disable-gpu --enable-logging=stderr --v=0 \
    --virtual-time-budget=4000 --window-size=1200,2600 --dump-dom "file://$work/$1/report.html" >dom 2>console || true
  [ -s dom ] || return 1
  says 'data-ready="yes"' dom
  says '<canvas' dom
  [ "$(grep -o 'class="uplot' dom | wc -l)" = "$2" ] || fail "$1: $(grep -o 'class="uplot' dom | wc -l) charts, not $2"
  ! grep -q 'class="none"' dom || fail "$1: a chart has nothing to show"
  ! grep -E 'CONSOLE.*(rror|TypeError)' console || fail "$1: errors on the page's console"
  HOME=$work timeout 120 "$browser" ${3:+"$3"} --headless=new --no-sandbox --disable-gpu --virtual-time-budget=4000 \
    --window-size=1200,2600 --screenshot="$work/$1.png" "file://$work/$1/report.html" >/dev/null 2>&1 || true
}

# Points of the picture that are of the swarm's canvas, and of lines: at least so many; the page's paper.
drawn() { # FOLDER DARK LINES [PAPER]
  python3 - "$@" <<'PYTHON' || fail "$1: the page's picture is blank"
import sys, zlib
d = open(sys.argv[1] + ".png", "rb").read()
assert d[:8] == b"\x89PNG\r\n\x1a\n"
at, data, width, height, kind = 8, b"", 0, 0, 0
while at < len(d):
    n, name = int.from_bytes(d[at:at + 4], "big"), d[at + 4:at + 8]
    if name == b"IHDR":
        width, height = int.from_bytes(d[at + 8:at + 12], "big"), int.from_bytes(d[at + 12:at + 16], "big")
        kind = d[at + 17]
    if name == b"IDAT":
        data += d[at + 8:at + 8 + n]
    at += 12 + n
raw, step = zlib.decompress(data), {2: 3, 6: 4}[kind]
rows, last = [], bytearray(width * step)
for y in range(height):  # undo the filters
    f, line = raw[y * (width * step + 1)], bytearray(raw[y * (width * step + 1) + 1:(y + 1) * (width * step + 1)])
    for x in range(len(line)):
        a = line[x - step] if x >= step else 0
        b, c = last[x], last[x - step] if x >= step else 0
        p = abs(b - c), abs(a - c), abs(a + b - 2 * c)
        line[x] = (line[x] + (0, a, b, (a + b) // 2, a if p[0] <= p[1] and p[0] <= p[2] else b if p[1] <= p[2] else c)[f]) & 255
    rows.append(line)
    last = line
dark = sum(1 for r in rows for x in range(0, width * step, step) if tuple(r[x:x + 3]) == (16, 22, 31))
lines = sum(1 for r in rows for x in range(0, width * step, step) if r[x + 2] > 150 and r[x] < 100)
assert dark >= int(sys.argv[2]), f"no swarm canvas: {dark}"
assert lines >= int(sys.argv[3]), f"nothing is drawn: {lines}"
paper = "#" + bytes(rows[4][4 * step:4 * step + 3]).hex()
assert paper == (sys.argv[4] if len(sys.argv) > 4 else "#f6f7f9"), f"the page is on {paper}"
PYTHON
}

browser=
for name in chromium chromium-browser google-chrome; do
  if command -v "$name" >/dev/null; then browser=$name; break; fi
done
if [ -z "$browser" ]; then
  printf 'skipped: no chromium on PATH, so report.html is not opened\n'
else
  if open_page results 5; then
    drawn results 20001 1501
    open_page results 5 --blink-settings=preferredColorScheme=0 && drawn results 20001 1501 '#10151c'
    # What a server's and a store's pages show is of their kind, and nothing is left blank.
    open_page server 8 && drawn server 0 1501
    open_page hours 5 && drawn hours 0 1501
  else
    printf 'skipped: %s does not start here, so report.html is not opened\n' "$browser"
  fi
fi

# --- what is wrong is said, with line and key
expect 0 sim --show lossy-mobile
cp out shown.ini
wrong 2 "there is no scenario 'lossy-mobil'.*near it: lossy-mobile" sim --show lossy-mobil
expect 0 sim lossy-mobile --peers 20 --duration 5s --no-files
grep '^state hash' out >shipped-state
expect 0 sim shown.ini --peers 20 --duration 5s --no-files
grep '^state hash' out | cmp -s - shipped-state || fail "what --show shows runs otherwise"
printf '[network]\npeers = 10\npears = 3\n' >key.ini
wrong 2 "key.ini:3: there is no key 'pears' in \[network\]; near it: peers$" sim key.ini
printf '# a comment\n[network]\n\npeers = many\n' >value.ini
wrong 2 'value.ini:4: peers takes a whole number' sim value.ini
printf '[stream]\nlag = 5 s\n' >group.ini
wrong 2 'group.ini:2: lag belongs into \[engine\]' sim group.ini
printf '[engine]\nlag = 5\n' >unit.ini
wrong 2 'unit.ini:2: lag takes a time such as' sim unit.ini
printf '[network]\npeers = 10\n[nonsense]\na = 1\n' >name.ini
wrong 2 'name.ini:3: there is no group \[nonsense\], but \[stream\] \[engine\] \[network\] .*\[class NAME\]$' sim name.ini
printf '[network]\npeers 10\n' >line.ini
wrong 2 'line.ini:2: ' sim line.ini
printf '[network]\nloss = 0.1\nlosses = 2\n[stream]\nrate = 1M\n[network]\n loss=0.2\n' >twice.ini
wrong 2 'twice.ini:7: loss is set in \[network\] already, on line 2$' sim twice.ini
printf '[stream]\n#rate = 1M\nrate = 2M\n\nrate = 2M\n' >same.ini
wrong 2 'same.ini:5: rate is set in \[stream\] already, on line 3$' sim same.ini
printf '[network]\n  peers = many\n' >blank.ini
wrong 2 'blank.ini:2: peers takes a whole number' sim blank.ini
printf '[network]\nclasses = mine:1\n[class mine]\nupload = 2M\nspeed = 3\n' >class.ini
wrong 2 "class.ini:5: a class has no key 'speed'" sim class.ini
wrong 2 "there is no key\|Unknown option" sim --no-such-key 1
wrong 2 '--scheme is .dance. and not one of push' sim --scheme dance
wrong 2 '--loss must be 0 to 0.9, not 2' sim --loss 2
wrong 2 '--loss must be 0 to 0.9, not 0.95' sim --loss '95 %'
wrong 2 "--loss takes a share such as 0.05 or 5 %, not '5 %%'" sim --loss '5 %%'
wrong 2 "--arrivals-per-s takes a number such as 0.5, not '5 %'" sim --arrivals-per-s '5 %'
wrong 2 'source-upload is below rate' sim --source-upload 100k
wrong 2 'download is below rate' sim --rate 18M --source-upload 1G --segment-blocks 1024 --block-bytes 4096 --lag 8s --startup 4s
wrong 2 'neighbours-max must be at least' sim --neighbours 20 --neighbours-max 4
wrong 2 'source-neighbours is more than' sim --source-neighbours 200
wrong 2 'window holds less than lag' sim --window 2
wrong 2 'peers must be at least twice' sim storage-swarm --peers 20
wrong 2 'data-shards and parity-shards are 256' sim storage-swarm --peers 999 --data-shards 200 --parity-shards 100
wrong 2 'this machine has' sim --peers 20M --fidelity bytes
wrong 2 "there is no scenario 'no-such', and no file of that name (weft sim --list" sim no-such
wrong 2 "'flash-crwod', and no file of that name; near it: flash-crowd (" sim flash-crwod
wrong 2 '; near it: storage-swarm (' sim storage
wrong 2 'directory' sim /
printf '[network]\npeers = 10\n\0\377' >binary.ini
wrong 2 '^weft sim: binary.ini: it is no text' sim binary.ini
wrong 3 'no-such-trace' sim --arrival trace --trace no-such-trace --no-files
wrong 3 '^weft sim: /: Is a directory' sim --arrival trace --trace / --no-files
wrong 2 '--gnuplot is for files' sim --gnuplot --no-files
wrong 2 '--out is for files' sim --out x --no-files
: >no-arrivals
wrong 2 'no-arrivals: a trace has an arrival a line' sim --arrival trace --trace no-arrivals --no-files
for line in abc '1,4' '1 4 x' '1 -4' '1 nan' 'inf' '-1' '1 4s'; do # none of them may be taken for less than it says
  printf '0 2\n%s\n' "$line" >odd-trace
  wrong 2 '^weft sim: odd-trace:2: a trace has an arrival a line' sim --arrival trace --trace odd-trace --no-files
  wrong 2 '^weft sim: odd-trace:2: a trace has an arrival a line' sim streaming-server --arrival trace --trace odd-trace --no-files
done
{ printf '#%0400d\n\n0 2\n' 7 && printf '1%400s\n%300s\n0.5\n' '' ''; } >falling-trace
wrong 2 'falling-trace:6: a trace has' sim --arrival trace --trace falling-trace --no-files
wrong 3 '^weft sim: no-such-trace: No such file' sim streaming-server --arrival trace --trace no-such-trace --no-files
{ printf '#%0400d\n\n' 7 && printf '0\n0.5\t20 \r\n1e0\n'; } >good-trace
expect 0 sim --arrival trace --trace good-trace --no-files --duration 5s
grep -q '^  viewers  *3$' out || fail "three arrivals: $(cat out)"
wrong 2 'class fibr is none of dsl, cable, .*, and there is no \[class fibr\]' sim --classes fibr:1 --no-files
wrong 4 'backend no-such-row: ' sim --peers 20 --duration 10s --backend no-such-row --no-files
wrong 2 "not 'peers'" sim --sweep peers
expect 2 sim --seeds 2 --json
says 'json is for one run' err
wrong 2 'takes DIR, not an empty word' sim --out ''
wrong 2 'seeds.*not 0 and 0' sim --seeds 0
mkdir -p scriptless/figures.gp
wrong 3 'scriptless: Is a directory' sim "${small[@]}" --out scriptless --gnuplot
expect 0 sim --help
says 'segments that a peer holds \[24\]' out
if [ -w /dev/full ]; then
  code=0
  "$weft" sim "${small[@]}" --no-files >/dev/full 2>err || code=$?
  [ "$code" = 3 ] || fail "a full disk: exit $code"
fi
mkdir -p closed && cp results/run.json closed/ && mkdir closed/peers.csv.part
wrong 3 'closed' sim "${small[@]}" --out closed
cmp -s results/run.json closed/run.json || fail "an earlier result was changed by a run that failed"

# A folder that cannot be is told before the run, which may take hours.
: >no-folder
for out in no-folder absent/x; do
  code=0
  timeout 20 "$weft" sim million --out "$out" >/dev/null 2>err || code=$?
  [ "$code" = 3 ] || fail "a folder that cannot be: exit $code"
  says "$out: No" err
done
expect 0 sim "${small[@]}" --out made/
[ -e made/run.json ] || fail "a folder with a slash behind"

# --- a sweep, killed and started again

sweep=(sim "${small[@]}" --sweep "loss=0,0.05" --sweep "scheme=push,pull" --seeds 2 --out grid)
"$weft" "${sweep[@]}" >/dev/null 2>&1 &
child=$!
for _ in $(seq 100); do
  [ "$(find grid/runs -name run.json 2>/dev/null | wc -l)" -lt 2 ] || break
  sleep 0.1
done
kill -KILL "$child" 2>/dev/null || true
wait "$child" 2>/dev/null || true
find grid/runs -name run.json -exec stat -c '%n %Y %i' {} + | sort >before
expect 0 "${sweep[@]}"
find grid/runs -name run.json -exec stat -c '%n %Y %i' {} + | sort >after
[ "$(wc -l <after)" = 8 ] || fail "a sweep of 8 left $(wc -l <after) runs"
[ "$(comm -12 before after | wc -l)" = "$(wc -l <before)" ] || fail "runs that were done were run again"
python3 - <<'PYTHON' || fail "means"
import csv, math
rows = list(csv.DictReader(open("grid/summary.csv")))
means = list(csv.DictReader(open("grid/means.csv")))
assert len(rows) == 8 and len(means) == 4
for m in means:
    v = [float(r["source_bytes"]) for r in rows if r["loss"] == m["loss"] and r["scheme"] == m["scheme"]]
    assert len(v) == 2 == int(m["runs"]) and abs(sum(v) / 2 - float(m["source_bytes"])) < 1e-6 * v[0]
    half = 12.706 * abs(v[0] - v[1]) / 2  # t of one degree of freedom; s / sqrt(2)
    assert abs(half - float(m["source_bytes_ci95"])) <= 0.01 * half + 1, (half, m["source_bytes_ci95"])
PYTHON

# --- a sweep's page: the same figures as the tables, and a picture of each

# A sweep that was interrupted: a page of what is there.
code=0
python3 - "$weft" "${small[@]}" <<'PYTHON' >out 2>err || code=$?
import glob, signal, subprocess, sys, time
signal.signal(signal.SIGINT, signal.SIG_DFL)  # a runner may have ignored it, and it would stay so
child = subprocess.Popen([sys.argv[1], "sim", *sys.argv[2:], "--sweep", "scheme=push,pull", "--sweep", "peers=20,30,4000", "--seeds", "2", "--out", "cut"])
for _ in range(600):
    if len(glob.glob("cut/runs/*/run.json")) >= 3 or child.poll() is not None:
        break
    time.sleep(0.1)
child.send_signal(signal.SIGINT)
sys.exit(child.wait(timeout=60))
PYTHON
[ "$code" = 130 ] || fail "SIGINT in a sweep: exit $code: $(cat err)"
cp "${PWD}/key.ini" 'a,b"<!--<script>&.ini' && sed -i /pears/d 'a,b"<!--<script>&.ini'
expect 0 sim 'a,b"<!--<script>&.ini' "${small[@]}" --sweep "lag=5 s,2500 ms" --sweep peers=10 --out odd
expect 0 sim "${small[@]}" --seeds 3 --out seeds
# Of a run that got bytes wrong, and of one that an earlier build made, with other figures.
cp -r grid spoilt
python3 - spoilt/runs/*/run.json <<'PYTHON'
import json, sys
seconds = [path for path in sys.argv[1:] if json.load(open(path))["seed"] == 2]  # the first run names the figures
for path, name, value in ((seconds[0], "wrong_bytes", 5.0), (seconds[1], "share_useful", None)):
    run = json.load(open(path))
    del run["metrics"][name]
    run["metrics"].update({name: value} if value else {"of_another_time": 1.0})
    json.dump(run, open(path, "w"))
PYTHON
expect 1 "${sweep[@]}" --out spoilt
says 'bytes came out wrong in run [0-9a-f]\{16\}$' err
wrong 2 'kind cannot be swept' sim --sweep kind=swarm,store
wrong 2 'loss is given twice' sim --sweep loss=0 --sweep loss=0.1
wrong 2 "there is no key 'lass'" sim --sweep lass=0
cat >sweep_page.py <<'PYTHON'
import csv, json, os, re
def close(a, b, digits):
    return a is None and b == "" or a is not None and b != "" and abs(a - float(b)) <= 10 ** -digits * abs(a) + 1e-12
def page(folder):
    text = open(f"{folder}/report.html").read()
    assert not re.search(r"(src|href)\s*=\s*[\"']?https?:", text), "the page needs the network"
    assert text.count("<script") == 4 == text.count("</script"), "a text of the data is a tag"
    data = json.loads(re.search(r"const sweep = (\{.*?\});</script>", text, re.S).group(1))
    keys, names = [a["key"] for a in data["axes"]], data["metrics"]
    means, rows = (list(csv.DictReader(open(f"{folder}/{name}.csv"))) for name in ("means", "summary"))
    assert len(data["points"]) == len(means) and len(data["runs"]) == len(rows) and rows
    for p, m in zip(data["points"], means):
        assert [a["values"][i] for a, i in zip(data["axes"], p["at"])] == [m[k] for k in keys]
        assert p["runs"] == int(m["runs"])
        for i, name in enumerate(names):
            assert close(p["mean"][i], m[name], 8) and close(p["half"][i], m[name + "_ci95"], 2), (m, name)
    for r, row in zip(data["runs"], rows):
        run = json.load(open(f"{folder}/runs/{r['id']}/run.json"))
        at = data["points"][r["point"]]["at"]
        assert r["seed"] == row["seed"] == str(run["seed"]) and [a["values"][i] for a, i in zip(data["axes"], at)] == [row[k] for k in keys]
        assert all(close(v, row[name], 8) and (v is None or abs(v - run["metrics"].get(name)) <= 1e-8 * abs(v)) for v, name in zip(r["values"], names))
        known = {k: v for group in run["parameters"].values() if isinstance(group, dict) for k, v in group.items()}
        assert all(known[k] == v for group, k, v in data["common"]) and not set(keys) & {k for _, k, _ in data["common"]}
        assert data["scenario"] == row["scenario"] == run["scenario"]
    return data
if __name__ == "__main__":
    grid = page("grid")
    assert [(a["key"], a["values"], a["numbers"]) for a in grid["axes"]] == [("loss", ["0", "0.05"], [0, 0.05]), ("scheme", ["push", "pull"], [None, None])]
    assert grid["kind"] == "swarm" and grid["seeds"] == 2 and len(grid["runs"]) == 8 and grid["command"].endswith("--sweep scheme=push,pull --seeds 2 --out grid")
    odd = page("odd")
    assert odd["scenario"] == 'a,b"<!--<script>&' and odd["axes"][0]["numbers"] == [5, 2.5]
    assert "--sweep 'lag=5 s,2500 ms'" in odd["command"] and all(h is None for p in odd["points"] for h in p["half"])
    assert page("seeds")["axes"] == [] and page("store")["kind"] == "store"
    spoilt = page("spoilt")
    assert sum(r["values"][spoilt["metrics"].index("wrong_bytes")] for r in spoilt["runs"]) == 5
    assert sum(p["mean"][spoilt["metrics"].index("share_useful")] is None for p in spoilt["points"]) == 1
    cut = page("cut")
    assert 3 <= len(cut["runs"]) < 12 and any(p["runs"] == 0 and set(p["mean"]) == {None} for p in cut["points"])
PYTHON
python3 sweep_page.py || fail "a sweep's page"

# What a reader does, in a page that tells what came of it: other figures and axes, sorting, a picture.
cat >reader.js <<'SCRIPT'
<script>(async () => {
  const $ = id => document.getElementById(id), canvas = () => document.querySelector("#chart canvas"), says = {}, charts = [], pictures = [];
  const drawn = () => new Promise(done => setTimeout(done, 1)); // the library draws when scripts are done
  const set = (id, value) => { $(id).value = value; $(id).dispatchEvent(new Event("change")); return drawn(); };
  const inked = () => { const c = canvas(), d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data; let n = 0; for (let i = 0; i < d.length; i += 4) n += d[i + 3] > 200 && Math.max(d[i], d[i + 1], d[i + 2]) - Math.min(d[i], d[i + 1], d[i + 2]) > 60; return n; };
  const column = name => [...document.querySelectorAll("#means th")].findIndex(th => th.dataset.metric === name);
  const options = id => [...$(id).options].map(o => o.value);
  HTMLAnchorElement.prototype.click = function () { pictures.push(this.href); };
  for (const figure of options("metric")) { await set("metric", figure); charts.push([canvas().toDataURL(), inked()]); }
  await set("metric", "source_bytes");
  document.querySelectorAll("#means th")[column("source_bytes")].click();
  says.sorted = [...document.querySelectorAll("#means tbody tr")].map(tr => tr.children[column("source_bytes")].dataset.mean);
  says.axes = [];
  for (const over of options("over")) { await set("over", over); says.axes.push(inked()); }
  $("png").click();
  $("all").click();
  $("runs-box").open = true; await drawn();
  says.links = [...document.querySelectorAll("#runs a")].map(a => a.getAttribute("href"));
  says.warning = $("missing").hidden ? "" : $("missing").textContent;
  says.charts = charts.length; says.different = new Set(charts.map(c => c[0])).size; says.least = Math.min(...charts.map(c => c[1])); says.title = document.title;
  says.pictures = pictures.map(p => [p.slice(0, 22), p.length]);
  says.table = [...document.querySelectorAll("#means tbody tr")].map(tr => [...tr.children].map(td => [td.textContent, td.dataset.mean, td.dataset.half]));
  says.heads = [...document.querySelectorAll("#means th")].map(th => th.dataset.metric || th.textContent);
  document.body.append(Object.assign(document.createElement("pre"), { id: "says", textContent: JSON.stringify(says) }));
})();
</script>
SCRIPT
read_page() { # FOLDER
  sed '$d' "$1/report.html" | cat - reader.js >"$1/reader.html"
  HOME=$work timeout 120 "$browser" --headless=new --no-sandbox --disable-gpu --enable-logging=stderr --v=0 \
    --virtual-time-budget=4000 --window-size=1200,1600 --dump-dom "file://$work/$1/reader.html" >dom 2>console || true
  says 'data-ready="yes"' dom
  ! grep -E 'CONSOLE.*(rror|TypeError)' console || fail "$1: errors on the page's console"
  python3 - "$1" <<'PYTHON' || fail "$1: what a reader sees"
import csv, html, json, os, re, sys
from sweep_page import close, page
folder, data = sys.argv[1], page(sys.argv[1])
says = json.loads(html.unescape(re.search(r'<pre id="says">(.*?)</pre>', open("dom").read(), re.S).group(1)))
means = list(csv.DictReader(open(f"{folder}/means.csv")))
keys, drawn = [a["key"] for a in data["axes"]], [n for i, n in enumerate(data["metrics"]) if any(r["values"][i] is not None for r in data["runs"])]
assert says["heads"] == keys + ["n"] + drawn, says["heads"]
left = means[:]
for row in says["table"]:
    mean = next(m for m in left if [m[k] for k in keys] == [c[0] for c in row[:len(keys)]])
    left.remove(mean)
    assert row[len(keys)][0] == mean["runs"]
    for name, (text, value, half) in zip(drawn, row[len(keys) + 1:]):
        assert close(float(value) if value else None, mean[name], 8) and close(float(half) if half else None, mean[name + "_ci95"], 2), name
        assert ("±" in text) == bool(half) and (text == "no run") == (mean["runs"] == "0"), text
assert not left
assert len(says["sorted"]) == len(means) and says["sorted"] == sorted(says["sorted"], key=lambda v: float(v or "inf")), says["sorted"]
# Each figure has a picture of its own (some are nought everywhere, and all of them alike), none blank.
assert says["charts"] == len(drawn) and says["different"] > len(drawn) // 2 and says["least"] > 30 and min(says["axes"]) > 30, (says["charts"], says["different"], says["least"], says["axes"])
assert len(says["pictures"]) == 1 and says["pictures"][0][0] == "data:image/png;base64," and says["pictures"][0][1] > 3000, says["pictures"]
assert len(says["links"]) == len(data["runs"]) and all(os.path.exists(f"{folder}/{link}") for link in says["links"])
assert ("missing:" in says["warning"]) == (len(data["runs"]) < len(data["points"]) * data["seeds"]), says["warning"]
assert ("Bytes came out wrong in 1 run" in says["warning"]) == (folder == "spoilt"), says["warning"]
assert says["title"] == "weft sim: sweep of " + data["scenario"]
PYTHON
}
if [ -n "$browser" ] && [ -s results.png ]; then
  for folder in grid cut odd seeds spoilt; do
    read_page "$folder"
  done
fi

# --- Ctrl-C

code=0
python3 - "$weft" <<'PYTHON' >out 2>err || code=$?
import signal, subprocess, sys, time
signal.signal(signal.SIGINT, signal.SIG_DFL)  # a runner may have ignored it, and it would stay so
child = subprocess.Popen([sys.argv[1], "sim", "--peers", "2000", "--duration", "10min", "--no-files"])
time.sleep(2)
child.send_signal(signal.SIGINT)
sys.exit(child.wait(timeout=60))
PYTHON
[ "$code" = 130 ] || fail "SIGINT: exit $code: $(cat err)"
says 'interrupted' err

# --- ranks

state() { grep '^state hash' "$1"; }
if [ -z "$mpi" ] || [ ! -x "$mpi" ] || ! command -v mpirun >/dev/null; then
  printf 'skipped: no MPI here, so weft-sim-mpi is not run\n'
else
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_plm_rsh_agent=/bin/false
  export HOME=$work TMPDIR=$work OMPI_MCA_btl_vader_single_copy_mechanism=none
  expect 0 sim "${small[@]}" --fidelity rank --no-files
  state out >alone
  for ranks in 1 2 3; do
    # Open MPI leaves memory of its own behind.
    ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 timeout 120 mpirun --oversubscribe -n "$ranks" "$mpi" --oversubscribe "${small[@]}" --threads 1 --fidelity rank --no-files \
      >state 2>err || fail "mpirun -n $ranks: $(cat err)"
    state state | cmp -s - alone || fail "$ranks ranks end in another state than one process"
  done
  # Memory is that of all ranks, help is told once, and a word of several ranks stays a word.
  of_ranks() { # OPTION...: by three ranks, report in `state`
    ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 timeout 60 mpirun --oversubscribe -n 3 "$mpi" --oversubscribe "$@" >state 2>err
  }
  memory() { sed -n 's/.*"memory_bytes":\([0-9]*\).*/\1/p' "$1"; }
  expect 0 sim --peers 200 --duration "10 s" --threads 1 --no-files --json
  of_ranks --peers 200 --duration "10 s" --no-files --json || fail "three ranks: $(cat err)"
  [ "$(memory state)" -ge "$(memory out)" ] || fail "three ranks have $(memory state) bytes of memory together, one has $(memory out)"
  of_ranks --help || fail "help of three ranks: $(cat err)"
  [ "$(grep -c '^Usage' state)" = 1 ] || fail "help of three ranks: $(cat state)"
  of_ranks --peers 0 && fail "no peers, of three ranks"
  [ "$(grep -c '^weft sim: --peers must be' err)" = 1 ] || fail "no peers, of three ranks: $(cat err)"
  of_ranks --peers 0 --json && fail "no peers, of three ranks, as JSON"
  python3 -c 'import json; told = json.load(open("state")); assert told["exit_code"] == 2 and "--peers must be" in told["error"], told' ||
    fail "an error of three ranks as JSON: $(cat state err)"
  of_ranks --no-such && fail "an unknown option, of three ranks"
  [ "$(grep -c '^weft sim: Unknown option' err)" = 1 ] || fail "an unknown option, of three ranks: $(cat err)"
  many=$(($(nproc --all) + 1)) # mpirun lets its ranks have processors that this shell may not use
  code=0
  ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 timeout 60 mpirun --oversubscribe -n "$many" "$mpi" "${small[@]}" --no-files >state 2>err || code=$?
  [ "$code" != 0 ] || fail "$many ranks on $(nproc --all) processors were not refused"
  says 'ranks would wait for each other' err
fi

[ "$failures" = 0 ] || exit 1
printf 'weft sim: all as documented\n'

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `weft sim` works as users call it: shipped scenarios, schemes, results and their agreement, the
# page in a browser.
set -euo pipefail
# shellcheck source=tests/cli/expect.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/expect.sh"
# shellcheck source=tests/cli/browser.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/browser.sh"

weft=$PWD/$1
program=("$weft")
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
expect 0 sim "${small[@]}" --classes lte:1 --out lossy
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
assert 0.97 < sum(shares) < 1.001, sum(shares)  # what is under way at the end is in none of them
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
assert len(series) == 15 and abs(sum(int(s["due"]) for s in series) - due) <= 30  # whole seconds: the last window's surplus is in none
assert float(series[-1]["peer_bytes"]) > 0.25 * float(series[-2]["peer_bytes"]), "the curve drops at its end"
arrived = dict.fromkeys(range(31), 0)  # in the trace: without what the access lost
for entry in map(json.loads, open("lossy/trace.jsonl")):
    arrived[entry["peer"]] += entry["packets"] if entry["event"] == "data" else 0
for p in csv.DictReader(open("lossy/peers.csv")):
    assert arrived[int(p["peer"])] == sum(int(p[name]) for name in ("innovative", "dependent", "late")), p
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

# Polluters are not viewers, in curves and tables as in figures; a point that stands for several
# seconds is their mean.
expect 0 sim polluted --peers 40 --duration 20s --polluters 0.3 --threads 2 --out polluted
expect 0 sim vod --peers 30 --duration 60s --classes dsl:1 --source-upload 3M --seeks-per-hour 60 --seed 5 --threads 2 --out waits
expect 0 sim --peers 4 --duration 1700s --rate 8k --segment-blocks 8 --block-bytes 128 --lag 4s --arrival together --departure stay --threads 2 --out long
python3 - <<'PYTHON' || fail "curves"
import csv, json, re
def load(folder):
    page = open(f"{folder}/report.html").read()
    data = json.loads(re.search(r"const run = (\{.*?\});</script>", page, re.S).group(1))
    return data, *(list(csv.DictReader(open(f"{folder}/{name}.csv"))) for name in ("peers", "series"))
data, peers, series = load("polluted")
m, audience = data["metrics"], [p for p in peers if p["polluter"] == "0"]
assert 0 < len(audience) < len(peers), len(audience)
due, in_time = (sum(int(p[name]) for p in audience) for name in ("due", "in_time"))
assert abs(m["continuity"] - in_time / due) < 1e-9 and all(p["due"] == "0" or p in audience or int(p["due"]) > 0 for p in peers)
assert any(int(p["due"]) for p in peers if p not in audience), "polluters play nothing"
for name, all_of_them in (("due", due), ("in_time", in_time)):
    assert sum(int(s[name]) for s in series) == sum(data["series"][name]) <= all_of_them, name
    assert all_of_them - sum(data["series"][name]) <= len(audience), name
assert sum(c["viewers"] for c in data["classes"]) == len(audience) == m["viewers"] and m["viewers_at_once"] <= len(audience)
there = [sum(max(0, min(float(p["left_s"] or 1e9), s + 1) - max(float(p["joined_s"]), s)) for p in audience) for s in range(len(series))]
assert all(abs(float(s["online"]) - n) < 1e-4 for s, n in zip(series, there)), "online"
assert sum(c["continuity"] * sum(int(p["due"]) for p in audience if p["class"] == c["name"]) for c in data["classes"] if c["viewers"]) - in_time < 1e-6 * in_time
assert data["quantiles"]["startup"][-1] == sum(1 for p in audience if p["startup_s"]) / len(audience)
stream = data["parameters"]["stream"]
watched = in_time * int(stream["segment-blocks"]) * int(stream["block-bytes"])
assert abs(m["server_saving"] - (1 - m["source_bytes"] / watched)) < 1e-6, m["server_saving"]
data, peers, series = load("waits")  # what a viewer waited for was due when it stalled, and not in time
totals = {name: sum(int(p[name]) for p in peers) for name in ("due", "in_time", "stalls")}
assert totals["stalls"] > 5 and totals["due"] - totals["in_time"] == totals["stalls"], totals
for name, all_of_them in totals.items():
    assert sum(int(s[name]) for s in series) == sum(data["series"][name]) and 0 <= all_of_them - sum(data["series"][name]) <= 2, (name, totals)
waited, watched = (sum(of(p) for p in peers) for of in (lambda p: float(p["seek_wait_s"]), lambda p: float(p["left_s"] or 60) - float(p["joined_s"])))
assert 0 < waited < watched and abs(data["metrics"]["seek_wait_share"] - waited / watched) < 1e-4, (waited, watched)
sent = sum(int(s["source_bytes"]) for s in series)
assert sent <= data["metrics"]["source_bytes"] < 1.01 * sent, (sent, data["metrics"]["source_bytes"])  # handshakes, too
data, peers, series = load("long")
assert len(series) == 1700 and data["series"]["second"] == list(range(0, 1700, 2)) and data["swarm"]["frame_s"] == 3
for name in ("online", "due", "in_time", "source_bytes"):  # a node that comes or goes in a second is there for a part of it
    assert all(abs(point - (float(a[name]) + float(b[name])) / 2) <= 1e-8 * point for point, a, b in zip(data["series"][name], series[::2], series[1::2], strict=True)), name
PYTHON

# Files of an earlier run of another kind in this folder are gone; page and run.json have the same
# figures.
python3 - <<'PYTHON' || fail "figures of page and run.json"
import json, re
page = open("polluted/report.html").read()
assert json.loads(re.search(r"const run = (\{.*?\});</script>", page, re.S).group(1))["metrics"]["sent_bytes"] == json.load(open("polluted/run.json"))["metrics"]["sent_bytes"]
PYTHON
expect 0 sim "${small[@]}" --out turns --gnuplot
expect 0 sim storage-swarm --peers 40 --duration 48h --out turns
[ "$(cd turns && echo *)" = 'report.html run.json series.csv summary.csv' ] || fail "files of a swarm in a store's folder: $(ls turns)"

# A name that a comma or a quote in it would split; shares given in percent.
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

# A run.json repeats its run, with classes of one's own, and takes flags as other scenarios do.
for run in named polluted server hours; do
  expect 0 sim "$run/run.json" --threads 1 --out "$run-again"
  for table in summary.csv series.csv $([ "$run" = hours ] || echo peers.csv); do
    cmp "$run/$table" "$run-again/$table" || fail "$run/run.json does not repeat its run: $table"
  done
  python3 - "$run" <<'PYTHON' || fail "$run/run.json, repeated"
import json, sys
first, again = (json.load(open(f"{folder}/run.json")) for folder in (sys.argv[1], sys.argv[1] + "-again"))
for part in ("scenario", "state_hash", "parameters", "metrics"):
    assert first[part] == again[part], part
PYTHON
done
expect 0 sim named/run.json --peers 7 --no-files
says '^  viewers  *7$' out

# --- gnuplot's scripts: of what a run of the kind has

expect 0 sim streaming-server --peers 12 --duration 11s --coding-rate 100M --out server-plot --gnuplot
expect 0 sim storage-swarm --peers 40 --duration 48h --out hours-plot --gnuplot
expect 0 sim download --peers 10 --bulk-bytes 300k --out fetch-plot --gnuplot
! grep -q 'continuity\|peers.csv\|Mbit' hours-plot/figures.gp || fail "a store's script: $(cat hours-plot/figures.gp)"
! grep -q continuity fetch-plot/figures.gp || fail "a script of bulk: $(cat fetch-plot/figures.gp)"
! grep -q "title 'peers'" server-plot/figures.gp || fail "a server's script: $(cat server-plot/figures.gp)"
expect 0 sim flash-crowd --peers 1 --duration 3s --out early-plot --gnuplot # nothing has been played by then
for folder in results server-plot hours-plot fetch-plot early-plot; do
  plotted "$folder" figures
done

# --- run.json's parameters make the same run again

printf '[network]\npeers = 12\nloss = 0.0123456789\nclasses = mine:0.12345678 plain:1\nlatency = matrix\nmatrix = 1.001 10.011; 10.011 20\nisps = 2\n[class mine]\nupload = 2M\nline = 4M\n[churn]\nstay-mean = 17.1234567 s\ndeparture = exponential\n' >again.ini
expect 0 sim again.ini --duration 10s --out again
python3 - <<'PYTHON' || fail "run.json as a scenario"
import json
p = json.load(open("again/run.json"))["parameters"]
classes = p.pop("classes")
assert [c["line_bits_per_s"] for c in classes] == [4000000, 0], classes
assert p["network"]["loss"] == "0.0123456789" and p["churn"]["stay-mean"] == "17.1234567 s", p
assert p["network"]["matrix"] == "1.001 10.011; 10.011 20", p["network"]["matrix"]
with open("again2.ini", "w") as out:
    for group, keys in p.items():
        out.write(f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in keys.items() if v))
    for c in classes:
        out.write(f"[class {c['name']}]\nupload = {c['upload_bits_per_s']}\ndownload = {c['download_bits_per_s']}\n")
        out.write(f"delay = {c['delay_ms']} ms\nloss = {c['loss']}\nburst = {c['burst']}\nnat = {c['nat']}\n")
        if c["line_bits_per_s"]:
            out.write(f"line = {c['line_bits_per_s']}\n")
PYTHON
expect 0 sim again2.ini --out again2
cmp <(grep state_hash again/run.json) <(grep state_hash again2/run.json) || fail "run.json's parameters make another run"
# A value is written in full, however long: a sweep over it has a run for each.
printf -v delays ' %s' {1,1,1,1,1,1,1,1}2345.678
matrix=$(for _ in 1 2 3 4 5 6 7 8; do printf '%s;' "${delays# }"; done)
expect 0 sim --peers 4 --duration 5s --latency matrix --isps 8 --matrix "${matrix%;}" --out matrix
[ "$(python3 -c 'import json; print(json.load(open("matrix/run.json"))["parameters"]["network"]["matrix"].replace("; ", ";"))')" = "${matrix%;}" ] ||
  fail "run.json's matrix: $(grep '"matrix"' matrix/run.json)"
for folder in server hours; do
  ! grep -q '"memory_bytes": 0,' "$folder/run.json" || fail "$folder: no memory"
done

# --- what is kept of a long trace does not depend on threads, and cutting it is reported

for threads in 1 3; do
  expect 0 sim --peers 300 --sampled 301 --duration 48s --arrival together --departure stay --fidelity rank --threads "$threads" --out "traced-$threads"
  [ "$(wc -l <"traced-$threads/trace.jsonl")" = 400000 ] || fail "$(wc -l <"traced-$threads/trace.jsonl") lines of a trace"
  says '"trace_cut": true' "traced-$threads/run.json"
done
cmp traced-1/trace.jsonl traced-3/trace.jsonl || fail "a trace depends on threads"

# --- the page in a browser

# Opens a page: its charts are there, nothing on the console, and its picture in FOLDER.png.
open_page() { # FOLDER CHARTS [FLAG]
  HOME=$work timeout 120 "$browser" ${3:+"$3"} --headless=new --no-sandbox --disable-gpu --enable-logging=stderr --v=0 \
    --virtual-time-budget=4000 --window-size=1200,2600 --dump-dom "file://$work/$1/report.html" >dom 2>console || true
  [ -s dom ] || fail "$1: the browser shows nothing"
  says 'data-ready="yes"' dom
  says '<canvas' dom
  [ "$(grep -o 'class="uplot' dom | wc -l)" = "$2" ] || fail "$1: $(grep -o 'class="uplot' dom | wc -l) charts, not $2"
  ! grep -q 'class="none"' dom || fail "$1: a chart has nothing to show"
  ! grep -E 'CONSOLE.*(rror|TypeError)' console || fail "$1: errors on the page's console"
  HOME=$work timeout 120 "$browser" ${3:+"$3"} --headless=new --no-sandbox --disable-gpu --virtual-time-budget=4000 \
    --window-size=1200,2600 --screenshot="$work/$1.png" "file://$work/$1/report.html" >/dev/null 2>&1 || true
}

# Expects at least that many points of the picture to be of the swarm's canvas, and of lines; and
# the page's paper.
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

find_browser
if [ -n "$browser" ]; then
  open_page results 5
  says '\[class fibre\] upload_bits_per_s</td><td class="n">50000000<' dom
  drawn results 20001 1501
  open_page results 5 --blink-settings=preferredColorScheme=0
  drawn results 20001 1501 '#10151c'
  open_page waits 5
  says 'Stalls per second' dom
  ! grep -q 'label[^<]*>lag\|[Pp]layback lag' dom || fail "a page on demand has a line of lags, which nobody has"
  # Where there is less room than before, as in a window that became narrow, charts become narrower,
  # too.
  mkdir -p narrow
  { cat results/report.html && cat <<'HTML'; } >narrow/report.html
<script>
const beyond = () => Math.max(...[...document.querySelectorAll(".uplot")].map(u => u.offsetWidth - u.parentElement.clientWidth));
document.querySelector("main").style.width = "420px";
document.body.dataset.before = beyond() > 0;
dispatchEvent(new Event("resize"));
setTimeout(() => { document.body.dataset.after = beyond() > 0; }, 200);
</script>
HTML
  open_page narrow 5
  says 'data-before="true"' dom
  says 'data-after="false"' dom
  # What a server's and a store's pages show fits their kind, and nothing is left blank.
  open_page server 8
  drawn server 0 1501
  open_page hours 5
  drawn hours 0 1501
fi

# --- progress on a terminal: for a bulk run, whose end is unknown, only the time

python3 - "$weft" <<'PYTHON' || fail "progress"
import os, pty, re, subprocess, sys
def shown(*words):
    terminal, end = pty.openpty()
    child = subprocess.Popen([sys.argv[1], "sim", *words, "--no-files", "-q"], stderr=end)
    os.close(end)
    seen = b""
    try:
        while more := os.read(terminal, 4096):
            seen += more
    except OSError:  # the other end is closed
        pass
    assert child.wait() == 0, seen
    return [line for line in seen.decode().replace("\033[K", "").split("\r") if "virtual" in line]
lines = shown("download", "--peers", "10", "--bulk-bytes", "300k", "--duration", "1s")
assert lines and all(re.fullmatch(r"[0-9.]+ s virtual", line) for line in lines), lines
lines = shown("--peers", "8", "--duration", "5s")
assert lines and all(re.match(r" *[0-9]+ %  [0-9.]+ s of 5\.0 s virtual", line) for line in lines), lines
PYTHON

# --- Ctrl-C

code=0
python3 - "$weft" <<'PYTHON' >out 2>err || code=$?
import signal, subprocess, sys, time
signal.signal(signal.SIGINT, signal.SIG_DFL)  # a runner may have ignored it, which would be inherited
child = subprocess.Popen([sys.argv[1], "sim", "--peers", "2000", "--duration", "10min", "--no-files"])
time.sleep(2)
child.send_signal(signal.SIGINT)
sys.exit(child.wait(timeout=60))
PYTHON
[ "$code" = 130 ] || fail "SIGINT: exit $code: $(cat err)"
says 'interrupted' err

[ "$failures" = 0 ] || exit 1
printf 'weft sim: all as documented\n'

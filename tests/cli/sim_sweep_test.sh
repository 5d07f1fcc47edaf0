#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Sweeps of `weft sim`: one that is killed and started again, their means, and their page as a
# reader uses it.
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

# Runs that differ in a digit that a table would cut, or in the contents of their trace, are told
# apart.
expect 0 sim "${small[@]}" --sweep loss=0.01234561,0.01234562 --out digits
[ "$(find digits/runs -name run.json | wc -l)" = 2 ] || fail "two losses are one run"
for arrivals in '0\n1\n' '0\n1\n2\n'; do
  # shellcheck disable=SC2059 # its line ends are escapes
  printf "$arrivals" >arrivals
  expect 0 sim --arrival trace --trace arrivals --duration 5s --threads 2 --sweep loss=0 --out traced
  tail -n 1 traced/summary.csv | cut -d, -f4 >>traced-viewers
done
[ "$(tr '\n' ' ' <traced-viewers)" = '2 3 ' ] || fail "another trace of the same name: $(cat traced-viewers)"

# A run is the same one however its access classes came about: those of the command line that the
# sweep replaces tell nothing of it. One whose class differs in a single rate is another.
for before in dsl:1 'server:2 fibre:1 lte:1'; do
  expect 0 sim "${small[@]}" --classes "$before" --sweep classes=dsl:1 --out classes
  cp classes/summary.csv "classes/${before%%:*}.csv"
done
[ "$(find classes/runs -name run.json | wc -l)" = 1 ] || fail "runs of the same classes have two folders"
cmp classes/dsl.csv classes/server.csv || fail "runs of the same classes have other figures"
for upload in 2M 3M; do
  printf '[network]\nclasses = dsl:1\n[class dsl]\nupload = %s\n' "$upload" >class.ini
  expect 0 sim class.ini "${small[@]}" --sweep loss=0 --out rates
done
[ "$(find rates/runs -name run.json | wc -l)" = 2 ] || fail "two rates of a class are one run"

# A file's name may be any bytes; what is written about it is text.
cp arrivals $'a\xff'
expect 0 sim --arrival trace --duration 5s --threads 2 --sweep $'trace=arrivals,a\xff' --sweep loss=0,0.1 --out bytes --gnuplot
python3 - <<'PYTHON' || fail "names that are no text"
import csv, pathlib
files = [path.read_text("utf-8") for path in map(pathlib.Path("bytes").joinpath, ("summary.csv", "means.csv", "means.gp", "report.html"))]
for text in files[:2]:
    assert [row["trace"] for row in csv.DictReader(text.splitlines())][:2] == ["arrivals", "a\ufffd"], text
assert "title 'trace a\ufffd'" in files[2], files[2]
PYTHON

expect 0 sim storage-swarm --peers 40 --duration 48h --sweep code=cauchy,vandermonde --seeds 2 --out store
[ "$(wc -l <store/summary.csv)" = 5 ] || fail "store/summary.csv has $(wc -l <store/summary.csv) lines"

# --- a run without progress is recorded, the others are run, and it is not run again

stands=(sim --peers 20 --mode bulk --bulk-bytes 1M --topology graph --arrival together --sweep "scheme=source-only,push" --seeds 2 --out stands)
for _ in 1 2; do
  expect 1 "${stands[@]}"
  says '2 of 4 runs made no progress for ten minutes (no_progress in summary.csv); the first of them is [0-9a-f]\{16\}$' err
  find stands/runs -name run.json -exec stat -c '%n %Y %i' {} + | sort >>stood
done
[ "$(sort -u stood | wc -l)" = 4 ] || fail "runs without progress were run again"
python3 - <<'PYTHON' || fail "figures of runs without progress"
import csv
for name in ("summary", "means"):
    for row in csv.DictReader(open(f"stands/{name}.csv")):
        stood = row["scheme"] == "source-only"
        assert (float(row["no_progress"]), float(row["viewers"])) == (stood, 20), row
        assert (float(row["done"]) < 20) == stood, row
        assert all((row[key] == "") == stood for key in ("done_p50_s", "source_bytes", "share_useful")), row
PYTHON

# --- gnuplot's script: a line for each combination, an interval only where there are enough runs
# for one

expect 0 sim --gnuplot "${sweep[@]:1}"
[ "$(grep -c "with yerrorlines title 'loss 0" grid/means.gp)" = 2 ] || fail "a grid's script: $(cat grid/means.gp)"
says 'xtic(2)' grid/means.gp
says 'yrange .*<1.02' grid/means.gp # the interval of a share may exceed 1
expect 0 sim "${small[@]}" --sweep loss=0,0.05 --out one-seed --gnuplot
says 'using 1:[0-9]* with linespoints notitle' one-seed/means.gp
expect 0 sim storage-swarm --peers 40 --duration 48h --sweep code=cauchy,vandermonde --seeds 2 --out store --gnuplot
says "ylabel 'coded_read_availability'" store/means.gp
for folder in grid one-seed store; do
  plotted "$folder" means
done
# The column that is drawn is the one that is named.
python3 - <<'PYTHON' || fail "a script's columns"
import re
for folder in ("grid", "one-seed", "store"):
    script, heading = open(f"{folder}/means.gp").read(), open(f"{folder}/means.csv").readline().strip().split(",")
    name = re.search(r"set ylabel '(\w+)'", script).group(1)
    for column in re.findall(r"using \d+:(\d+)", script):
        assert heading[int(column) - 1] == name, (folder, column, name)
    for column in re.findall(r"using \d+:\d+:(\d+)", script):
        assert heading[int(column) - 1] == name + "_ci95", (folder, column, name)
PYTHON

# --- a sweep's page: the same figures as the tables, and a picture of each

# An interrupted sweep: a page of what is there.
code=0
python3 - "$weft" "${small[@]}" <<'PYTHON' >out 2>err || code=$?
import glob, signal, subprocess, sys, time
signal.signal(signal.SIGINT, signal.SIG_DFL)  # a runner may have ignored it, which would be inherited
child = subprocess.Popen([sys.argv[1], "sim", *sys.argv[2:], "--sweep", "scheme=push,pull", "--sweep", "peers=20,30,4000", "--seeds", "2", "--out", "cut"])
for _ in range(600):
    if len(glob.glob("cut/runs/*/run.json")) >= 3 or child.poll() is not None:
        break
    time.sleep(0.1)
child.send_signal(signal.SIGINT)
sys.exit(child.wait(timeout=60))
PYTHON
[ "$code" = 130 ] || fail "SIGINT in a sweep: exit $code: $(cat err)"
printf '[network]\npeers = 10\n' >'a,b"<!--<script>&.ini'
expect 0 sim 'a,b"<!--<script>&.ini' "${small[@]}" --sweep "lag=5 s,2500 ms" --sweep peers=10 --out odd
expect 0 sim "${small[@]}" --seeds 3 --out seeds
# A run that got bytes wrong, and one that an earlier build made, with other figures.
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
wrong 2 'seed cannot be swept with --seeds' sim --sweep seed=1,2 --seeds 3
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
        common = [c for c in data["common"] if not c[0].startswith("class ")]
        assert all(known[k] == v for _, k, v in common) and not set(keys) & {k for _, k, _ in common}
        classes = {"class " + c["name"]: c for c in run["parameters"]["classes"]}
        assert all(classes[group][k] == v for group, k, v in data["common"] if group in classes), classes
        assert ("classes" in keys) != (len(data["common"]) - len(common) == 8 * len(classes)), data["common"]
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

# What a reader does, in a page that reports the results: other figures and axes, sorting, a
# picture.
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
# Each figure has a picture of its own (some are zero everywhere, and all of those alike), none
# blank.
assert says["charts"] == len(drawn) and says["different"] > len(drawn) // 2 and says["least"] > 30 and min(says["axes"]) > 30, (says["charts"], says["different"], says["least"], says["axes"])
assert len(says["pictures"]) == 1 and says["pictures"][0][0] == "data:image/png;base64," and says["pictures"][0][1] > 3000, says["pictures"]
assert len(says["links"]) == len(data["runs"]) and all(os.path.exists(f"{folder}/{link}") for link in says["links"])
assert ("missing:" in says["warning"]) == (len(data["runs"]) < len(data["points"]) * data["seeds"]), says["warning"]
assert ("Bytes came out wrong in 1 run" in says["warning"]) == (folder == "spoilt"), says["warning"]
assert ("2 runs made no progress" in says["warning"]) == (folder == "stands"), says["warning"]
assert says["title"] == "weft sim: sweep of " + data["scenario"]
PYTHON
}
find_browser
if [ -n "$browser" ]; then
  for folder in grid cut odd seeds spoilt stands; do
    read_page "$folder"
  done
fi

[ "$failures" = 0 ] || exit 1
printf 'weft sim: sweeps as documented\n'

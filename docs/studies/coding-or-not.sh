#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the figures of coding-or-not.md: RLNC push, RLNC pull and the source alone against an uncoded
# rarest-first mesh, under loss, churn, flash crowds and short lags.
#   docs/studies/coding-or-not.sh WEFT FOLDER [SEEDS]
# Can be stopped and started again. FOLDER gets a folder of runs for each series and scheme (means.csv:
# means and 95 % intervals over seeds), tables.md, and, with gnuplot, figures.png.
set -euo pipefail
if [ $# -lt 2 ] || ! command -v -- "$1" >/dev/null; then
  printf 'usage: docs/studies/coding-or-not.sh WEFT FOLDER [SEEDS]; WEFT is the program\n' >&2
  exit 2
fi
weft=$1
out=$2
seeds=${3:-5}
mkdir -p "$out"
common=(--peers 60 --duration 20s --seeds "$seeds" --source-upload 8M --classes cable:100 --fidelity bytes
  --neighbours 30 --neighbours-max 50 --startup "1 s" --quiet)
series() { # NAME SWEEP ARGUMENT...
  local name=$1 sweep=$2 scheme
  shift 2
  for scheme in push pull rarest source-only; do
    "$weft" sim flash-crowd "${common[@]}" --scheme "$scheme" "$@" --sweep "$sweep" --out "$out/$name-$scheme"
  done
}
still=(--arrival together --departure stay)
series loss "loss=0,0.02,0.05,0.1" "${still[@]}" --lag "3 s"
series lag "lag=1500 ms,2 s,3 s,6 s" "${still[@]}" --loss 0.02
series churn "stay-mean=10 s,20 s,60 s" --arrival poisson --arrivals-per-s 4 --departure exponential --polite 0.3 \
  --loss 0.02 --lag "3 s"
series flash "flash-within=1 s,5 s,15 s" --arrival flash --flash-share 1 --departure stay --loss 0.02 --lag "3 s"
series uplink "classes=dsl:1,plain:1,cable:1,fibre:1" "${still[@]}" --loss 0.02 --lag "3 s"

# --- Tables and figures
python3 - "$out" <<'PYTHON'
import csv, os, sys
out = sys.argv[1]
schemes = ["push", "pull", "rarest", "source-only"]
names = {"loss": "Loss on every path (lag 3 s)", "lag": "How close to live (2 % loss)",
         "churn": "Churn: mean stay (30 % say goodbye)", "flash": "Flash crowd: all come within",
         "uplink": "Uplink of each viewer (2 % loss, lag 3 s)"}
keys = {"classes": "uplink"}
labels = {"dsl:1": "1 Mbit/s (dsl)", "plain:1": "1.2 (plain)", "cable:1": "5 (cable)", "fibre:1": "50 (fibre)"}
columns = [("continuity", 4), ("startup_p95_s", 2), ("source_streams", 2), ("share_useful", 3)]
with open(f"{out}/tables.md", "w") as to:
    for name, title in names.items():
        tables = {}
        for scheme in schemes:
            path = f"{out}/{name}-{scheme}/means.csv"
            if os.path.exists(path):
                tables[scheme] = list(csv.DictReader(open(path)))
        if not tables:
            continue
        key = list(next(iter(tables.values()))[0])[0]
        to.write(f"## {title}\n\n| {keys.get(key, key)} | scheme | continuity | start-up p95, s | source sends (streams) | useful share of all bytes |\n|---|---|---|---|---|---|\n")
        for i, first in enumerate(next(iter(tables.values()))):
            for scheme, rows in tables.items():
                r = rows[i]
                cells = []
                for column, digits in columns:
                    mean, half = r[column], r[column + "_ci95"]
                    cells.append("" if mean == "" else f"{float(mean):.{digits}f}" + (f" ± {float(half):.{digits}f}" if half else ""))
                to.write(f"| {labels.get(first[key], first[key]) if scheme == schemes[0] else ''} | {scheme} | " + " | ".join(cells) + " |\n")
        to.write("\n")
        with open(f"{out}/{name}.dat", "w") as data:
            for scheme, rows in tables.items():
                data.write(f'"{scheme}"\n')
                for r in rows:
                    data.write(f'"{r[key]}" {r["continuity"]} {r["continuity_ci95"] or 0} {r["source_streams"]} {r["source_streams_ci95"] or 0}\n')
                data.write("\n\n")
PYTHON
if command -v gnuplot >/dev/null; then
  cat >"$out/figures.gp" <<'GNUPLOT'
set terminal pngcairo size 1500,1000 font ',11'
set output folder.'/figures.png'
set multiplot layout 2,3
set grid
set offsets 0.25, 0.25, 0, 0
set key outside bottom center horizontal
set yrange [0:1.05]
set ylabel 'continuity, mean and 95 % interval'
names = 'loss lag churn flash uplink'
array titles[5] = ['Loss on every path', 'Lag behind the source', 'Mean stay of a viewer', 'Flash crowd: all come within', 'Uplink: 1, 1.2, 5, 50 Mbit/s']
do for [at=1:5] {
  set title titles[at]
  plot for [i=0:3] folder.'/'.word(names, at).'.dat' index i using 0:2:3:xtic(1) with yerrorlines title columnheader(1)
}
set title 'Loss on every path: what the source sends'
set ylabel 'streams, mean and 95 % interval'
set yrange [0:*]
plot for [i=0:3] folder.'/loss.dat' index i using 0:4:5:xtic(1) with yerrorlines title columnheader(1)
unset multiplot
GNUPLOT
  gnuplot -e "folder='$out'" "$out/figures.gp"
fi

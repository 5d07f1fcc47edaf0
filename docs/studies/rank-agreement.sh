#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes rank-agreement.csv: how far fidelity `rank` is from `coefficients` in swarms that its one constant was
# not fitted on, for each figure that a study reads, with 95 % intervals over paired seeds.
#   docs/studies/rank-agreement.sh WEFT FOLDER [SEEDS]
# Can be stopped and started again. FOLDER gets a sweep for each case, rank-agreement.csv and tables.md.
set -euo pipefail
if [ $# -lt 2 ] || ! command -v -- "$1" >/dev/null; then
  printf 'usage: docs/studies/rank-agreement.sh WEFT FOLDER [SEEDS]; WEFT is the program\n' >&2
  exit 2
fi
weft=$1
out=$2
seeds=${3:-10}
mkdir -p "$out"
run() { # NAME SCENARIO ARGUMENT...
  local name=$1 scenario=$2
  shift 2
  "$weft" sim "$scenario" --sweep fidelity=coefficients,rank --seeds "$seeds" --sampled 0 --quiet --out "$out/$name" "$@"
}
still=(--arrival together --departure stay)
# What the constant was fitted on, with seeds 1001 and 1002: here for comparison.
fitted=(--seed 1001)
run fit-flash flash-crowd "${fitted[@]}" --peers 200 --duration "30 s"
run fit-blocks-24 flash-crowd "${fitted[@]}" --peers 200 --duration "20 s" --segment-blocks 24 --window 48 "${still[@]}"
run fit-blocks-200 flash-crowd "${fitted[@]}" --peers 150 --duration "40 s" --segment-blocks 200 --window 12 --lag "10 s" "${still[@]}"
run fit-neighbours-30 flash-crowd "${fitted[@]}" --peers 120 --duration "20 s" --neighbours 30 --neighbours-max 50 --classes cable:1 "${still[@]}"
run fit-scarce flash-crowd "${fitted[@]}" --peers 150 --duration "30 s" --loss 0.02 --classes plain:1 --lag "4 s"
run fit-deep million "${fitted[@]}" --peers 1500 --duration "20 s"
run fit-deep-96 million "${fitted[@]}" --peers 600 --duration "20 s" --segment-blocks 96 --neighbours 8 --neighbours-max 12 --batch 8
# What it was not: other n, losses, neighbours, bursts, schemes, churn, sizes, and seeds.
held=(--seed 5001)
run crowd-1000 flash-crowd "${held[@]}" --peers 1000 --duration "20 s"
run blocks-40-of-10 flash-crowd "${held[@]}" --peers 180 --duration "20 s" --segment-blocks 40 --window 32 --neighbours 7 --neighbours-max 10 --loss 0.03 "${still[@]}"
run blocks-128-bursts-4 flash-crowd "${held[@]}" --peers 150 --duration "30 s" --segment-blocks 128 --window 16 --batch 4 --lag "8 s" --loss 0.01 "${still[@]}"
run deep-160-of-6 million "${held[@]}" --peers 700 --duration "24 s" --segment-blocks 160 --neighbours 4 --neighbours-max 6
run neighbours-20 flash-crowd "${held[@]}" --peers 150 --duration "20 s" --neighbours 20 --neighbours-max 24 --loss 0.05 "${still[@]}"
run loss-10 flash-crowd "${held[@]}" --peers 150 --duration "20 s" --loss 0.1 --classes cable:1 "${still[@]}"
run too-scarce flash-crowd "${held[@]}" --peers 150 --duration "30 s" --loss 0.02 --classes dsl:1 "${still[@]}"
run mobile lossy-mobile "${held[@]}" --peers 200 --duration "40 s"
run churn evening-peak "${held[@]}" --peers 300 --duration "60 s" --arrivals-per-s 5 --stay-mean "30 s" --failure-at "40 s"
run pull flash-crowd "${held[@]}" --peers 200 --duration "30 s" --scheme pull --loss 0.02
run source-only flash-crowd "${held[@]}" --peers 60 --duration "20 s" --scheme source-only --source-upload 40M "${still[@]}"

python3 - "$out" <<'PYTHON'
import csv, math, os, sys
out = sys.argv[1]
cases = ("fit-flash fit-blocks-24 fit-blocks-200 fit-neighbours-30 fit-scarce fit-deep fit-deep-96 crowd-1000 blocks-40-of-10 "
         "blocks-128-bursts-4 deep-160-of-6 neighbours-20 loss-10 too-scarce mobile churn pull source-only").split()
T = [0, 0, 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093]
def overhead(r): return 1 / float(r["share_useful"]) - 1
figures = [("continuity", lambda r: float(r["continuity"])), ("startup_p50_s", lambda r: float(r["startup_p50_s"])),
           ("startup_p95_s", lambda r: float(r["startup_p95_s"])), ("source_bytes", lambda r: float(r["source_bytes"])),
           ("share_dependent", lambda r: float(r["share_dependent"])), ("overhead", overhead)]
def interval(v):
    n = len(v)
    mean = sum(v) / n
    return mean, T[min(n, 20)] * math.sqrt(sum((x - mean) ** 2 for x in v) / (n - 1) / n)
rows = []
for case in cases:
    runs = list(csv.DictReader(open(f"{out}/{case}/summary.csv")))
    pairs = {}
    for r in runs:
        pairs.setdefault(r["seed"], {})[r["fidelity"]] = r
    pairs = [p for p in pairs.values() if len(p) == 2]
    for name, value in figures:
        exact, rank = ([value(p[f]) for p in pairs] for f in ("coefficients", "rank"))
        mean, half = interval([b - a for a, b in zip(exact, rank)])
        level = sum(exact) / len(exact)
        rows.append({"case": case, "figure": name, "seeds": len(pairs), "coefficients": level, "rank": sum(rank) / len(rank),
                     "difference": mean, "ci95": half, "relative": mean / level if level else 0, "relative_ci95": half / level if level else 0})
with open(f"{out}/rank-agreement.csv", "w", newline="") as to:
    w = csv.DictWriter(to, list(rows[0]), lineterminator="\n")
    w.writeheader()
    for r in rows:
        w.writerow({k: f"{v:.6g}" if isinstance(v, float) else v for k, v in r.items()})
# Continuity and shares in points of a hundred, the others relative.
with open(f"{out}/tables.md", "w") as to:
    to.write("| case | continuity, exact | points | start-up p50 | p95 | source bytes | dependent, exact | points | overhead |\n|---|---|---|---|---|---|---|---|---|\n")
    for case in cases:
        by = {r["figure"]: r for r in rows if r["case"] == case}
        points = lambda f: f"{100 * by[f]['difference']:+.2f} ± {100 * by[f]['ci95']:.2f}"
        relative = lambda f: f"{100 * by[f]['relative']:+.1f} % ± {100 * by[f]['relative_ci95']:.1f}"
        to.write(f"| {case} | {by['continuity']['coefficients']:.4f} | {points('continuity')} | {relative('startup_p50_s')} | {relative('startup_p95_s')} | "
                 f"{relative('source_bytes')} | {100 * by['share_dependent']['coefficients']:.2f} % | {points('share_dependent')} | {relative('overhead')} |\n")
PYTHON
cat "$out/tables.md"

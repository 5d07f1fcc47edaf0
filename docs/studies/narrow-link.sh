#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What viewers play of a live stream of 768 kbit/s whose own link carries a part of it: alone at the source, and six of
# thirty, by the rate of that link, means of seeds 1 to SEEDS (docs/scale.md).
#   docs/studies/narrow-link.sh WEFT [SEEDS]
set -euo pipefail
if [ $# -lt 1 ] || ! command -v -- "$1" >/dev/null; then
  printf 'usage: docs/studies/narrow-link.sh WEFT [SEEDS]; WEFT is the program\n' >&2
  exit 2
fi
weft=$1
seeds=${2:-4}
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT

played() { # CLASS: of what was due to its viewers, in all runs of the point
  awk -F, -v class="$1" '$2 == class { due += $11; in_time += $12 }
    END { if (due) printf "%.3f", in_time / due; else printf "-" }' "$work"/out*/peers.csv
}

for peers in 1 30; do
  classes=narrow:1
  [ "$peers" -eq 1 ] || classes='plain:4 narrow:1'
  for link in 300 500 700 800 900 1000 1300 1600; do
    {
      printf '[stream]\nfidelity = coefficients\nrate = 768k\nduration = 120 s\n'
      printf '[engine]\nwindow = 64\nbatch = 16\nneighbours = 8\nneighbours-max = 16\nsource-neighbours = 16\n'
      printf 'addresses = 64\nexchange-every = 1 s\nmanifests = true\ncongestion = true\nlag = 3 s\nstartup = 1 s\n'
      printf 'map-every = 200 ms\nmap-idle = 1 s\nsilence = 6 s\noverhead-bytes = 56\n'
      printf '[network]\npeers = %s\ntopology = source\nsource-upload = 8M\nsource-line = 1G\n' "$peers"
      printf 'classes = %s\ndelay-min = 20 ms\n' "$classes"
      [ "$peers" -eq 1 ] || printf '[class plain]\nupload = 2304k\nline = 1G\ndownload = 1G\n'
      printf '[class narrow]\nupload = 300k\ndownload = %sk\n[churn]\narrival = together\n' "$link"
    } >"$work/narrow.ini"
    rm -rf "$work"/out*
    for ((seed = 1; seed <= seeds; seed++)); do
      "$weft" sim "$work/narrow.ini" --seed "$seed" --quiet --out "$work/out$seed"
    done
    printf '%s viewers, link %s kbit/s: %s of the stream, the others %s\n' "$peers" "$link" "$(played narrow)" \
      "$(played plain)"
  done
done

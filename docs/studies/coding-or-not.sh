#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the figures of coding-or-not.md: RLNC against the uncoded baseline under loss, churn, flash crowds and short
# lags.
#   docs/studies/coding-or-not.sh WEFT FOLDER
# Can be stopped and started again. The tables are FOLDER/*/means.csv.
set -euo pipefail
weft=$1
out=$2
mkdir -p "$out"
common=(--peers 60 --duration 30s --seeds 3 --source-upload 8M --classes cable:100 --neighbours 12 --neighbours-max 16 --quiet --gnuplot)
study() { # NAME ARGUMENT...
  local name=$1
  shift
  for scheme in push pull rarest; do
    "$weft" sim flash-crowd "${common[@]}" --scheme "$scheme" "$@" --out "$out/$name-$scheme"
  done
}
study loss --arrival together --departure stay --sweep "loss=0,0.02,0.05,0.1"
study lag --arrival together --departure stay --loss 0.02 --startup "1 s" --sweep "lag=2 s,3 s,6 s"
study churn --arrival flash --departure exponential --polite 0.3 --sweep "stay-mean=15 s,60 s"
study flash --arrival flash --departure stay --flash-share 0.9 --sweep "flash-within=1 s,10 s"
# The baseline with the neighbours that large systems give it: here nearly everybody then knows the source.
"$weft" sim flash-crowd "${common[@]}" --scheme rarest --arrival together --departure stay --neighbours 30 \
  --neighbours-max 50 --sweep "source-upload=8M,20M,50M" --out "$out/wide-rarest"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a mesh of 2,000 peers plays of a stream of 768 kbit/s, by what each uplink carries (docs/scale.md).
#   docs/studies/short-of-uplink.sh WEFT [DURATION]
set -euo pipefail
if [ $# -lt 1 ] || ! command -v -- "$1" >/dev/null; then
  printf 'usage: docs/studies/short-of-uplink.sh WEFT [DURATION]; WEFT is the program\n' >&2
  exit 2
fi
weft=$1
duration=${2:-8 min}
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT

for uplink in 900 880 840 800 700 600 400; do
  cat >"$work/mesh.ini" <<EOF
[stream]
fidelity = rank
rate = 768k
duration = $duration
segment-blocks = 128
block-bytes = 4096
[engine]
window = 8
batch = 16
neighbours = 6
neighbours-max = 8
flights = 8
requests = 2
addresses = 12
lag = 24 s
startup = 6 s
map-every = 1 s
map-idle = 3 s
silence = 20 s
[network]
peers = 2000
classes = plain:100
source-upload = 1G
delay-min = 20 ms
[class plain]
upload = ${uplink}k
[churn]
arrival = together
departure = stay
[report]
sampled = 0
EOF
  "$weft" sim "$work/mesh.ini" --no-files --json |
    jq -r --arg uplink "$uplink" '"\($uplink) kbit/s: continuity \(.metrics.continuity * 1000 | round / 1000), bytes of use \(.metrics.share_useful * 1000 | round / 1000)"'
done

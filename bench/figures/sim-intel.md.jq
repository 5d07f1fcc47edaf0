# results: results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/sim-rank.json results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/sim-rank-100k.json results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/sim-coefficients.json results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/sim-bytes.json
# SPDX-License-Identifier: Apache-2.0
# `weft bench sim` on a core of the Xeon, in the form of the AMD core's table.
include "weft";
def millions: [.median, .min, .max] | map(. / 1e6) | with_spread;
def whole: [.median, .min, .max] | map(round | tostring) | "\(.[0]) (\(.[1])..\(.[2]))";
heading("fidelity", "peers", "events / processor s, millions", "peers in real time on one core", "memory per peer"),
(inputs | cases | row("\(.row), n = \(.n)", "\(.m)", (.events_per_second | millions), (.peers_in_real_time | whole),
  "\(.memory_bytes_per_peer / 1024 | three) KiB"))

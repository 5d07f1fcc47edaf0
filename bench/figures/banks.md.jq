# results: results/amd-epyc-family-25-model-17-stepping-1/banks.json
# SPDX-License-Identifier: Apache-2.0
# Turns that a lookup takes in shared memory, simulated.
include "weft";
def at($lanes): [.[] | select(.lanes == $lanes)][0].conflicts_per_lookup | sort | [.[length / 2 | floor], .[0], .[-1]] | with_spread;
[inputs | cases] | group_by(.layout) | sort_by(.[0].what)
| heading("layout of exp", "16 lanes on 16 banks", "32 lanes on 32 banks"),
  (.[] | row(.[0].what, at(16), at(32)))

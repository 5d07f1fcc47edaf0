# results: results/amd-epyc-family-26-model-2-stepping-1/rlnc.json
# SPDX-License-Identifier: Apache-2.0
# What README.md says about the codec on one core of a Zen 5.
include "weft";
[inputs][0].groups[] | select(.title | startswith("n = 128, k = 4096;"))
| def encode($threads): [.cases[] | select(.operation == "encode" and .threads == $threads and .row != "isa-l" and .variant == "")][0] | coded | spread | with_spread;
  ["README.md", "encodes at \(encode(1)) GB/s coded, \([.ratios[] | select(.name == "encode: best row / isa-l")][0] | spread | with_spread) times ISA-L 2.32; two cores reach \(encode(2))"]
| @tsv

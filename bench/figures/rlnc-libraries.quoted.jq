# results: results/amd-epyc-family-26-model-2-stepping-1/rlnc-libraries.json
# SPDX-License-Identifier: Apache-2.0
# What README.md says of other RLNC libraries.
include "weft";
def times($what; $peer): [.ratios[] | select(.name == "\($what): best row / \($peer)")][0] | spread | with_spread;
def both($peer): "\(times("encode, fresh coefficients"; $peer)) times as fast as the Rust crate \($peer) and decodes \(times("decode, packet by packet"; $peer)) times as fast";
[inputs][0].groups[] | select(.title | startswith("n = 128, k = 4096;"))
| ["README.md", "weft encodes \(both("rlnc 0.8.5"))"],
  ["README.md", "for rlnc-simdx 1.3.1 the ratios are \(times("encode, fresh coefficients"; "rlnc-simdx 1.3.1")) and \(times("decode, packet by packet"; "rlnc-simdx 1.3.1"))"]
| @tsv

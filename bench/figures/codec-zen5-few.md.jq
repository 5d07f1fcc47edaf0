# results: results/amd-epyc-family-26-model-2-stepping-1/rlnc-few-before.json results/amd-epyc-family-26-model-2-stepping-1/rlnc-few.json
# SPDX-License-Identifier: Apache-2.0
# Few packets per call on one core of a Zen 5: by tiles (before), and by groups of up to 32 blocks (after).
include "weft";
def cell($run; $operation; $shape): [$run | cases | select(.operation == $operation and .row == "gfni512" and [.n, .k, .m] == $shape)][0] | coded | spread | with_spread;
[inputs] as [$old, $new]
| heading("", "encode: before", "since", "recode: before", "since"),
  ((64, 128) as $n | (2048, 4096) as $k | (2, 4, 8) as $m
  | [$n, $k, $m] as $shape
  | row("n = \($n), \($k | size), \($m) packets", cell($old; "encode"; $shape), cell($new; "encode"; $shape), cell($old; "recode"; $shape), cell($new; "recode"; $shape)))

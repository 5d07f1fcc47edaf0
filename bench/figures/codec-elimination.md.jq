# results: results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/rlnc-pending-before.json results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/rlnc-pending.json results/amd-epyc-family-25-model-17-stepping-1/rlnc-pending-before.json results/amd-epyc-family-25-model-17-stepping-1/rlnc-pending.json
# SPDX-License-Identifier: Apache-2.0
# Decoding on a core of Intel and of Zen 4 with GFNI, before and after elimination began to defer columns.
include "weft";
def group_of($n; $k): .groups[] | select(.title | startswith("n = \($n), k = \($k);"));
def one($n; $k; $operation): [group_of($n; $k) | .cases[] | select(.operation == $operation and .threads == 1 and .row != "isa-l" and .variant == "")][0]
  | coded | spread | with_spread;
def ratio($n; $k; $name): [group_of($n; $k) | .ratios[] | select(.name == $name)][0]
  | if .separable then (spread | with_spread) else "not separable (\(.median | three); \(.min | three)..\(.max | three))" end;
[inputs] as [$intel_before, $intel, $zen_before, $zen]
| "time per byte: decode progressive, deferred / encode" as $times
| heading("n, k", "encode, coded GB/s", "progressive, before", "now", "times encode's time, before", "now", "reduced as they come, before", "now"),
  ((["Intel", $intel_before, $intel], ["Zen 4", $zen_before, $zen]) as [$where, $before, $now]
   | (64, 128) as $n | (1024, 4096, 16384) as $k
   | row("\($where), \($n), \($k)", ($now | one($n; $k; "encode")), ($before | one($n; $k; "decode-deferred")), ($now | one($n; $k; "decode-deferred")),
         ($before | ratio($n; $k; $times)), ($now | ratio($n; $k; $times)),
         ($before | one($n; $k; "decode-eager")), ($now | one($n; $k; "decode-eager"))))

# results: results/amd-epyc-family-25-model-17-stepping-1/cluster-2-4.json results/amd-epyc-family-25-model-17-stepping-1/cluster-6-8.json
# SPDX-License-Identifier: Apache-2.0
# PErasure's Table II: total seconds, and the part in weft store.
include "weft";
def three_of: sort | [.[length / 2 | floor], .[0], .[-1]] | with_spread;
[inputs | cases] as $cases
| heading("k + m", "encode and spread, s", "of it weft store", "gather and decode after m losses, s", "of it weft store"),
  ([$cases[].m] | unique[] as $m | [$cases[] | select(.m == $m)] as [$encode, $decode]
    | row("\($encode.n) + \($m)", ($encode.seconds_per_call | three_of), ($encode.coding_seconds_per_call | three_of),
        ($decode.seconds_per_call | three_of), ($decode.coding_seconds_per_call | three_of)))

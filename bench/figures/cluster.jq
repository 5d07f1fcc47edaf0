# results: results/amd-epyc-family-25-model-17-stepping-1/cluster-2-4.json results/amd-epyc-family-25-model-17-stepping-1/cluster-6-8.json
# SPDX-License-Identifier: Apache-2.0
# PErasure's Table II: total seconds, and the part in weft store, by parity shards.
include "weft";
def three_of: sort | [.[length / 2 | floor], .[0], .[-1]];
[inputs | cases] as $cases
| ["encode", "decode"][] as $operation | block($operation; [$cases[] | select(.operation == "cluster-\($operation)")] | sort_by(.m)
    | to_entries[] | [.key, "\(.value.n) + \(.value.m)"] + (.value.seconds_per_call | three_of) + (.value.coding_seconds_per_call | three_of))

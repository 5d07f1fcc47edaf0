# results: results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/sim-curve.json
# SPDX-License-Identifier: Apache-2.0
# Speedup of a simulated swarm on 1 to 16 threads, and ranks: by the clock, and by the processor time of the path. Each
# run is compared with the median of the runs on one.
include "weft";
def middle: sort | .[length / 2 | floor];
def three_of: sort | [middle, .[0], .[-1]];
input.runs as $runs
| ["threads", "ranks"][] as $kind | ["wall_s", "path_s"][] as $by
| ([$runs[] | select(.kind == $kind and .count == 1)[$by]] | middle) as $one
| block("\($kind)-\($by)"; ([$runs[].count] | unique[]) as $count
    | [$count] + ([$runs[] | select(.kind == $kind and .count == $count) | $one / .[$by]] | three_of))

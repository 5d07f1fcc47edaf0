# results: results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/sim-curve.json
# SPDX-License-Identifier: Apache-2.0
# The same as a table, in seconds and speedups.
include "weft";
def middle: sort | .[length / 2 | floor];
def three_of: sort | [middle, .[0], .[-1]];
def times($runs; $kind; $count; $by):
  ([$runs[] | select(.kind == $kind and .count == 1)[$by]] | middle) as $one
  | $one / ([$runs[] | select(.kind == $kind and .count == $count)[$by]] | middle) | three;
input.runs as $runs
| heading("", "by the clock, s", "times one", "path, processor s", "times one", "all lanes, processor s"),
  (["threads", "ranks"][] as $kind | [$runs[].count] | unique[] as $count
    | [$runs[] | select(.kind == $kind and .count == $count)] as $some
    | row("\($count) \(if $count == 1 then $kind[:-1] else $kind end)",
        ([$some[].wall_s] | three_of | with_spread), times($runs; $kind; $count; "wall_s"),
        ([$some[].path_s] | three_of | with_spread), times($runs; $kind; $count; "path_s"),
        ([$some[].lanes_s] | three_of | with_spread)))

# results: results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/pool.json
# SPDX-License-Identifier: Apache-2.0
# Calls of 128 x 128 x k on two threads, after pauses.
include "weft";
def call($k; $threads; $pause): [cases | select(.operation == "encode" and .n == 128 and .k == $k and .threads == $threads and .pause_us == $pause)][0]
  | .seconds_per_call | times_us | with_spread;
input
| heading("", "no pause", "50 us", "200 us", "2 ms", "one thread"),
  ((1024, 4096) as $k | row("k = \($k)", ((0, 50, 200, 2000) as $pause | call($k; 2; $pause)), call($k; 1; 0)))

# results: results/amd-epyc-family-25-model-17-stepping-1/decoder.json
# SPDX-License-Identifier: Apache-2.0
# The parts of a decode on a core of Zen 4 with GFNI, and one recoded packet.
include "weft";
def times($n; $operation): [cases | select(.n == $n and .k == 1024 and .row == "gfni512" and .operation == $operation)][0]
  | .seconds_per_call | times_us;
input
| heading("n", "packets", "ns a packet", "blocks", "one recoded packet"),
  ((16, 64, 128, 256, 1024) as $n
   | row($n, (times($n; "eliminate") | with_spread), (times($n; "eliminate")[0] * 1000 / $n | three),
         (times($n; "reduce") | with_spread), (times($n; "recode-one") | with_spread)))

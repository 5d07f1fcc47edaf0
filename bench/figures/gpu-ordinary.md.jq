# results: results/nvidia-h200/gpu-ordinary-before.json results/nvidia-h200/gpu-ordinary.json
# SPDX-License-Identifier: Apache-2.0
# From and to ordinary memory, by threads of the host, before rows were gathered by the chunk and now.
include "weft";
def rate($cases; $operation; $threads): $cases[] | select(.operation == $operation and .threads == $threads) | coded | spread | with_spread;
[inputs | [.groups[] | select(.title | startswith("over PCIe, ordinary memory"))]] as [$before, $now]
| heading("segments", "threads", "made resident, GB/s", "encoded, before", "now", "decoded, before", "now"),
  (range($now | length) as $i | ($now[$i].title | split(" ")[-1]) as $segments
   | ([$now[$i].cases[] | select(.operation == "decode").threads] | unique[]) as $threads
   | row($segments, "\($threads)", rate($now[$i].cases; "segments"; $threads),
         (("encode", "decode") as $operation
          | rate($before[$i].cases; $operation; $threads), rate($now[$i].cases; $operation; $threads))))

# results: results/amd-epyc-family-26-model-2-stepping-1/storage-ahead-1024.json results/amd-epyc-family-26-model-2-stepping-1/storage-ahead-256.json
# SPDX-License-Identifier: Apache-2.0
# RS on one core of a Zen 5, 1 MiB shards: prefetching 1,024 bytes ahead, and 256.
include "weft";
def cell($run; $operation; $k; $m): [$run | cases | select(.operation == $operation and .threads == 1 and .n == $k and .m == $m
    and .k == 1048576 and .row == "gfni512" and .variant == "cauchy")][0] | data_rate | with_spread;
def asked($run; $k; $m): [$run.groups[] | select(.cases | any(.operation == "encode" and .n == $k and .m == $m and .k == 1048576)) | .ratios[]
    | select(.name == "recover, inversion counted in / encode")][0].median | three;
[inputs] as [$far, $near]
| heading("1 MiB", "encode: 1,024 ahead", "256", "recover: 1,024 ahead", "256", "recover / encode: 1,024", "256"),
  (([4,2], [6,3], [10,4], [12,4], [16,4], [32,8]) as [$k, $m]
  | row("(\($k), \($m))", cell($far; "encode"; $k; $m), cell($near; "encode"; $k; $m), cell($far; "recover"; $k; $m), cell($near; "recover"; $k; $m),
      asked($far; $k; $m), asked($near; $k; $m)))

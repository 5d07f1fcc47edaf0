# results: results/amd-epyc-family-26-model-2-stepping-1/storage-short-gfni512-before.json results/amd-epyc-family-26-model-2-stepping-1/storage-short-gfni512.json results/amd-epyc-family-26-model-2-stepping-1/storage-short-avx2-before.json results/amd-epyc-family-26-model-2-stepping-1/storage-short-avx2.json
# SPDX-License-Identifier: Apache-2.0
# RS on one core of a Zen 5 with shards shorter than 2 KiB: entry by entry before, by steps since.
include "weft";
def group($run; $shape): [$run.groups[] | select(.cases | any(.operation == "encode" and [.n, .m, .k] == $shape))][0];
def cell($run; $row; $operation; $variant; $shape): [group($run; $shape).cases[] | select(.operation == $operation and .row == $row and .variant == $variant)][0] | data_rate | with_spread;
[inputs] as [$gfni512_old, $gfni512, $avx2_old, $avx2]
| heading("", "encode: before", "since", "recover, plan cached: before", "since"),
  (["gfni512", $gfni512_old, $gfni512], ["avx2", $avx2_old, $avx2]) as [$row, $old, $new]
  | ([16,16], [32,16], [48,12], [64,16], [128,32]) as [$k, $m]
  | (512, 1024, 1400) as $bytes
  | [$k, $m, $bytes] as $shape
  | row("\($row) (\($k), \($m)), \($bytes) bytes", cell($old; $row; "encode"; "cauchy"; $shape), cell($new; $row; "encode"; "cauchy"; $shape),
      cell($old; $row; "recover"; "cauchy, cached plan"; $shape), cell($new; $row; "recover"; "cauchy, cached plan"; $shape))

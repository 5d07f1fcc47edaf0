# results: results/amd-epyc-family-25-model-17-stepping-1/storage-updates-before-gfni512.json results/amd-epyc-family-25-model-17-stepping-1/storage-updates-gfni512.json results/amd-epyc-family-25-model-17-stepping-1/storage-updates-before-avx512.json results/amd-epyc-family-25-model-17-stepping-1/storage-updates-avx512.json results/amd-epyc-family-25-model-17-stepping-1/storage-updates-before-gfni256.json results/amd-epyc-family-25-model-17-stepping-1/storage-updates-gfni256.json results/amd-epyc-family-25-model-17-stepping-1/storage-updates-before-avx2.json results/amd-epyc-family-25-model-17-stepping-1/storage-updates-avx2.json results/amd-epyc-family-25-model-17-stepping-1/storage-updates-before-ssse3.json results/amd-epyc-family-25-model-17-stepping-1/storage-updates-ssse3.json results/amd-epyc-family-25-model-17-stepping-1/storage-updates-gfni128.json
# SPDX-License-Identifier: Apache-2.0
# One source into the parity on one core of a Zen 4, each row compared with ISA-L's functions for the same instructions.
include "weft";
def group($run; $m; $bytes): [$run.groups[] | select(.cases | any(.operation == "add delta" and .m == $m and .k == $bytes))][0];
def own($run; $row; $m; $bytes): [group($run; $m; $bytes).cases[] | select(.operation == "add delta" and .row == $row)][0].gigabytes_per_second.input | spread;
def cell($old; $new; $row; $m; $bytes): (if $old then "\(own($old; $row; $m; $bytes)[0] | three) / " else "" end) + "\(own($new; $row; $m; $bytes)[0] | three), \(group($new; $m; $bytes).ratios[0] | spread | with_spread)";
[inputs] as $runs
| heading("row, shard", "m = 1", "2", "4", "6", "8", "16"),
  (["gfni512", "avx512", "gfni256", "avx2", "ssse3", "gfni128"] | to_entries[] | . as {$key, $value}
   | (if $value == "gfni128" then [null, $runs[-1]] else $runs[2 * $key:2 * $key + 2] end) as [$old, $new]
   | (4096, 65536, 1048576) as $bytes
   | "| " + (["\($value), \($bytes | size)"] + [(1, 2, 4, 6, 8, 16) as $m | cell($old; $new; $value; $m; $bytes)] | join(" | ")) + " |")

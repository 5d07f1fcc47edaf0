# results: results/amd-epyc-family-25-model-17-stepping-1/storage-whole-updates-before-gfni512.json results/amd-epyc-family-25-model-17-stepping-1/storage-updates-gfni512.json results/amd-epyc-family-25-model-17-stepping-1/storage-whole-updates-before-avx512.json results/amd-epyc-family-25-model-17-stepping-1/storage-updates-avx512.json results/amd-epyc-family-25-model-17-stepping-1/storage-whole-updates-before-gfni256.json results/amd-epyc-family-25-model-17-stepping-1/storage-updates-gfni256.json results/amd-epyc-family-25-model-17-stepping-1/storage-whole-updates-before-avx2.json results/amd-epyc-family-25-model-17-stepping-1/storage-updates-avx2.json results/amd-epyc-family-25-model-17-stepping-1/storage-whole-updates-before-ssse3.json results/amd-epyc-family-25-model-17-stepping-1/storage-updates-ssse3.json results/amd-epyc-family-25-model-17-stepping-1/storage-whole-updates-before-gfni128.json results/amd-epyc-family-25-model-17-stepping-1/storage-updates-gfni128.json
# SPDX-License-Identifier: Apache-2.0
# A changed shard, given its old and new contents, as a share of the rate given their difference; before and after their
# sum was made in registers.
include "weft";
def share($run; $m; $bytes): [$run.groups[] | select(.cases | any(.operation == "update" and .m == $m and .k == $bytes))][0].ratios[] | select(.name | startswith("update"));
[inputs] as $runs
| heading("row, shard", "m = 1", "2", "4", "6", "8", "16"),
  (["gfni512", "avx512", "gfni256", "avx2", "ssse3", "gfni128"] | to_entries[] | . as {$key, $value}
   | $runs[2 * $key:2 * $key + 2] as [$old, $new]
   | (4096, 65536, 1048576) as $bytes
   | "| " + (["\($value), \($bytes | size)"] + [(1, 2, 4, 6, 8, 16) as $m | "\(share($old; $m; $bytes).median | three) / \(share($new; $m; $bytes) | spread | with_spread)"] | join(" | ")) + " |")

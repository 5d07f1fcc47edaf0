# results: results/amd-epyc-family-25-model-17-stepping-1/storage-few-before-ssse3.json results/amd-epyc-family-25-model-17-stepping-1/storage-few-ssse3.json results/amd-epyc-family-25-model-17-stepping-1/storage-few-gfni128.json
# SPDX-License-Identifier: Apache-2.0
# RS by the rows for cores without AVX on one core of a Zen 4, compared with ISA-L's functions for SSE: GB/s of data.
include "weft";
def group($run; $k; $m; $bytes): [$run.groups[] | select(.cases | any(.operation == "encode" and .n == $k and .m == $m and .k == $bytes))][0];
def by($run; $what; $k; $m; $bytes): [group($run; $k; $m; $bytes).ratios[] | select(.name | startswith($what + ": weft / "))][0].median | three;
def cell($run; $operation; $row; $k; $m; $bytes): rs_cell($run; $operation; $k; $m; $bytes; $row) | with_spread;
input as $old | input as $new | input as $gfni
| heading("", "ssse3, encode: before", "since", "by ISA-L", "recover: before", "since", "by ISA-L", "gfni128, encode", "by ISA-L", "recover", "by ISA-L"),
  ((4096, 65536, 1048576) as $bytes | ([4,2], [6,3], [8,3], [10,4], [12,4], [16,4], [16,8], [32,8], [64,16]) as [$k, $m]
   | row("(\($k), \($m)), \($bytes | size)",
       (("encode", "recover") as $operation
        | (rs_cell($old; $operation; $k; $m; $bytes; "ssse3")[0] | three), cell($new; $operation; "ssse3"; $k; $m; $bytes), by($new; $operation; $k; $m; $bytes)),
       (("encode", "recover") as $operation | cell($gfni; $operation; "gfni128"; $k; $m; $bytes), by($gfni; $operation; $k; $m; $bytes))))

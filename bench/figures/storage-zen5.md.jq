# results: results/amd-epyc-family-26-model-2-stepping-1/storage-before.json results/amd-epyc-family-26-model-2-stepping-1/storage.json
# SPDX-License-Identifier: Apache-2.0
# RS on one core of a Zen 5, before sources were visited from both ends in turn and since, and other libraries beside it.
include "weft";
def cell($run; $operation; $k; $m; $bytes; $row; $variant): [$run | cases | select(.operation == $operation and .threads == 1 and .n == $k and .m == $m
    and .k == $bytes and .row == $row and .variant == $variant)][0] | data_rate;
def asked($run; $k; $m; $bytes): [$run.groups[] | select(.cases | any(.operation == "encode" and .n == $k and .m == $m and .k == $bytes)) | .ratios[]
    | select(.name == "recover, inversion counted in / encode")][0].median | three;
[inputs] as [$old, $new]
| heading("", "encode: before", "since", "ISA-L 2.32", "klauspost", "recover: before", "since", "recover / encode: before", "since"),
  (([10,4,4096], (([65536], [1048576]) as [$bytes] | ([4,2], [6,3], [10,4], [12,4], [16,4], [32,8], [64,16]) | . + [$bytes])) as [$k, $m, $bytes]
  | row("(\($k), \($m)), \($bytes | size)",
      (cell($old; "encode"; $k; $m; $bytes; "gfni512"; "cauchy")[0] | three),
      (cell($new; "encode"; $k; $m; $bytes; "gfni512"; "cauchy") | with_spread),
      ((("isa-l 2.32.1"), ("klauspost v1.12.4")) as $peer | cell($new; "encode"; $k; $m; $bytes; $peer; "cauchy")[0] | three),
      (cell($old; "recover"; $k; $m; $bytes; "gfni512"; "cauchy")[0] | three),
      (cell($new; "recover"; $k; $m; $bytes; "gfni512"; "cauchy") | with_spread),
      asked($old; $k; $m; $bytes), asked($new; $k; $m; $bytes)))

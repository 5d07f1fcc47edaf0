# results: results/intel-r-xeon-r-processor-family-6-model-167-stepping-1/storage-isal.json
# SPDX-License-Identifier: Apache-2.0
# What README and docs/integrations.md say in sentences about ISA-L's calls.
include "weft";
def rate($operation; $k; $m; $bytes; $row):
  [cases | select(.operation == $operation and .n == $k and .m == $m and .k == $bytes and .row == $row)][0] | data_rate[0];
def times($operation; $row; $sizes):
  . as $all | [$sizes[] as $bytes | ([10, 4], [16, 4], [32, 8], [64, 16]) as [$k, $m]
    | ($all | rate($operation; $k; $m; $bytes; "libweft_isal") / rate($operation; $k; $m; $bytes; $row))]
  | "\(min | digits(2)) to \(max | digits(2))";
input as $all
| ["README.md", ($all | "encode \(times("encode"; "isa-l 2.30"; [4096, 65536])) times and recover \(times("recover"; "isa-l 2.30"; [4096, 65536])) times")],
  ["docs/integrations.md", ($all | "recovers \(times("recover"; "isa-l 2.32.1"; [4096])) times as fast at 4 KiB and \(times("recover"; "isa-l 2.32.1"; [65536])) times at 64 KiB, and encodes \(times("encode"; "isa-l 2.32.1"; [4096])) and \(times("encode"; "isa-l 2.32.1"; [65536])) times as fast")]
| @tsv

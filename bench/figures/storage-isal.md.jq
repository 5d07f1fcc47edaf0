# results: results/intel-r-xeon-r-processor-family-6-model-167-stepping-1/storage-isal.json
# SPDX-License-Identifier: Apache-2.0
# ISA-L's calls by Debian's library, by the newest, and by weft as a replacement; GB/s of data.
include "weft";
def rate($operation; $k; $m; $bytes; $row):
  [cases | select(.operation == $operation and .n == $k and .m == $m and .k == $bytes and .row == $row)][0] | data_rate | with_spread;
input as $all
| heading("", "encode: 2.30", "2.32.1", "weft", "recover: 2.30", "2.32.1", "weft"),
  ((4096, 65536, 1048576) as $bytes | ([10, 4], [16, 4], [32, 8], [64, 16]) as [$k, $m]
  | row("(\($k), \($m)), \($bytes | size)", ($all | ("encode", "recover") as $operation | ("isa-l 2.30", "isa-l 2.32.1", "libweft_isal") as $row
      | rate($operation; $k; $m; $bytes; $row))))

# results: results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/storage.json results/amd-epyc-family-25-model-17-stepping-1/storage.json
# SPDX-License-Identifier: Apache-2.0
# Reed-Solomon encoding on a core, GB/s of data: weft with its share of the bound, and other libraries.
include "weft";
def cell($k; $m; $bytes; $row): [cases | select(.operation == "encode" and .threads == 1 and .n == $k and .m == $m and .k == $bytes and .row == $row
    and (.variant == "cauchy" or .variant == "reed_sol_van"))][0];
def own($k; $m; $bytes; $row): cell($k; $m; $bytes; $row) | "\(data_rate | with_spread), \(.share_of_ceiling.median | percent)";
def other($k; $m; $bytes; $row): cell($k; $m; $bytes; $row) | data_rate[0] | three;
[inputs] as [$intel, $amd]
| heading("", "Intel, 64 KiB: weft", "ISA-L 2.32", "klauspost", "1 MiB: weft", "ISA-L 2.32", "klauspost", "AMD, 64 KiB: weft", "ISA-L 2.30", "1 MiB: weft", "ISA-L 2.30"),
  (([4,2], [6,3], [10,4], [12,4], [16,4], [32,8], [64,16]) as [$k, $m]
  | row("(\($k), \($m))", ($intel | (65536, 1048576) as $bytes | own($k; $m; $bytes; "gfni512"), other($k; $m; $bytes; "isa-l 2.32.1"), other($k; $m; $bytes; "klauspost v1.12.4")),
      ($amd | (65536, 1048576) as $bytes | own($k; $m; $bytes; "avx2"), other($k; $m; $bytes; "isa-l 2.30"))))

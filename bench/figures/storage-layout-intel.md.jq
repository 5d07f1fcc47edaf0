# results: results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/storage-layout.json
# SPDX-License-Identifier: Apache-2.0
# RS on one core of an Intel machine: weft_code_stride apart over side by side.
include "weft";
def ratio($run; $k; $m; $bytes; $operation): [$run.groups[] | select(.cases | any(.operation == "encode" and .n == $k and .m == $m and .k == $bytes)) | .ratios[]
    | select(.name | startswith("\($operation): weft, apart"))][0].median | three;
input as $run
| heading("encode, recover", "4 KiB", "16 KiB", "64 KiB", "1 MiB"),
  (([4,2], [6,3], [10,4], [16,4], [24,6], [32,8], [16,16], [48,12], [64,16]) as [$k, $m]
  | row("(\($k), \($m))", ((4096, 16384, 65536, 1048576) as $bytes
      | "\(ratio($run; $k; $m; $bytes; "encode")), \(ratio($run; $k; $m; $bytes; "recover"))")))

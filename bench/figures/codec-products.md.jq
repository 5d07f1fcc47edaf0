# results: results/amd-epyc-family-25-model-17-stepping-1/rlnc-products-before.json results/amd-epyc-family-25-model-17-stepping-1/rlnc-products.json results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/rlnc-products-before.json results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/rlnc-products.json
# SPDX-License-Identifier: Apache-2.0
# Encoding and batch decoding on a core of Zen 4 and of Intel: every product entry by entry (before), and seven products
# for eight (after). k = 4096.
include "weft";
def at($n; $row; $operation): [cases | select(.n == $n and .k == 4096 and .row == $row and .operation == $operation and .threads == 1)][0] | coded;
def both($before; $now; $n; $row; $operation): ($before | at($n; $row; $operation)) as $a | ($now | at($n; $row; $operation)) as $b
  | ($a | spread | with_spread), ($b | spread | with_spread);
def times($before; $now; $n; $row; $operation): (($now | at($n; $row; $operation)).median / ($before | at($n; $row; $operation)).median | three);
[inputs] as [$zen_before, $zen, $intel_before, $intel]
| heading("row, n", "Zen 4, encode, before", "now", "times", "decode batch, times", "Intel, encode, before", "now", "times", "decode batch, times"),
  (("gfni512", "gfni256", "avx512", "avx2", "ssse3") as $row | (128, 256, 512, 1024) as $n
   | row("\($row), \($n)", both($zen_before; $zen; $n; $row; "encode"), times($zen_before; $zen; $n; $row; "encode"), times($zen_before; $zen; $n; $row; "decode-batch"),
         both($intel_before; $intel; $n; $row; "encode"), times($intel_before; $intel; $n; $row; "encode"), times($intel_before; $intel; $n; $row; "decode-batch")))

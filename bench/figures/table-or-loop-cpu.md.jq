# results: results/amd-epyc-family-25-model-17-stepping-1/mul.json results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/mul.json
# SPDX-License-Identifier: Apache-2.0
# Each multiplication on a core: products per second, its instructions by the counts of the regression check, and the
# instructions per second that follow.
include "weft";
def counted($row): [$bounds | split("\n")[] | split(" ")
  | if .[0] == "counted" and .[2] == $row and .[3] == "16" then (.[6] | tonumber)
    elif .[0] == "loop" and .[4] == "packed_columns" and (([.[2], .[3]] | join(" ")) == ({"gfni512": "vgf2p8affineqb zmm", "gfni256": "vgf2p8affineqb ymm", "avx512": "vpshufb zmm"}[$row] // "none")) then (.[5] | tonumber)
    else empty end][0];
def cells($cases; $row): [$cases[] | select(.row == $row and .k == 4096 and .variant == "")][0]
  | if . == null then "", "" else (products | spread | with_spread), (products.median * counted($row) / 1000 | three) end;
[inputs | [cases | select(.operation == "gemm")]] as [$amd, $intel]
| heading("kind", "row", "instructions a product", "AMD: products, GB/s", "G instructions/s", "Intel: products, GB/s", "G instructions/s"),
  (["table in a register", "gfni512 gfni256"], ["table in a register", "avx512 avx2 ssse3"], ["loop", "loop-avx2 loop-sse2 loop-word64"],
   ["table in the first cache", "logdomain logexp mul-full-table mul-exp-branch-free mul-exp-doubled mul-half-tables mul-exp-fold mul-exp-modulo"],
   ["loop, bit by bit", "scalar mul-peasant"]) as [$kind, $rows]
  | ($rows | split(" "))[] as $row
  | row((if $row | startswith("gfni") then "bit matrix" else $kind end), $row, (counted($row) / 1000 | three), cells($amd; $row), cells($intel; $row))

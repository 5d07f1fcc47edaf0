# results: results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/mul.json results/amd-epyc-family-25-model-17-stepping-1/mul.json results/amd-epyc-family-26-model-2-stepping-1/mul.json
# SPDX-License-Identifier: Apache-2.0
# Products of the rows worth using, with their share of the ceiling, by machine and k.
include "weft";
def share: .share_of_ceiling as $s | if $s == null then "" elif $s.separable then ", \($s.median | percent)"
  else ", \($s.median | percent)*" end;
def cell($rows; $row; $k): [$rows[] | select(.row == $row and .k == $k and .variant == "")][0]
  | if . == null then "" else (products | spread | with_spread) + share end;
[inputs | [cases | select(.operation == "gemm")]] as [$intel, $amd, $zen]
| heading("row", "Intel, k = 1024", "Intel, k = 4096", "AMD, k = 1024", "AMD, k = 4096", "Zen 5, k = 1024", "Zen 5, k = 4096"),
  (["gfni512", "gfni256", "avx512", "avx2", "ssse3", "loop-avx2", "isa-l"][] as $row
    | row((if $row == "isa-l" then "ISA-L 2.30 (Zen 5: 2.32)" else $row end), cell($intel; $row; 1024), cell($intel; $row; 4096), cell($amd; $row; 1024), cell($amd; $row; 4096), cell($zen; $row; 1024), cell($zen; $row; 4096)))

# results: results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/mul.json results/amd-epyc-family-25-model-17-stepping-1/mul.json
# SPDX-License-Identifier: Apache-2.0
# Every host row's multiply-accumulate, k = 4096, on each machine: row, median, min, max; slowest first.
include "weft";
def kind: if test("^(gfni|avx|ssse3)") then 1 elif test("^loop|^scalar|peasant") then 2 elif test("isa-l") then 4 else 3 end;
def machine($file): block($file;
  [.[] | select(.operation == "gemm" and .k == 4096)
    | {name: (.row + (if .variant == "" then "" else ", " + .variant end)), kind: (.row | kind), rate: (products | spread)}]
  | sort_by(.rate[0])[] | [.name, .kind] + .rate);
[inputs] as [$intel, $amd]
| ([$intel | cases] | machine("intel")), ([$amd | cases] | machine("amd"))

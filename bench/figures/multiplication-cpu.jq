# results: intel-r-xeon-r-processor-family-6-model-207-stepping-2/mul.json
# SPDX-License-Identifier: Apache-2.0
# Every host row's multiply-accumulate, k = 4096: name, median, min, max; slowest first.
include "weft";
[inputs | cases | select((.operation == "gemm" or .operation == "ceiling") and (.k == 4096 or .operation == "ceiling"))
  | select(.operation == "gemm")
  | {name: (.row + (if .variant == "" then "" else ", " + .variant end)), rate: (products | spread)}]
| sort_by(.rate[0])[] | [.name] + .rate | @tsv

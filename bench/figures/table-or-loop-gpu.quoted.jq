# results: results/nvidia-h200/tables.jsonl results/nvidia-h200/tensor.jsonl
# SPDX-License-Identifier: Apache-2.0
# What sentences say of the table of techniques on the H200.
include "weft";
[inputs] as $all
| def line($name): [$all[] | select(.kind == "encode" and .count == 1 and .n == 128 and .k == 4096 and line_name == $name and (.m == 8448 or .m == 98304))][0].TMACps;
  (line("cuda-b1-wgmma") / line("cuda-nibble-prmt") | digits(2)) as $times
| ["docs/performance/multiplication.md", "\($times) times in the table above"],
  ["docs/performance.md", "(\($times) and 8.8 in other runs)"]
| @tsv

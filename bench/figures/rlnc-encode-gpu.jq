# results: results/nvidia-h200/tensor.jsonl results/nvidia-h200/grid.jsonl figures/published.json
# SPDX-License-Identifier: Apache-2.0
# Coded GB/s on one H200 over k: the tensor row for each n, and each technique at n = 128. Published: n = 128.
include "weft";
[inputs] as $all
| [$all[] | select(.kind == "encode" and .count == 1)] as $lines
| ([$all[] | select(.points)][0]) as $published
| [16, 32, 64, 128, 256, 512, 1024] as $ns
| ($ns[] as $n | block("n\($n)"; [$lines[] | select(line_name == "cuda-b1-wgmma" and .n == $n and .m * .k == 402653184)]
    | sort_by(.k)[] | [.k] + line_spread + ["n = \($n)"])),
  (["cuda-b1-wgmma", "cuda-b1-mma", "cuda-nibble-prmt", "cuda-table-32", "cuda-loop"][] as $row
    | block($row; [$lines[] | select(line_name == $row and .n == 128 and .m != 177333 and (.m * .k == 402653184 or .m * .k == 34603008 or .m * .k == 34603008))]
      | sort_by(.k)[] | [.k] + line_spread + [$row])),
  block("published"; (["xnc-table-5", "xnc-loop", "xnc-cpu"][] as $id | published($published; $id)
    | [.coded_GBps, "published: \(.device), \(.technique)"]))

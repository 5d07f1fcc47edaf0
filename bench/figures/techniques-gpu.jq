# results: results/nvidia-h200/tables.jsonl results/nvidia-h200/tensor.jsonl figures/published.json
# SPDX-License-Identifier: Apache-2.0
# Every encode row of the GPU at n = 128, k = 4096, 8,448 coded blocks (tensor rows 98,304): coded GB/s, slowest first;
# the technique's bound if docs/gpu/tables.md derives one from the run's ceilings; what the GTX 280 gave.
include "weft";
[inputs] as $all
| ([$all[] | select(.points)][0]) as $published
| [$all[] | select(.kind == "encode" and .count == 1 and .n == 128 and .k == 4096
    and (.m == 8448 or (.m == 98304 and (line_name | test("b1-(mma|wgmma)$")))))]
| sort_by(.GBps) as $rows
| block("rows"; $rows[] | [line_name] + line_spread),
  block("published"; ($rows | keys[]) as $i | ($rows[$i] | line_name | sub("^cuda-"; "xnc-")) as $id
    | published($published; $id) | [$i, .coded_GBps])

# results: results/nvidia-h200/tables.jsonl results/nvidia-h200/tables-multi.jsonl figures/published.json
# SPDX-License-Identifier: Apache-2.0
# Decoding on one H200 at n = 128 over k: many segments (inversions, then a product), one segment (Gauss-Jordan on [C |
# X]); 2,048 segments over n; and inversion's share of the time, with our batch of inversions and with the paper's
# method.
include "weft";
[inputs] as $all
| ([$all[] | select(.points)][0]) as $published
| ([132, 264, 2048][] as $count | block("count\($count)"; [$all[] | select(.kind == "decode-multi" and .count == $count and .n == 128)]
    | sort_by(.k)[] | [.k, .GBps, .share * 100, (if .augmented_share > 0 then .augmented_share * 100 else null end)])),
  ([16, 32, 64, 128, 256, 512, 1024][] as $n | block("n\($n)"; [$all[] | select(.kind == "decode-multi" and .count == 2048 and .n == $n)]
    | sort_by(.k)[] | [.k, .GBps, .share * 100])),
  (["atomic-min", "scan"][] as $name | block($name; [$all[] | select(.kind == "decode-single" and .name == $name)]
    | sort_by(.k)[] | [.k] + line_spread)),
  block("published"; published($published; "xnc-decode-multi") | [.coded_GBps, "\(.device), \(.technique)"])

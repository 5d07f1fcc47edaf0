# results: results/nvidia-h200/tables.jsonl figures/published.json
# SPDX-License-Identifier: Apache-2.0
# Decoding on one H200 at n = 128 over k: many segments (inversions, then a product), one segment (Gauss-Jordan on
# [C | X]), and the share of the time that inversion has, with our batch of inversions and with the paper's method.
include "weft";
[inputs] as $all
| ([$all[] | select(.points)][0]) as $published
| ([132, 264, 2048][] as $count | block("count\($count)"; [$all[] | select(.kind == "decode-multi" and .count == $count)]
    | sort_by(.k)[] | [.k, .GBps, .share * 100, (if .augmented_share > 0 then .augmented_share * 100 else null end)])),
  (["atomic-min", "scan"][] as $name | block($name; [$all[] | select(.kind == "decode-single" and .name == $name)]
    | sort_by(.k)[] | [.k] + line_spread)),
  block("published"; published($published; "xnc-decode-multi") | [.coded_GBps, "\(.device), \(.technique)"])

# results: results/nvidia-h200/storage-gcrs.json figures/published.json
# SPDX-License-Identifier: Apache-2.0
# G-CRS's Figures 9, 11 and 15: how far arithmetic hides behind memory accesses; its kernel over w and blocks; streams.
include "weft";
def data_in: .gigabytes_per_second.input | spread;
[inputs] as [$all, $published]
| [$all | cases | select(.operation == "overlap")] as $overlap
| [$all | cases | select(.row == "cuda-gcrs")] as $gcrs
| block("both"; $overlap[] | select(.variant | test("without") | not) | [.n] + data_in),
  block("arithmetic"; $overlap[] | select(.variant | test("without")) | [.n] + data_in),
  ([1, 4][] as $m | ["4", "5", "6", "7", "8"][] as $w
    | block("m\($m)w\($w)"; [$gcrs[] | select(.m == $m and .n == 10 and (.variant | startswith("gcrs:w=\($w) blocks=")))
      | [(.variant | capture("blocks=(?<b>[0-9]+)").b | tonumber)] + data_in] | sort_by(.[0])[])),
  ([1, 2, 3, 4][] as $m | block("streams\($m)"; [$gcrs[] | select(.m == $m and (.variant | test("streams=")))
      | [(.variant | capture("streams=(?<s>[0-9]+)").s | tonumber)] + data_in] | sort_by(.[0])[])),
  ([1, 2, 3, 4][] as $m | block("transfers\($m)"; $gcrs[] | select(.m == $m and (.variant | test("transfers"))) | data_in as $d | ([1] + $d), ([10] + $d)))

# results: results/nvidia-h200/storage-perasure.json figures/published.json
# SPDX-License-Identifier: Apache-2.0
# PErasure's Figures 3 to 6 with its kernels: raw, overall and transfers alone over k and m.
include "weft";
def data_in: .gigabytes_per_second.input | spread;
[inputs] as [$all, $published]
| [$all | cases | select(.row | startswith("cuda-perasure"))] as $cases
| (["smpe", "gmpe"][] as $row | ["raw", "overall", "transfers"][] as $variant | [8, 16, 24][] as $k
  | block("\($row)-\($variant)-\($k)"; [$cases[] | select(.row == "cuda-perasure-\($row)" and .variant == $variant and .n == $k)] | sort_by(.m)[] | [.m] + data_in)),
  block("published"; (["perasure-smpe-low"], ["perasure-smpe-high"]) as [$id] | published($published; $id) | [8, .raw_GBps])

# results: results/nvidia-h200/storage-gibraltar.json results/amd-epyc-family-25-model-17-stepping-1/storage-shapes.json results/amd-epyc-family-25-model-17-stepping-1/storage-sizes.json figures/published.json
# SPDX-License-Identifier: Apache-2.0
# Gibraltar's Figures 1 to 4 with its own kernel: over k, over buffer size with its steps, over m; compared with
# Jerasure on a core of another machine.
include "weft";
def data_in: .gigabytes_per_second.input | spread;
[inputs] as [$gpu, $shapes, $sizes, $published]
| [$gpu.groups[] | select(.title | startswith("Gibraltar")) | {title, cases: [.cases[] | select(.row == "cuda-gibraltar")]}] as $groups
| [$groups[] | select(.title | test("Figure 1")).cases[]] as $one
| [$groups[] | select(.title | test("Figure 4")).cases[]] as $four
| [$groups[] | select(.title | test("Figures 2")).cases[]] as $two
| (["encode", "recover"][] as $operation | ["kernel", "total"][] as $variant | [2, 3, 4][] as $m
  | block("\($operation)-\($variant)-\($m)"; [$one[] | select(.operation == $operation and .variant == $variant and .m == $m)] | sort_by(.n)[] | [.n] + data_in)),
  (["transfers", "total", "kernel"][] as $variant
  | block("sizes-\($variant)"; [$two[] | select(.variant == $variant)] | sort_by(.k)[] | [.k] + data_in)),
  (["total", "kernel"][] as $variant | block("m-\($variant)"; [$four[] | select(.variant == $variant)] | sort_by(.m)[] | [.m] + data_in)),
  block("jerasure"; [$shapes | cases | select(.operation == "encode" and .row == "jerasure" and .m == 2)] | sort_by(.n)[] | [.n] + data_rate),
  block("jerasure-m"; [$shapes | cases | select(.operation == "encode" and .row == "jerasure" and .n == 16)] | sort_by(.m)[] | [.m] + data_rate),
  block("jerasure-sizes"; [$sizes | cases | select(.operation == "encode" and .row == "jerasure" and .n == 10)] | sort_by(.k)[] | [.k] + data_rate)

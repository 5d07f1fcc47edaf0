# results: results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/shapes.json figures/published.json
# SPDX-License-Identifier: Apache-2.0
# Coded and decoded GB/s of one core over k, by n.
include "weft";
[inputs] as [$shapes, $published]
| (["encode", "decode-deferred", "decode-batch"][] as $operation | [16, 32, 64, 128, 256, 512, 1024][] as $n
    | block("\($operation)\($n)"; [$shapes | cases | select(.operation == $operation and .n == $n)] | sort_by(.k)[]
        | [.k] + (coded | spread) + ["n = \($n)"])),
  block("published"; published($published; "xnc-cpu") | [.coded_GBps, "\(.device), n = 128, derived"])

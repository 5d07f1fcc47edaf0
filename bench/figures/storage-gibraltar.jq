# results: results/amd-epyc-family-25-model-17-stepping-1/storage-shapes.json results/amd-epyc-family-25-model-17-stepping-1/storage-sizes.json
# SPDX-License-Identifier: Apache-2.0
# Gibraltar's Figures 1, 2 and 4 on a core instead of its GPU, weft and Jerasure in the same rounds: generate and
# recover over k for m = 2, 3, 4; over buffer size; over m.
include "weft";
def who($who): select(if $who == "weft" then .row == "avx2" and .variant == "cauchy" else .row == "jerasure" end);
[inputs] as [$shapes, $sizes]
| ["encode", "recover"][] as $operation | ["weft", "jerasure"][] as $who
| ([2, 3, 4][] as $m | block("\($operation)-\($who)-\($m)"; [$shapes | cases | select(.operation == $operation and .m == $m) | who($who)]
    | sort_by(.n)[] | [.n] + data_rate)),
  block("\($operation)-\($who)-m"; [$shapes | cases | select(.operation == $operation and .n == 16) | who($who)] | sort_by(.m)[] | [.m] + data_rate),
  ([4, 10][] as $k | block("\($operation)-\($who)-sizes\($k)"; [$sizes | cases | select(.operation == $operation and .n == $k) | who($who)]
    | sort_by(.k)[] | [.k] + data_rate))

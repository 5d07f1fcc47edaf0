# results: results/intel-r-xeon-r-processor-family-6-model-167-stepping-1/storage-steps-avx2.json results/intel-r-xeon-r-processor-family-6-model-167-stepping-1/storage-steps-avx512.json results/intel-r-xeon-r-processor-family-6-model-167-stepping-1/storage-steps-gfni256.json
# SPDX-License-Identifier: Apache-2.0
# What docs/performance/goals.md says about recovery compared with encoding by transforms; gfni512 now uses a matrix.
include "weft";
def asked($title): [.[].groups[] | select(.title == $title) | .ratios[] | select(.name == "recover, inversion counted in / encode").median]
  | "\(min | digits(2)) to \(max | digits(2))";
[inputs]
| ["docs/performance/goals.md", "has \(asked("(64, 16), 64 KiB shards")) of its rate with shards of 64 KiB, \(asked("(64, 16), 1024 KiB shards")) with 1 MiB ((64, 16), the rows avx2, avx512 and gfni256 of an Intel core"]
| @tsv

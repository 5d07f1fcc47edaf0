# results: results/nvidia-h200/gpu-ordinary.json
# SPDX-License-Identifier: Apache-2.0
# What sentences say of encoding to ordinary memory.
include "weft";
def many: [.groups[] | select(.title | endswith("segments: 1024"))][0].cases;
def share($threads): many as $cases
  | ([$cases[] | select(.operation == "encode" and .threads == $threads)][0] | coded.median)
    / ([$cases[] | select(.variant == "device to pinned")][0] | coded.median);
input | ["docs/gpu.md", "encoded at \(share(14) * 100 | digits(2)) % of the bus by 14 threads, \(share(1) * 100 | digits(2)) % by one"]
| @tsv

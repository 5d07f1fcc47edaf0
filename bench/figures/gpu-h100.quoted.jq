# results: results/nvidia-h100-80gb-hbm3/gpu.json
# SPDX-License-Identifier: Apache-2.0
# What docs/gpu.md says about an H100.
include "weft";
def rate($operation; $variant; $m): [cases | select(.operation == $operation and .variant == $variant and .m == $m)][0].gigabytes_per_second.output | spread | with_spread;
input | ["docs/gpu.md", "one live segment \(rate("encode"; "kernel"; 177333)) GB/s coded by the kernel and \(rate("encode"; "library, seeds expanded"; 177333)) with seeds"],
  ["docs/gpu.md", "through the library, 128 blocks of each of 512 segments \(rate("encode, many segments"; "kernel"; 128)), preprocessing counted \(rate("encode, many segments"; "preprocessing counted"; 128))."]
| @tsv

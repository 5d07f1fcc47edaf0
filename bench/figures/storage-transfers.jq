# results: results/nvidia-h200/storage.json results/nvidia-h200/storage-published.json figures/published.json
# SPDX-License-Identifier: Apache-2.0
# A stripe from host memory: total by the pipeline, its bounds by the bus, and the kernel alone if the same shape was
# measured resident. GB/s of data.
include "weft"; include "storage_tables";
[inputs] as [$new, $old, $published]
| ($new | with_older($old)) as $results
| [$results.groups[] | select([.cases[] | select(.variant | startswith("PCIe"))] | length > 0)] as $groups
| [$groups[] | .cases as $c
    | {k: $c[0].n, m: $c[0].m,
       both: ([$c[] | select(.variant == "PCIe, k in and m out at once")][0] | .gigabytes_per_second.input.median),
       one: ([$c[] | select(.variant == "PCIe, one engine for k in and m out")][0] | .gigabytes_per_second.input.median),
       rs: ([$c[] | select(.operation == "encode" and .variant == "cauchy")][0] | data_rate),
       crs: ([$c[] | select(.operation == "encode" and (.variant | startswith("cauchy_good")))][0] | data_rate)}] as $shapes
| block("ours"; ($shapes | keys[]) as $i | $shapes[$i] | . as $s
    | ([$results.groups[] | select(.title | startswith("RS over")) | .cases[] | select(.operation == "encode" and .n == $s.k and .m == $s.m)][0] | data_rate[0]) as $kernel
    | [$i, "\(.k) + \(.m)", .both, .one] + .rs + .crs + [$kernel]),
  block("published"; (["gcrs-pipelined", "perasure-pcie", "rscode-pinned-k20x", "rscode-pinned-c2050", "rscode-pageable-k20x", "rscode-pageable-c2050"][]) as $id
    | published($published; $id) | [.overall_GBps])

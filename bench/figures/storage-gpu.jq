# results: results/nvidia-h200/storage.json
# SPDX-License-Identifier: Apache-2.0
# Encoding on one H200, 10 MiB shards, resident: GB/s of data over k, for each m. The bound is the time to copy k + m
# shards in device memory. Groups are in the order of docs/storage-gpu.md.
include "weft";
[inputs] as [$results]
| (["RS over", "CRS, smallest", "CRS, w = 8"] | to_entries[]) as $code | [2, 4, 8, 16][] as $m
| [$results.groups[] | select(.title | startswith($code.value)) | .cases[] | select(.m == $m)] as $cases
| block("code\($code.key)m\($m)"; [$cases[] | select(.operation == "encode")] | sort_by(.n)[] | [.n] + data_rate),
  block("bound\($code.key)m\($m)"; [$cases[] | select(.operation == "ceiling")] | sort_by(.n)[]
    | [.n, .gigabytes_per_second.input.median])

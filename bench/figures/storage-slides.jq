# results: results/nvidia-h200/storage-slides.json figures/published.json
# SPDX-License-Identifier: Apache-2.0
# GPU-RSCode's slides: k = 4, n = 6, 1000 to 2000 MB, by streams, from pageable and from pinned memory.
include "weft";
def data_in: .gigabytes_per_second.input | spread;
[inputs] as [$all, $published]
| [$all | cases | select(.variant | test(" MB streams="))] as $cases
| (["pinned", "pageable"][] as $memory | [1, 2, 3, 4][] as $streams
  | block("\($memory)\($streams)"; [$cases[] | select(.variant | endswith("streams=\($streams) \($memory)"))
    | [(.variant | split(" ")[0] | tonumber)] + data_in] | sort_by(.[0])[])),
  block("published"; ("rscode-pinned-k20x", "rscode-pinned-c2050", "rscode-pageable-k20x", "rscode-pageable-c2050") as $id
    | published($published; $id) | [.overall_GBps])

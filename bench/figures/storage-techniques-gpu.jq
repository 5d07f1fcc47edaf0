# results: results/nvidia-h200/storage.json results/nvidia-h200/storage-published.json figures/published.json
# SPDX-License-Identifier: Apache-2.0
# The techniques of Gibraltar, PErasure and G-CRS and the production path, 10 MiB shards on one H200: GB/s of data by
# shape, and the papers' own figures.
include "weft"; include "storage_tables";
[inputs] as [$new, $old, $published]
| ($new | with_older($old)) as $results
| [["cuda-b1", "vandermonde", "weft, Reed-Solomon"], ["cuda-b1", "gcrs*", "weft, CRS (packets of 8 bytes)"],
   ["cuda-gibraltar", "vandermonde", "cuda-gibraltar"], ["cuda-perasure-gmpe", "gcrs*", "cuda-perasure-gmpe"],
   ["cuda-perasure-smpe", "gcrs*", "cuda-perasure-smpe"], ["cuda-gcrs-base", "gcrs*", "cuda-gcrs-base (int)"],
   ["cuda-gcrs-char", "gcrs*", "cuda-gcrs-char"], ["cuda-gcrs-bitmatrix", "gcrs*", "base + bitmatrix"],
   ["cuda-gcrs-access", "gcrs*", "base + access"], ["cuda-gcrs-bandwidth", "gcrs*", "base + bandwidth"],
   ["cuda-gcrs-no-bitmatrix", "gcrs*", "full - bitmatrix"], ["cuda-gcrs-no-access", "gcrs*", "full - access"],
   ["cuda-gcrs-no-bandwidth", "gcrs*", "full - bandwidth"], ["cuda-gcrs", "gcrs*", "cuda-gcrs (full)"]] as $rows
| ([2, 4, 8, 16][] as $m | block("m\($m)"; ($rows | keys[]) as $i | $rows[$i] as [$row, $code, $name]
    | [$results.groups[] | select(.title | startswith("published")) | .cases[]
      | select(.row == $row and .m == $m and (.variant | startswith($code | rtrimstr("*"))))][0]
    | [$i, $name] + (if . then data_rate else ["NaN", "NaN", "NaN"] end))),
  block("published"; (["gcrs-4", 13, 1], ["gcrs-16", 13, 3], ["perasure-smpe-low", 4, 2], ["perasure-smpe-high", 4, 2]) as [$id, $at, $series]
    | published($published; $id) | [$at, .raw_GBps, $series])

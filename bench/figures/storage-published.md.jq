# results: results/nvidia-h200/storage.json results/nvidia-h200/storage-published.json
# SPDX-License-Identifier: Apache-2.0
# The published techniques compared with the production path, GB/s of data.
include "weft"; include "storage_tables";
[inputs] as [$new, $old] | ($new | with_older($old)) as $all
| heading("row", "10 + 2", "10 + 4", "16 + 8", "32 + 16"),
  ((["cuda-b1", "vandermonde"], (["cuda-b1", "cuda-gibraltar", "cuda-gcrs", "cuda-gcrs-no-bitmatrix", "cuda-gcrs-no-access", "cuda-gcrs-no-bandwidth",
      "cuda-gcrs-bitmatrix", "cuda-gcrs-access", "cuda-gcrs-bandwidth", "cuda-gcrs-base", "cuda-gcrs-char", "cuda-perasure-smpe", "cuda-perasure-gmpe"][]
      | [., (if . == "cuda-gibraltar" then "vandermonde" else "gcrs" end)])) as [$row, $code]
  | row("\($row) \($code)", ((2, 4, 8, 16) as $m
      | [$all.groups[] | select(.title | startswith("published")) | .cases[] | select(.row == $row and .m == $m and (.variant | startswith($code)))][0]
      | if . then data_rate[0] | round else "" end)))

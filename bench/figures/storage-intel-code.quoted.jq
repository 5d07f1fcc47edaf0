# results: results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/storage-crs-code-avx512.json
# SPDX-License-Identifier: Apache-2.0
# What the documents say in sentences about CRS by machine code.
include "weft";
input as $avx512
| ["README.md", ($avx512 | crs_group("(10, 4), 64 KiB shards, CRS, w = 8")
    | "(model 207): \(crs_rate("encode"; "avx512")), \(crs_by_jerasure) times Jerasure and \(crs_asked("encode, each at its best packet size: compiled / not")) times the same row without")]
| @tsv

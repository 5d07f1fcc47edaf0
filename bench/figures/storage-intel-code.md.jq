# results: results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/storage-crs-code-avx2.json results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/storage-crs-code-avx512.json results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/storage-crs-code-gfni256.json results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/storage-crs-code-gfni512.json
# SPDX-License-Identifier: Apache-2.0
# CRS on one core of an Intel machine by machine code, or by blocks where rows with GFNI keep them.
include "weft";
[inputs] as $runs | crs_compiled_heading,
  (("avx2", "avx512", "gfni256", "gfni512") as $row | $runs[["avx2", "avx512", "gfni256", "gfni512"] | index($row)] | crs_compiled($row; "\($row), "))

# results: results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/storage-crs-code-avx2.json results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/storage-crs-code-before-avx2.json results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/storage-crs-code-avx512.json results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/storage-crs-code-before-avx512.json results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/storage-crs-code-gfni256.json results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/storage-crs-code-before-gfni256.json results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/storage-crs-code-gfni512.json results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/storage-crs-code-before-gfni512.json
# SPDX-License-Identifier: Apache-2.0
# CRS on one core of an Intel machine by machine code, or by blocks if rows with GFNI keep them; before and after lost
# data was folded.
include "weft";
[inputs] as $runs | ["avx2", "avx512", "gfni256", "gfni512"] as $rows | crs_since_heading,
  ($rows | keys[] as $i | $runs[2 * $i] | crs_since($rows[$i]; "\($rows[$i]), "; $runs[2 * $i + 1]))

# results: results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/storage-crs-code-avx2.json results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/storage-crs-code-avx512.json results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/storage-crs-code-gfni256.json results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/storage-crs-code-gfni512.json
# SPDX-License-Identifier: Apache-2.0
# CRS on one core of an Intel machine by machine code, or by blocks where rows with GFNI keep them.
include "weft";
[inputs] as $runs | ["avx2", "avx512", "gfni256", "gfni512"] as $rows
| heading("", ($rows[] | "\(.), and times Jerasure"), "recover / encode: avx2", "avx512"),
  ($runs[0].groups[] | .title as $title
  | row($title | crs_title,
      (range(0; 4) as $i | $runs[$i] | crs_group($title) | "\(crs_rate("encode"; $rows[$i])), \(crs_by_jerasure)"),
      (range(0; 2) as $i | $runs[$i] | crs_group($title) | crs_recovery)))

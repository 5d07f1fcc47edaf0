# results: results/amd-epyc-family-25-model-17-stepping-1/storage-crs-code-gfni512.json results/amd-epyc-family-25-model-17-stepping-1/storage-crs-code-before-gfni512.json results/amd-epyc-family-25-model-17-stepping-1/storage-crs-code-avx512.json results/amd-epyc-family-25-model-17-stepping-1/storage-crs-code-before-avx512.json results/amd-epyc-family-25-model-17-stepping-1/storage-crs-code-avx2.json results/amd-epyc-family-25-model-17-stepping-1/storage-crs-code-before-avx2.json results/amd-epyc-family-25-model-17-stepping-1/storage-crs-code-gfni256.json results/amd-epyc-family-25-model-17-stepping-1/storage-crs-code-before-gfni256.json
# SPDX-License-Identifier: Apache-2.0
# CRS on one core of a Zen 4 by machine code, before and after it summed two pairs at a time.
include "weft";
[inputs] as $runs | ["gfni512", "avx512", "avx2", "gfni256"] as $rows | crs_since_heading,
  ($rows | keys[] as $i | $runs[2 * $i] | crs_since($rows[$i]; "\($rows[$i]), "; $runs[2 * $i + 1]))

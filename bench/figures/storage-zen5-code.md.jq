# results: results/amd-epyc-family-26-model-2-stepping-1/storage-crs-code-gfni512.json results/amd-epyc-family-26-model-2-stepping-1/storage-crs-code-avx512.json results/amd-epyc-family-26-model-2-stepping-1/storage-crs-code-avx2.json results/amd-epyc-family-26-model-2-stepping-1/storage-crs-code-gfni256.json
# SPDX-License-Identifier: Apache-2.0
# CRS on one core of a Zen 5 by machine code.
include "weft";
[inputs] as $runs | ["gfni512", "avx512", "avx2", "gfni256"] as $rows | crs_compiled_heading,
  ($rows | keys[] as $i | $runs[$i] | crs_compiled($rows[$i]; "\($rows[$i]), "))

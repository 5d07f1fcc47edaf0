# results: results/amd-epyc-family-25-model-1-stepping-1/storage.json
# SPDX-License-Identifier: Apache-2.0
# CRS on one core of a Zen 3 by machine code.
include "weft";
input | .groups |= map(select(.title | test("CRS"))) | crs_compiled_heading, crs_compiled("avx2"; "")

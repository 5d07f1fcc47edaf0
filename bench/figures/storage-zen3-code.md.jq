# results: results/amd-epyc-family-25-model-1-stepping-1/storage-crs-programs.json results/amd-epyc-family-25-model-1-stepping-1/storage-crs-code.json
# SPDX-License-Identifier: Apache-2.0
# CRS on one core of a Zen 3 by programs and blocks, and by machine code.
include "weft";
input as $before | input as $since | crs_before_and_since($before; $since; "avx2")

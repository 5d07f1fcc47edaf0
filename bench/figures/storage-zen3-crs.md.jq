# results: results/amd-epyc-family-25-model-1-stepping-1/storage-crs-before.json results/amd-epyc-family-25-model-1-stepping-1/storage-crs.json
# SPDX-License-Identifier: Apache-2.0
# CRS on one core of a Zen 3 by XOR programs, and by blocks of bits where these are faster.
include "weft";
input as $before | input as $since
| heading("", "encode: before", "since", "since / Jerasure", "recover, plan cached: before", "since", "recover / encode: before", "since"),
  ($since.groups[] | select(.title | test("CRS")) | . as $g | ($before | crs_group($g.title)) as $b
  | row($g.title | crs_title, ($b | crs_rate("encode"; "avx2")), ($g | crs_rate("encode"; "avx2")), ($g | crs_by_jerasure),
      ($b | crs_rate("recover"; "avx2")), ($g | crs_rate("recover"; "avx2")), ($b | crs_recovery), ($g | crs_recovery)))

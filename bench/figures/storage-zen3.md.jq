# results: results/amd-epyc-family-25-model-1-stepping-1/storage-before.json results/amd-epyc-family-25-model-1-stepping-1/storage.json
# SPDX-License-Identifier: Apache-2.0
# RS on one core of a Zen 3, before and after its panel became straight code, compared with other libraries.
include "weft";
[inputs] as [$old, $new]
| rs_before_and_since($old; $new; "avx2"; {title: "ISA-L 2.32", row: "isa-l 2.32.1"}; "klauspost v1.14.1")

# results: results/amd-epyc-family-26-model-2-stepping-1/storage-before.json results/amd-epyc-family-26-model-2-stepping-1/storage.json
# SPDX-License-Identifier: Apache-2.0
# RS on one core of a Zen 5, before and after sources were visited alternately from both ends, compared with other
# libraries.
include "weft";
[inputs] as [$old, $new]
| rs_before_and_since($old; $new; "gfni512"; {title: "ISA-L 2.32", row: "isa-l 2.32.1"}; "klauspost v1.12.4")

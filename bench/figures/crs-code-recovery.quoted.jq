# results: results/amd-epyc-family-25-model-17-stepping-1/storage-crs-code-gfni512.json results/amd-epyc-family-25-model-17-stepping-1/storage-crs-code-avx512.json results/amd-epyc-family-25-model-17-stepping-1/storage-crs-code-avx2.json results/amd-epyc-family-25-model-17-stepping-1/storage-crs-code-gfni256.json results/amd-epyc-family-25-model-1-stepping-1/storage-crs-code.json results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/storage-crs-code-avx2.json results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/storage-crs-code-avx512.json results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/storage-crs-code-gfni256.json results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/storage-crs-code-gfni512.json
# SPDX-License-Identifier: Apache-2.0
# What documents say of recovery beside encoding by machine code: the least and greatest median of all tables.
include "weft";
def between: "\(min | digits(2)) to \(max | digits(3))";
[inputs.groups[] | {words: (.title | capture("w = (?<w>[0-9]+)").w), median: ([.ratios[] | select(.name == "recover, plan cached / encode")][0].median)}]
| (map(select(.words == "4").median) | between) as $four
| (map(select(.words == "8").median) | between) as $eight
| ["docs/performance/crs-machine-code.md", "\($eight) of the rate of encoding with w = 8 and \($four) with w = 4"],
  ["README.md", "\($four) with w = 4, \($eight) with w = 8"]
| @tsv

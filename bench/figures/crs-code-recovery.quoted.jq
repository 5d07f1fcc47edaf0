# results: results/amd-epyc-family-25-model-17-stepping-1/storage-crs-code-gfni512.json results/amd-epyc-family-25-model-17-stepping-1/storage-crs-code-avx512.json results/amd-epyc-family-25-model-17-stepping-1/storage-crs-code-avx2.json results/amd-epyc-family-25-model-17-stepping-1/storage-crs-code-gfni256.json results/amd-epyc-family-25-model-1-stepping-1/storage.json results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/storage-crs-code-avx2.json results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/storage-crs-code-avx512.json results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/storage-crs-code-gfni256.json results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/storage-crs-code-gfni512.json
# SPDX-License-Identifier: Apache-2.0
# What documents say about recovery compared with encoding by machine code: the least and greatest median in the tables
# of Zen 4 and Intel, measured before lost data was folded, and Zen 3, measured since.
include "weft";
def between: "\(min | digits(2)) to \(max | digits(3))";
def medians: [.[] | .groups[] | {w: (.title | capture("w = (?<w>[0-9]+)").w), median: ([.ratios[] | select(.name == "recover, plan cached / encode")][0].median)}];
def of($w): map(select(.w == $w).median) | between;
[inputs] as $runs | ($runs[:4] | medians) as $zen4 | ($runs[4:5] | medians) as $zen3 | ($runs[5:] | medians) as $intel
| ["docs/performance/crs-machine-code.md", "\($intel | of("8")) of the rate of encoding with w = 8 and \($intel | of("4")) with w = 4"],
  ["docs/performance/goals.md", "with w = 4, \($intel | of("8")) with w = 8 on Intel"],
  ["docs/performance/goals.md", "\($zen4 | of("4")) with w = 4 and \($zen4 | of("8")) with w = 8 on Zen 4"],
  ["docs/performance/goals.md", "On Zen 3 it has \($zen3 | of("4")) with w = 4 and \($zen3 | of("8")) with w = 8"]
| @tsv

# results: results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/recode-one.json results/amd-epyc-family-26-model-2-stepping-1/rlnc.json results/amd-epyc-family-25-model-17-stepping-1/rlnc.json
# SPDX-License-Identifier: Apache-2.0
# What docs/performance/goals.md says about one recoded packet on demand.
include "weft";
def share($k): [.groups[] | select(.title | startswith("n = 128, k = \($k);")) | .ratios[]
  | select(.name == "rate of source bytes: one recoded packet / read")][0].median * 100 | round;
[inputs] as [$intel, $zen5, $amd]
| ["docs/performance/goals.md", "reads at \($intel | share(1024)) % of the core's read rate at k = 1024 and \($intel | share(16384)) % at 16384 on an Intel Xeon (model 207), at \($zen5 | share(1024)) % at k = 1024 and \($zen5 | share(4096)) % at 4096 on Zen 5"],
  ["docs/performance/goals.md", ([$amd | share(1024, 4096, 16384)] | "at \(min) to \(max) % on an AMD EPYC (Zen 4) with AVX2 alone")]
| @tsv

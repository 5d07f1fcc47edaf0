# results: results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/recode-one.json results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/recode-one-small-pages.json results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/recode-one-cold.json
# SPDX-License-Identifier: Apache-2.0
# One packet on demand, compared with reading the segment.
include "weft";
def ratio($k; $name): [.groups[] | select(.title | startswith("n = 128, k = \($k);")) | .ratios[] | select(.name == $name)][0]
  | if .separable then (spread | with_spread) else "not separable (\(.median | three); \(.min | three)..\(.max | three))" end;
[inputs] as [$plain, $small, $cold]
| heading("", "k = 1024", "k = 4096", "k = 16384"),
  ([$plain, "recoded / read", "rate of source bytes: one recoded packet / read"],
   [$plain, "recoded / turning read", "rate of source bytes: one recoded packet / turning read"],
   [$plain, "coded, given coefficients / read", "rate of source bytes: one coded packet / read"],
   [$small, "recoded / read, small pages", "rate of source bytes: one recoded packet / read"],
   [$cold, "recoded / read, cold", "rate of source bytes: one recoded packet / read"]) as [$run, $what, $name]
  | row($what, (1024, 4096, 16384) as $k | $run | ratio($k; $name))

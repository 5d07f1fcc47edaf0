# results: results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/recode-one-run-1.json results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/recode-one-run-2.json results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/recode-one-run-3.json results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/recode-one-run-4.json results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/recode-one-run-5.json results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/recode-one-run-6.json
# SPDX-License-Identifier: Apache-2.0
# One recoded packet at n = 128, k = 4096 in six runs, compared with reading the segment.
include "weft";
def asked($name): [.groups[] | select(.title | startswith("n = 128, k = 4096;")) | .ratios[] | select(.name == $name)][0] | spread | with_spread;
def rate: [.groups[] | select(.title | startswith("n = 128, k = 4096;")) | .cases[] | select(.operation == "encode")][0] | coded | .median | three;
heading("", "recoded / read", "recoded / turning read", "encode, GB/s coded"),
(inputs | row("\(.date[11:16]), \(.commit[:7])", asked("rate of source bytes: one recoded packet / read"), asked("rate of source bytes: one recoded packet / turning read"), rate))

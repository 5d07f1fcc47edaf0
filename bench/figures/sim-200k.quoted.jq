# results: results/amd-epyc-family-25-model-17-stepping-1/sim-200k.json
# SPDX-License-Identifier: Apache-2.0
# What README.md says about a large simulation: the busier of two threads.
[inputs][0] | ["README.md", "Ten minutes of 200,000 viewers take \(.effort.longest_s / 60 | round) minutes of processor time on each of two cores"]
| @tsv

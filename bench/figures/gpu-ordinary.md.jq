# results: results/nvidia-h200/gpu-ordinary.json
# SPDX-License-Identifier: Apache-2.0
# From and to ordinary memory, by threads of the host.
include "weft";
def one($cases; $operation; $threads): $cases[] | select(.operation == $operation and .threads == $threads) | coded | spread | with_spread;
[inputs.groups[] | select(.title | startswith("over PCIe, ordinary memory"))] as $groups
| heading("segments", "threads", "made resident, GB/s", "encoded", "decoded"),
  ($groups[] | (.title | split(" ")[-1]) as $segments | .cases as $cases
   | ([$cases[] | select(.operation == "decode").threads] | unique[]) as $threads
   | row($segments, "\($threads)", (("segments", "encode", "decode") as $operation | one($cases; $operation; $threads))))

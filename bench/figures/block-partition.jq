# results: results/amd-epyc-family-25-model-17-stepping-1/shapes-n16-64.json results/amd-epyc-family-25-model-17-stepping-1/shapes-n128.json results/amd-epyc-family-25-model-17-stepping-1/shapes-n256.json results/amd-epyc-family-25-model-17-stepping-1/shapes-n512.json results/amd-epyc-family-25-model-17-stepping-1/shapes-n1024-a.json results/amd-epyc-family-25-model-17-stepping-1/shapes-n1024-b.json results/amd-epyc-family-25-model-17-stepping-1/shapes-two-threads-n128.json results/amd-epyc-family-25-model-17-stepping-1/shapes-two-threads-n256.json results/amd-epyc-family-25-model-17-stepping-1/shapes-two-threads-n512-a.json results/amd-epyc-family-25-model-17-stepping-1/shapes-two-threads-n512-b.json results/amd-epyc-family-25-model-17-stepping-1/shapes-two-threads-n1024-a.json results/amd-epyc-family-25-model-17-stepping-1/shapes-two-threads-n1024-b.json results/amd-epyc-family-25-model-17-stepping-1/rlnc.json results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/shapes-two-threads-n16-256.json results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/shapes-two-threads-n512.json results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/shapes-two-threads-n1024.json
# SPDX-License-Identifier: Apache-2.0
# Two threads that share an encode by columns (partitioned block) and by rows (full block): coded GB/s times n, so that
# all n lie on one scale, and the ratio of both.
include "weft";
[inputs] as $all
| (["columns", "rows"][] as $split | [16, 64, 128, 256][] as $n
    | block("\($split)\($n)"; [$all[] | select(.machine.cpu | startswith("AMD")) | cases | select(.operation == "encode" and .variant == $split and .n == $n and .repetitions_disturbed == 0)]
      | sort_by(.k)[] | [.k] + (products | spread) + ["n = \($n)"])),
  (["AMD", "Intel"][] as $maker | [16, 32, 64, 128, 256, 512, 1024][] as $n
    | block("\($maker)\($n)"; [$all[] | select(.machine.cpu | startswith($maker)) | .groups[] | .ratios[]? | select(.name == "encode: full block / partitioned block" and .rounds >= 9)
        | {ratio: ., shape: (.of | capture("n=(?<n>[0-9]+) k=(?<k>[0-9]+)"))} | select(.shape.n == "\($n)")]
      | sort_by(.shape.k | tonumber) | length as $count | to_entries[] | .key as $at | .value
      | [(.shape.k | tonumber)] + (.ratio | spread) + [if $at == $count - 1 then "n = \($n)" else "" end]))

# results: results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/shapes.json results/amd-epyc-family-25-model-17-stepping-1/shapes-n16-64.json results/amd-epyc-family-25-model-17-stepping-1/shapes-n128.json results/amd-epyc-family-25-model-17-stepping-1/shapes-n256.json results/amd-epyc-family-25-model-17-stepping-1/shapes-n512.json results/amd-epyc-family-25-model-17-stepping-1/shapes-n1024-a.json results/amd-epyc-family-25-model-17-stepping-1/shapes-n1024-b.json results/amd-epyc-family-25-model-17-stepping-1/shapes-n1024-c.json results/amd-epyc-family-25-model-17-stepping-1/shapes-n1024-d.json results/amd-epyc-family-25-model-17-stepping-1/shapes-n1024-e.json figures/published.json
# SPDX-License-Identifier: Apache-2.0
# Coded and decoded GB/s of one core over k, by n.
include "weft";
[inputs] as $all
| ([$all[] | select(.points)][0]) as $published
| ({intel: "Intel", amd: "AMD"} | to_entries[]) as $machine
| [$all[] | select(.machine) | select(.machine.cpu | startswith($machine.value)) | cases | select(.threads == 1 and .variant == "")] as $cases
| (["encode", "decode-deferred", "decode-batch"][] as $operation | [16, 32, 64, 128, 256, 512, 1024][] as $n
    | block("\($machine.key)-\($operation)\($n)"; [$cases[] | select(.operation == $operation and .n == $n)] | sort_by(.k)[]
        | [.k] + (coded | spread) + ["n = \($n)"])),
  (if $machine.key == "intel" then block("published"; published($published; "xnc-cpu") | [.coded_GBps, "published: \(.device), n = 128"]) else empty end)

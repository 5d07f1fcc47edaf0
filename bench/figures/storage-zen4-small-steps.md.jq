# results: results/amd-epyc-family-25-model-17-stepping-1/storage-small-steps-before-gfni256.json results/amd-epyc-family-25-model-17-stepping-1/storage-small-steps-gfni256.json results/amd-epyc-family-25-model-17-stepping-1/storage-small-steps-before-avx512.json results/amd-epyc-family-25-model-17-stepping-1/storage-small-steps-avx512.json results/amd-epyc-family-25-model-17-stepping-1/storage-small-steps-before-avx2.json results/amd-epyc-family-25-model-17-stepping-1/storage-small-steps-avx2.json
# SPDX-License-Identifier: Apache-2.0
# RS of few shards on one core of Zen 4, before and after matrices of 32 to 127 entries were done in steps.
include "weft";
def group($title): [.groups[] | select(.title == $title)][0];
def rate($operation; $variant): [.cases[] | select(.operation == $operation and .variant == $variant)][0] | .gigabytes_per_second.input | spread;
def both($before; $after; $operation; $variant): "\($before | rate($operation; $variant)[0] | three) / \($after | rate($operation; $variant) | with_spread)";
def bare: sub("1024 KiB"; "1 MiB") | sub(" shards"; "");
[inputs] as $all
| heading("encode", "gfni256", "avx512", "avx2"),
($all[0].groups[].title as $t
 | row($t | bare, (range(3) | ($all[2 * .] | group($t)) as $b | ($all[2 * . + 1] | group($t)) as $a | both($b; $a; "encode"; "cauchy"))))

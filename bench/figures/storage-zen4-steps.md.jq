# results: results/amd-epyc-family-25-model-17-stepping-1/storage-steps-before-gfni512.json results/amd-epyc-family-25-model-17-stepping-1/storage-steps-gfni512.json results/amd-epyc-family-25-model-17-stepping-1/storage-steps-before-gfni256.json results/amd-epyc-family-25-model-17-stepping-1/storage-steps-gfni256.json results/amd-epyc-family-25-model-17-stepping-1/storage-steps-before-avx512.json results/amd-epyc-family-25-model-17-stepping-1/storage-steps-avx512.json results/amd-epyc-family-25-model-17-stepping-1/storage-steps-before-avx2.json results/amd-epyc-family-25-model-17-stepping-1/storage-steps-avx2.json
# SPDX-License-Identifier: Apache-2.0
# RS on one core of Zen 4: with GFNI before and after whole transforms took one pass, without GFNI before and after
# steps were weighed there.
include "weft";
def group($title): [.groups[] | select(.title == $title)][0];
def rate($operation; $variant): [.cases[] | select(.operation == $operation and .variant == $variant)][0] | .gigabytes_per_second.input | spread;
def both($before; $after; $operation; $variant): "\($before | rate($operation; $variant)[0] | three) / \($after | rate($operation; $variant) | with_spread)";
def bare: sub("1024 KiB"; "1 MiB") | sub(" shards"; "");
heading("", "encode", "recover", "recover, plan cached"),
(range(4) | input as $old | input as $new
 | $new.groups[].title as $t | ($old | group($t)) as $b | ($new | group($t)) as $a
 | row("\($a.cases[] | select(.operation == "encode") | .row) \($t | bare)",
     both($b; $a; "encode"; "cauchy"), both($b; $a; "recover"; "cauchy"), both($b; $a; "recover"; "cauchy, cached plan")))

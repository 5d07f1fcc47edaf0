# results: results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/storage-steps-before-gfni512.json results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/storage-steps-gfni512.json results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/storage-steps-before-gfni256.json results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/storage-steps-gfni256.json results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/storage-steps-before-avx512.json results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/storage-steps-avx512.json results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/storage-steps-before-avx2.json results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/storage-steps-avx2.json
# SPDX-License-Identifier: Apache-2.0
# RS on one core of an Intel Xeon with GFNI, before and after recoveries used encoding's acts and slots were in the
# first-level cache.
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

# results: results/intel-r-xeon-r-processor-family-6-model-167-stepping-1/storage-steps-before-avx2.json results/intel-r-xeon-r-processor-family-6-model-167-stepping-1/storage-steps-avx2.json results/intel-r-xeon-r-processor-family-6-model-167-stepping-1/storage-steps-before-avx512.json results/intel-r-xeon-r-processor-family-6-model-167-stepping-1/storage-steps-avx512.json results/intel-r-xeon-r-processor-family-6-model-167-stepping-1/storage-steps-before-gfni256.json results/intel-r-xeon-r-processor-family-6-model-167-stepping-1/storage-steps-gfni256.json results/intel-r-xeon-r-processor-family-6-model-167-stepping-1/storage-steps-before-gfni512.json results/intel-r-xeon-r-processor-family-6-model-167-stepping-1/storage-steps-gfni512.json
# SPDX-License-Identifier: Apache-2.0
# RS by transforms on one core, before and after butterflies carried sums and zeros replaced lost data.
include "weft";
def group($title): [.groups[] | select(.title == $title)][0];
def rate($operation; $variant): [.cases[] | select(.operation == $operation and .variant == $variant)][0] | .gigabytes_per_second.input | spread;
def both($before; $after; $operation; $variant): "\($before | rate($operation; $variant)[0] | three) / \($after | rate($operation; $variant) | with_spread)";
def asked($name): [.ratios[] | select(.name == $name)][0].median | three;
def ratio($before; $after; $name): "\($before | asked($name)) / \($after | asked($name))";
def bare: sub("1024 KiB"; "1 MiB") | sub(" shards"; "");
heading("", "encode", "recover", "recover, plan cached", "recover / encode", "cached / encode"),
(range(4) | input as $old | input as $new
 | $new.groups[].title as $t | ($old | group($t)) as $b | ($new | group($t)) as $a
 | row("\($a.cases[] | select(.operation == "encode") | .row) \($t | bare)",
     both($b; $a; "encode"; "cauchy"), both($b; $a; "recover"; "cauchy"), both($b; $a; "recover"; "cauchy, cached plan"),
     ratio($b; $a; "recover, inversion counted in / encode"), ratio($b; $a; "recover, plan cached / encode")))

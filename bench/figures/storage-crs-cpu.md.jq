# results: results/intel-r-xeon-r-processor-family-6-model-167-stepping-1/storage-crs-avx512.json results/intel-r-xeon-r-processor-family-6-model-167-stepping-1/storage-crs-gfni256.json results/intel-r-xeon-r-processor-family-6-model-167-stepping-1/storage-crs-gfni512.json
# SPDX-License-Identifier: Apache-2.0
# CRS on one core by XOR programs (avx512) and by blocks of bits (gfni256, gfni512), compared with Jerasure.
include "weft";
def group($title): [.groups[] | select(.title == $title)][0];
def rate($operation; $name): [.cases[] | select(.operation == $operation and .row == $name)][0] | .gigabytes_per_second.input | spread | with_spread;
def asked($name): [.ratios[] | select(.name == $name)][0] | if .separable then (spread | with_spread) else "not separable (\(.median | three); \(.min | three)..\(.max | three))" end;
def bare: sub("1024 KiB"; "1 MiB") | sub(" shards, CRS"; "");
input as $xor | input as $half | input as $full
| heading("", "avx512: XOR programs", "gfni256: blocks", "gfni512: blocks", "gfni512 / Jerasure", "recovery / encoding, avx512", "gfni512"),
  ($full.groups[].title as $t | ($full | group($t)) as $g
  | row($t | bare, ($xor | group($t) | rate("encode"; "avx512")), ($half | group($t) | rate("encode"; "gfni256")), ($g | rate("encode"; "gfni512")),
      ($g | asked("encode, each at its best packet size: weft / jerasure")),
      ($xor | group($t) | asked("recover, plan cached / encode")), ($g | asked("recover, plan cached / encode"))))

# results: results/amd-epyc-family-25-model-1-stepping-1/storage-crs-before.json results/amd-epyc-family-25-model-1-stepping-1/storage-crs.json
# SPDX-License-Identifier: Apache-2.0
# CRS on one core of a Zen 3 by XOR programs, and by blocks of bits where they are quicker.
include "weft";
def group($title): [.groups[] | select(.title == $title)][0];
def rate($operation): [.cases[] | select(.operation == $operation and .row == "avx2")][0] | .gigabytes_per_second.input | spread | with_spread;
def asked($name): [.ratios[] | select(.name == $name)][0] | spread | with_spread;
def bare: sub("1024 KiB"; "1 MiB") | sub(" shards, CRS"; "");
input as $before | input as $since
| heading("", "encode: before", "since", "since / Jerasure", "recover, plan cached: before", "since", "recover / encode: before", "since"),
  ($since.groups[] | select(.title | test("CRS")) | . as $g | ($before | group($g.title)) as $b
  | row($g.title | bare, ($b | rate("encode")), ($g | rate("encode")), ($g | asked("encode, each at its best packet size: weft / jerasure")),
      ($b | rate("recover")), ($g | rate("recover")),
      ($b | asked("recover, plan cached / encode")), ($g | asked("recover, plan cached / encode"))))

# results: results/amd-epyc-family-26-model-2-stepping-1/storage-ahead-256.json results/amd-epyc-family-26-model-2-stepping-1/storage.json
# SPDX-License-Identifier: Apache-2.0
# CRS on one core of a Zen 5: prefetching 512 bytes ahead, and what is read next.
include "weft";
def group($title): [.groups[] | select(.title == $title)][0];
def rate($row; $which): [.cases[] | select(.operation == "encode" and .row == $row)][$which] | .gigabytes_per_second.input | spread | with_spread;
def asked($name): [.ratios[] | select(.name == $name)][0] | spread | with_spread;
def bare: sub("1024 KiB"; "1 MiB") | sub(" shards, CRS"; "");
input as $before | input as $since
| heading("", "before", "since", "since / Jerasure", "at Jerasure's best packet: before", "since", "since / Jerasure"),
  ($since.groups[] | select(.title | test("CRS")) | . as $g | ($before | group($g.title)) as $b
  | row($g.title | bare, ($b | rate("gfni512"; 0)), ($g | rate("gfni512"; 0)), ($g | asked("encode, each at its best packet size: weft / jerasure")),
      ($b | rate("gfni512"; 1)), ($g | rate("gfni512"; 1)), ($g | asked("encode, at jerasure's best packet size: weft / jerasure"))))

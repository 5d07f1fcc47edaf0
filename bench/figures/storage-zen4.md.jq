# results: results/amd-epyc-family-25-model-17-stepping-1/storage-gfni.json results/amd-epyc-family-25-model-17-stepping-1/storage-gfni-before.json
# SPDX-License-Identifier: Apache-2.0
# RS on one core of a Zen 4 with GFNI: encoding, recovery and updates compared with ISA-L, before and after updates
# loaded all rows first.
include "weft";
def asked($g; $name): [$g.ratios[] | select(.name == $name)][0] | if . == null then "" elif .separable then (spread | with_spread) else "not separable (\(.median | three); \(.min | three)..\(.max | three))" end;
def rate($g; $operation): [$g.cases[] | select(.operation == $operation and .row == "gfni512")][0] | .gigabytes_per_second.input | spread | with_spread;
def bare: sub(", 64 KiB shards: one source into the parity"; ", 64 KiB: one source into the parity") | sub("1024 KiB"; "1 MiB") | sub(" shards"; "");
[inputs] as [$now, $old] | heading("", "GB/s of data", "before", "/ ISA-L 2.32", "before", "recover / ISA-L", "recover, inversion counted in / encode"),
($now.groups[] | . as $g | .title as $title | ([$old.groups[] | select(.title == $title)][0]) as $earlier
  | (if $title | test("one source") then "add delta" else "encode" end) as $operation | "\($operation): weft / isa-l 2.32.1" as $ratio
  | row(($title | bare) + (if $operation == "encode" then ": encode" else "" end), rate($g; $operation), rate($earlier; $operation), asked($g; $ratio), asked($earlier; $ratio),
      asked($g; "recover: weft / isa-l 2.32.1"), asked($g; "recover, inversion counted in / encode")))

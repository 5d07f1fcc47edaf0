# results: results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/storage-gfni.json results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/storage-gfni-before.json
# SPDX-License-Identifier: Apache-2.0
# RS on one core of an Intel Xeon with GFNI: encoding, recovery and updates compared with ISA-L and klauspost, before
# and after recoveries used encoding's acts.
include "weft";
def asked($g; $name): [$g.ratios[] | select(.name == $name)][0] | if . == null then "" elif .separable then (spread | with_spread) else "not separable (\(.median | three); \(.min | three)..\(.max | three))" end;
def rate($g; $operation): [$g.cases[] | select(.operation == $operation and .row == "gfni512")][0] | if . == null then "" else (.gigabytes_per_second.input | spread | with_spread) end;
def bare: sub(", 64 KiB shards: one source into the parity"; ", 64 KiB: one source into the parity") | sub("1024 KiB"; "1 MiB") | sub(" shards"; "");
[inputs] as [$now, $old] | heading("", "GB/s of data", "before", "/ ISA-L 2.32", "/ klauspost 1.12", "recovery, plan made in the call", "before", "of encoding"),
($now.groups[] | . as $g | .title as $title | ([$old.groups[] | select(.title == $title)][0]) as $earlier
  | (if $title | test("one source") then "add delta" else "encode" end) as $operation
  | row(($title | bare) + (if $operation == "encode" then ": encode" else "" end), rate($g; $operation), rate($earlier; $operation), asked($g; "\($operation): weft / isa-l 2.32.1"), asked($g; "\($operation): weft / klauspost v1.12.4"),
      rate($g; "recover"), rate($earlier; "recover"), asked($g; "recover, inversion counted in / encode")))

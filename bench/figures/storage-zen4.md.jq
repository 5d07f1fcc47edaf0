# results: results/amd-epyc-family-25-model-17-stepping-1/storage-gfni.json
# SPDX-License-Identifier: Apache-2.0
# RS on one core of a Zen 4 with GFNI: encoding, recovery and updates beside ISA-L.
include "weft";
def asked($g; $name): [$g.ratios[] | select(.name == $name)][0] | if . == null then "" elif .separable then (spread | with_spread) else "not separable (\(.median | three); \(.min | three)..\(.max | three))" end;
def rate($g; $operation): [$g.cases[] | select(.operation == $operation and .row == "gfni512")][0] | .gigabytes_per_second.input | spread | with_spread;
def bare: sub(", 64 KiB shards: one source into the parity"; ", 64 KiB: one source into the parity") | sub("1024 KiB"; "1 MiB") | sub(" shards"; "");
heading("", "GB/s of data", "/ ISA-L 2.32", "recover / ISA-L", "recover, inversion counted in / encode"),
(input | .groups[] | . as $g
  | if .title | test("one source") then row(.title | bare, rate($g; "add delta"), asked($g; "add delta: weft / isa-l 2.32.1"), "", "")
    else row((.title | bare) + ": encode", rate($g; "encode"), asked($g; "encode: weft / isa-l 2.32.1"), asked($g; "recover: weft / isa-l 2.32.1"),
      asked($g; "recover, inversion counted in / encode")) end)

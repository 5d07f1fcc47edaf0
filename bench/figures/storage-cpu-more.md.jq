# results: results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/storage.json results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/storage-2.json
# SPDX-License-Identifier: Apache-2.0
# Small shards, updates and CRS on the Intel core, with other libraries in the same rounds.
include "weft";
def data_in: .gigabytes_per_second.input | spread;
def times: if .separable then (spread | with_spread) else "not separable (\(.median | three); \(.min | three)..\(.max | three))" end;
def asked($g; $name): [$g.ratios[] | select(.name == $name)][0] | if . then times else "-" end;
def rate($g; $operation): [$g.cases[] | select(.operation == $operation and .row == "gfni512")][0] | data_in | with_spread;
def bare: sub(", 64 KiB shards: one source into the parity"; "") | sub("1024 KiB"; "1 MiB") | sub(" shards"; "");
heading("", "weft, GB/s of data", "/ ISA-L 2.32", "/ klauspost", "/ Jerasure"),
(inputs | .commit[:7] as $commit | [.groups[]] as $groups |
  ($groups[] | select(.title == "(10, 4), 4 KiB shards")
    | row("\($commit), \(.title | bare): encode", rate(.; "encode"), asked(.; "encode: weft / isa-l 2.32.1"), asked(.; "encode: weft / klauspost v1.12.4"), asked(.; "encode: weft / jerasure")),
      row("\($commit), \(.title | bare): recover, inversion counted in", rate(.; "recover"), asked(.; "recover: weft / isa-l 2.32.1"), asked(.; "recover: weft / klauspost v1.12.4"), asked(.; "recover: weft / jerasure"))),
  ($groups[] | select(.title | test("one source")) | row("\($commit), \(.title | bare), 64 KiB: one source into the parity", rate(.; "add delta"),
    asked(.; "add delta: weft / isa-l 2.32.1"), asked(.; "add delta: weft / klauspost v1.12.4"), "-")),
  ($groups[] | select(.title | test("CRS")) | row("\($commit), \(.title | bare): encode", rate(.; "encode"), "", "", asked(.; "encode, each at its best packet size: weft / jerasure"))))

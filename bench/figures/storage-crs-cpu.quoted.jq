# results: results/intel-r-xeon-r-processor-family-6-model-167-stepping-1/storage-crs-gfni512.json results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/storage-crs-gfni512.json
# SPDX-License-Identifier: Apache-2.0
# What the documents say in sentences about CRS on one core.
include "weft";
def group($title): [.groups[] | select(.title == $title)][0];
def rate($row): [.cases[] | select(.operation == "encode" and .row == $row)][0].gigabytes_per_second.input;
def asked($name): [.ratios[] | select(.name == $name)][0];
input as $blocks | input as $other
| "(10, 4), 64 KiB shards, CRS, w = 8" as $title
| ["README.md", ($blocks | group($title) | rate("gfni512") as $rate | asked("encode, each at its best packet size: weft / jerasure")
    | "w = 8: \($rate | spread | with_spread) by blocks of bits on an Intel Xeon with GFNI (model 167), \(spread | with_spread) times Jerasure")],
  ["docs/performance/crs.md", ([$blocks.groups[] | select(.title == "(10, 4), 1024 KiB shards, CRS, w = 8")][0]
    | "1 MiB shards have \(asked("encode, at jerasure's best packet size: weft / jerasure") | spread | with_spread) times at (10, 4), w = 8")],
  ["docs/performance/crs.md", ([$other.groups[] | asked("encode, each at its best packet size: weft / jerasure") | spread | with_spread]
    | "64 KiB \(.[0]), \(.[1]) and \(.[2]), 1 MiB \(.[3]), \(.[4]) and \(.[5])")]
| @tsv

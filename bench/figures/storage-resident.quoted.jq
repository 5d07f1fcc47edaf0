# results: results/nvidia-h200/storage.json
# SPDX-License-Identifier: Apache-2.0
# What documents say about recovery compared with encoding and with the copy.
include "weft"; include "storage_tables";
input as $all
| ["RS over", "CRS, smallest", "CRS, w = 8"] as $titles
| [$titles[] as $title | $all | recoveries($title)[].by] as $by
| [$titles[] as $title | [$all | resident($title)] as $cases
  | $cases[] | select((.operation == "encode" or .operation == "recover") and (.m < 16 or .n >= 16)) | . as $c
  | {shape: "\($title) \(.n) \(.m)", share: (data_rate[0] / ($cases | at("ceiling"; $c.n; $c.m) | .gigabytes_per_second.input.median))}] as $shares
| ($shares | group_by(.shape)) as $shapes
| [$all | resident("RS over")] as $rs
| [$rs[] | select(.operation == "recover" and .m == 16 and (.variant | endswith(" parity"))) | . as $r
  | {by: (data_rate[0] / ($rs | at("encode"; $r.n; 16) | data_rate[0])),
     share: (data_rate[0] / ($rs | at("ceiling"; $r.n; 16) | .gigabytes_per_second.input.median))}] as $random
| ([$random[].by] | "\(min | three) to \(max | three)") as $beside
| ["docs/storage-gpu.md", "is met by encoding and by both recoveries in all \([$shapes[] | select(all(.share >= 0.85))] | length) shapes"],
  ["docs/storage-gpu.md", "within 3 % of encoding in \([$by[] | select(. >= 0.97)] | length) of \($by | length) cases"],
  ["docs/storage-gpu.md", "they have \($beside) of it (\([$random[].share] | min | percent) of the copy at least)"],
  ["docs/storage-gpu.md", "drew up to \([$all.groups[].cases[].notes | objects | .watts_most // 0] | max) W"],
  ["docs/performance/goals.md", "has \([$random[].share] | "\(min * 100 | round) to \(max * 100 | round)") % of a copy, but \($beside) of encoding"]
| @tsv

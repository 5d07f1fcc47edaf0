# results: results/nvidia-h200/storage.json
# SPDX-License-Identifier: Apache-2.0
# Recovery compared with encoding, and the goal of 85 % of the copy.
include "weft"; include "storage_tables";
def median: sort | if length % 2 == 1 then .[length / 2 | floor] else (.[length / 2 - 1] + .[length / 2]) / 2 end;
input as $all
| heading("code", "shapes of the goal at 85 % or more", "least", "recovery / encoding: median (least..most)", "of these at least 0.97"),
  ((["RS over", "RS"], ["CRS, smallest", "CRS, smallest w"], ["CRS, w = 8", "CRS, w = 8"]) as [$title, $name]
  | ($all | goal_shares($title)) as $shares | [$all | recoveries($title)[].by] as $by
  | row($name, "\([$shares[] | select(. >= 0.85)] | length) of \($shares | length)", ($shares | min | percent),
      "\([$by | median, min, max] | with_spread)", "\([$by[] | select(. >= 0.97)] | length) of \($by | length)"))

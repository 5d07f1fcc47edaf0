# results: results/nvidia-h200/storage.json
# SPDX-License-Identifier: Apache-2.0
# The model compared with the production path's CRS encoding, fitted on w = 8, tested on the smallest w.
include "weft"; include "model";
input | [model_cells | select(.production)] as $cells
| fit_production([$cells[] | select(.w == 8)]) as $f
| def shown($c): $c | production_time($f) as $t | "\($t | three) / \(.us | three), \(error($t) * 100 | round + 0) %";
  heading("w = 8, k", "m = 2", "4", "8", "16", "smallest w: m = 2", "4", "8", "16"),
  ((2, 4, 8, 16, 32, 45) as $k
  | row($k, ((true, false) as $eight | (2, 4, 8, 16) as $m
      | [$cells[] | select(.k == $k and .m == $m and (.w == 8) == $eight)][0] | if . then shown(.) else "" end)))

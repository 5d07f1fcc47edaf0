# results: results/nvidia-h200/storage.json
# SPDX-License-Identifier: Apache-2.0
# The model's constants and errors as docs/storage-gpu/model.md states them.
include "weft"; include "model";
def errors($f): map(. as $c | production_time($f) as $t | $c | error($t));
"docs/storage-gpu/model.md" as $doc
| input | [model_cells | select(.production)] as $cells | fit_production([$cells[] | select(.w == 8)]) as $f
| [$cells[] | select(.w != 8)] as $tried
| [$cells[] | select(hides and .w == 8)] as $hiding | [$tried[] | select(hides)] as $others | fit_apart($hiding) as $apart
| def apart_errors: map(. as $c | apart_time($apart) as $t | $c | error($t));
  [$doc, "T_0 = \($f.t0) us and rho = \($f.rho), mean error \($f.error | percent) where fitted and \($tried | errors($f) | mean_error | percent) where tried"],
  [$doc, "(m <= 4: \([$tried[] | select(.m <= 4)] | errors($f) | mean_error | percent))"],
  [$doc, "k >= 16 without 45 + 16: \([$tried[] | select(.k >= 16 and (.k != 45 or .m != 16))] | errors($f) | mean_error | percent)"],
  [$doc, "T = \($apart.t0 | digits(2)) us + k shards at \($apart.read | three) TB/s + m shards at \($apart.write | three)"],
  [$doc, "\($hiding | apart_errors | mean_error | percent) at w = 8, where its three constants are fitted (\($hiding | length) cells), and \($others | apart_errors | mean_error | percent) at the smallest w"],
  [$doc, "taken there instead, \([$hiding[], $others[] | error(.dram)] | mean_error | percent)"],
  [$doc, "taking T_DRAM alone \($tried | map(. as $c | error(.dram)) | mean_error | percent)"]
| @tsv

# results: results/nvidia-h200/storage-model.json
# SPDX-License-Identifier: Apache-2.0
# The model compared with encoding over k = 1..45, m = 1..4, w = 4..8 (docs/storage-gpu/model.md): fitted on w = 4 and
# 8, tested on the others; cells of w = 8 and of the smallest w; mean errors by m and w; and what other terms for memory
# would give.
include "weft"; include "model";
def with($dram): .dram = $dram;
def errors($f): map(. as $c | production_time($f) as $t | $c | error($t));
def mean($f): if length == 0 then null else errors($f) | mean_error end;
def shown: if . then . * 100 | digits(2) else "" end;
# fitted on w = 4 and 8: constants and both errors
def told: [.[] | select(.w == 4 or .w == 8)] as $fitted | [.[] | select(.w > 4 and .w < 8)] as $tried
  | fit_time($fitted; 1 / 10) | . as $f | .fitted = .error | .tried = ($tried | mean($f)) | .cells = ($fitted | length) | .others = ($tried | length);
def middle: sort | .[length / 2 | floor];
[inputs] | if . == [] then "Not measured yet." else .[0] | . as $all
  | [measured_cells] as $cells | [$cells[] | select(.w > 0) | with(.mix)] as $crs
  | ($crs | told) as $f
  | ([$cells[] | .launched - .mix] | middle) as $t0
  | ([$cells[] | select(.w > 0) | with(.copied)] | told) as $copied
  | ([$cells[] | select(.w > 0) | with(.apart)] | told) as $apart
  | def cell($k; $m; $largest): [$crs[] | select(.k == $k and .m == $m)] | (if $largest then last else first end)
      | production_time($f) as $t | "\($t | three) / \(.us | three), \(error($t) * 100 | round + 0) %";
    heading("w = 8, k", "m = 1", "2", "3", "4", "smallest w: m = 1", "2", "3", "4"),
    (([$crs[].k] | unique[]) as $k | row($k, ((true, false) as $largest | (1, 2, 3, 4) as $m | cell($k; $m; $largest)))),
    "",
    heading("mean error, %", "w = 4 (fitted)", "5", "6", "7", "8 (fitted)", "RS, T_0 + T_DRAM"),
    ((1, 2, 3, 4) as $m | row("m = \($m)",
      ((4, 5, 6, 7, 8) as $w | [$crs[] | select(.m == $m and .w == $w)] | mean($f) | shown),
      ([$cells[] | select(.m == $m and .w == 0) | error($f.t0 + .mix)] | mean_error | shown))),
    "",
    "T_0 = \($f.t0 | digits(2)) us and rho = \($f.rho): mean error \($f.fitted | percent) where fitted (\($f.cells) cells), \($f.tried | percent) where tried (\($f.others)).",
    "Nothing fitted, T_0 = \($t0 | digits(2)) us as the same bytes take longer by a launch a stripe, and rho = 1: \([$crs[]] | mean({t0: $t0, rho: 1}) | percent) over all.",
    "T_DRAM by the rate of the copy, T_0 = \($copied.t0 | digits(2)) us and rho = \($copied.rho): \($copied.fitted | percent) and \($copied.tried | percent); by reading alone, \($cells[0].read / 1000 | three) TB/s, and writing alone, \($cells[0].write / 1000 | three): T_0 = \($apart.t0 | digits(2)) us and rho = \($apart.rho), \($apart.fitted | percent) and \($apart.tried | percent).",
    "Calls with 16 KiB shards, w = 8: \([$all | cases | select(.operation == "small" and .n == 1) | .n * .k / .gigabytes_per_second.input.median / 1000] | middle | digits(2)) us at k = 1, \([$all | cases | select(.operation == "small" and .n == 45) | .n * .k / .gigabytes_per_second.input.median / 1000] | middle | digits(2)) at k = 45."
  end

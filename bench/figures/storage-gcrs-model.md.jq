# results: results/nvidia-h200/storage-gcrs.json
# SPDX-License-Identifier: Apache-2.0
# A model of cuda-gcrs over k = 1..45, m = 1..4, w = 4..8 (docs/storage-gpu/model.md): fitted on w = 4 and 8, tested on
# the others; mean errors by m and w.
include "weft"; include "model";
input | . as $all
| [.groups[] | select(.title | test("for its model")) | .cases as $cases | $cases[] | select(.variant | test("resident")) | .n as $k
    | ([$cases[] | select(.operation == "ceiling" and .n == $k)][0]) as $copy
    | (.variant | capture("w=(?<w>[0-9]+)").w | tonumber) as $w
    | (.amount_per_call.input / 2) as $data
    | {k: $k, m, w: $w, us: ($data / .gigabytes_per_second.input.median / 1000), dram: ($data / $copy.gigabytes_per_second.input.median / 1000),
       s: ($data / 8 * $w / 1e6 / ($all.device.ceilings["lop3 and imad"] / 1e12))}] as $cells
| [$cells[] | select(.w == 4 or .w == 8)] as $fitted | [$cells[] | select(.w > 4 and .w < 8)] as $tried
# T = t0 + (a + b m) s: least squares of relative errors, t0 by search
| def fit($t0): (reduce $fitted[] as $c ({p: 0, q: 0, r: 0, u: 0, v: 0};
      ($c.s / $c.us) as $x | ($c.m * $c.s / $c.us) as $y | (1 - $t0 / $c.us) as $z
      | .p += $x * $x | .q += $x * $y | .r += $y * $y | .u += $x * $z | .v += $y * $z))
      | (.p * .r - .q * .q) as $d | {t0: $t0, a: ((.u * .r - .v * .q) / $d), b: ((.p * .v - .q * .u) / $d)};
  def time($f): [$f.t0 + ($f.a + $f.b * .m) * .s, .dram] | max;
  def mean($f): if length == 0 then null else map(. as $c | time($f) / $c.us - 1 | fabs) | add / length end;
  ([range(0; 41) | fit(.)] | map(. as $f | .error = ($fitted | mean($f))) | min_by(.error)) as $f
| heading("mean error, %", "w = 4 (fitted)", "5", "6", "7", "8 (fitted)"),
  ((1, 2, 3, 4) as $m | row("m = \($m)", ((4, 5, 6, 7, 8) as $w | [$cells[] | select(.m == $m and .w == $w)] | mean($f) | if . then . * 100 | digits(2) else "-" end))),
  "", "T_0 = \($f.t0) us, a = \($f.a | three) and b = \($f.b | three) slots; mean error \($fitted | mean($f) * 100 | digits(2)) % where fitted (\($fitted | length) cells), \($tried | mean($f) * 100 | digits(2)) % where tried (\($tried | length))."

# SPDX-License-Identifier: Apache-2.0
# A model of the CRS kernels in the spirit of G-CRS's, in our own terms (docs/storage-gpu/model.md), in microseconds:
#   T = T_0 + max(T_DRAM, T_SM) + (1 - rho) min(T_DRAM, T_SM)
# T_DRAM: the k + m shards at the rate of the copy in the same group. T_SM: lanes' issue slots at the measured rate of
# LOP3 and IMAD together, or LOP3s at their own. Constants are fitted on some cells and tested on the others.
include "weft";
def model_cells: . as $all | .groups[] | .cases as $cases
  | $cases[] | select(.operation == "encode" and (.variant | test(":w=[0-9]+:packet=(8|512)$")))
  | .n as $k | ($cases[] | select(.operation == "ceiling" and .n == $k and (.variant | startswith("device memory")))) as $copy
  | (.variant | capture(":w=(?<w>[0-9]+):") | .w | tonumber) as $w
  | {row, k: .n, m, w: $w, production: (.variant | startswith("cauchy_good")), data: (.n * .k),
     us: (.n * .k / .gigabytes_per_second.input.median / 1000),
     dram: (.n * .k / $copy.gigabytes_per_second.input.median / 1000),
     factors: (if .variant | test(":packet=512$") then .notes.factors else null end)}
  # a step: one output word's thread, or a thread with all outputs, takes in one input word of eight bytes
  | .steps = .data / 8 * .w / 1e6
  | .issue = $all.device.ceilings["lop3 and imad"] / 1e12 | .lop3 = $all.device.ceilings.lop3_lane_ops / 1e12;
def combined($t0; $rho; $sm): $t0 + ([.dram, $sm] | max) + (1 - $rho) * ([.dram, $sm] | min);
def error($t): $t / .us - 1;
def mean_error: map(fabs) | add / length;

# Published kernels. With one output per thread: $c slots per step and rho, from two cells in which arithmetic takes
# longer. With all outputs of a word in one thread: $a slots per step and $b per output; rho stays 1.
def slots_of($c; $m): $c * $m * .steps / .issue;
def fit_single($p; $q):
  ($p | .steps * .m / .issue) as $ps | ($q | .steps * .m / .issue) as $qs
  | (($p.us * $qs - $q.us * $ps) / ($p.dram * $qs - $q.dram * $ps)) as $x
  | ([[$x, 0] | max, 1] | min) as $share
  | {rho: (1 - $share), c: ((($p.us - $share * $p.dram) / $ps + ($q.us - $share * $q.dram) / $qs) / 2)};
def fit_all($p; $q):
  ($p | .us * .issue / .steps) as $ps | ($q | .us * .issue / .steps) as $qs
  | (($qs - $ps) / ($q.m - $p.m)) as $b | {rho: 1, b: $b, a: ($ps - $b * $p.m)};
def published_time($f): if $f.c then combined(0; $f.rho; slots_of($f.c; .m)) else combined(0; 1; ($f.a + $f.b * .m) * .steps / .issue) end;

# The production path: subset sums of four packets, eleven LOP3s, and one per output for eight packets; or steps of
# factors, chosen and counted as in storage_program.cu. T_0 and rho are found by search.
def by_entries: .k * (22 + 8 * .m);
def by_factors: .factors | if . then 5 * .products + 8 * .sums - 3 * .repeated else infinite end;
def takes_factors: .w == 8 and by_entries >= 3400 and 20 * by_factors <= 17 * by_entries and .factors.slots <= 29;
def production_sm:
  (if takes_factors then .data / 32 * by_factors / .k else .data / 4 * (11 / 4 + .m * .w / 8) end) / 1e6 / .lop3;
def production_time($f): production_sm as $sm | combined($f.t0; $f.rho; $sm);
def fit_time($cells; $step):
  [range(0; 4 / $step + 1) as $t | range(0; 51) as $r | {t0: ($t * $step), rho: ($r / 50)}
    | . as $f | .error = ([$cells[] | . as $cell | production_time($f) as $t | $cell | error($t)] | mean_error)] | min_by(.error);
def fit_production($cells): fit_time($cells; 1 / 4);

# Encoding by overlapping calls, with the time that memory takes in the same rounds for the same bytes of the same
# shards (gpu-model): read and written in one launch (mix), in a launch per stripe (launched), at the rate of the copy,
# and at the rates of reading alone and writing alone. w = 0: RS.
def measured_cells: . as $all | .groups[] | select(.title | startswith("encoding, ")) | .cases as $cases
  | def mixed($k; $m; $launched): $cases[] | select(.row == "mix" and .n == $k and .m == $m and (.variant | endswith(" a stripe")) == $launched)
      | .gigabytes_per_second;
    mixed(8; 0; false).input.median as $read | mixed(0; 8; false).output.median as $write
  | ($cases[] | select(.row == "copy") | .gigabytes_per_second.input.median * (.n + .m) / .n) as $copy
  | $cases[] | select(.operation == "encode") | .n as $k | .m as $m
  | {k: $k, m: $m, w: ((.variant | capture(":w=(?<w>[0-9]+):") | .w | tonumber) // 0), data: (.n * .k), factors: .notes.factors, $read, $write,
     us: (.n * .k / .gigabytes_per_second.input.median / 1000),
     mix: (.n * .k / mixed($k; $m; false).input.median / 1000),
     launched: (.n * .k / mixed($k; $m; true).input.median / 1000),
     copied: ((.n + .m) * .k / $copy / 1000),
     apart: ((.n / $read + .m / $write) * .k / 1000)}
  | .lop3 = $all.device.ceilings.lop3_lane_ops / 1e12;

# Where arithmetic is shorter: T = T_0 + k shards / read + m shards / write, by least squares of relative errors.
def hides: .m <= 8;
def determinant: .[0][0] * (.[1][1] * .[2][2] - .[1][2] * .[2][1]) - .[0][1] * (.[1][0] * .[2][2] - .[1][2] * .[2][0])
  + .[0][2] * (.[1][0] * .[2][1] - .[1][1] * .[2][0]);
def terms: [1, .data / 1e6, .data / .k * .m / 1e6];
def fit_apart($cells): [$cells[] | .us as $us | terms | map(. / $us)] as $x
  | [range(3) as $i | [range(3) as $j | [$x[] | .[$i] * .[$j]] | add]] as $a | [range(3) as $i | [$x[] | .[$i]] | add] as $b
  | [range(3) as $c | [range(3) as $i | [range(3) as $j | if $j == $c then $b[$i] else $a[$i][$j] end]] | determinant / ($a | determinant)]
  | {t0: .[0], read: (1 / .[1]), write: (1 / .[2])};
def apart_time($f): terms | $f.t0 + .[1] / $f.read + .[2] / $f.write;

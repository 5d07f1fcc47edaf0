# results: results/nvidia-h200/storage-gcrs.json
# SPDX-License-Identifier: Apache-2.0
# How much of the shorter of memory accesses and arithmetic hides behind the longer: rho of G-CRS, for rounds of LOP3s.
include "weft";
def us: .amount_per_call.input / .gigabytes_per_second.input.median / 1000 / 4;
input | [cases | select(.operation == "overlap")] as $c
| ([$c[] | select(.n == 0)][0] | us) as $memory
| heading("r", "memory alone, us", "arithmetic alone, us", "both, us", "rho"),
  ($c[] | select(.n > 0 and (.variant | test("without") | not)) as $both
  | ([$c[] | select(.n == $both.n and (.variant | test("without")))][0] | us) as $a | ($both | us) as $t
  | (1 - ($t - ([$a, $memory] | max)) / ([$a, $memory] | min)) as $rho
  | row("\($both.n)", ($memory | three), ($a | three), ($t | three), ($rho | digits(2))))

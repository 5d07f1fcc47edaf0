# results: results/amd-epyc-family-26-model-2-stepping-1/rlnc-libraries.json
# SPDX-License-Identifier: Apache-2.0
# weft and other RLNC libraries on one core, in the same rounds.
include "weft";
def rate($operation; $row): [.cases[] | select(.operation == $operation and .row == $row)][0] | coded | spread | with_spread;
def times($what; $peer): [.ratios[] | select(.name == "\($what): best row / \($peer)")][0]
  | if .separable then (spread | with_spread) else "not separable (\(.median | three); \(.min | three)..\(.max | three))" end;
[inputs][0].groups as $groups
| heading("n, k", "operation", "weft, gfni512", "rlnc 0.8.5", "weft / rlnc", "rlnc-simdx 1.3.1", "weft / rlnc-simdx"),
  ($groups[] as $group
  | ($group.cases[] | select(.operation == "encode-fresh" and .row == "gfni512")) as $shape
  | (["encode-fresh", "encode", "encode, fresh coefficients"], ["recode", "recode", "recode"],
     ["recode-one", "one recoded packet", "one recoded packet"], ["decode-deferred", "decode", "decode, packet by packet"])
    as [$operation, $name, $question]
  | $group | row("\($shape.n), \($shape.k | size)", $name, rate($operation; "gfni512"),
      (("rlnc 0.8.5", "rlnc-simdx 1.3.1") as $peer | rate($operation; $peer), times($question; $peer))))

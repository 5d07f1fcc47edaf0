# results: results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/rlnc-libraries.json
# SPDX-License-Identifier: Apache-2.0
# How many times as fast as other RLNC libraries weft is on one core of an Intel machine.
include "weft";
def times($what; $peer): [.ratios[] | select(.name == "\($what): best row / \($peer)")][0]
  | if .separable then (spread | with_spread) else "not separable (\(.median | three); \(.min | three)..\(.max | three))" end;
[inputs][0].groups as $groups
| heading("weft / library", "n, k", "encode", "recode", "one recoded packet", "decode"),
  (("rlnc 0.8.5", "rlnc-simdx 1.3.1") as $peer | $groups[] as $group
  | ($group.cases[] | select(.operation == "encode-fresh" and .row == "gfni512")) as $shape
  | $group | row($peer, "\($shape.n), \($shape.k | size)", times("encode, fresh coefficients"; $peer), times("recode"; $peer),
      times("one recoded packet"; $peer), times("decode, packet by packet"; $peer)))

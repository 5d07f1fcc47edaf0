# results: results/amd-epyc-family-26-model-2-stepping-1/rlnc.json
# SPDX-License-Identifier: Apache-2.0
# The codec on a core of a Zen 5, n = 128: rates, and the ratios measured in the same rounds.
include "weft";
def ratio($name): [.ratios[] | select(.name == $name)][0]
  | if .separable then (spread | with_spread) else "not separable (\(.median | three); \(.min | three)..\(.max | three))" end;
def one($operation; $threads): [.cases[] | select(.operation == $operation and .threads == $threads and .row != "isa-l" and .variant == "")][0]
  | coded | spread | with_spread;
[inputs][0] as $run
| [(1024, 4096, 16384) as $k | $run.groups[] | select(.title | startswith("n = 128, k = \($k);"))] as $groups
| heading("", "k = 1024", "4096", "16384"),
  ((["encode, coded GB/s", "encode", 1], ["with fresh coefficients", "encode-fresh", 1], ["with coefficients of seeds", "encode-seeded", 1],
    ["recode", "recode", 1], ["decode progressive, deferred", "decode-deferred", 1], ["decode batch", "decode-batch", 1],
    ["encode on two threads", "encode", 2]) as [$what, $operation, $threads] | row($what, ($groups[] | one($operation; $threads)))),
  ((["one coded packet / reading its segment", "rate of source bytes: one coded packet / read"],
    ["one recoded packet / reading", "rate of source bytes: one recoded packet / read"],
    ["best row / ISA-L 2.32, encode", "encode: best row / isa-l"],
    ["one coded packet, best row / ISA-L 2.32", "one coded packet: best row / isa-l"]) as [$what, $name] | row($what, ($groups[] | ratio($name))))

# results: results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/rlnc.json results/amd-epyc-family-25-model-17-stepping-1/rlnc.json results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/threads.json
# SPDX-License-Identifier: Apache-2.0
# The codec on a core of each machine, n = 128: encode's rate, and the ratios measured in the same rounds.
include "weft";
def group_of($k): .groups[] | select(.title | startswith("n = 128, k = \($k);"));
def ratio($name): [.ratios[] | select(.name == $name)][0]
  | if . == null then "" elif .separable then (spread | with_spread) else "not separable (\(.median | three); \(.min | three)..\(.max | three))" end;
def line($all; $name): [$all[] as $run | (1024, 4096, 16384) as $k | $run | group_of($k) | ratio($name)];
[inputs] as [$a, $b, $more] | [$a, $b] as $all
| heading("", "Intel, k = 1024", "4096", "16384", "AMD, k = 1024", "4096", "16384"),
  row("encode, coded GB/s", ($all[] as $run | (1024, 4096, 16384) as $k | $run | [group_of($k) | .cases[] | select(.operation == "encode" and .threads == 1 and .row != "isa-l")][0] | coded | spread | with_spread)),
  ((["decode progressive, deferred / encode, time per byte", "time per byte: decode progressive, deferred / encode"],
   ["decode batch / encode, time per byte", "time per byte: decode batch / encode"],
   ["many segments decoded / encode, time per byte", "time per byte: decode many segments / encode"],
   ["one coded packet / reading its segment", "rate of source bytes: one coded packet / read"],
   ["one recoded packet, through the recoder / reading", "rate of source bytes: one recoded packet / read"],
   ["two threads / one, encode", "encode: threads / one"],
   ["full block / partitioned block, two threads", "encode: full block / partitioned block"],
   ["best row / ISA-L 2.30, encode", "encode: best row / isa-l"]) as [$what, $name]
  | row($what, line($all; $name)[])),
  row("four threads / one, encode", ((1024, 4096, 16384) as $k | [$more | group_of($k) | .ratios[] | select(.name == "encode: threads / one" and (.of | test("t=4$")))][0] | spread | with_spread), "", "", "")

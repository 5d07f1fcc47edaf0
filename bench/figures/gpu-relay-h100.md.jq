# results: results/nvidia-h100-80gb-hbm3/relay-before.json results/nvidia-h100-80gb-hbm3/relay.json
# SPDX-License-Identifier: Apache-2.0
# Arrivals at a relay on an H100's host, before and after elimination began to defer columns.
include "weft";
def one($n; $variant): [.groups[] | select(.title | startswith("relay, n = \($n),")) | .cases[] | select(.variant == $variant)][0] | coded | spread | with_spread;
[inputs] as [$before, $now]
| heading("GB/s of payloads", "128, 4096, before", "now", "64, 1024, before", "now"),
  ((["arrivals", "packets from pinned memory to decoders on the device"],
    ["arrivals and as many recoded packets", "packets in, as many recoded packets out"]) as [$what, $variant]
   | row($what, ((128, 64) as $n | ($before, $now) | one($n; $variant))))

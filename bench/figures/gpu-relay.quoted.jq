# results: results/nvidia-h200/gpu-relay.json results/nvidia-h200/gpu.json
# SPDX-License-Identifier: Apache-2.0
# What documents say in sentences about packets arriving at a relay, in both runs.
include "weft";
def arrivals($n): [cases | select(.operation == "relay" and .n == $n and .variant == "packets from pinned memory to decoders on the device")][0];
def on_device: [cases | select(.operation == "relay" and .n == 128 and .variant == "eliminated on the device, payloads and all")][0] | coded.median;
def millions: coded.median * 1e3 / .k;
[inputs] as [$first, $later]
| "docs/gpu/host.md" as $doc
| [$doc, ([(128, 64) as $n | $later | arrivals($n)]
    | "had \(map(coded | spread | with_spread) | join(" and ")) GB/s, \(map(millions | digits(2)) | join(" and ")) million packets per second")],
  [$doc, ($first | "| arrivals, parsed, eliminated and landed | \([arrivals(128) | coded | .median, .min, .max | digits(3)] | "\(.[0]) (\(.[1])..\(.[2]))"), \(arrivals(128) | millions | digits(2)) million/s")],
  [$doc, ($later | "(\((on_device / (arrivals(128) | coded.median)) | digits(2)) in the later run)")],
  ["docs/gpu.md", ([$first, $later | arrivals(128, 64) | millions | round]
    | "eliminates \(min) to \(max) million of them per second")]
| @tsv

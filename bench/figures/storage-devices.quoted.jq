# results: results/nvidia-h200/storage-2-devices.json results/nvidia-h200/storage-devices.json
# SPDX-License-Identifier: Apache-2.0
# What docs/storage-gpu/host.md says in sentences about several GPUs.
include "weft";
def asked($name): [.groups[].ratios[] | select(.name == $name) | spread | with_spread];
def by_stripes: [.groups[] | [.cases[] | select(.variant == "cauchy, pinned, 2 devices, by stripes")][0]];
input as $two | input as $four
| "docs/storage-gpu/host.md" as $doc
| ($four | asked("2 devices / one, by stripes")) as $a
| ($four | asked("4 devices / one, by stripes")) as $b
| ($two | asked("2 devices / one, by stripes")) as $c
| ($two | by_stripes) as $rates
| [$doc, "By stripes two devices have \($a[0]) and \($a[1]) times the rate of one, four \($b[0]) and \($b[1])"],
  [$doc, "On another host at \($two.commit[0:7]) (storage-2-devices.json) two have \($rates[0].gigabytes_per_second.input | spread | with_spread) and \($rates[1].gigabytes_per_second.input | spread | with_spread), \($c[0]) and \($c[1]) times one"]
| @tsv

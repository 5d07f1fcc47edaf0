# results: results/nvidia-h200/storage.json
# SPDX-License-Identifier: Apache-2.0
# Stripes from and to pinned memory: GB/s of data, compared with the bus in both directions at once.
include "weft"; include "storage_tables";
def bound($name): [.[] | select(.variant == $name)][0].gigabytes_per_second.input.median;
def share: .share_of_ceiling | "\(.median | percent) (\(.min | percent)..\(.max | percent))";
input | heading("pinned, 64 MiB shards", "RS", "of k in and m out at once", "CRS", "of it", "k in and m out at once", "one engine, k in then m out"),
(.groups[] | select(.title | startswith("host to host")) | .cases as $c
  | ([$c[] | select(.variant == "cauchy")][0]) as $rs | ([$c[] | select(.variant | startswith("cauchy_good"))][0]) as $crs
  | row("\($rs.n) + \($rs.m)", ($rs | data_rate | with_spread), ($rs | share), ($crs | data_rate | with_spread), ($crs | share),
      ($c | bound("PCIe, k in and m out at once") | three), ($c | bound("PCIe, one engine for k in and m out") | three)))

# results: results/nvidia-h200/storage-devices.json
# SPDX-License-Identifier: Apache-2.0
# One code on several devices, GB/s of data from and to pinned memory, and the share of plain copies.
include "weft";
def data_in: (.gigabytes_per_second.input | spread | with_spread) + (if .share_of_ceiling then ", \(.share_of_ceiling.median | percent)" else "" end);
input | [.groups[]] as $groups
| def cell($k; $count; $split): [$groups[].cases[] | select(.n == $k and .variant == "cauchy, pinned, \($count) device\(if $count > 1 then "s" else "" end), by \($split)")][0] | if . then data_in else "" end;
heading("devices", "10 + 4: by stripes", "by rows", "8 + 8: by stripes", "by rows"),
((1, 2, 4) as $count | select(cell(10; $count; "stripes") != "") | row("\($count)", cell(10; $count; "stripes"), cell(10; $count; "rows"), cell(8; $count; "stripes"), cell(8; $count; "rows")))

# results: results/nvidia-h200/storage.json
# SPDX-License-Identifier: Apache-2.0
# m = 16: shares of the copy among other cases, after a rest, and after 0.1 s of the same calls; with clocks and power.
include "weft"; include "storage_tables";
def clock: .notes | (if .mhz_least == .mhz_most then "" else "\(.mhz_least).." end) + "\(.mhz_most) MHz, \(.watts_most) W" + (if ((.throttle_reasons / 4 | floor) % 2) == 1 then ", capped" else "" end);
input as $all
| heading("k + 16", "among others", "rested", "sustained", "clock and power, rested", "sustained"),
  ((["RS over", "RS"], ["CRS, smallest w", "CRS, smallest w"], ["CRS, w = 8", "CRS, w = 8"]) as [$title, $name]
    | [$all | resident($title)] as $cases
    | ([$cases[] | select(.operation == "encode rested") | .n] | unique[]) as $k
    | ($cases | at("encode rested"; $k; 16)) as $rested | ($cases | at("encode sustained"; $k; 16)) as $sustained
    | row("\($name), \($k) + 16", ($cases | at("encode"; $k; 16) | copy_share($cases; $k; 16)),
        ($rested | copy_share($cases; $k; 16)), ($sustained | copy_share($cases; $k; 16)), ($rested | clock), ($sustained | clock)))

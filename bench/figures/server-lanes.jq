# results: results/nvidia-h200/server.json
# SPDX-License-Identifier: Apache-2.0
# The streaming server with the CPU's lane, the GPU's and both, by requests in flight; and how many peers at 96 KB/s.
include "weft";
[inputs][0] as $server
| ([128, 64][] as $n | [$server.server.closed_loop[] | select(.n == $n)] as $loops
    | ["host", "device", "host + device"][] as $lanes | block("\($lanes | gsub(" "; ""))-\($n)";
        ([$loops[] | .in_flight_most] | unique | sort) as $flights
        | ($flights | keys[]) as $i | $loops[] | select(.in_flight_most == $flights[$i] and .lanes == $lanes)
        | [$i, $flights[$i]] + (.gigabytes_per_second | spread) + [.p50_us, .p99_us]))

# results: results/nvidia-h200/server.json results/nvidia-h200/tables.jsonl figures/published.json
# SPDX-License-Identifier: Apache-2.0
# Peers that one GPU serves at 96 KB/s (768 kbit/s), n = 128, k = 4096: coded bytes per second over 96,000.
include "weft";
[inputs] as $all
| ([$all[] | select(.points)][0]) as $published
| ([$all[] | select(.server)][0]) as $server
| block("ours";
    (["cuda-table-5", "cuda-table-1", "cuda-loop"][] as $row | [$all[] | select(.kind == "encode" and .name == $row and .m == 8448 and .n == 128 and .k == 4096)][0]
      | ["\($row), resident"] + (line_spread | map(. * 1e9 / 96000))),
    (["device", "host + device"][] as $lanes | [$server.server.closed_loop[] | select(.n == 128 and .lanes == $lanes)]
      | max_by(.in_flight_most) | ["server over PCIe" + (if $lanes == "device" then "" else ", CPU too" end)] + (.gigabytes_per_second | spread | map(. * 1e9 / 96000))),
    ($server | cases | select(.operation == "encode" and .n == 128) | ["\(.row), resident"] + (coded | spread | map(. * 1e9 / 96000)))),
  block("published"; (["xnc-peers-loop", "xnc-peers-table-1", "xnc-peers-table-5"][] as $id | published($published; $id)
    | ["\(.device), \(.technique)", .peers_at_96_kBps]))

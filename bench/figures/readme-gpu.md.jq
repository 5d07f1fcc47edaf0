# results: results/nvidia-h200/gpu.json results/nvidia-h200/storage.json results/nvidia-h200/server.json
# SPDX-License-Identifier: Apache-2.0
# The README's figures for one GPU.
include "weft";
[inputs] as [$gpu, $storage, $server]
| def at($operation; $variant): [$gpu | cases | select(.operation == $operation and .variant == $variant and .n == 128)];
  def rate: coded | spread | with_spread;
  def rs($k; $m): [$storage.groups[] | select(.title | startswith("RS over")) | .cases[] | select(.operation == "encode" and .n == $k and .m == $m)][0] | data_rate | with_spread;
  heading("", "GB/s", ""),
  row("encode, 177,333 blocks of one segment, kernel, coded", (at("encode"; "kernel")[] | select(.m == 177333) | rate), "binary tensor product; the card's power limit decides, 747 to 814 in other runs, see docs/gpu.md"),
  row("encode, 128 blocks of each of 512 segments, preprocessing counted", (at("encode, many segments"; "preprocessing counted")[0] | rate), ""),
  row("decode, 2,048 segments, inversion and preprocessing counted", ([at("decode, many segments"; "inversion and preprocessing counted")[] | select(.k == 4096)] | max_by(coded.median) | rate), "\([at("decode, many segments"; "inversion and preprocessing counted")[] | select(.k == 16384)] | max_by(coded.median) | rate) at k = 16 KiB"),
  row("encode from and to pinned memory", (at("encode, many segments"; "pinned to pinned, both ways at once")[] | select(.k == 4096) | rate), "\(at("encode, many segments"; "pinned to pinned, both ways at once")[] | select(.k == 4096) | .share_of_ceiling.median | percent) of plain copies both ways at once"),
  row("streaming server, 512 requests in flight", ($server.server.closed_loop[] | select(.lanes == "host + device" and .n == 128 and .in_flight_most == 512) | .gigabytes_per_second | spread | with_spread), "with the host's cores, p99 \($server.server.closed_loop[] | select(.lanes == "host + device" and .n == 128 and .in_flight_most == 512) | .p99_us / 1000 | three) ms, enough for \($server.server.closed_loop[] | select(.lanes == "host + device" and .n == 128 and .in_flight_most == 512) | .gigabytes_per_second.median * 1e9 / 96000 / 1000 | round),000 peers at 96 KB/s"),
  row("RS (10, 4) encode, 10 MiB shards, data", rs(10; 4), "(16, 4) \(rs(16; 4)), (32, 4) \(rs(32; 4))")

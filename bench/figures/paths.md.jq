# results: results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/rlnc.json results/amd-epyc-family-25-model-17-stepping-1/rlnc.json results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/storage-gfni.json results/amd-epyc-family-25-model-17-stepping-1/storage.json results/nvidia-h200/gpu.json results/nvidia-h200/tensor.jsonl results/nvidia-h200/storage.json results/nvidia-h200/server.json
# SPDX-License-Identifier: Apache-2.0
# Each path: what was measured, its bound and its share of that; the text says what limits it.
include "weft";
def median_of: sort | .[length / 2 | floor];
[inputs] as $all
| def file($cpu; $command; $device): [$all[] | select(.command? and (.command[2]? == $command) and (.machine.cpu | startswith($cpu)) and ((.device != null) == $device))][0];
  file("Intel"; "rlnc"; false) as $intel | file("AMD"; "rlnc"; false) as $amd
| file("Intel"; "storage"; false) as $storage | file("AMD"; "storage"; false) as $storage_amd
| file("Intel"; "storage"; true) as $storage_gpu | file("Intel"; "gpu"; true) as $gpu
| ([$all[] | select(.server)][0]) as $server
| [$all[] | select(.kind)] as $tensor
| ([$tensor[] | select(.kind == "ceiling" and .name == "b1 wgmma")][0].T_per_s * 1000 / 64 / 128) as $b1
| def at($k): .groups[] | select(.title | startswith("n = 128, k = \($k);"));
  def asked($name): [.ratios[] | select(.name == $name)][0] | spread | with_spread;
  def share: .share_of_ceiling | (spread | map(. * 100) | with_spread) + " %" + (if .separable then "" else "*" end);
  def own($row): [.cases[] | select(.row == $row and .operation == "encode" and .threads == 1)][0];
  def stripe($title; $row; $machine): .groups[] | select(.title == $title) | [.cases[] | select(.row == $row and .operation == "encode" and .variant == "cauchy")][0]
    | row("RS \($title), \($machine)", "\(data_rate | with_spread) GB/s of data", (if $row == "avx2" then "two shuffles and XORs, or load and store" else "GF2P8AFFINEQB, or load and store" end), share,
        (if .m >= 8 then "by transforms; rows come from the third cache" elif $row == "avx2" then "splitting into nibbles, 16 registers" else "at its bound" end));
  def of_gpu($operation; $variant; $m): [$gpu | cases | select(.operation == $operation and .variant == $variant and .n == 128 and .k == 4096 and ($m == 0 or .m == $m))];
  def relay_share($variant; $ceiling): [$gpu.groups[] | select(.title | startswith("relay, n = 128")) | .cases] [0]
    | ([.[] | select(.variant == $variant)][0] | coded.median) as $rate | ([.[] | select(.variant == $ceiling)][0] | coded.median) as $most | [$rate, $most];
  def shares($title; $m): [$storage_gpu.groups[] | select(.title | startswith($title)) | .cases as $c | $c[] | select(.operation == "encode" and .m == $m)
    | . as $e | [$c[] | select(.operation == "ceiling" and .n == $e.n and .m == $m)][0] | ($e | data_rate[0]) / .gigabytes_per_second.input.median];
  heading("path", "measured", "bound", "share", "what limits it now"),
  ($intel | at(4096) | own("gfni512") as $e | row("encode, Intel core, n = 128, k = 4096", "\($e | coded | spread | with_spread) GB/s coded", "GF2P8AFFINEQB and XOR in registers", ($e | share), "at its bound")),
  ($amd | at(4096) | own("avx2") as $e | row("the same, AMD core (avx2)", "\($e | coded | spread | with_spread)", "two shuffles and two XORs", ($e | share), "16 registers; its ports do not start four instructions in every cycle")),
  ($intel | at(4096) | row("decode, progressive, Intel", "\(asked("time per byte: decode progressive, deferred / encode")) times encode's time", "encode", "", "elimination of the coefficients, packet by packet")),
  ($intel | at(4096) | row("decode, batch, Intel", "\(asked("time per byte: decode batch / encode")) times encode's time*", "encode", "", "one inversion of n x n")),
  ($intel | at(4096) | row("one recoded packet, Intel", "", "reading the segment", (asked("rate of source bytes: one recoded packet / read") + "*"), "the second cache and one affine port at once")),
  ($intel | at(4096) | row("two threads, Intel", "", "twice one", (asked("encode: threads / one") + " times one"), "at its bound")),
  ($storage | stripe("(10, 4), 64 KiB shards"; "gfni512"; "Intel"), stripe("(32, 8), 64 KiB shards"; "gfni512"; "Intel")),
  ($storage_amd | stripe("(10, 4), 64 KiB shards"; "avx2"; "AMD"), stripe("(6, 3), 64 KiB shards"; "avx2"; "AMD")),
  ([$tensor[] | select(.kind == "encode" and .row == "cuda-b1" and .m == 177333)][0] | row("encode live, H200, 177,333 blocks", "\(line_spread | with_spread) GB/s coded", "binary tensor cores", (.GBps / $b1 | percent), "the power limit lowers the clock; issue slots of the epilogue")),
  (of_gpu("encode"; "kernel"; 177333)[0] | row("the same through the library's bench", (coded | spread | with_spread), "the same, of another run", (coded.median / $b1 | percent), "the same")),
  ([$tensor[] | select(.kind == "encode" and .row == "cuda-b1" and .count == 2112)][0] | row("encode, 2,112 segments", (line_spread | with_spread), "the same", (.GBps / $b1 | percent), "the same, and the start of each segment")),
  ([$tensor[] | select(.kind == "encode+prepare" and .row == "cuda-b1" and .count == 2112)][0] | row("the same, preprocessing counted", (line_spread | with_spread), "the same", (.GBps / $b1 | percent), "preparing reads and writes the segments once more")),
  (of_gpu("decode, many segments"; "inversion and preprocessing counted"; 0) | max_by(coded.median) | row("decode, 2,048 segments, k = 4096", "\(coded | spread | with_spread) GB/s", "the product, preprocessing counted", (coded.median / (of_gpu("encode, many segments"; "preprocessing counted"; 0)[0] | coded.median) | percent), "a batch of inversions, whose limiter was not found")),
  (of_gpu("encode, many segments"; "pinned to pinned, both ways at once"; 0)[0] | row("encode, pinned to pinned", "\(coded | spread | with_spread)", "copies both ways at once", share, "first and last piece overlap with nothing")),
  (of_gpu("decode, many segments"; "pinned to pinned"; 0) | max_by(coded.median) | row("decode, pinned to pinned, 2,048 segments", "\(coded | spread | with_spread)", "the same", share, "matrices are 3 % more to carry")),
  (relay_share("packets from pinned memory to decoders on the device"; "pinned to device") | row("relay, packets arriving", "\(.[0] | three) GB/s", "copy to the device", (.[0] / .[1] | percent), "headers parsed by the host, 6 to 9 million a second")),
  (relay_share("recoded, to pinned memory with vectors"; "device to pinned") | row("relay, recoded packets leaving", "\(.[0] | three) GB/s", "copy from the device", (.[0] / .[1] | percent), "vectors travel in front")),
  ($server.server.together[] | select(.in_flight != 1) | row("GPU and CPU together, \(.serving | split(",")[0:3] | join(",")), \(.in_flight) in flight", "", "sum of both alone", (spread | with_spread), (if .median < 0.9 then "too few requests to split" else "at its bound" end))),
  ((["RS over", "RS"], ["CRS, smallest", "CRS, smallest w"], ["CRS, w = 8", "CRS, w = 8"]) as [$title, $name] | (2, 4, 8, 16) as $m
    | shares($title; $m) as $s | row("\($name), m = \($m), H200, resident", "k = \(if $m > 2 then $m else 2 end) to 45", "copy in device memory", ("median \($s | median_of | percent), \($s | min | percent) to \($s | max | percent)"),
      (if $m < 16 then "a call's first loads and last stores, most at small k" else "the card's power limit" end))),
  ($all[] | select(.device? and .groups?) | .groups[] | select(.title | startswith("host to host")) | .cases as $c | [$c[] | select(.variant == "cauchy")][0]
    | row("RS \(.n) + \(.m), pinned to pinned", "\(data_rate | with_spread) GB/s of data", "k in and m out at once", (data_rate[0] / ([$c[] | select(.variant == "PCIe, k in and m out at once")][0].gigabytes_per_second.input.median) | percent), "first and last piece overlap with nothing"))

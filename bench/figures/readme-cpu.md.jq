# results: results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/rlnc.json results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/storage-gfni.json
# SPDX-License-Identifier: Apache-2.0
# The README's figures for one core.
include "weft";
[inputs] as [$rlnc, $storage]
| ([$rlnc.groups[] | select(.title | startswith("n = 128, k = 4096;"))][0]) as $group
| def one($operation; $threads): [$group.cases[] | select(.operation == $operation and .threads == $threads and .variant == "" and .row != "isa-l")][0];
  def asked($name): [$group.ratios[] | select(.name == $name)][0];
  def ratio($of): (spread | with_spread) + $of + (if .separable then "" else ", not separable from 1" end);
  def rs($k; $m; $row): [$storage | cases | select(.operation == "encode" and .threads == 1 and .n == $k and .m == $m and .k == 65536 and .row == $row and .variant == "cauchy")][0] | data_rate | with_spread;
  heading("", "GB/s", ""),
  row("encode, 128 blocks a call, coded", (one("encode"; 1) | coded | spread | with_spread), "\(one("encode"; 1).share_of_ceiling | spread | map(. * 100) | with_spread) % of what a register-only loop of GF2P8AFFINEQB + XOR reaches in the same run; \(asked("encode: best row / isa-l") | ratio(" times ISA-L 2.30"))"),
  row("decode, progressive", (one("decode-deferred"; 1) | coded | spread | with_spread), "\(asked("time per byte: decode progressive, deferred / encode") | ratio(" times the time of encoding"))"),
  row("decode, batch", (one("decode-batch"; 1) | coded | spread | with_spread), "\(asked("time per byte: decode batch / encode") | ratio(" times the time of encoding"))"),
  row("encode on two threads, calls back to back", (one("encode"; 2) | coded | spread | with_spread), "\(asked("encode: threads / one") | ratio(" times one")); a lone call after a pause gains less"),
  row("one recoded packet on demand, segment bytes read", (one("recode-one"; 1) | .gigabytes_per_second.input | spread | with_spread), "\(asked("rate of source bytes: one recoded packet / read") | ratio(" of the core's read rate"))"),
  (([10, 4], [32, 8]) as [$k, $m] | row("RS (\($k), \($m)) encode, 64 KiB shards, data", rs($k; $m; "gfni512"), "ISA-L 2.32 \(rs($k; $m; "isa-l 2.32.1")), klauspost 1.12 \(rs($k; $m; "klauspost v1.12.4"))"))

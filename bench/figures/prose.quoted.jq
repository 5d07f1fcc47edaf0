# results: results/amd-epyc-family-25-model-17-stepping-1/mul.json results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/mul.json results/amd-epyc-family-25-model-17-stepping-1/storage.json results/amd-epyc-family-25-model-17-stepping-1/cluster-2-4.json results/amd-epyc-family-25-model-17-stepping-1/cluster-6-8.json results/nvidia-h200/gpu-devices.json results/amd-epyc-family-25-model-17-stepping-1/banks.json
# SPDX-License-Identifier: Apache-2.0
# What documents say about the results in sentences: the document, and words that it must contain.
include "weft";
def counted($row; $m): [$bounds | split("\n")[] | split(" ") | select(.[0] == "counted" and .[2] == $row and .[3] == $m) | .[6] | tonumber][0] / 1000;
def rate($row): [cases | select(.operation == "gemm" and .row == $row and .k == 4096 and .variant == "")][0] | products.median;
def asked($name): [.groups[].ratios[] | select(.name == $name)][-1];
def at($layout; $lanes): [cases | select(.layout == $layout and .lanes == $lanes)][0].conflicts_per_lookup | sort | .[length / 2 | floor];
def median_of: sort | .[length / 2 | floor];
[inputs] as [$amd, $intel, $storage, $cluster2, $cluster6, $devices, $banks]
| "docs/performance/multiplication.md" as $doc
| [$doc, "differ by \((($amd | rate("avx2") / rate("mul-peasant")) / 10 | round) * 10) times (AMD) and \((($intel | rate("gfni512") / rate("mul-peasant")) / 1000 | round)),000 times (Intel)"],
  [$doc, "\(counted("avx2"; "16") | digits(2)) instructions a product against \(counted("loop-avx2"; "16") | three) with AVX2"],
  [$doc, "The loop is slower by a factor of \($amd | rate("avx2") / rate("loop-avx2") | digits(2)) (AMD) and \($intel | rate("avx2") / rate("loop-avx2") | digits(2)) (Intel)"],
  [$doc, "each byte, \(counted("loop-word64"; "16") | three) and \(counted("logdomain"; "16") | digits(2)). The lookups are \($amd | rate("logdomain") / rate("loop-word64") | digits(2)) (AMD) and \($intel | rate("logdomain") / rate("loop-word64") | digits(2)) (Intel)"],
  [$doc, "modulo \(counted("mul-exp-modulo"; "16") | three), AND and shift \(counted("mul-exp-fold"; "16") | three), doubled table \(counted("mul-exp-doubled"; "16") | three), no branch \(counted("mul-exp-branch-free"; "16") | three)"],
  [$doc, "the table is \($intel | asked("table / loop: best table (32 copies of exp, log domain) / loop").median | digits(2)) times the loop"],
  [$doc, "In registers (PRMT on nibbles) it is \($intel | asked("table / loop: nibble tables in registers (PRMT) / loop").median | digits(2)) times"],
  [$doc, "still \($intel | asked("binary tensor product / best without tensor cores").median | digits(1)) times the best table"],
  [$doc, "With 32 of both it would be \($banks | at("words"; 32) | three)"],
  [$doc, "table-5 (\($banks | at("words x 8"; 16) | digits(2))) beats one table of bytes (\($banks | at("bytes"; 16) | digits(2))), as the paper found. For the H200 bytes (\($banks | at("bytes"; 32) | digits(2))) beat table-5 (\($banks | at("words x 8"; 32) | digits(2)))"],
  ["docs/performance/storage-cpu.md", "updating two parities is at \([$storage.groups[] | select(.title | startswith("(10, 2), 64 KiB shards: one")) | .ratios[] | select(.name == "add delta: weft / isa-l 2.30")][0] | spread | with_spread) of ISA-L 2.30"],
  ["docs/performance/papers.md", ([$cluster2, $cluster6 | cases | (.coding_seconds_per_call | median_of) / (.seconds_per_call | median_of) * 100] | "`weft store` is \(min | round) to \(max | round) % of the total")],
  ["README.md", ([$devices.groups[].ratios[] | spread | with_spread] | "Two and four devices encode \(.[0]) and \(.[1]) times as fast as one")]
| @tsv

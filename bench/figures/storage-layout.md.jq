# results: results/amd-epyc-family-25-model-17-stepping-1/storage-layout.json
# SPDX-License-Identifier: Apache-2.0
# RS on one core, shards side by side and weft_code_stride apart.
include "weft";
def group($shape): [.groups[] | select(.cases | any(.operation == "encode" and [.n, .m, .k] == $shape))][0];
def ours($operation; $variant): [.cases[] | select(.operation == $operation and .row == "gfni512" and .variant == $variant)][0] | data_rate | with_spread;
def ratio($name): [.ratios[] | select(.name | startswith($name))][0] | spread | with_spread;
input
| heading("", "encode: side by side", "apart", "recover: side by side", "apart", "ISA-L, apart / side by side: encode", "recover"),
  ((4096, 16384, 65536, 1048576) as $bytes
  | ([4,2], [6,3], [10,4], [16,4], [24,6], [32,8], [16,16], [48,12], [64,16]) as [$k, $m]
  | group([$k, $m, $bytes])
  | row("(\($k), \($m)), \($bytes | size)", ours("encode"; "cauchy"), ours("encode"; "cauchy, apart"), ours("recover"; "cauchy"),
      ours("recover"; "cauchy, apart"), ratio("encode: isa-l"), ratio("recover: isa-l")))

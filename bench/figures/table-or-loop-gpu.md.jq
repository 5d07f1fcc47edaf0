# results: results/nvidia-h200/tables.jsonl results/nvidia-h200/tensor.jsonl
# SPDX-License-Identifier: Apache-2.0
# Each technique on the H200: products per second, the unit that it uses most, and how many operations of that unit its
# products take, as counted in docs/gpu/tables.md. The bound is that unit's ceiling in the same run.
include "weft";
[inputs] as $all
| (reduce ($all[] | select(.kind == "ceiling")) as $c ({}; .[$c.name] = (.[$c.name] // $c.T_per_s))) as $ceilings
| def line($name): [$all[] | select(.kind == "encode" and .count == 1 and .n == 128 and .k == 4096 and line_name == $name and (.m == 8448 or .m == 98304))][0];
  heading("kind", "row", "products, T/s (and coded GB/s)", "what a product takes", "its bound, T/s", "share"),
  (["bit matrix, tensor cores", "cuda-b1-wgmma", "64 bit products", "b1 wgmma", 64],
   ["bit matrix, tensor cores", "cuda-b1-mma", "64 bit products", "b1 mma.sync", 64],
   ["table in registers", "cuda-nibble-prmt", "1.17 PRMT or LOP3", "prmt_lane_ops", 1.17],
   ["table", "cuda-table-32", "1 lookup", "shared_lookups_conflict_free", 1],
   ["loop", "cuda-loop", "2.88 LOP3", "lop3_lane_ops", 2.88],
   ["table", "cuda-table-2", "1 lookup of 2 turns", "shared_lookups_conflict_free", 2],
   ["table", "cuda-table-3", "1 lookup of 2 turns", "shared_lookups_conflict_free", 2],
   ["table", "cuda-table-bytes16", "1 lookup of 2 turns", "shared_lookups_conflict_free", 2],
   ["table", "cuda-table-1", "1 lookup of 2 turns, and a test", "shared_lookups_conflict_free", 2],
   ["table", "cuda-table-5", "1 lookup of 2.9 turns", "shared_lookups_conflict_free", 2.9],
   ["table", "cuda-table-0", "2.1 lookups of 2 turns", "shared_lookups_conflict_free", 4.25],
   ["table", "cuda-logexp-global", "2.1 lookups in the first cache", "global_lookups_cached", 2.12],
   ["table", "cuda-table-4", "1 texture lookup", "texture_lookups", 1],
   ["table", "cuda-logexp-texture", "2.1 texture lookups", "texture_lookups", 2.12]) as [$kind, $name, $what, $ceiling, $each]
  | line($name) as $line | ($ceilings[$ceiling] / $each) as $bound
  | row($kind, $name, "\($line.TMACps | three) (\($line | line_spread | with_spread))", $what, ($bound | three), ($line.TMACps / $bound | percent))

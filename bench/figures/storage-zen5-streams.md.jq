# results: results/amd-epyc-family-26-model-2-stepping-1/storage-streams-before.json results/amd-epyc-family-26-model-2-stepping-1/storage-streams.json
# SPDX-License-Identifier: Apache-2.0
# RS on one core of a Zen 5: sources in groups and loops, and more at once, in straight code from far caches.
include "weft";
def group($run; $shape): [$run.groups[] | select(.cases | any(.operation == "encode" and [.n, .m, .k] == $shape))][0];
def cell($run; $operation; $shape): [group($run; $shape).cases[] | select(.operation == $operation and .row == "gfni512" and .variant == "cauchy")][0] | data_rate | with_spread;
def asked($run; $shape): [group($run; $shape).ratios[] | select(.name == "recover, inversion counted in / encode")][0].median | three;
def kib: if . >= 1048576 then "\(. / 1048576) MiB" else "\(. / 1024) KiB" end;
[inputs] as [$old, $new]
| heading("", "encode: before", "since", "recover: before", "since", "recover / encode: before", "since"),
  ((16384, 65536, 1048576, 4194304) as $bytes
  | ([10,4], [16,4], [20,4], [24,6], [16,8], [24,8], [32,8], [64,16]) as [$k, $m]
  | select($bytes >= 1048576 or ($k > 16 and $k < 64) or $m == 8)
  | [$k, $m, $bytes] as $shape
  | row("(\($k), \($m)), \($bytes | kib)", cell($old; "encode"; $shape), cell($new; "encode"; $shape), cell($old; "recover"; $shape), cell($new; "recover"; $shape),
      asked($old; $shape), asked($new; $shape)))

# results: results/amd-epyc-family-25-model-17-stepping-1/storage-few-before-gfni512.json results/amd-epyc-family-25-model-17-stepping-1/storage-few-gfni512.json results/amd-epyc-family-25-model-17-stepping-1/storage-few-before-gfni256.json results/amd-epyc-family-25-model-17-stepping-1/storage-few-gfni256.json
# SPDX-License-Identifier: Apache-2.0
# RS on one core of a Zen 4: up to 32 sources at once and blocks of any number of rows (gfni512), and a panel for few
# rows (gfni256).
include "weft";
def group($run; $shape): [$run.groups[] | select(.cases | any(.operation == "encode" and [.n, .m, .k] == $shape))][0];
def cell($run; $operation; $shape): [group($run; $shape).cases[] | select(.operation == $operation and .variant == "cauchy" and (.row | startswith("gfni")))][0] | data_rate | with_spread;
def kib: if . >= 1048576 then "\(. / 1048576) MiB" else "\(. / 1024) KiB" end;
def lines($name; $old; $new; $shapes; $sizes):
  $shapes[] as [$k, $m] | $sizes[] as $bytes | [$k, $m, $bytes] as $shape
  | row("\($name), (\($k), \($m)), \($bytes | kib)", cell($old; "encode"; $shape), cell($new; "encode"; $shape), cell($old; "recover"; $shape), cell($new; "recover"; $shape));
[inputs] as $runs
| heading("", "encode: before", "since", "recover: before", "since"),
  lines("gfni512"; $runs[0]; $runs[1]; [[17,3],[20,4],[24,6],[32,8],[40,2],[40,4],[10,5],[16,7],[20,5],[10,10],[16,13]]; [4096, 65536, 262144, 1048576]),
  lines("gfni256"; $runs[2]; $runs[3]; [[4,2],[6,3],[10,2],[10,4],[10,5],[10,8],[17,3],[20,5],[32,4]]; [4096, 65536, 1048576])

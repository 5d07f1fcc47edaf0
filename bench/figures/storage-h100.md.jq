# results: results/nvidia-h100-80gb-hbm3/storage.json results/nvidia-h100-80gb-hbm3/storage-model.json
# SPDX-License-Identifier: Apache-2.0
# Another kind of card: encoding and recovery compared with the copy, the bus, and the model of storage-model-cells.
include "weft"; include "storage_tables"; include "model";
def shares($title; $operation): [resident($title)] as $cases | [$cases[] | select(.operation == $operation and (.m < 16 or .n >= 16)) | . as $e
  | data_rate[0] / ($cases | at("ceiling"; $e.n; $e.m) | .gigabytes_per_second.input.median)];
def met: "\([.[] | select(. >= 0.85)] | length) of \(length), least \(min | percent)";
def mean($f): map(. as $c | production_time($f) as $t | $c | error($t)) | mean_error | percent;
input as $all | input as $model
| heading("code", "encoding at 85 % or more", "recovery at 85 % or more", "recovery / encoding, least", "of these at least 0.97"),
  ((["RS over", "RS"], ["CRS, smallest", "CRS, smallest w"], ["CRS, w = 8", "CRS, w = 8"]) as [$title, $name]
  | [$all | recoveries($title)[].by] as $by
  | row($name, ($all | shares($title; "encode") | met), ($all | shares($title; "recover") | met), ($by | min | three),
      "\([$by[] | select(. >= 0.97)] | length) of \($by | length)")),
  "",
  ([$all | cases | select(.operation == "ceiling" and (.variant | startswith("device memory"))) | (.n + .m) * .gigabytes_per_second.input.median / .n / 1000]
  | "The copy, read + write: \(min | three) to \(max | three) TB/s."),
  ([$all.groups[] | select(.title | startswith("host to host")) | .cases[] | select(.variant == "cauchy") | "\(.n) + \(.m) \(.share_of_ceiling.median | percent)"]
  | "RS from and to pinned memory, of k in and m out at once: \(join(", "))."),
  ([$model | measured_cells | select(.w > 0) | .dram = .mix] as $crs
  | [$crs[] | select(.w == 4 or .w == 8)] as $fitted | ($fitted | fit_time($fitted; 1 / 10)) as $f
  | "The model, k = 1 to 45, m = 1 to 4: mean error \($fitted | mean($f)) where fitted, \([$crs[] | select(.w > 4 and .w < 8)] | mean($f)) where tried, T_0 = \($f.t0 | digits(2)) us, rho = \($f.rho).")

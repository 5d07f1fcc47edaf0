# results: results/amd-epyc-family-25-model-17-stepping-1/storage-shapes.json results/amd-epyc-family-25-model-17-stepping-1/storage-sizes.json
# SPDX-License-Identifier: Apache-2.0
# weft over Jerasure, generate and recover: the ratios measured in the same rounds, smallest and largest median over a
# figure's cells.
include "weft";
def ratios($name): [.groups[] | .title as $t | ($t | capture("^\\((?<k>[0-9]+), (?<m>[0-9]+)\\), (?<kib>[0-9]+) KiB")) as $s | .ratios[] | select(.name == $name)
  | {k: ($s.k | tonumber), m: ($s.m | tonumber), kib: ($s.kib | tonumber), median, separable}];
def span: "\(map(.median) | min | three) to \(map(.median) | max | three)" + (if all(.separable) then "" else "*" end);
[inputs] as [$shapes, $sizes]
| heading("", "generate, weft / Jerasure", "recover, weft / Jerasure"),
  ((2, 3, 4) as $m | row("k = 2 to 16, m = \($m), 1 MiB", ((("encode", "recover") + ": weft / jerasure") as $name | $shapes | ratios($name) | map(select(.m == $m)) | span))),
  row("k = 16, m = 2 to 16, 1 MiB", ((("encode", "recover") + ": weft / jerasure") as $name | $shapes | ratios($name) | map(select(.k == 16)) | span)),
  ((4, 10) as $k | row("k = \($k), buffers of 4 KiB to 10 MiB", ((("encode", "recover") + ": weft / jerasure") as $name | $sizes | ratios($name) | map(select(.k == $k)) | span)))

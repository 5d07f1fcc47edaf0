# results: results/amd-epyc-family-26-model-2-stepping-1/storage-before.json results/amd-epyc-family-26-model-2-stepping-1/storage.json results/amd-epyc-family-26-model-2-stepping-1/storage-small.json
# SPDX-License-Identifier: Apache-2.0
# What documents say about RS on one core of a Zen 5.
include "weft";
def rate($run; $shape; $row): [$run | cases | select(.operation == "encode" and .variant == "cauchy" and .row == $row
    and [.n, .m, .k] == $shape)][0] | data_rate[0];
def shapes: [cases | select(.operation == "encode" and .variant == "cauchy") | [.n, .m, .k]] | unique;
def ahead($run; $peer): [$run | shapes[] | select(rate($run; .; $peer) > rate($run; .; "gfni512"))] | length;
"isa-l 2.32.1" as $isal | "klauspost v1.12.4" as $klauspost | [10, 4, 65536] as $shape
| [inputs] as [$old, $new, $small]
| ["docs/performance/storage-few-rows.md", "klauspost was faster at \(ahead($old; $klauspost)) of the \($old | shapes | length) shapes and ISA-L at \(ahead($old; $isal))"],
  (if ahead($new; $klauspost) + ahead($new; $isal) == 0 then ["docs/performance/storage-few-rows.md", "now neither is at any"] else empty end),
  (([$new.groups[] | select(.cases | any(.operation == "encode" and .variant == "cauchy" and [.n, .m, .k] == $shape))][0]) as $group
    | def times($peer): [$group.ratios[] | select(.name == "encode: weft / \($peer)")][0] | spread | with_spread;
      ["README.md", "\([$group.cases[] | select(.operation == "encode" and .row == "gfni512")][0] | data_rate | with_spread) on an AMD EPYC with AVX-512 (Zen 5), \(times($isal)) times ISA-L 2.32 and \(times($klauspost)) times klauspost 1.12"]),
  ([$small.groups[] | select(.cases | any(.operation == "encode" and [.n, .m, .k] == [10, 4, 4096])) | .ratios[]
    | select(.name == "recover, inversion counted in / encode")][0].median
    | ["docs/performance/goals.md", "at (10, 4) has \(digits(2)) of the rate of encoding on Zen 5"],
      ["docs/performance/storage-recovery.md", "made \(digits(3)) (quartiles"])
| @tsv

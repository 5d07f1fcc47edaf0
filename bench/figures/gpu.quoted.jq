# results: results/nvidia-h200/tables.jsonl
# SPDX-License-Identifier: Apache-2.0
# What docs/gpu/decoding.md says, in sentences and in tables of its own, about inversion, single decoding and the
# expansion of seeds: the document, and words that it must contain.
include "weft";
def us: "\(.us | round) (\(.min_us | round)..\(.max_us | round))";
[inputs] as $lines
| "docs/gpu/decoding.md" as $doc
| ((16, 32, 64, 128, 256) as $n | [$lines[] | select(.kind == "invert" and .name == "blocked" and .n == $n)]
  | "| \($n) | \(map(select(.count == 256))[0] | us) | \(map(select(.count == 256))[0].TMACps | . * 10 | round | . / 10) | \(map(select(.count == 2048))[0] | us) |"
  | [$doc, .]),
  [$doc, "One matrix of 128 takes \([$lines[] | select(.kind == "invert" and .count == 1)][0] | us) us"],
  (("scan", "atomic-min") as $name | [$lines[] | select(.kind == "decode-single" and .name == $name)] | sort_by(.k) | map(.us | round | tostring) | join(" | ")
  | [$doc, "\({"scan": "scan", "atomic-min": "atomicMin and cache"}[$name]), us | \(.) |"]),
  ([$lines[] | select(.kind == "expand")] | INDEX(.name)
  | [$doc, "dense \(.dense.us | digits(3)) (\(.dense.min_us | digits(3))..\(.dense.max_us | digits(3))) us (\(.dense.GBps | round) GB/s of coefficients), fresh \(.fresh.us | digits(3)), sparse at 10 % \(."sparse-10".us | round) (\(."sparse-10".GBps | round) GB/s)"])
| @tsv

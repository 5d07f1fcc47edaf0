# results: results/nvidia-h200/storage-gibraltar.json results/nvidia-h200/storage-perasure.json results/nvidia-h200/storage-gcrs.json results/nvidia-h200/storage-slides.json results/nvidia-h200/storage-inverse.json results/nvidia-h200/storage.json
# SPDX-License-Identifier: Apache-2.0
# What docs/storage-gpu/published.md says, apart from the papers' figures.
include "weft";
def rates($operation; $variant): [cases | select(.operation == $operation and .variant == $variant)];
def data: .gigabytes_per_second.input | spread | with_spread;
def us: .seconds_per_call | sort | .[length / 2 | floor] * 1e6;
input as $gibraltar | input as $perasure | input as $gcrs | input as $slides | input as $inverse | input as $resident
| "docs/storage-gpu/published.md" as $doc
| ($gibraltar | [.groups[] | select(.title | contains("by buffer size and step"))] | {groups: .}) as $steps
| ($steps | [cases | select(.k == 1048576)] | map({key: .variant, value: .}) | from_entries) as $small
| ($steps | [cases | select(.k == 10485760)] | map({key: .variant, value: .}) | from_entries) as $large
| ($perasure | [cases | select(.n == 16 and .m == 8)]) as $mixed
| ($gcrs | [cases | select(.m == 4 and (.variant | test("w=4 (streams|transfers)")))] | map({key: .variant, value: .}) | from_entries) as $streams
| ($slides | [cases | select(.operation == "encode") | .gigabytes_per_second.input.median as $m | select(.variant | endswith("pageable")) | $m]) as $pageable
| [$doc, "gpu-slides --quick`, commit \($gibraltar.commit[0:7])"],
  [$doc, "makes \($small.kernel | data) with 1 MiB buffers and \($large.kernel | data) with 10 MiB"],
  [$doc, "nothing overlapped, \($small.total | data) and \($large.total | data), of which transfers alone would be \($small.transfers.gigabytes_per_second.input.median | three) and \($large.transfers.gigabytes_per_second.input.median | three)"],
  [$doc, "(16 + 8: \([$mixed[] | select(.row == "cuda-perasure-gmpe" and .variant == "raw")][0].gigabytes_per_second.input.median | three) against \([$mixed[] | select(.row == "cuda-perasure-smpe" and .variant == "raw")][0].gigabytes_per_second.input.median | three))"],
  [$doc, "Over the bus either kernel hides: \([$mixed[] | select(.row == "cuda-perasure-gmpe" and .variant == "overall")][0] | data) of \([$mixed[] | select(.row == "cuda-perasure-gmpe" and .variant == "transfers")][0] | data) at 16 + 8"],
  [$doc, "(10 + 4: \($streams["gcrs:w=4 streams=2"] | data) of \($streams["gcrs:w=4 transfers"].gigabytes_per_second.input.median | three)); ten are slower (\($streams["gcrs:w=4 streams=10"].gigabytes_per_second.input.median | three))"],
  [$doc, "two streams: \(($slides | rates("encode"; "2000 MB streams=2 pinned"))[0] | data) at 2000 MB, one stream \(($slides | rates("encode"; "2000 MB streams=1 pinned"))[0].gigabytes_per_second.input.median | three). Pageable memory \($pageable | "\(min | digits(2)) to \(max | digits(2))") whatever"],
  [$doc, ([("base", "bandwidth") as $step | [$resident | cases | select(.row == "cuda-gcrs-\($step)" and .m == 16)][0].gigabytes_per_second.input.median | round]
    | "the largest gain of the ladder (\(.[0]) to \(.[1]))")],
  [$doc, "storage-inverse.json, commit \($inverse.commit[0:7])"],
  [$doc, ($inverse | [.groups[] | [.cases[] | select(.operation == "recover") | {key: .variant, value: us}] | from_entries
      | {cpu: (.["matrix by the CPU"] - .["plan kept"]), gpu: (.["matrix by the GPU"] - .["plan kept"])}]
    | "A matrix in closed form takes up to \(map(.cpu) | max | digits(1)) us more than none; inverting, with the round trip and the wait in between, takes \(map(.gpu) | min | round) to \(map(.gpu) | max | round) us more.")]
| @tsv

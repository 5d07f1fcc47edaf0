# results: results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/storage.json results/amd-epyc-family-25-model-17-stepping-1/storage.json
# SPDX-License-Identifier: Apache-2.0
# Encoding on one core: GB/s of data by shape, weft and other libraries in the same rounds.
include "weft";
[inputs] as [$intel, $amd]
| [[4,2], [6,3], [10,4], [12,4], [16,4], [32,8], [64,16]] as $shapes
| ({intel: $intel, amd: $amd} | to_entries[]) as $machine | [65536, 1048576][] as $bytes
| ["weft", "isa-l 2.32.1", "klauspost v1.12.4", "isa-l 2.30", "jerasure"][] as $who
| block("\($machine.key)\($bytes) \($who | split(" ")[0])\(if $who == "isa-l 2.30" then "230" else "" end)"; ($shapes | keys[]) as $i | $shapes[$i] as [$k, $m]
    | [$machine.value | cases | select(.operation == "encode" and .threads == 1 and .n == $k and .m == $m and .k == $bytes
        and (if $who == "weft" then .variant == "cauchy" and (.row | test("^(gfni|avx)")) else .row == $who and (.variant | startswith("cauchy_good") | not) end))][0]
    | select(.) | [$i, "\($k) + \($m)"] + data_rate)

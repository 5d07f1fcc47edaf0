# results: results/nvidia-h200/storage.json
# SPDX-License-Identifier: Apache-2.0
# m = 16: shares of the copy for two stripes in turn, whose calls overlap, and for one stripe repeatedly, whose calls
# wait.
include "weft"; include "storage_tables";
input as $all
| heading("k + 16", "encoding", "first 16 lost", "random losses", "the same stripe again: encoding", "first 16 lost", "random losses"),
  ((["RS over", "RS"], ["CRS, smallest w", "CRS, smallest w"], ["CRS, w = 8", "CRS, w = 8"]) as [$title, $name]
    | [$all | resident($title)] as $cases
    | ([$cases[] | select(.operation == "encode again") | .n] | unique[]) as $k
    | def share($operation; $lost): [$cases[] | select(.operation == $operation and .n == $k and .m == 16 and (.variant | endswith($lost)))][0] | copy_share($cases; $k; 16);
      row("\($name), \($k) + 16", share("encode"; ""), share("recover"; " data"), share("recover"; " parity"),
        share("encode again"; ""), share("recover again"; " data"), share("recover again"; " parity")))

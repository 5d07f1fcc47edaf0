# results: results/amd-epyc-family-25-model-17-stepping-1/storage-parity.json
# SPDX-License-Identifier: Apache-2.0
# Updates and verification on one and two threads of Zen 4.
include "weft";
def rate($threads): [.cases[] | select(.threads == $threads and (.operation == "update" or .operation == "verify"))][0] | .gigabytes_per_second.input | spread | with_spread;
def variant: [.cases[] | select(.threads == 2)][0].variant | sub(":packet=512"; "");
def bare: sub("1024 KiB"; "1 MiB") | sub("16384 KiB"; "16 MiB") | sub(" shards"; "");
heading("", "one thread", "two", "two / one"),
(input | .groups[] | row("\(.title | bare), `\(variant)`", rate(1), rate(2), (.ratios[0] | spread | with_spread)))

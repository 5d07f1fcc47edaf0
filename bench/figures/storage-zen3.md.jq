# results: results/amd-epyc-family-25-model-1-stepping-1/storage.json
# SPDX-License-Identifier: Apache-2.0
# RS on one core of a Zen 3, compared with other libraries.
include "weft";
def asked($name): [.ratios[] | select(.name == $name)][0] | spread | with_spread;
input as $run
| heading("", "encode", "/ ISA-L 2.32", "/ klauspost 1.14", "recover, plan made in the call", "/ encode"),
  ($run.groups[] | select(.title | test("^[^:]* shards$")) | ([.cases[] | select(.operation == "encode")][0]) as $of
  | row("(\($of.n), \($of.m)), \($of.k | size)",
      (rs_cell($run; "encode"; $of.n; $of.m; $of.k; "avx2") | with_spread),
      asked("encode: weft / isa-l 2.32.1"), asked("encode: weft / klauspost v1.14.1"),
      (rs_cell($run; "recover"; $of.n; $of.m; $of.k; "avx2") | with_spread),
      asked("recover, inversion counted in / encode")))

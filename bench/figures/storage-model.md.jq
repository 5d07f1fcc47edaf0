# results: results/nvidia-h200/storage-published.json
# SPDX-License-Identifier: Apache-2.0
# The model compared with the measurements: published kernels fitted on 10 + 2 and 16 + 8, tested on the other two
# shapes.
include "weft"; include "model";
def signed: if . < 0 then "-\(-. * 100 | digits(2)) %" else "+\(. * 100 | digits(2)) %" end;
def tried($cell; $f): $cell | published_time($f) as $t | "\($t | three) / \(.us | three), \(error($t) | signed)";
input | [model_cells | select(.production | not)] as $cells
| heading("row", "slots a step", "rho", "10 + 4: model / measured, us", "32 + 16: model / measured, us"),
  (["cuda-gcrs", "cuda-gcrs-no-access", "cuda-gcrs-no-bitmatrix", "cuda-gcrs-bandwidth", "cuda-gcrs-no-bandwidth", "cuda-gcrs-bitmatrix", "cuda-gcrs-char",
    "cuda-gcrs-access", "cuda-gcrs-base", "cuda-perasure-gmpe", "cuda-perasure-smpe"][] as $row
  | [$cells[] | select(.row == $row)] as $c
  | def at($m): $c[] | select(.m == $m);
    (if $row | test("^cuda-gcrs(-no-access|-no-bitmatrix|-bandwidth|)$") then fit_all(at(2); at(8)) else fit_single(at(2); at(8)) end) as $f
  | row($row, (if $f.c then "\($f.c | three) m" else "\($f.a | three) + \($f.b | three) m" end), (if $f.c then $f.rho | digits(2) else "-" end),
      tried(at(4); $f), tried(at(16); $f)))

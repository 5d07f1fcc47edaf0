# results: results/intel-r-xeon-r-processor-family-6-model-167-stepping-1/storage-crs-update-gfni512.json results/intel-r-xeon-r-processor-family-6-model-167-stepping-1/storage-crs-update-avx2.json
# SPDX-License-Identifier: Apache-2.0
# CRS source by source on one core: one source into the parity, and encoding by such steps.
include "weft";
def case($title; $operation; $packet): [.groups[] | select(.title == $title) | .cases[] | select(.operation == $operation and (.variant | endswith(":packet=\($packet)")))][0];
def share: if .share_of_ceiling.separable then .share_of_ceiling.median | percent else "\(.share_of_ceiling.median | percent)*" end;
def cell($title; $operation; $packet): case($title; $operation; $packet) | "\(.gigabytes_per_second.input | spread | with_spread), \(share)";
def asked($title; $name): [.groups[] | select(.title == $title) | .ratios[] | select(.name == $name)][0] | if .separable then (.median | three) else "\(.median | three)*" end;
def bare: sub("1024 KiB"; "1 MiB") | sub(" shards, packets"; "") | sub(": source by source"; "");
input as $full | input as $avx2
| heading("gfni512; packets of", "add delta, 64", "512", "2048", "source by source, 512", "the same / encode", "avx2: add delta, 64", "512"),
  ($full.groups[].title as $t
  | row($t | bare, ($full | cell($t; "add delta"; 64), cell($t; "add delta"; 512), cell($t; "add delta"; 2048), cell($t; "progress"; 512), asked($t; "packet=512: progress / encode")),
      ($avx2 | cell($t; "add delta"; 64), cell($t; "add delta"; 512))))

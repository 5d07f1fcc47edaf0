# results: results/amd-epyc-family-25-model-1-stepping-1/storage-klauspost-1.json results/amd-epyc-family-25-model-1-stepping-1/storage-klauspost-2.json results/amd-epyc-family-25-model-1-stepping-1/storage-klauspost-3.json results/amd-epyc-family-25-model-1-stepping-1/storage-klauspost-4.json results/amd-epyc-family-25-model-1-stepping-1/storage-klauspost-5.json
# SPDX-License-Identifier: Apache-2.0
# What docs/performance/storage-zen3.md says about five runs next to klauspost.
include "weft";
[inputs] as $runs
| def medians($shape): [$runs[].groups[] | select(.title | startswith($shape)) | .ratios[]
    | select(.name == "encode: weft / klauspost v1.14.1").median];
  def between($shape): medians($shape) | "\(min | three) to \(max | three)";
["docs/performance/storage-zen3.md", "\(between("(4, 2)")) of klauspost at (4, 2), \(between("(6, 3)")) at (6, 3), \(between("(8, 3)")) at (8, 3)"]
| @tsv

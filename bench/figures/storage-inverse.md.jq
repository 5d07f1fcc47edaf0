# results: results/nvidia-h200/storage-inverse.json
# SPDX-License-Identifier: Apache-2.0
# Microseconds of a short recovery on the device, by the origin of its matrix.
include "weft";
def us($variant): [.[] | select(.operation == "recover" and .variant == $variant)][0]
  | (.n * .k / 1000) as $kb | .gigabytes_per_second.input | "\($kb / .median | three) (\($kb / .max | three)..\($kb / .min | three))";
input | heading("cauchy, 64 KiB shards, us", "plan kept", "matrix by the CPU, closed form", "matrix by the GPU, inverted"),
(.groups[] | select(.title | startswith("recovery matrices")) | .cases as $c
  | row("\($c[0].n) + \($c[0].m)", ($c | us("plan kept")), ($c | us("matrix by the CPU")), ($c | us("matrix by the GPU"))))

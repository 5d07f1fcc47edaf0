# SPDX-License-Identifier: Apache-2.0
width = 1180
height = 480
set terminal svg size width,height font 'sans-serif,13' background rgb 'white' noenhanced
load 'bench/figures/style.gp'
set multiplot layout 1,3 title 'Storage codes on one NVIDIA H200: encoding, shards of 10 MiB in device memory (median, min..max; dashed: a copy of the k + m shards)' font ',14'
set xlabel 'k, data shards'
set ylabel 'GB/s of data'
set logscale x 2
set xtics (2, 4, 8, 16, 32, 45)
set xrange [1.8:80]
set yrange [0:4400]
unset key
ms = '2 4 8 16'
titles = '"Reed-Solomon, GF(2^8)" "CRS, smallest w" "CRS, w = 8"'
do for [c=0:2] {
  set title word(titles, c + 1)
  plot for [i=1:4] data index 'bound'.c.'m'.word(ms, i) using 1:2 with lines ls i lw 1 dt (4,4), \
       for [i=1:4] data index 'code'.c.'m'.word(ms, i) using 1:2:3:4 with yerrorlines ls i, \
       for [i=1:4] '' index 'code'.c.'m'.word(ms, i) using ($1*1.08):($1 == 45 ? $2 : NaN):('m = '.word(ms, i)) with labels left tc ls i font ',12'
}
unset multiplot

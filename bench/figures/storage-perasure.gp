# SPDX-License-Identifier: Apache-2.0
width = 1000
height = 440
set terminal svg size width,height font 'sans-serif,13' background rgb 'white' noenhanced
load 'bench/figures/style.gp'
set multiplot layout 1,2 title 'PErasure''s Figures 3 to 6 with its kernels on one NVIDIA H200, shards of 8 MiB (median, min..max)' font ',14'
set ylabel 'GB/s of data'
set xlabel 'm, parity shards'
set xrange [1.5:8.6]
set xtics 2,2,8
ks = '8 16 24'
set title 'raw; dashed: GMPE'
set logscale y
set yrange [8:5000]
set key top right noreverse Right samplen 2
plot for [i=1:3] data index 'smpe-raw-'.word(ks, i) using 1:2:3:4 with yerrorlines ls i title 'SMPE, k = '.word(ks, i), \
     for [i=1:3] '' index 'gmpe-raw-'.word(ks, i) using 1:2:3:4 with yerrorlines ls i dt (4,3) notitle, \
     '' index 'published' using 1:2 with points ls 8 title 'SMPE, published'
unset logscale y
set title 'overall, pinned memory, four streams; dotted: transfers'
set yrange [0:90]
plot for [i=1:3] data index 'smpe-overall-'.word(ks, i) using 1:2:3:4 with yerrorlines ls i title 'SMPE, k = '.word(ks, i), \
     for [i=1:3] '' index 'gmpe-overall-'.word(ks, i) using 1:2:3:4 with yerrorlines ls i dt (4,3) title 'GMPE, k = '.word(ks, i), \
     for [i=1:3] '' index 'smpe-transfers-'.word(ks, i) using 1:2 with lines ls i dt (1,3) notitle
unset multiplot

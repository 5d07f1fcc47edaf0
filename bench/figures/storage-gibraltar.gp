# SPDX-License-Identifier: Apache-2.0
width = 1180
height = 450
set terminal svg size width,height font 'sans-serif,13' background rgb 'white' noenhanced
load 'bench/figures/style.gp'
set multiplot layout 1,3 title 'Gibraltar''s Figures 1, 2 and 4 on one core: AMD EPYC (family 25, model 17), avx2; dashed: Jerasure in the same run (median, min..max)' font ',14'
set ylabel 'GB/s of data'
set yrange [0:38]
set xlabel 'k, data shards of 1 MiB'
set xrange [1:17]
set title 'k + 2, k + 3, k + 4'
set key top right noreverse Right
plot for [m=2:4] data index 'encode-weft-'.m using 1:2:3:4 with yerrorlines ls m-1 title 'generate, m = '.m, \
     for [m=2:4] '' index 'recover-weft-'.m using 1:2:3:4 with yerrorlines ls m-1 pt 6 lw 1 title 'recover, m = '.m, \
     for [m=2:4] '' index 'encode-jerasure-'.m using 1:2 with linespoints ls m-1 dt (4,3) lw 1 notitle
set title 'by buffer'
set xlabel 'bytes of a shard'
set logscale x 2
set xrange [3000:2e7]
set xtics ('4 K' 4096, '64 K' 65536, '1 M' 1048576, '10 M' 10485760)
ks = '4 10'
names = '"4 + 2" "10 + 4"'
plot for [i=1:2] data index 'encode-weft-sizes'.word(ks, i) using 1:2:3:4 with yerrorlines ls 2*i-1 title 'generate, '.word(names, i), \
     for [i=1:2] '' index 'recover-weft-sizes'.word(ks, i) using 1:2:3:4 with yerrorlines ls 2*i-1 pt 6 lw 1 title 'recover, '.word(names, i), \
     for [i=1:2] '' index 'encode-jerasure-sizes'.word(ks, i) using 1:2 with linespoints ls 2*i-1 dt (4,3) lw 1 notitle
unset logscale x
set title 'k = 16, by m'
set xlabel 'm, parity shards of 1 MiB'
set xrange [1:17]
set xtics 2,2,16
plot data index 'encode-weft-m' using 1:2:3:4 with yerrorlines ls 1 title 'generate', \
     '' index 'recover-weft-m' using 1:2:3:4 with yerrorlines ls 1 pt 6 lw 1 title 'recover', \
     '' index 'encode-jerasure-m' using 1:2 with linespoints ls 8 dt (4,3) lw 1 title 'generate, Jerasure'
unset multiplot

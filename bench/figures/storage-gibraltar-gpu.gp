# SPDX-License-Identifier: Apache-2.0
width = 1300
height = 470
set terminal svg size width,height font 'sans-serif,13' background rgb 'white' noenhanced
load 'bench/figures/style.gp'
set multiplot layout 1,3 title 'Gibraltar''s Figures 1 to 4 with its kernel on one NVIDIA H200; grey: Jerasure on a core of an AMD EPYC (median, min..max)' font ',14'
set ylabel 'GB/s of data'
set logscale y
set yrange [0.5:20000]
set xlabel 'k, data buffers of 1 MiB'
set xrange [1:17]
set xtics 2,2,16
set title 'k + 2, k + 3, k + 4; open: recover'
set key top right noreverse Right samplen 1.5 maxrows 4 font ',11'
plot for [m=2:4] data index 'encode-kernel-'.m using 1:2:3:4 with yerrorlines ls m-1 title 'kernel, m = '.m, \
     for [m=2:4] '' index 'recover-kernel-'.m using 1:2:3:4 with yerrorbars ls m-1 pt 6 lw 1 notitle, \
     for [m=2:4] '' index 'encode-total-'.m using 1:2:3:4 with yerrorlines ls m-1 dt (5,3) title 'in all, m = '.m, \
     for [m=2:4] '' index 'recover-total-'.m using 1:2:3:4 with yerrorbars ls m-1 pt 6 lw 1 notitle, \
     '' index 'jerasure' using 1:2 with linespoints ls 8 title 'Jerasure, m = 2'
set title '10 + 4, by buffer and step'
set xlabel 'bytes of a buffer'
set logscale x 2
set xrange [3000:2e7]
set xtics ('4K' 4096, '64K' 65536, '1M' 1048576, '10M' 10485760)
set key top left reverse Left samplen 2
plot data index 'sizes-kernel' using 1:2:3:4 with yerrorlines ls 1 title 'kernel', \
     '' index 'sizes-transfers' using 1:2:3:4 with yerrorlines ls 2 title 'transfers', \
     '' index 'sizes-total' using 1:2:3:4 with yerrorlines ls 3 title 'in all', \
     '' index 'jerasure-sizes' using 1:2 with linespoints ls 8 title 'Jerasure'
unset logscale x
set title 'k = 16, by m'
set xlabel 'm, parity buffers of 1 MiB'
set xrange [1:17]
set xtics 2,2,16
set key top right noreverse Right
plot data index 'm-kernel' using 1:2:3:4 with yerrorlines ls 1 title 'kernel', \
     '' index 'm-total' using 1:2:3:4 with yerrorlines ls 3 title 'in all', \
     '' index 'jerasure-m' using 1:2 with linespoints ls 8 title 'Jerasure'
unset multiplot

# SPDX-License-Identifier: Apache-2.0
width = 900
height = 520
set terminal svg size width,height font 'sans-serif,13' background rgb 'white' noenhanced
load 'bench/figures/style.gp'
set title 'Published storage techniques on one NVIDIA H200, resident (median, min..max)' font ',14'
set xlabel 'GB/s of data, shards of 10 MiB; grey: in the publications, on their devices'
set logscale x
set xrange [8:6000]
set yrange [13.6:-0.6]
set format x '%g'
set key at graph 0.01, graph 0.99 left reverse Left samplen 0.6
array names[4] = ['10 + 2', '10 + 4', '16 + 8', '32 + 16']
ms = '2 4 8 16'
plot for [i=1:4] data index 'm'.word(ms, i) using 3:1:4:5:ytic(2) with xerrorbars ls i ps 1 title names[i], \
     '' index 'published' using 2:1:(int($3) == 1 ? 5 : int($3) == 2 ? 9 : 11) with points pt variable ps 1.1 lc rgb '#999999' notitle, \
     '' index 'published' using (int($3) == 2 && $2 > 13 ? NaN : int($3) == 2 ? 14 : $2):($1-0.55):(int($3) == 2 ? 'PErasure, m = 8' : int($3) == 3 ? 'G-CRS, m = 16' : 'G-CRS, m = 4') with labels center font ',10' tc rgb '#777777' notitle

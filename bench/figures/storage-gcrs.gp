# SPDX-License-Identifier: Apache-2.0
width = 1300
height = 470
set terminal svg size width,height font 'sans-serif,13' background rgb 'white' noenhanced
load 'bench/figures/style.gp'
set multiplot layout 1,3 title 'G-CRS''s Figures 9, 11 and 15 on one NVIDIA H200 (median, min..max)' font ',14'
set ylabel 'GB/s of words read'
set xlabel 'r, rounds of four LOP3s on each 16 bytes'
set xrange [-1:33]
set yrange [0:*]
set title 'arithmetic and memory'
set key top right noreverse Right samplen 2
plot data index 'both' using 1:2:3:4 with yerrorlines ls 1 title 'both', \
     '' index 'arithmetic' using ($2 < 6000 ? $1 : NaN):2:3:4 with yerrorlines ls 2 title 'arithmetic alone'
set title 'cuda-gcrs, k = 10, m = 4; dashed: m = 1'
set ylabel 'GB/s of data'
set xlabel 'as many words as blocks of 128 threads have'
set logscale x 2
set xrange [12:11000]
set xtics ('16' 16, '64' 64, '256' 256, '1K' 1024, '4K' 4096)
set key top left reverse Left samplen 2
set yrange [0:900]
set label 1 'published, m = 4: up to 230' at 300,30 font ',11' tc rgb '#777777'
set arrow 1 from 12,230 to 11000,230 nohead ls 8
plot for [w=4:8] data index 'm4w'.w using 1:2:3:4 with yerrorlines ls w-3 title 'w = '.w, \
     for [w=4:8] '' index 'm1w'.w using 1:2:3:4 with yerrorlines ls w-3 dt (4,3) notitle
set title '10 + m, pinned memory; dotted: transfers'
set xlabel 'streams'
set label 1 'published: 11 of 12' at 1,13.5 font ',11' tc rgb '#777777'
set arrow 1 from 0.9,11 to 11,11 nohead ls 8
set xrange [0.9:11]
set xtics (1, 2, 4, 10)
set yrange [0:70]
set key top left reverse Left samplen 2
plot for [m=1:4] data index 'streams'.m using 1:2:3:4 with yerrorlines ls m title 'm = '.m, \
     for [m=1:4] '' index 'transfers'.m using 1:2 with lines ls m dt (1,3) notitle
unset multiplot

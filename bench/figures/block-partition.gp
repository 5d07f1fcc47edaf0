# SPDX-License-Identifier: Apache-2.0
width = 1000
height = 460
set terminal svg size width,height font 'sans-serif,13' background rgb 'white' noenhanced
load 'bench/figures/style.gp'
set multiplot layout 1,2 title 'Two threads share one encode: full block (by rows) against partitioned block (by columns); median, min..max' font ',14'
set logscale x 2
set xlabel 'k, bytes in a block'
set xtics ('128' 128, '512' 512, '1 K' 1024, '4 K' 4096, '16 K' 16384, '32 K' 32768)
ns = '16 64 128 256'
set title 'AMD EPYC (family 25, model 17), avx2; dashed: full block'
set ylabel 'byte x coefficient products, GB/s'
set xrange [100:40000]
set yrange [0:150]
set key bottom right noreverse Right samplen 3
plot for [i=1:4] data index 'columns'.word(ns, i) using 1:2:3:4 with yerrorlines ls i title 'n = '.word(ns, i), \
     for [i=1:4] '' index 'rows'.word(ns, i) using 1:2:3:4 with yerrorlines ls i dt (3,4) notitle
set title 'full block / partitioned block, undisturbed cells only'
set ylabel 'ratio of rates'
set xrange [100:130000]
set yrange [0.4:1.4]
unset key
all = '16 32 64 128 256 512 1024'
set arrow 1 from 100,1 to 40000,1 nohead ls 10
plot for [i=1:7] data index 'ratio'.word(all, i) using 1:2:3:4 with yerrorlines lc rgb ramp[i] pt shapes[i] ps 0.7 lw 2, \
     for [i=1:7] '' index 'ratio'.word(all, i) using ($1*1.15):($2+(i==6?0.03:i==5?-0.02:0)):5 with labels left tc rgb ramp[i] font ',11', \
     '' index 'intel' using 1:2:3:4 with yerrorlines ls 8, \
     '' index 'intel' using ($1*1.15):($1 == 16384 ? $2*0.9 : NaN):('n = 128, Intel, gfni512') with labels left tc rgb '#777777' font ',11'
unset multiplot

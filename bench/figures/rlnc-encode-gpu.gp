# SPDX-License-Identifier: Apache-2.0
width = 1000
height = 470
set terminal svg size width,height font 'sans-serif,13' background rgb 'white' noenhanced
load 'bench/figures/style.gp'
set multiplot layout 1,2 title 'RLNC encoding on one NVIDIA H200, data resident, kernel only (median, min..max)' font ',15'
unset key
set logscale xy 2
set logscale y 10
set xlabel 'k, bytes in a block'
set ylabel 'coded GB/s'
set xrange [100:160000]
set xtics ('128' 128, '512' 512, '1 K' 1024, '4 K' 4096, '16 K' 16384, '32 K' 32768)
set format y '%g'
set title 'cuda-b1-wgmma, by n'
set yrange [20:2000]
ns = '16 32 64 128 256 512 1024'
plot for [i=1:7] data index 'n'.word(ns, i) using 1:2:3:4 with yerrorlines lc rgb ramp[i] pt shapes[i] ps 0.7 lw 2, \
     for [i=1:7] '' index 'n'.word(ns, i) using ($1*1.2):($1 == 32768 ? $2*(i==1 ? 1.0 : i==2 ? 1.13 : i==3 ? 0.88 : 1) : NaN):5 with labels left tc rgb ramp[i] font ',12'
set title 'n = 128, by technique'
set yrange [0.04:3000]
set xrange [100:2e6]
set xtics ('128' 128, '1 K' 1024, '4 K' 4096, '32 K' 32768)
rows = 'cuda-b1-wgmma cuda-b1-mma cuda-nibble-prmt cuda-table-32 cuda-loop'
plot for [i=1:5] data index word(rows, i) using 1:2:3:4 with yerrorlines ls i, \
     for [i=1:5] '' index word(rows, i) using ($1*1.3):($1 == 32768 ? $2*(i==4 ? 1.1 : i==5 ? 0.9 : 1) : NaN):5 with labels left tc ls i font ',12', \
     '' index 'published' using (128):1:(32640):(0) with vectors nohead ls 8, \
     '' index 'published' using (130):($1*1.28):(sprintf('%s: %.3g', strcol(2), $1)) with labels left tc rgb '#777777' font ',11'
unset multiplot

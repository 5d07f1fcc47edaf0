# SPDX-License-Identifier: Apache-2.0
width = 860
height = 340
set terminal svg size width,height font 'sans-serif,13' background rgb 'white' noenhanced
load 'bench/figures/style.gp'
set title 'Peers served at 96 KB/s by one GPU, n = 128, k = 4096' font ',14'
set xlabel 'peers (median, min..max)'
set logscale x
set xrange [500:6e7]
set yrange [-0.7:8.7] reverse
set format x '%.0s%c'
set style fill solid 0.85 noborder
set grid noytics
unset key
thousands(v) = v < 1e6 ? (v < 1e3 ? sprintf('%.0f', v) : sprintf('%d,%03d', int(v)/1000, int(v)%1000)) : sprintf('%.2f million', v/1e6)
plot data index 'published' using 2:0:(500):2:($0-0.36):($0+0.36):ytic(1) with boxxyerror lc rgb '#777777', \
     '' index 'published' using ($2*1.15):0:(thousands($2).'  (Shojania and Li 2009)') with labels left font ',11', \
     '' index 'ours' using 2:($0+3):(500):2:($0+2.64):($0+3.36):ytic(1) with boxxyerror lc rgb '#0072b2', \
     '' index 'ours' using 3:($0+3):($4-$3):(0) with vectors as 1, \
     '' index 'ours' using ($4*1.15):($0+3):(thousands($2)) with labels left font ',11'

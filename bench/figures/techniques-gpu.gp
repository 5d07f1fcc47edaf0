# SPDX-License-Identifier: Apache-2.0
width = 900
height = 500
set terminal svg size width,height font 'sans-serif,13' background rgb 'white' noenhanced
load 'bench/figures/style.gp'
set title 'Encoding techniques at n = 128, k = 4096: one NVIDIA H200, data resident, kernel only' font ',14'
set xlabel 'coded GB/s (median, min..max)'
set logscale x
set xrange [0.05:3000]
set yrange [-0.7:*]
set format x '%g'
set style fill solid 0.85 noborder
set grid noytics
set key bottom right noreverse Right samplen 1.5
plot data index 'rows' using 2:0:(0.05):2:($0-0.36):($0+0.36):ytic(1) with boxxyerror lc rgb '#0072b2' title 'weft, H200', \
     '' index 'rows' using 3:0:($4-$3):(0) with vectors as 1 notitle, \
     '' index 'rows' using ($4*1.15):0:(sprintf($2 < 10 ? '%.2f' : $2 < 100 ? '%.1f' : '%.0f', $2)) with labels left font ',11' notitle, \
     '' index 'published' using 2:1 with points pt 13 ps 1.1 lc rgb '#000000' title 'Shojania and Li 2009, GTX 280', \
     '' index 'published' using ($2*0.88):1:(sprintf('%.3f', $2)) with labels right font ',11' tc rgb 'white' notitle

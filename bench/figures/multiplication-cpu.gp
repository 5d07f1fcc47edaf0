# SPDX-License-Identifier: Apache-2.0
set title "Multiplying in GF(2^8): 128 coded blocks of 4 KiB from 128, one core of an Intel Xeon (AVX-512, GFNI)"
set xlabel 'byte x coefficient products, GB/s (median, min..max)'
set logscale x
set xrange [0.05:500]
set yrange [-0.7:*]
set style fill solid 0.85 noborder
unset key
set grid noytics
plot data using 2:0:(0.05):2:($0-0.36):($0+0.36):ytic(1) with boxxyerror ls 1, \
     data using 2:0:3:4 with xerrorbars lc rgb '#333333' pt 0 lw 1, \
     data using ($2*1.25):0:(sprintf($2 < 10 ? '%.2f' : '%.0f', $2)) with labels left font ',11'

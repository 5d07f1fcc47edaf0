# SPDX-License-Identifier: Apache-2.0
width = 1000
height = 560
set terminal svg size width,height font 'sans-serif,13' background rgb 'white' noenhanced
load 'bench/figures/style.gp'
set multiplot layout 1,2 title 'Multiplying in GF(2^8) on one core: 128 coded blocks of 4 KiB from 128 (a product: one byte times one coefficient)' font ',15'
set xlabel 'products, GB/s: median, min..max'
set logscale x
set xrange [0.05:1200]
set yrange [-0.7:*]
set format x '%g'
set style fill solid 0.85 noborder
set key bottom right noreverse Right samplen 1.5
set grid noytics
array colour[4] = [0x0072b2, 0xd55e00, 0x009e73, 0x777777]
do for [machine in 'intel amd'] {
  set title machine eq 'intel' ? 'Intel Xeon, AVX-512 and GFNI' : 'AMD EPYC (family 25, model 17), AVX2'
  if (machine eq 'intel') { unset key } else { set key }
  plot data index machine using 3:0:(0.05):3:($0-0.36):($0+0.36):(colour[int($2)]):ytic(1) with boxxyerror lc rgb variable notitle, \
       '' index machine using 4:0:($5-$4):(0) with vectors as 1 notitle, \
       '' index machine using ($5*1.2):0:(sprintf($3 < 10 ? '%.2f' : '%.0f', $3)) with labels left font ',11' notitle, \
       NaN with boxes lc rgb colour[1] title 'shuffle, affine', \
       NaN with boxes lc rgb colour[2] title 'loop', \
       NaN with boxes lc rgb colour[3] title 'tables', \
       NaN with boxes lc rgb colour[4] title 'ISA-L'
}
unset multiplot

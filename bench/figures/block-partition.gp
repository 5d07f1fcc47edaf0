# SPDX-License-Identifier: Apache-2.0
width = 1300
height = 460
set terminal svg size width,height font 'sans-serif,13' background rgb 'white' noenhanced
load 'bench/figures/style.gp'
set multiplot layout 1,3 title 'Two threads share one encode: full block (by rows) against partitioned block (by columns); median, min..max' font ',14'
set logscale x 2
set xlabel 'k, bytes in a block'
set xtics ('128' 128, '512' 512, '1K' 1024, '4K' 4096, '16K' 16384, '32K' 32768)
ns = '16 64 128 256'
set title 'AMD EPYC (family 25, model 17), avx2; dashed: full block'
set ylabel 'byte x coefficient products, GB/s'
set xrange [100:40000]
set yrange [0:150]
set key bottom right noreverse Right samplen 3
plot for [i=1:4] data index 'columns'.word(ns, i) using 1:2:3:4 with yerrorlines ls i title 'n = '.word(ns, i), \
     for [i=1:4] '' index 'rows'.word(ns, i) using 1:2:3:4 with yerrorlines ls i dt (3,4) notitle
set ylabel 'full block / partitioned block, ratio of rates'
set xrange [100:40000]
set yrange [0.4:1.8]
all = '16 32 64 128 256 512 1024'
set arrow 1 from 100,1 to 40000,1 nohead ls 10
do for [maker in 'AMD Intel'] {
  set title maker eq 'AMD' ? 'AMD EPYC, avx2; undisturbed cells only' : 'Intel Xeon (family 6, model 207), gfni512'
  if (maker eq 'AMD') { set key top right noreverse Right samplen 2 maxrows 4 } else { unset key }
  plot for [i=1:7] data index maker.word(all, i) using 1:2:3:4 with yerrorlines lc rgb ramp[i] pt shapes[i] ps 0.7 lw 2 title 'n = '.word(all, i)
}
unset multiplot

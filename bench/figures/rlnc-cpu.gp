# SPDX-License-Identifier: Apache-2.0
width = 1180
height = 880
set terminal svg size width,height font 'sans-serif,13' background rgb 'white' noenhanced
load 'bench/figures/style.gp'
set multiplot layout 2,3 title 'RLNC on one core over n and k (median, min..max)' font ',15'
unset key
set logscale x 2
set logscale y
set xlabel 'k, bytes in a block'
set ylabel 'GB/s of blocks'
set xrange [100:180000]
set yrange [0.002:20]
set xtics ('128' 128, '512' 512, '1K' 1024, '4K' 4096, '16K' 16384, '32K' 32768) font ',11'
set format y '%g'
ns = '16 32 64 128 256 512 1024'
operations = 'encode decode-deferred decode-batch'
titles = '"encode" "decode, progressive" "decode, batch"'
machines = 'intel amd'
names = '"Intel Xeon, gfni512" "AMD EPYC (family 25, model 17), avx2"'
do for [m=1:2] {
  do for [o=1:3] {
    set title word(titles, o).': '.word(names, m) font ',12'
    of = word(machines, m).'-'.word(operations, o)
    plot for [i=1:7] data index of.word(ns, i) using 1:2:3:4 with yerrorlines lc rgb ramp[i] pt shapes[i] ps 0.6 lw 2, \
       for [i=1:7] '' index of.word(ns, i) using ($1*1.25):($1 == 32768 ? $2 : NaN):5 with labels left tc rgb ramp[i] font ',11', \
       '' index 'published' using (128):(o == 1 ? $1 : NaN):(32640):(0) with vectors nohead ls 8, \
       '' index 'published' using (130):(o == 1 ? $1*1.27 : NaN):(sprintf('%s: %.3g', strcol(2), $1)) with labels left tc rgb '#777777' font ',9'
  }
}
unset multiplot

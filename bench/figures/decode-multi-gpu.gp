# SPDX-License-Identifier: Apache-2.0
width = 1400
height = 470
set terminal svg size width,height font 'sans-serif,13' background rgb 'white' noenhanced
load 'bench/figures/style.gp'
set multiplot layout 1,3 title 'RLNC decoding on one NVIDIA H200, data resident (medians)' font ',15'
set logscale x 2
set xlabel 'k, bytes in a block'
set xtics ('128' 128, '512' 512, '2 K' 2048, '8 K' 8192, '32 K' 32768)
counts = '2048 264 132'
names = '"2,048 segments" "264, two per multiprocessor" "132, one per multiprocessor"'
set title 'n = 128'
set ylabel 'decoded GB/s'
set logscale y
set format y '%g'
set yrange [0.01:3000]
set xrange [100:4e6]
unset key
plot for [i=1:3] data index 'count'.word(counts, i) using 1:2 with linespoints ls i, \
     for [i=1:3] '' index 'count'.word(counts, i) using ($1*1.3):($1 == 32768 ? $2*(i==1 ? 1.9 : i==2 ? 1.1 : 0.6) : NaN):(word(names, i)) with labels left tc ls i font ',11', \
     '' index 'atomic-min' using 1:2:3:4 with yerrorlines ls 5, \
     '' index 'atomic-min' using ($1*1.3):($1 == 32768 ? $2 : NaN):('one, atomicMin and cache') with labels left tc ls 5 font ',11', \
     '' index 'scan' using 1:2:3:4 with yerrorlines ls 4, \
     '' index 'scan' using ($1*1.3):($1 == 32768 ? $2*0.75 : NaN):('one, scan for the pivot') with labels left tc ls 4 font ',11', \
     '' index 'published' using (128):1:(32640):(0) with vectors nohead ls 8, \
     '' index 'published' using (36000):1:(sprintf("published, %.3g:", $1)) with labels left tc rgb '#777777' font ',11', \
     '' index 'published' using (36000):($1*0.6):2 with labels left tc rgb '#777777' font ',11'
set title '2,048 segments; dashed: share of inversion, %'
set xrange [100:40000]
set yrange [0.5:20000]
ns = '16 32 64 128 256 512 1024'
set key top left reverse Left samplen 2 maxrows 4
plot for [i=1:7] data index 'n'.word(ns, i) using 1:2 with linespoints lc rgb ramp[i] pt shapes[i] ps 0.7 lw 2 title 'n = '.word(ns, i), \
     for [i=1:7] '' index 'n'.word(ns, i) using 1:3 with lines lc rgb ramp[i] dt (4,3) lw 1 notitle
set title 'n = 128: share of inversion in the time (the paper''s Fig. 9)'
set ylabel '%'
unset logscale y
set yrange [0:165]
set ytics 0,20,100
set xrange [100:40000]
set key top right noreverse Right maxrows 5
plot for [i=1:3] data index 'count'.word(counts, i) using 1:3 with linespoints ls i title word(names, i), \
     for [i=2:3] '' index 'count'.word(counts, i) using 1:4 with linespoints ls i dt (3,4) title word(names, i)[1:3].', inverted as in the paper'
unset multiplot

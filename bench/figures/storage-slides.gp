# SPDX-License-Identifier: Apache-2.0
width = 900
height = 420
set terminal svg size width,height font 'sans-serif,13' background rgb 'white' noenhanced
load 'bench/figures/style.gp'
set title 'GPU-RSCode''s slides: 4 + 2 shards from and to host memory, one NVIDIA H200 (median, min..max)' font ',14'
set ylabel 'GB/s of data'
set xlabel 'MB of data'
set xrange [900:2900]
set xtics (1000, 1500, 2000)
set logscale y
set yrange [1:100]
set ytics (1, 2, 5, 10, 20, 50, 100)
set key top right noreverse Right samplen 2
streams = '1 2 3 4'
set label 1 'published, pinned: 6.4, 5.9' at 2030,6 font ',11' tc rgb '#777777'
set label 2 'published, pageable: 2.3, 1.4' at 2030,1.8 font ',11' tc rgb '#777777'
plot for [i=1:4] data index 'pinned'.word(streams, i) using 1:2:3:4 with yerrorlines ls i title 'pinned, streams: '.word(streams, i), \
     for [i=1:4] '' index 'pageable'.word(streams, i) using 1:2:3:4 with yerrorlines ls i dt (4,3) title 'pageable, streams: '.word(streams, i), \
     '' index 'published' using (1000):1:(1000):(0) with vectors nohead ls 8 notitle

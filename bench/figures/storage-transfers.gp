# SPDX-License-Identifier: Apache-2.0
width = 900
height = 440
set terminal svg size width,height font 'sans-serif,13' background rgb 'white' noenhanced
load 'bench/figures/style.gp'
set title 'Storage codes from and to pinned host memory, one NVIDIA H200, shards of 64 MiB (median, min..max)' font ',14'
set ylabel 'GB/s of data'
set style fill solid 0.85 noborder
set boxwidth 0.17
set yrange [0:72]
set xrange [-0.6:5.2]
set xtics ('4 + 2' 0, '10 + 4' 1, '8 + 8' 2)
set key top right noreverse Right
set label 1 '11.6 k / (k + m) PErasure, 11 G-CRS' at 3.15,11.6 font ',11' tc rgb '#777777'
set label 2 '6.4 and 5.9 GPU-RSCode, pinned' at 3.15,6.3 font ',11' tc rgb '#777777'
set label 3 '2.3 and 1.4 GPU-RSCode, pageable' at 3.15,2 font ',11' tc rgb '#777777'
plot data index 'ours' using ($1-0.3):3 with boxes lc rgb '#bbbbbb' title 'bound: k in and m out at once', \
     '' index 'ours' using ($1-0.1):5 with boxes ls 1 title 'Reed-Solomon, pipelined, all counted', \
     '' index 'ours' using ($1+0.1):8 with boxes ls 3 title 'CRS, pipelined, all counted', \
     '' index 'ours' using ($1+0.3):4 with boxes lc rgb '#dddddd' title 'bound with one copy engine', \
     '' index 'ours' using ($1-0.1):6:(0):($7-$6) with vectors as 1 notitle, \
     '' index 'ours' using ($1+0.1):9:(0):($10-$9) with vectors as 1 notitle, \
     '' index 'ours' using 1:($3+4):(sprintf('kernel alone %.0f', $11)) with labels font ',11' notitle, \
     '' index 'published' using (2.75):1:(0.35):(0) with vectors nohead ls 8 title 'published'

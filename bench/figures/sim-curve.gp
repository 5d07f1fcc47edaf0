# SPDX-License-Identifier: Apache-2.0
width = 860
height = 420
set terminal svg size width,height font 'sans-serif,13' background rgb 'white' noenhanced
load 'bench/figures/style.gp'
set multiplot layout 1,2 title 'A simulated swarm of 40,000 peers on an Intel Xeon (family 6, model 207) of 16 cores; median, min..max of 3' font ',13'
set logscale xy 2
set xtics (1, 2, 4, 8, 16)
set ytics (1, 2, 4, 8, 16)
set xrange [0.9:18]
set yrange [0.9:18]
set ylabel 'times one'
set key top left samplen 3
do for [kind in 'threads ranks'] {
  set title kind eq 'threads' ? 'threads of one process' : 'MPI ranks (Open MPI, shared memory)'
  set xlabel kind
  plot x with lines ls 10 title 'count', \
       data index kind.'-path_s' using 1:2:3:4 with yerrorlines ls 3 title 'by the path''s processor time', \
       '' index kind.'-wall_s' using 1:2:3:4 with yerrorlines ls 1 title 'by the clock'
}
unset multiplot

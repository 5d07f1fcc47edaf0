# SPDX-License-Identifier: Apache-2.0
width = 860
height = 400
set terminal svg size width,height font 'sans-serif,13' background rgb 'white' noenhanced
load 'bench/figures/style.gp'
set multiplot layout 1,2 title 'PErasure''s Table II: 256 MiB as 28 shards on 7 nodes of 4 folders, TCP at 1 Gbit/s a node, two cores (median, min..max)' font ',13'
set style fill solid 0.85 noborder
set boxwidth 0.36
set xrange [-0.6:3.6]
set xtics ('26 + 2' 0, '24 + 4' 1, '22 + 6' 2, '20 + 8' 3)
set ylabel 'seconds'
set yrange [0:4]
do for [operation in 'encode decode'] {
  set title operation eq 'encode' ? 'encode, and spread' : 'gather k of those left, and decode'
  if (operation eq 'encode') { set key top left } else { unset key }
  plot data index operation using ($1-0.19):3 with boxes ls 1 title 'total', \
       '' index operation using ($1-0.19):4:(0):($5-$4) with vectors as 1 notitle, \
       '' index operation using ($1+0.19):6 with boxes ls 2 title 'weft store', \
       '' index operation using ($1+0.19):7:(0):($8-$7) with vectors as 1 notitle
}
unset multiplot

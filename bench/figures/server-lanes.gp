# SPDX-License-Identifier: Apache-2.0
width = 1000
height = 440
set terminal svg size width,height font 'sans-serif,13' background rgb 'white' noenhanced
load 'bench/figures/style.gp'
set multiplot layout 1,2 title 'Streaming server: one NVIDIA H200 over PCIe, 14 threads of an Intel Xeon (gfni512), and both (median, min..max; p99 above)' font ',14'
set style fill solid 0.85 noborder
set xlabel 'requests in flight'
set ylabel 'coded GB/s to host memory'
set yrange [0:85]
set xrange [-0.55:2.6]
set boxwidth 0.24
lanes = 'host device host+device'
names = '"CPU" "GPU" "CPU and GPU"'
us(v) = v < 1000 ? sprintf('%.0f us', v) : sprintf('%.1f ms', v / 1000)
set xtics ("1" 0, "32" 1, "512" 2)
do for [n in '128 64'] {
  set title n eq '128' ? '128 packets a request, n = 128, k = 4096' : '64 packets a request, n = 64, k = 1024'
  if (n eq '128') { set key top left } else { unset key }
  plot for [i=1:3] data index word(lanes, i).'-'.n using ($1+(i-2)*0.27):3 with boxes ls i title word(names, i), \
       for [i=1:3] '' index word(lanes, i).'-'.n using ($1+(i-2)*0.27):4:(0):($5-$4) with vectors as 1 notitle, \
       for [i=1:3] '' index word(lanes, i).'-'.n using ($1+(i-2)*0.27):($5+1):(us($7)) with labels left rotate by 90 font ',10' notitle
}
unset multiplot

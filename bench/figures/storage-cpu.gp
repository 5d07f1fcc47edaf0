# SPDX-License-Identifier: Apache-2.0
width = 1000
height = 560
set terminal svg size width,height font 'sans-serif,13' background rgb 'white' noenhanced
load 'bench/figures/style.gp'
set multiplot layout 2,2 title 'Reed-Solomon encoding on one core, beside other libraries in the same run (median, min..max)' font ',15'
set style fill solid 0.85 noborder
set boxwidth 0.17
set xrange [-0.6:6.6]
set xtics ('4+2' 0, '6+3' 1, '10+4' 2, '12+4' 3, '16+4' 4, '32+8' 5, '64+16' 6) font ',11'
set ylabel 'GB/s of data'
set yrange [0:*]
who = 'weft isa-l klauspost isa-l230 jerasure'
names = '"weft" "ISA-L 2.32" "klauspost 1.12" "ISA-L 2.30" "Jerasure"'
# Where a bar stands in its group. Of AMD's three none leaves a place, which would look like a rate of nought.
place(machine, i) = 0.175*(machine eq 'intel' ? i-3 : i == 1 ? -1 : i-4)
do for [bytes in '65536 1048576'] {
  do for [machine in 'intel amd'] {
    set title (machine eq 'intel' ? 'Intel Xeon, AVX-512 and GFNI' : 'AMD EPYC (family 25, model 17), AVX2').', '.(bytes eq '65536' ? '64 KiB' : '1 MiB').' shards'.(machine eq 'amd' ? "\nISA-L 2.32 and klauspost not measured" : '') font ',12'
    if (machine eq 'amd') { set yrange [0:bytes eq '65536' ? 55 : 30] } else { set yrange [0:*] }
    if (machine eq 'amd' && bytes eq '65536') { set key top right noreverse Right } else { unset key }
    plot for [i=1:5] data index machine.bytes.' '.word(who, i) using ($1+place(machine, i)):3 with boxes ls i title word(names, i), \
         for [i=1:5] '' index machine.bytes.' '.word(who, i) using ($1+place(machine, i)):4:(0):($5-$4) with vectors as 1 notitle
  }
}
unset multiplot

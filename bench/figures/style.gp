# SPDX-License-Identifier: Apache-2.0
# What the figures share.
set terminal svg size 800,420 font 'sans-serif,13' background rgb 'white' noenhanced
set output out
set datafile separator '\t'
set datafile missing ''
set style line 1 lc rgb '#1b6ca8' lw 2 pt 7 ps 0.6
set style line 2 lc rgb '#c8553d' lw 2 pt 5 ps 0.6
set style line 3 lc rgb '#588157' lw 2 pt 9 ps 0.7
set style line 4 lc rgb '#8d6a9f' lw 2 pt 11 ps 0.7
set style line 5 lc rgb '#b08900' lw 2 pt 13 ps 0.7
set style line 6 lc rgb '#4a4e69' lw 2 pt 2 ps 0.7
set style line 7 lc rgb '#2a9d8f' lw 2 pt 6 ps 0.7
set style line 9 lc rgb '#dddddd' lw 1
set grid back ls 9
set border 3 lc rgb '#555555'
set tics nomirror out
set key top left reverse Left

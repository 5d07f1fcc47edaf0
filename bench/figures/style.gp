# SPDX-License-Identifier: Apache-2.0
# What the figures share. Colours are those of Okabe and Ito, which colour-blind readers can tell apart; series differ
# in their points' shapes as well. Ceilings are dashed and dark, published figures grey.
if (!exists("width")) width = 860
if (!exists("height")) height = 440
set output out
set datafile separator '\t'
set datafile missing ''
set style line 1 lc rgb '#0072b2' lw 2 pt 7 ps 0.7
set style line 2 lc rgb '#d55e00' lw 2 pt 5 ps 0.7
set style line 3 lc rgb '#009e73' lw 2 pt 9 ps 0.8
set style line 4 lc rgb '#cc79a7' lw 2 pt 11 ps 0.8
set style line 5 lc rgb '#e69f00' lw 2 pt 13 ps 0.9
set style line 6 lc rgb '#56b4e9' lw 2 pt 4 ps 0.7
set style line 7 lc rgb '#000000' lw 2 pt 6 ps 0.7
set style line 8 lc rgb '#777777' lw 1.5 dt (6,4) pt 12 ps 1.1
set style line 9 lc rgb '#e3e3e3' lw 1
set style line 10 lc rgb '#333333' lw 1.2 dt (2,3)
# small to large, for curves by n
array ramp[7] = ['#440154', '#414487', '#2a788e', '#22a884', '#5fae3b', '#b8a500', '#e07b00']
array shapes[7] = [7, 5, 9, 11, 13, 4, 6]
set grid back ls 9
set border 3 lc rgb '#555555'
set tics nomirror out
set bars 0.6
set key top left reverse Left spacing 1.05
# a spread over a bar
set style arrow 1 heads size screen 0.004,90 lw 1 lc rgb '#333333'

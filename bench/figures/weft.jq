# SPDX-License-Identifier: Apache-2.0
# What the figures and tables share. Results are one JSON object with groups of cases (weft bench), or one object per
# line (the device programs); published points are in published.json.
def cases: .groups[]?.cases[]?;
def coded: .gigabytes_per_second.output;
def products: .gigabytes_per_second.products;
# median, min, max
def spread: [.median, .min, .max];
# For one call's or job's times, one per repetition: median, min and max in us.
def times_us: sort | [(.[(length - 1) / 2 | floor] + .[length / 2 | floor]) / 2, .[0], .[-1]] | map(. * 1e6);
# GB/s of data, if a call makes m shards of k
def data_rate: (.n / .m) as $f | coded | spread | map(. * $f);

# For lines of the device programs: GB/s coded, and the spread.
def line_name: .name // .row;
def line_spread:
  if .GBps_min then [.GBps, .GBps_min, .GBps_max]
  elif .min_us then [.GBps, .GBps * .us / .max_us, .GBps * .us / .min_us]
  else [.GBps, .GBps, .GBps] end;

# Six figures, so that all versions of jq print the same.
def six:
  if type != "number" or . == 0 or (. == floor and fabs < 1e15) then .
  else . as $v | pow(10; 5 - ($v | fabs | log10 | floor)) as $s | ($v * $s | round) / $s end;

# One data set for gnuplot, to be selected by `index` NAME. An empty one would lend its name to the next.
def block($name; rows): [rows] as $rows | "# \($name)",
  (if $rows == [] then [range(12) | "NaN"] else $rows[] end | map(. // "" | six | tostring) | join("\t")), "", "";

# bytes as people write them
def size: if . % 1048576 == 0 then "\(. / 1048576) MiB" elif . % 1024 == 0 then "\(. / 1024) KiB" else "\(.) B" end;

# The published figure with that id, and its label.
def published($all; $id): $all.points[] | select(.id == $id);

# Numbers for people: three significant figures.
def digits($n):
  if . == null then "-"
  elif . == 0 then "0"
  else . as $v | ($v | fabs | log10 | floor) as $e | ($n - 1 - $e) as $p
    | (if $p <= 0 then ($v | round | tostring)
       else pow(10; $p) as $s | ($v * $s | round) as $i
         | ($i / $s | fabs | floor) as $whole
         | ($i | fabs - $whole * $s | round | tostring) as $rest
         | (if $v < 0 then "-" else "" end) + "\($whole)." + ("0" * ($p - ($rest | length)) // "") + $rest end)
  end;
def three: digits(3);
def with_spread: "\(.[0] | three) (\(.[1] | three)..\(.[2] | three))";
def percent: "\(. * 100 | digits(3)) %";
# a table of Markdown
def row(cells): "| " + ([cells] | join(" | ")) + " |";
def heading(cells): row(cells), ("|" + ([cells] | map("---") | join("|")) + "|");

# RS on one core: two runs of a row, and other libraries in the later run.
def rs_cell($run; $operation; $k; $m; $bytes; $row): [$run | cases | select(.operation == $operation and .threads == 1 and .n == $k and .m == $m
    and .k == $bytes and .row == $row and .variant == "cauchy")][0] | data_rate;
def rs_asked($run; $k; $m; $bytes): [$run.groups[] | select(.cases | any(.operation == "encode" and .n == $k and .m == $m and .k == $bytes)) | .ratios[]
    | select(.name == "recover, inversion counted in / encode")][0].median | three;
def rs_before_and_since($old; $new; $row; $isal; $klauspost):
  heading("", "encode: before", "since", $isal.title, "klauspost", "recover: before", "since", "recover / encode: before", "since"),
  (([10,4,4096], (([65536], [1048576]) as [$bytes] | ([4,2], [6,3], [10,4], [12,4], [16,4], [32,8], [64,16]) | . + [$bytes])) as [$k, $m, $bytes]
  | row("(\($k), \($m)), \($bytes | size)",
      (rs_cell($old; "encode"; $k; $m; $bytes; $row)[0] | three),
      (rs_cell($new; "encode"; $k; $m; $bytes; $row) | with_spread),
      (($isal.row, $klauspost) as $peer | rs_cell($new; "encode"; $k; $m; $bytes; $peer)[0] | three),
      (rs_cell($old; "recover"; $k; $m; $bytes; $row)[0] | three),
      (rs_cell($new; "recover"; $k; $m; $bytes; $row) | with_spread),
      rs_asked($old; $k; $m; $bytes), rs_asked($new; $k; $m; $bytes)));

# CRS on one core, each at its best packet size.
def crs_group($title): [.groups[] | select(.title == $title)][0];
def crs_rate($operation; $row): [.cases[] | select(.operation == $operation and .row == $row)][0] | .gigabytes_per_second.input | spread | with_spread;
def crs_asked($name): [.ratios[] | select(.name == $name)][0] | spread | with_spread;
def crs_title: sub("1024 KiB"; "1 MiB") | sub(" shards, CRS"; "");
def crs_by_jerasure: crs_asked("encode, each at its best packet size: weft / jerasure");
def crs_recovery: crs_asked("recover, plan cached / encode");
# By machine code, and by the same run's programs or blocks.
def crs_compiled_heading: heading("", "encode", "by not compiled", "by Jerasure", "recover, plan cached", "by not compiled", "recover / encode");
def crs_compiled($row; $before): .groups[] | row($before + (.title | crs_title), crs_rate("encode"; $row),
    crs_asked("encode, each at its best packet size: compiled / not"), crs_by_jerasure,
    crs_rate("recover"; $row), crs_asked("recover, plan cached: compiled / not"), crs_recovery);
# The same, and the rates of an earlier binary.
def crs_since_heading: heading("", "encode", "before", "by not compiled", "by Jerasure", "recover, plan cached", "before", "recover / encode");
def crs_since($row; $name; $old): .groups[] | .title as $title | ($old | crs_group($title)) as $earlier
  | row($name + ($title | crs_title), crs_rate("encode"; $row), ($earlier | crs_rate("encode"; $row)),
    crs_asked("encode, each at its best packet size: compiled / not"), crs_by_jerasure,
    crs_rate("recover"; $row), ($earlier | crs_rate("recover"; $row)), crs_recovery);

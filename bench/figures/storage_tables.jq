# SPDX-License-Identifier: Apache-2.0
# Storage codes on a device over k and m: rates with spread, shares of the copy in the same group, recovery compared
# with encoding.
include "weft";
def resident($title): .groups[] | select(.title | startswith($title)) | .cases[];
def at($operation; $k; $m): [.[] | select(.operation == $operation and .n == $k and .m == $m)][0];
def copy_share($cases; $k; $m): data_rate[0] / ($cases | at("ceiling"; $k; $m) | .gigabytes_per_second.input.median) | percent;
def storage_table($title; $first): [resident($title)] as $cases
  | heading($first, "m = 2", "4", "8", "16"),
    (([$cases[].n] | unique[]) as $k | row($k, ((2, 4, 8, 16) as $m
      | ($cases | at("encode"; $k; $m)) as $one | ($cases | at("encode together"; $k; $m)) as $all
      | if $one == null then ""
        else "\($one | data_rate | with_spread), \($one | copy_share($cases; $k; $m))"
          + (if $all then ", together \($all | copy_share($cases; $k; $m))" else "" end) end)));
# For every recovery: its rate divided by encoding's.
def recoveries($title): [resident($title)] as $cases | [$cases[] | select(.operation == "recover") | . as $r
  | {m: .m, by: (data_rate[0] / ($cases | at("encode"; $r.n; $r.m) | data_rate[0]))}];
# Shares of all shapes that the goal covers.
def goal_shares($title): [resident($title)] as $cases | [$cases[] | select(.operation == "encode" and (.m < 16 or .n >= 16)) | . as $e
  | data_rate[0] / ($cases | at("ceiling"; $e.n; $e.m) | .gigabytes_per_second.input.median)];
# Groups that a run did not reach, from an earlier run; for the production path only what the bus decides.
def with_older($old): [.groups[].title] as $here | .groups += [$old.groups[] | select(.title as $t | $here | index([$t]) | not)
  | if .title | startswith("published") then .cases |= map(select(.row != "cuda-b1")) else . end];

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Speed cannot be tested on a busy machine, but instructions can be counted on any: this compares the
# products of the rows with the bounds in instruction_bounds.txt.
#
#   instructions_test.sh counted|loops GEMM_CALLS BOUNDS INNER_LOOPS_AWK
#
# counted: callgrind runs the rows up to AVX2; it does not support GFNI and AVX-512.
# loops: reads the disassembly of the rows that callgrind cannot run; the CPU need not support them.
# WEFT_PRINT_BOUNDS=1 prints the counts in the format of the bounds file, and nothing fails.
set -euo pipefail

mode=$1 program=$2 bounds=$3 awk_script=$4
tolerance=1.03 slack=0.90
failures=0 checked=0

skip() {
  printf 'SKIPPED: %s\n' "$1"
  exit 0
}

build=$("$program" --build)
# "gcc 12.2.0, opt -O3" -> gcc-12
compiler=$(sed -E 's/^([a-z]+) ([0-9]+).*/\1-\2/' <<<"$build")
case $build in
  *-fsanitize*) skip "a sanitizer's instructions are not the product's ($build)" ;;
esac
case $build in
  *"opt "*) ;;
  *) skip "needs an optimised build (-c opt), this is: $build" ;;
esac
[ "$(uname -m)" = x86_64 ] || skip "bounds exist for x86-64 only"
if [ -z "${WEFT_PRINT_BOUNDS:-}" ] && ! grep -Eq "^(counted|loop) $compiler " "$bounds"; then
  skip "instruction_bounds.txt has no bounds for $compiler"
fi

# compare NAME COUNT: checks the count against the bound, the last word of the line that begins with NAME.
compare() {
  local bound
  if [ -n "${WEFT_PRINT_BOUNDS:-}" ]; then
    printf '%s %s\n' "$1" "$2"
    return
  fi
  bound=$(awk -v name="$1 " 'index($0, name) == 1 { print $NF }' "$bounds")
  if [ -z "$bound" ]; then
    printf 'FAILED: %s has no bound; counted %s\n' "$1" "$2"
    failures=$((failures + 1))
    return
  fi
  checked=$((checked + 1))
  printf '%s: %s instructions per 1000 products, bound %s\n' "$1" "$2" "$bound"
  if awk -v c="$2" -v b="$bound" -v t="$tolerance" 'BEGIN { exit !(c > b * t) }'; then
    printf 'FAILED: %s takes more instructions than its bound\n' "$1"
    failures=$((failures + 1))
  elif awk -v c="$2" -v b="$bound" -v s="$slack" 'BEGIN { exit !(c < b * s) }'; then
    printf 'NOTE: %s takes far fewer; lower its bound\n' "$1"
  fi
}

# Prints the instructions that callgrind counts in a run; nothing if the row is absent.
collected() {
  local log status=0
  log=$(valgrind --tool=callgrind --callgrind-out-file=/dev/null "$program" "$@" 2>&1) || status=$?
  case $status in
    0) sed -nE 's/^==[0-9]+== Collected : ([0-9]+).*/\1/p' <<<"$log" ;;
    3) ;;
    *)
      printf '%s\n' "$log" >&2
      return 1
      ;;
  esac
}

# Prints the rows of this build that callgrind can run, or cannot; the program lists "NAME FEATURE..." on each line.
rows() {
  "$program" --rows | awk -v wanted="$1" '{ beyond = / (gfni|avx512)/ } (wanted == "counted") == !beyond { print $1 }'
}

count_rows() {
  local row m n=128 k=1024 one three
  command -v valgrind >/dev/null || skip "needs valgrind (tools/packages.txt, section ci)"
  for row in $(rows counted); do
    for m in 16 1; do
      one=$(collected "$row" "$m" "$n" "$k" 1)
      [ -n "$one" ] || {
        printf 'SKIPPED: row %s is not on this CPU\n' "$row"
        continue
      }
      three=$(collected "$row" "$m" "$n" "$k" 3)
      compare "counted $compiler $row $m $n $k" \
        "$(awk -v d=$((three - one)) -v p=$((m * n * k)) 'BEGIN { printf "%.2f", d / 2 / p * 1000 }')"
    done
  done
}

# Checks the best innermost loop of each FUNCTION with this instruction: the one with the fewest instructions per byte,
# among the loops that process the most bytes in a pass. PER is how many such instructions make one product.
check_inner_loops() {
  local instruction=$1 register=$2 bytes=$3 per=$4 loops function
  shift 4
  loops=$(awk -v wanted="$instruction" -v register="$register" -v bytes="$bytes" -f "$awk_script" "$disassembly")
  for function; do
    check_loop "$instruction" "$register" "$per" "$function" "$loops"
  done
}

check_loop() {
  local instruction=$1 register=$2 per=$3 function=$4 loops=$5 best
  best=$({ grep "^<${function}[>.]" <<<"$loops" || true; } | sort -k3,3nr -k2,2n |
    awk -v per="$per" 'NR == 1 { printf "%.2f", $2 * per / $3 * 1000 }')
  if [ -z "$best" ]; then
    printf 'FAILED: no inner loop of %s has %s on %s\n' "$function" "$instruction" "$register"
    failures=$((failures + 1))
    return
  fi
  compare "loop $compiler $instruction $register $function" "$best"
}

# Checks each row that callgrind cannot run: many output rows, one, the few of storage codes if it has a panel for them, and one
# source into four rows.
check_loops() {
  local row
  for row in $(rows loops); do
    case $row in
      gfni512) check_inner_loops vgf2p8affineqb zmm 64 1 tile_panel packed_columns stream_row few_block_2 few_block_16 fan_4 ;;
      gfni256) check_inner_loops vgf2p8affineqb ymm 32 1 tile_panel packed_columns stream_row fan_4 ;;
      gfni128) check_inner_loops gf2p8affineqb xmm 16 1 tile_panel packed_columns stream_row fan_4 ;;
      avx512) check_inner_loops vpshufb zmm 64 2 tile_panel packed_columns stream_row fan_4 ;;
      *)
        printf 'FAILED: row %s has no loop to look for\n' "$row"
        failures=$((failures + 1))
        ;;
    esac
  done
  check_inner_loops vpshufb ymm 32 2 tile_panel packed_columns stream_row fan_4 # even if this machine lacks it
}

case $mode in
  counted) count_rows ;;
  loops)
    command -v objdump >/dev/null || skip "needs objdump (binutils)"
    disassembly=$(mktemp)
    trap 'rm -f -- "$disassembly"' EXIT
    objdump -d --no-show-raw-insn "$program" > "$disassembly"
    check_loops
    ;;
  *)
    printf 'unknown mode %s\n' "$mode" >&2
    exit 2
    ;;
esac

printf '%d checked, %d failed (%s)\n' "$checked" "$failures" "$build"
[ "$failures" -eq 0 ]

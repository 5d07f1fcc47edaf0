#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `weft sim` run by ranks of MPI gives the same result as one process, and reports errors once.
set -euo pipefail
# shellcheck source=tests/cli/expect.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/expect.sh"

weft=$PWD/$1
program=("$weft")
policy=$PWD/$2 include=$PWD/peer/engine/include
mpi=${3:+$PWD/$3}
unlike=${4:+$PWD/$4}
work=${TEST_TMPDIR:-$(mktemp -d)}
cd -- "$work"

small=(--peers 30 --duration 15s --arrival together --departure stay --threads 2)

state() { grep '^state hash' "$1"; }
if [ -z "$mpi" ] || [ ! -x "$mpi" ] || ! command -v mpirun >/dev/null; then
  printf 'skipped: no MPI here, so weft-sim-mpi is not run\n'
else
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_plm_rsh_agent=/bin/false
  export HOME=$work TMPDIR=$work OMPI_MCA_btl_vader_single_copy_mechanism=none
  # Not in /dev/shm, which sandboxes share: names contain process ids, and each sandbox counts its
  # own.
  export OMPI_MCA_btl_vader_backing_directory=$work
  expect 0 sim "${small[@]}" --fidelity rank --no-files
  state out >alone
  for ranks in 1 2 3; do
    # Open MPI does not free all its memory.
    ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 timeout 120 mpirun --oversubscribe -n "$ranks" "$mpi" --oversubscribe "${small[@]}" --threads 1 --fidelity rank --no-files \
      >state 2>err || fail "mpirun -n $ranks: $(cat err)"
    state state | cmp -s - alone || fail "$ranks ranks end in another state than one process"
  done
  # Memory is that of all ranks, help is printed once, and an argument with spaces reaches all ranks
  # as one.
  of_ranks() { # OPTION...: by three ranks, report in `state`
    ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 timeout 60 mpirun --oversubscribe -n 3 "$mpi" --oversubscribe "$@" >state 2>err
  }
  memory() { sed -n 's/.*"memory_bytes":\([0-9]*\).*/\1/p' "$1"; }
  expect 0 sim --peers 200 --duration "10 s" --threads 1 --no-files --json
  of_ranks --peers 200 --duration "10 s" --no-files --json || fail "three ranks: $(cat err)"
  [ "$(memory state)" -ge "$(memory out)" ] || fail "three ranks have $(memory state) bytes of memory together, one has $(memory out)"
  of_ranks --help || fail "help of three ranks: $(cat err)"
  [ "$(grep -c '^Usage' state)" = 1 ] || fail "help of three ranks: $(cat state)"
  of_ranks --peers 20 --duration 5s --no-files -q -- flash-crowd || fail "a scenario after -- of three ranks: $(cat err)"
  of_ranks --peers 20 --duration 5s --no-files --json -t2 || fail "-t2 of three ranks: $(cat err)"
  grep -q '"threads":2[,}]' state || fail "-t2 of three ranks: $(cat state)"
  of_ranks --peers 0 && fail "no peers, of three ranks"
  [ "$(grep -c '^weft sim: --peers must be' err)" = 1 ] || fail "no peers, of three ranks: $(cat err)"
  of_ranks --peers 0 --json && fail "no peers, of three ranks, as JSON"
  python3 -c 'import json; told = json.load(open("state")); assert told["exit_code"] == 2 and "--peers must be" in told["error"], told' ||
    fail "an error of three ranks as JSON: $(cat state err)"
  of_ranks --no-such && fail "an unknown option, of three ranks"
  [ "$(grep -c '^weft sim: Unknown option' err)" = 1 ] || fail "an unknown option, of three ranks: $(cat err)"
  many=$(($(nproc --all) + 1)) # mpirun lets its ranks use processors that this shell may not use
  code=0
  ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 timeout 60 mpirun --oversubscribe -n "$many" "$mpi" "${small[@]}" --no-files >state 2>err || code=$?
  [ "$code" != 0 ] || fail "$many ranks on $(nproc --all) processors were not refused"
  says 'ranks would wait for each other' err

  # A lack of one machine, or its files, ends the run on all: the others would wait for ever.
  together() { # WHAT WANTED-IN-err ARGUMENT... of mpirun
    local what=$1 wanted=$2 code=0
    shift 2
    ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 timeout 60 mpirun --oversubscribe "$@" >state 2>err || code=$?
    case $code in 0 | 124) fail "$what of the second rank: code $code: $(cat err)" ;; esac
    says "$wanted" err
    [ "$(grep -c '^weft sim:' err)" = 1 ] || fail "$what of the second rank is not told once: $(cat err)"
  }
  # Memory may run out at any moment of one rank, at the start, in the run or when results are
  # collected.
  for gives in $(seq 0 6 400); do
    code=0
    ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 timeout 60 mpirun --oversubscribe -x GIVES="$gives" -n 2 "$unlike" --oversubscribe "${small[@]}" --duration 5s --threads 1 --fidelity rank --no-files >state 2>err || code=$?
    [ "$code" != 0 ] || break
    [ "$code" = 4 ] || fail "memory given $gives times: code $code, not 4: $(cat err)"
    [ "$(grep -c '^weft sim: out of host memory' err)" = 1 ] || fail "memory given $gives times is not told once: $(cat err)"
  done
  [[ $gives -gt 50 && $code = 0 ]] || fail "memory given $gives times: code $code"
  together 'little memory' 'the run may need' -x UNLIKE=memory -n 2 "$unlike" "${small[@]}" --peers 300 --fidelity bytes --threads 1 --no-files
  together 'one processor' 'ranks would wait for each other' -x UNLIKE=processors -n 2 "$unlike" "${small[@]}" --threads 1 --no-files
  seq 1 30 >trace
  traced=("$mpi" --oversubscribe "${small[@]}" --threads 1 --no-files --arrival trace)
  together 'no trace' 'no-such' -n 1 "${traced[@]}" --trace trace : -n 1 "${traced[@]}" --trace no-such
  "${CC:-cc}" -std=c11 -shared -fPIC -I"$include" -o policy.so "$policy"
  expect 0 sim "${small[@]}" --fidelity rank --no-files --scheme ./policy.so
  state out >alone
  of_ranks "${small[@]}" --threads 1 --fidelity rank --no-files --scheme ./policy.so || fail "a policy on three ranks: $(cat err)"
  state state | cmp -s - alone || fail "three ranks with a policy in a file end in another state than one process"
  owned=("$mpi" --oversubscribe "${small[@]}" --threads 1 --no-files --scheme)
  together 'no policy' 'no-such.so' -n 1 "${owned[@]}" ./policy.so : -n 1 "${owned[@]}" ./no-such.so
  together 'no policy' 'no-such.so' -n 1 "${owned[@]}" ./no-such.so : -n 1 "${owned[@]}" ./policy.so
  together 'two threads' 'threads' -n 1 "${traced[@]}" --trace trace : -n 1 "${traced[@]}" --trace trace --threads 2
fi

[ "$failures" = 0 ] || exit 1
printf 'weft sim: ranks agree\n'

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Measures how a simulated swarm speeds up with threads and with MPI ranks; prints JSON on standard output. Needs only
# the program and, for ranks, `weft-sim-mpi` and mpirun. All runs must end in the same state, or the script fails: the
# speed of a different computation means nothing. The time by the clock needs idle processors, so each run also has its
# effort in processor time (docs/scale.md): the time of all lanes, and the path, which is each window's longest lane
# plus what is done between windows. The path is the time on idle processors.
#
# sim_curve.sh WEFT [WEFT_SIM_MPI]
#   COUNTS="1 2 4 8 16"  threads, and ranks; those above the number of processors are left out
#   PEERS=100000 DURATION="10 s" REPS=3 SCENARIO=million SEED=1
# Environment variables of MPI are passed on (as root in a container, Open MPI requires OMPI_ALLOW_RUN_AS_ROOT=1 and
# OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1).
set -eu
if [ $# -lt 1 ] || ! command -v -- "$1" >/dev/null; then
  echo 'usage: sim_curve.sh WEFT [WEFT_SIM_MPI]; WEFT is the program' >&2
  exit 2
fi
weft=$1
mpi=${2:-}
counts=${COUNTS:-1 2 4 8 16}
peers=${PEERS:-100000}
duration=${DURATION:-10 s}
reps=${REPS:-3}
scenario=${SCENARIO:-million}
seed=${SEED:-1}
processors=$(getconf _NPROCESSORS_ONLN)
# A folder of its own, shared by weft-sim-mpi's ranks.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

number() { # KEY FILE: the value of a key of the run's JSON
  sed -n "s/.*\"$1\": *\"\{0,1\}\([0-9a-f.]*\)\"\{0,1\}[,}].*/\1/p" "$2" | head -n 1
}

if [ -n "$mpi" ] && ! command -v mpirun >/dev/null; then
  echo "sim_curve.sh: no mpirun here: threads only" >&2
  mpi=""
fi
model=$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1)
commit=$("$weft" --version | sed -n 's/.*commit \([^,]*\),.*/\1/p')
printf '{"what":"simulated swarm, threads and ranks","commit":"%s","machine":"%s, %s processors","scenario":"%s","peers":%s,' \
  "$commit" "$model" "$processors" "$scenario" "$peers"
printf '"duration":"%s","seed":%s,"runs":[' "$duration" "$seed"
hash="" comma=""
# Interleaved, so that a busy neighbour affects every point.
for rep in $(seq "$reps"); do
  for count in $counts; do
    [ "$count" -le "$processors" ] || continue
    for kind in threads ranks; do
      [ "$kind" = threads ] || [ -n "$mpi" ] || continue
      if [ "$kind" = threads ]; then
        "$weft" sim "$scenario" --peers "$peers" --duration "$duration" --seed "$seed" --threads "$count" --no-files \
          --json >"$work/run"
      else
        mpirun -n "$count" "$mpi" "$scenario" --peers "$peers" --duration "$duration" --seed "$seed" --no-files --json \
          >"$work/run"
      fi
      state=$(number state_hash "$work/run")
      hash=${hash:-$state}
      if [ -z "$state" ] || [ "$state" != "$hash" ]; then
        echo "sim_curve.sh: $count $kind ended in state '$state', others in $hash" >&2
        exit 1
      fi
      wall=$(number wall_s "$work/run") events=$(number events "$work/run") lanes=$(number lanes_s "$work/run")
      path=$(awk "BEGIN { print $(number longest_s "$work/run") + $(number between_s "$work/run") }")
      printf '%s{"kind":"%s","count":%s,"rep":%s,"wall_s":%s,"lanes_s":%s,"path_s":%s,"events":%s}' "$comma" "$kind" \
        "$count" "$rep" "$wall" "$lanes" "$path" "$events"
      comma=,
      echo "$kind $count, run $rep: $wall s; path $path of $lanes processor s" >&2
    done
  done
done
printf '],"state_hash":"%s"}\n' "$hash"

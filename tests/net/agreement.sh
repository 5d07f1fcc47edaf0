#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Real peers and the simulator agree on the same network: a live stream, peers that join it one
# after another, 2 % loss, 20 ms each way. Prints start-up delay, source upload and overhead of both
# as JSON, and fails if they differ by more than --within (0.1).
#
#   agreement.sh WEFT RELAY [--peers N] [--seconds S] [--within X] [--seeds N] [--keep FOLDER]
#
# keep: copies the logs and the simulations' results there. Without user namespaces or TUN, it says
# so and passes.
set -uo pipefail
# shellcheck source=tests/net/spaces.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/spaces.sh"
enter_spaces "$@"
shift 2
peers=30 seconds=40 within=0.1 seeds=5 keep=
while [ $# -gt 0 ]; do
  case $1 in
    --peers) peers=$2 ;;
    --seconds) seconds=$2 ;;
    --within) within=$2 ;;
    --seeds) seeds=$2 ;;
    --keep) keep=$(readlink -f -- "$2") ;;
    *)
      printf 'agreement.sh: what is %s?\n' "$1" >&2
      exit 2
      ;;
  esac
  shift 2
done
rate=768000
seed=${WEFT_TEST_SEED:-$((RANDOM * 32768 + RANDOM))}
printf 'seed: WEFT_TEST_SEED=%s\n' "$seed" >&2

enter_work agreement
pids=()
# shellcheck disable=SC2317 # called by the trap
finish() {
  [ "${#pids[@]}" -eq 0 ] || kill -KILL "${pids[@]}" 2>/dev/null
  wait 2>/dev/null
}
trap finish EXIT

# --- Real peers
head -c $((rate * seconds / 8)) /dev/urandom >in.bin
start_relay "$peers" "$seed" 20000 20000 0 0
pids+=("$relay_pid")
start_source "$rate" --lag 3000 --congestion off
pids+=("$source_pid")
begin=$(date +%s%N) # beginning of the stream: its first segment exists from its first bytes
cat in.bin >&8 &
exec 8>&-
sleep 4
joiners=()
for ((i = 1; i <= peers; i++)); do
  start_join "$i" "peer$i" "$weft" --output /dev/null --log-format json --congestion off --upload $((rate * 3))
  joiners+=("$join_pid")
  pids+=("$join_pid")
  sleep 0.25 # joins are spread over several segments, so where each peer begins is random
done
bad=0
for pid in "${joiners[@]}"; do wait "$pid" || bad=1; done
wait "$source_pid" || bad=1
kill -TERM "$relay_pid"
[ "$bad" -eq 0 ] || { tail -n 2 ./*.log >&2; exit 1; }

# --- The same, simulated: every peer asks to join when the real one did
python3 - "$begin" "$peers" <<'PYTHON' || exit 1
import datetime, json, sys
begin, peers = int(sys.argv[1]) / 1e9, int(sys.argv[2])
joined = []
for i in range(1, peers + 1):
    events = [json.loads(line) for line in open(f"peer{i}.log")]
    at = next(e["time"] for e in events if e["event"] == "join").replace("Z", "+00:00")
    joined.append(datetime.datetime.fromisoformat(at).timestamp() - begin)
    json.dump(next(e for e in events if e["event"] == "summary"), open(f"summary{i}.json", "w"))
with open("trace", "w") as trace:
    trace.writelines(f"{at:.6f}\n" for at in sorted(joined))
PYTHON
for ((s = 1; s <= seeds; s++)); do
  "$weft" sim agreement --peers "$peers" --duration "${seconds}s" --arrival trace --trace trace --seed "$s" \
    --no-files --json >"sim$s.json" || exit 1
done

[ -z "$keep" ] || cp -- ./*.log trace sim*.json "$keep"
grep -h '^info summary' source.log >source.line
python3 - "$within" "$peers" <<'PYTHON'
import glob, json, re, sys
within, peers = float(sys.argv[1]), int(sys.argv[2])
def fields(line):
    return {k: int(v) for k, v in re.findall(r" (\w+)=(-?\d+)", line)}
def mean(values):
    values = list(values)
    return sum(values) / len(values)
source = fields(open("source.line").read())
real = [json.load(open(f"summary{i}.json")) for i in range(1, peers + 1)]
stream = len(open("in.bin", "rb").read())
wire = lambda f: f["sent_bytes"] + 28 * f["sent"]  # IP and UDP
sent = wire(source) + sum(map(wire, real))
median = sorted(f["join_to_play_ms"] for f in real)[(peers + 1) // 2 - 1] / 1000
a = {"startup_s": median, "source_streams": wire(source) / stream,
     "overhead": sent / (1024 * sum(f["innovative"] for f in real)) - 1,
     "continuity": sum(f["in_time"] for f in real) / sum(f["due"] for f in real)}
runs = [json.load(open(name))["metrics"] for name in glob.glob("sim*.json")]
b = {"startup_s": mean(r["startup_p50_s"] for r in runs), "source_streams": mean(r["source_streams"] for r in runs),
     "overhead": mean(1 / r["share_useful"] - 1 for r in runs), "continuity": mean(r["continuity"] for r in runs)}
ratio = {k: b[k] / a[k] for k in a}
print(json.dumps({"peers": peers, "seeds": len(runs), "real": a, "simulated": b, "simulated_by_real": ratio}, indent=2))
more = {"real_useless": sum(f["dependent"] + f["late"] for f in real) / sum(f["innovative"] for f in real),
        "sim_shares": {k: mean(r[k] for r in runs) for k in runs[0] if k.startswith("share_")}}
print(json.dumps(more), file=sys.stderr)
far = [k for k in ("startup_s", "source_streams", "overhead") if abs(ratio[k] - 1) > within]
sys.exit(f"further apart than {within}: {', '.join(far)}" if far else 0)
PYTHON

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Real peers and the simulator on the same network: a live stream, peers that join it one after the
# other, 2 % loss, 20 ms each way. Prints start-up delay, source upload and overhead of both as JSON,
# and fails where they are further apart than --within (0.1).
#
#   agreement.sh WEFT RELAY [--peers N] [--seconds S] [--within X] [--seeds N]
#
# Without user namespaces or TUN it says so and passes.
set -uo pipefail
if [ "${WEFT_IN_NAMESPACE:-}" != yes ]; then
  if ! unshare -Urm true 2>/dev/null || [ ! -e /dev/net/tun ]; then
    printf 'skipped: needs user namespaces (unshare -Urm) and /dev/net/tun\n'
    exit 0
  fi
  WEFT_IN_NAMESPACE=yes exec unshare -Urm --propagation private "$0" "$@"
fi

weft=$(readlink -f -- "$1")
relay=$(readlink -f -- "$2")
shift 2
peers=30 seconds=40 within=0.1 seeds=5
while [ $# -gt 0 ]; do
  case $1 in
    --peers) peers=$2 ;;
    --seconds) seconds=$2 ;;
    --within) within=$2 ;;
    --seeds) seeds=$2 ;;
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

work=$(mktemp -d "${TEST_TMPDIR:-/tmp}/agreement.XXXXXX")
mount -t tmpfs none "$work" || exit 1
cd -- "$work" || exit 1
pids=()
# shellcheck disable=SC2317 # called by the trap
finish() {
  [ "${#pids[@]}" -eq 0 ] || kill -KILL "${pids[@]}" 2>/dev/null
  wait 2>/dev/null
}
trap finish EXIT

in_space() { # I COMMAND...: in namespace I
  local space=$1
  shift
  exec nsenter --net="$work/ns$space" -- "$@"
}

# --- Real peers
head -c $((rate * seconds / 8)) /dev/urandom >in.bin
"$relay" "$work" $((peers + 1)) "$seed" 20000 20000 0 0 >relay.log &
relay_pid=$!
pids+=("$relay_pid")
for ((i = 0; i < 200; i++)); do
  grep -q ready relay.log && break
  sleep 0.05
done
grep -q ready relay.log || exit 1
mkfifo pipe
exec 8<>pipe
(in_space 0 "$weft" peer source --input - --listen 10.77.0.1:7000 --rate "$rate" --lag 3000 \
  --congestion off --upload $((rate * 39 / 10)) <pipe 8>&- 2>source.log) &
source_pid=$!
pids+=("$source_pid")
for ((i = 0; i < 100; i++)); do
  grep -q '^info source' source.log && break
  sleep 0.05
done
key=$(sed -n 's/.* key=\([0-9a-f]*\).*/\1/p' source.log | head -n 1)
cat in.bin >&8 &
exec 8>&-
begin=$(date +%s%N)
sleep 4
joiners=()
for ((i = 1; i <= peers; i++)); do
  awk -v b="$begin" -v n="$(date +%s%N)" 'BEGIN { printf "%.6f\n", (n - b) / 1e9 }' >>trace
  (in_space "$i" "$weft" peer join --source 10.77.0.1:7000 --source-key "$key" --output /dev/null --startup 1000 \
    --congestion off --upload $((rate * 3)) --linger 1 8>&- 2>"peer$i.log") &
  joiners+=($!)
  pids+=($!)
  sleep 0.25 # together they spread over several segments: who begins where is chance then
done
bad=0
for pid in "${joiners[@]}"; do wait "$pid" || bad=1; done
wait "$source_pid" || bad=1
kill -TERM "$relay_pid"
[ "$bad" -eq 0 ] || { tail -n 2 ./*.log >&2; exit 1; }

# --- The same, simulated
for ((s = 1; s <= seeds; s++)); do
  "$weft" sim agreement --peers "$peers" --duration "${seconds}s" --arrival trace --trace trace --seed "$s" \
    --no-files --json >"sim$s.json" || exit 1
done

grep -h '^info summary' source.log >source.line
grep -h '^info summary' peer*.log >peer.lines
python3 - "$within" "$peers" <<'PYTHON'
import glob, json, re, sys
within, peers = float(sys.argv[1]), int(sys.argv[2])
def fields(line):
    return {k: int(v) for k, v in re.findall(r" (\w+)=(-?\d+)", line)}
def mean(values):
    values = list(values)
    return sum(values) / len(values)
source = fields(open("source.line").read())
real = [fields(line) for line in open("peer.lines")]
assert len(real) == peers, f"{len(real)} of {peers} peers told what came of it"
stream = len(open("in.bin", "rb").read())
wire = lambda f: f["sent_bytes"] + 28 * f["sent"]  # IP and UDP
sent = wire(source) + sum(map(wire, real))
median = sorted(f["startup_ms"] for f in real)[(peers + 1) // 2 - 1] / 1000
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

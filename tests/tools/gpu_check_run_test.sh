#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A folder of tools/gpu-check with programs that only note that they ran: nothing passes that did not run.
# $1: tools/gpu-check-run, $2: tools/gpu-check.
set -u
gpu_check=$PWD/$2
folder=$TEST_TMPDIR/folder
mkdir -p -- "$folder/bin"
install -m 755 "$1" "$folder/run-all"
echo some-version >"$folder/version"
cat >"$folder/bin/any" <<'TEXT'
#!/usr/bin/env bash
echo "${0##*/} $*" >>"$RAN"
[ "$*" != device ] || [ "${DEVICE:-1}" -eq 1 ]
TEXT
chmod 755 "$folder/bin/any"
for name in table_check context_test faults_test server_test storage_test codec_test lib_test weft-bench table-bench \
  tensor-bench; do
  ln -s any "$folder/bin/$name"
done
mkdir -p -- "$TEST_TMPDIR/tools"
ln -s "$folder/bin/any" "$TEST_TMPDIR/tools/python3"
export RAN=$TEST_TMPDIR/ran PATH=$TEST_TMPDIR/tools:$PATH
failed=0

# run CODE WORD OPTION...: ends with CODE and writes WORD.
run() {
  local wanted=$1 word=$2 code
  shift 2
  : >"$RAN"
  "$folder/run-all" --out "$TEST_TMPDIR/out" "$@" >"$TEST_TMPDIR/log" 2>&1
  code=$?
  if [ "$code" -ne "$wanted" ] || ! grep -qF -- "$word" "$TEST_TMPDIR/log"; then
    echo "run-all $* ended with $code, not with $wanted and \"$word\":"
    cat "$TEST_TMPDIR/log"
    failed=1
  fi
}

# ran COUNT: so many programs ran in the last run, beside the question for a device.
ran() {
  local count
  count=$(grep -cv ' device$' "$RAN")
  if [ "$count" -ne "$1" ]; then
    echo "$count programs ran, not $1:"
    cat "$RAN"
    failed=1
  fi
}

run 0 'all passed'
ran 14
run 0 'all passed' --tests-only
ran 8
run 0 'all passed' --bench-only --bench server,tables
ran 2
for list in gpus gpu,nothing gpu,,rlnc ''; do
  run 2 'there is no bench "' --bench "$list"
  ran 0
done
DEVICE=0 run 1 'there is no device that weft can use'
ran 0
DEVICE=0 run 1 'there is no device that weft can use' --bench-only --bench gpu
ran 0

# The script that makes the folder takes no options: they are those of run-all.
for words in --quick 'folder --quick' 'folder other'; do
  read -ra given <<<"$words"
  code=0
  "$gpu_check" "${given[@]}" >/dev/null 2>"$TEST_TMPDIR/usage" || code=$?
  if [ "$code" != 2 ] || ! grep -F 'usage: tools/gpu-check' "$TEST_TMPDIR/usage" >/dev/null; then
    printf 'gpu-check %s ended with %s\n' "$words" "$code"
    failed=1
  fi
done
exit "$failed"

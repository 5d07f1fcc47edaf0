#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Bash completion of the program's words, and its manual page, are complete: both are taken from its
# help.
#
#   words_test.sh WEFT COMPLETION MANUAL
set -euo pipefail
# shellcheck source=tests/cli/expect.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/expect.sh"
weft=$PWD/$1 manual=$PWD/$3
# shellcheck disable=SC1090,SC1091 # it is checked by itself, too
. "$PWD/$2"
cd -- "${TEST_TMPDIR:-$(mktemp -d)}"

# completes WORDS WANTED: the last of the words, which may be empty
completes() {
  local words=()
  read -ra words <<<"$1"
  [[ $1 != *' ' ]] || words+=('')
  COMP_WORDS=("${words[@]}") COMP_CWORD=$((${#words[@]} - 1)) COMPREPLY=()
  _weft "$weft" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
  [ "${COMPREPLY[*]}" = "$2" ] || fail "'$1' is completed by '${COMPREPLY[*]}', not '$2'"
}
completes 'weft ' 'demo sim bench store peer backends help'
completes 'weft st' store
completes 'weft store ' 'encode decode read info verify scrub repair update'
completes 'weft store encode --out' --output-dir
completes 'weft store encode -k 10 --out' --output-dir
completes 'weft store decode shards --out' --output
completes 'weft store decode sha' ''
completes 'weft peer t' tracker
completes 'weft peer join --map' --map-port
completes 'weft peer tracker --li' --listen
completes 'weft peer join --scheme pu' 'push pull'
completes 'weft sim flash' flash-crowd
completes 'weft sim --show lossy' lossy-mobile
completes 'weft sim --scheme ra' rarest
completes 'weft sim --scheme = ra' rarest # bash splits --scheme=ra
completes 'weft sim --scheme =' 'push pull source-only rarest'
completes 'weft bench sto' storage
completes 'weft demo --backend scal' scalar
completes 'weft help p' peer
completes 'weft help store en' encode
completes 'weft backends ' ''

# Every command, and every option of each, is in the manual page.
"$manual" "$weft" >weft.1
if command -v groff >/dev/null; then
  groff -man -Tascii -P-c -P-b -P-u -rLL=200n -ww weft.1 >page 2>warnings
  [ ! -s warnings ] || fail "groff of the manual page: $(head -n 3 warnings)"
else
  printf 'skipped: no groff on PATH, so the manual page is not set\n'
  sed 's/\\-/-/g' weft.1 >page
fi
for call in demo sim 'store encode' 'store decode' 'store read' 'store info' 'store verify' 'store scrub' 'store repair' \
  'store update' 'peer source' 'peer join' 'peer tracker' backends; do
  grep -qi "weft $call\"\?$" page || fail "the manual page has no section of weft $call"
  # shellcheck disable=SC2086 # words
  for option in $("$weft" $call --help | grep -o -- '--[a-z][a-z0-9-]*' | sort -u); do
    grep -q -e "$option" page || fail "the manual page has no $option of weft $call"
  done
done
wrong=0
"$manual" /nonexistent >out 2>err || wrong=$?
[ "$wrong" -eq 2 ] || fail "a manual of nothing exits $wrong"
[ "$failures" = 0 ]

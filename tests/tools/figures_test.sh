#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tools/figures on a tree of its own, with a jq that gives its script, and a git that knows one document: what it did not
# do must not look done. $1: tools/figures
set -uo pipefail
work=$(mktemp -d "${TEST_TMPDIR:-/tmp}/figures.XXXXXX")
trap 'rm -rf -- "$work"' EXIT
mkdir -p "$work/tools" "$work/bin" "$work/bench/figures" "$work/docs/figures"
cp -- "$1" "$work/tools/figures"
cat >"$work/bin/jq" <<'EOF'
#!/bin/bash
while [ "$1" != -f ]; do shift; done
tail -n +2 "$2"
EOF
cat >"$work/bin/gnuplot" <<'EOF'
#!/bin/sh
echo gnuplot
EOF
cat >"$work/bin/git" <<'EOF'
#!/bin/sh
printf 'page.md\0'
EOF
chmod +x "$work/bin"/*
export PATH=$work/bin:$PATH
printf '# results: none?\n| one |\n' >"$work/bench/figures/one.md.jq"
printf '# results: none?\n| two |\n' >"$work/bench/figures/two.md.jq"
printf '# results: none?\npage.md\tthe end\n' >"$work/bench/figures/one.quoted.jq"
echo '<!-- data and scripts -->' >"$work/docs/figures/of.svg"
: >"$work/bench/figures/of.gp"
page() { # of these lines
  printf '%s\n' "$@" 'the end' >"$work/page.md"
}
failed=0
expect() { # CODE TEXT ARGUMENT...
  local wanted=$1 words=$2 code
  shift 2
  cp "$work/page.md" "$work/before"
  "$work/tools/figures" "$@" >"$work/log" 2>&1
  code=$?
  if [ "$code" -ne "$wanted" ] || ! grep -qF -- "$words" "$work/log"; then
    printf 'FAIL: figures %s: exit %s, and said\n%s\n' "$*" "$code" "$(cat -- "$work/log")" >&2
    failed=1
  fi
  if [ "$code" -ne 0 ] && ! cmp "$work/before" "$work/page.md"; then
    printf 'FAIL: figures %s: the document is another\n' "$*" >&2
    failed=1
  fi
}
one='<!-- figures: one -->'
two='<!-- figures: two -->'
end='<!-- end -->'
page "$one" "$end" text "$two" "$end"
expect 0 '0 drawings, 2 tables written, 1 sentences' one two
printf '%s\n' "$one" '| one |' "$end" text "$two" '| two |' "$end" 'the end' | cmp - "$work/page.md" || failed=1
expect 0 '0 drawings, 1 tables checked, 1 sentences' one --check
expect 2 'none is called nosuch' one nosuch
expect 2 'none is called style' style
expect 2 'none is called ../figures/one' ../figures/one
page "$one" text
expect 1 'marks of the table one' one
page "$one" text "$two" "$end"
expect 1 'marks of the table one' one
page " $one" "$end"
expect 1 'marks of the table one' one
page text
expect 1 'no document has the table one' one
page "$one" '| one |' "$end" '<!-- figures: gone -->' "$end"
expect 1 'the table gone, of which there is no script' one --check
printf '# results: none?\npage.md\t\n' >"$work/bench/figures/one.quoted.jq"
page "$one" '| one |' "$end"
expect 1 'does not say ""' one --check
exit "$failed"

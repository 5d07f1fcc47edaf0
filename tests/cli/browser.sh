#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# For scripts that open the pages that weft writes; to be sourced after expect.sh. $browser is a
# browser that starts here; it is empty if there is none, which is reported.
# shellcheck disable=SC2034,SC2154 # scripts use what it sets, and set $work

browser=

find_browser() {
  local name
  printf '<p id="here">\n' >"$work/empty.html"
  for name in chromium chromium-browser google-chrome; do
    command -v "$name" >/dev/null || continue
    HOME=$work timeout 120 "$name" --headless=new --no-sandbox --disable-gpu --dump-dom "file://$work/empty.html" >dom 2>console || true
    if grep -q 'id="here"' dom; then
      browser=$name
      return
    fi
  done
  printf 'skipped: no chromium on PATH that starts, so report.html is not opened\n'
}

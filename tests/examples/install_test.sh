#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# An installed copy is enough: examples compile from it as C11, a program of C++17 and a shared library that takes the
# whole of it in, each without a warning, by what pkg-config says alone.
# $1: tools/install, $2: libweft.a, $3: the examples, $4: further flags
set -euo pipefail
cp -RL -- . "$TEST_TMPDIR/tree" # the script finds its tree through links
archive=$PWD/$2
prefix=$TEST_TMPDIR/prefix
WEFT_ARCHIVE=$archive "$TEST_TMPDIR/tree/$1" "$prefix"
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
read -ra compile < <(pkg-config --cflags libweft)
read -ra link < <(pkg-config --libs libweft)
warnings=(-Wall -Wextra -Wpedantic -Werror ${4:+"$4"})

read -ra examples <<<"$3"
[ "${#examples[@]}" -ge 4 ]
for example in "${examples[@]}"; do
  cc -std=c11 "${warnings[@]}" "${compile[@]}" "$example" "${link[@]}" -o "$TEST_TMPDIR/example"
done
[ "$(cc -std=c11 "${warnings[@]}" "${compile[@]}" "${examples[0]}" "${link[@]}" -o "$TEST_TMPDIR/embed" && "$TEST_TMPDIR/embed")" = "done: every byte came back" ]

# Every header, by the name that a program includes.
for header in "$prefix"/include/weft/*.h; do
  printf '#include <weft/%s>\n' "${header##*/}"
done >"$TEST_TMPDIR/all.cc"
cat >>"$TEST_TMPDIR/all.cc" <<'EOF'
#include <cstring>

int main() {
  weft_ctx *ctx = nullptr;
  weft_engine_options none{};
  const bool good = weft_ctx_new(&ctx, nullptr) == WEFT_OK && weft_ctx_threads(ctx) == 1 &&
                    weft_engine_memory_bytes(&none) == 0 && std::strlen(weft_version()) > 0;
  weft_ctx_free(ctx);
  return good ? 0 : 1;
}
EOF
c++ -std=c++17 "${warnings[@]}" "${compile[@]}" "$TEST_TMPDIR/all.cc" "${link[@]}" -o "$TEST_TMPDIR/all"
"$TEST_TMPDIR/all"
[ "$(pkg-config --modversion libweft)" = "$(sed -n 's/.*weft_version(void); \/\/ "\(.*\)"/\1/p' "$prefix/include/weft/weft.h")" ]
cc -shared "${warnings[@]}" -o "$TEST_TMPDIR/libtaken.so" -Wl,--whole-archive "$prefix/lib/libweft.a" -Wl,--no-whole-archive "${link[@]}"

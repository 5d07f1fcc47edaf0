#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# An installed copy is enough: examples compile from it as C11, a program of C++17 and a shared library that takes the
# whole of it in, each without a warning, by what pkg-config says alone; then a program by CMake. The path has what a shell
# would not take as it is.
# What was built is installed with the program.
# $1: tools/install, $2: libweft.a, $3: the examples, $4: the program, $5: further flags
set -euo pipefail
cp -RL -- . "$TEST_TMPDIR/tree" # the script finds its tree through links
archive=$PWD/$2
prefix="$TEST_TMPDIR/pre fix #1 & that's it"
WEFT_ARCHIVE=$archive "$TEST_TMPDIR/tree/$1" "$prefix"
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
# Its words, as a shell takes them.
compile=() link=() link_shared=()
eval "compile=($(pkg-config --cflags libweft)) link=($(pkg-config --libs libweft)) link_shared=($(pkg-config --libs libweft-shared))"
warnings=(-Wall -Wextra -Wpedantic -Werror ${5:+"$5"})

read -ra examples <<<"$3"
[ "${#examples[@]}" -ge 4 ]
for example in "${examples[@]}"; do
  cc -std=c11 "${warnings[@]}" "${compile[@]}" "$example" "${link[@]}" -o "$TEST_TMPDIR/example"
  cc -std=c11 "${warnings[@]}" "${compile[@]}" "$example" "${link_shared[@]}" -o "$TEST_TMPDIR/example"
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

# The shared library by pkg-config; it is found again where it was linked from.
done="done: every byte came back"
cc -std=c11 "${warnings[@]}" "${compile[@]}" "${examples[0]}" "${link_shared[@]}" -Wl,-rpath,"$prefix/lib" -o "$TEST_TMPDIR/shared"
# Before 1.0 a program takes no other minor version than its own, and neither does Python.
soname=libweft.so.$(pkg-config --modversion libweft | cut -d. -f1,2)
readelf -d "$TEST_TMPDIR/shared" | grep -F "[$soname]" >/dev/null
grep -F "\"$soname\"" "$prefix/share/weft/weft/_declarations.py" >/dev/null
"$TEST_TMPDIR/shared" | grep -xF "$done" >/dev/null

# A package: files below DESTDIR, which nothing in them speaks of.
(umask 077; DESTDIR=$TEST_TMPDIR/staged WEFT_ARCHIVE=$archive "$TEST_TMPDIR/tree/$1" /opt/weft >/dev/null)
[ -z "$(find "$TEST_TMPDIR/staged/opt" ! -type l ! -perm -444)" ] # for all, whoever has made it
[ "$(PKG_CONFIG_PATH=$TEST_TMPDIR/staged/opt/weft/lib/pkgconfig pkg-config --variable=includedir libweft)" = /opt/weft/include ]
[ -e "$TEST_TMPDIR/staged/opt/weft/include/weft/weft.h" ]
! grep -rl -- "$TEST_TMPDIR/staged" "$TEST_TMPDIR/staged/opt/weft"/lib/*/ || exit 1

# What can be put nowhere is said before anything is built, which a tree without bazelw shows.
: >"$TEST_TMPDIR/file"
code=0
"$TEST_TMPDIR/tree/$1" "$TEST_TMPDIR/file/prefix" >"$TEST_TMPDIR/said" 2>&1 || code=$?
[ "$code" = 3 ]
grep -F "nothing can be put into $TEST_TMPDIR/file/prefix: $TEST_TMPDIR/file is no folder" "$TEST_TMPDIR/said" >/dev/null

# An archive is looked for where the user stands; one that is not there leaves nothing installed.
(cd -- "$(dirname -- "$archive")" && WEFT_ARCHIVE=${archive##*/} "$TEST_TMPDIR/tree/$1" "$TEST_TMPDIR/by-name" >/dev/null)
cmp -- "$archive" "$TEST_TMPDIR/by-name/lib/libweft.a"
code=0
WEFT_ARCHIVE=absent.a "$TEST_TMPDIR/tree/$1" "$TEST_TMPDIR/never" 2>"$TEST_TMPDIR/said" || code=$?
[ "$code" = 2 ]
grep -F 'absent.a is no file' "$TEST_TMPDIR/said" >/dev/null
[ ! -e "$TEST_TMPDIR/never" ]
# Nor does one that a linker takes, and that is not weft's.
printf 'int weft_version(void);\nint weft_version(void) { return 0; }\n' >"$TEST_TMPDIR/other.c"
cc -fPIC -c "$TEST_TMPDIR/other.c" -o "$TEST_TMPDIR/other.o"
ar rc "$TEST_TMPDIR/other.a" "$TEST_TMPDIR/other.o"
: >"$TEST_TMPDIR/empty.a"
for other in other empty; do
  code=0
  WEFT_ARCHIVE=$TEST_TMPDIR/$other.a "$TEST_TMPDIR/tree/$1" "$TEST_TMPDIR/never" 2>"$TEST_TMPDIR/said" || code=$?
  [ "$code" = 2 ]
  grep -F "$other.a is not the libweft.a of this tree" "$TEST_TMPDIR/said" >/dev/null
  [ ! -e "$TEST_TMPDIR/never" ]
done
# Nor does a compiler that fails; it may be of several words.
CC='env LC_ALL=C cc' WEFT_ARCHIVE=$archive "$TEST_TMPDIR/tree/$1" "$TEST_TMPDIR/by-words" >/dev/null
code=0
CC=false WEFT_ARCHIVE=$archive "$TEST_TMPDIR/tree/$1" "$TEST_TMPDIR/never" >/dev/null 2>&1 || code=$?
[ "$code" = 1 ]
[ ! -e "$TEST_TMPDIR/never" ]

# Without one the program is there too. A double of Bazel has built already.
mkdir -p "$TEST_TMPDIR/built/cli"
cp -- "$archive" "$TEST_TMPDIR/built/libweft.a"
cp -- "$4" "$TEST_TMPDIR/built/cli/weft"
cat >"$TEST_TMPDIR/tree/bazelw" <<EOF
#!/bin/sh
case \$1 in
  build) [ "\$*" = 'build --config=cpu //:archive //:weft' ] ;;
  info) echo "$TEST_TMPDIR/built" ;;
esac
EOF
chmod +x "$TEST_TMPDIR/tree/bazelw"
"$TEST_TMPDIR/tree/$1" "$TEST_TMPDIR/whole" --config=cpu >/dev/null
version=$(PKG_CONFIG_PATH=$TEST_TMPDIR/whole/lib/pkgconfig pkg-config --modversion libweft)
"$TEST_TMPDIR/whole/bin/weft" --version | grep -F "weft $version," >/dev/null
grep -F 'WEFT 1 "" "weft '"$version" "$TEST_TMPDIR/whole/share/man/man1/weft.1" >/dev/null
[ -s "$TEST_TMPDIR/whole/share/bash-completion/completions/weft" ]

# What was installed is removed again, and nothing else; of versions before, too.
whole=$TEST_TMPDIR/whole
: >"$whole/lib/another.a"
: >"$whole/lib/libweft.so.0.0.1"
printf 'lib/libweft.so.0.0.1\n' >>"$whole/share/weft/installed.txt"
WEFT_ARCHIVE=$archive "$TEST_TMPDIR/tree/$1" "$whole" >/dev/null
python3 -m compileall -q "$whole/share/weft/weft"
"$TEST_TMPDIR/tree/$1" --uninstall "$whole" >/dev/null
left=$(cd -- "$whole" && find . ! -type d)
[ "$left" = ./lib/another.a ] || { printf 'left behind: %s\n' "$left"; exit 1; }
[ ! -e "$whole/include/weft" ]
[ -z "$(ls "$whole/share")" ]
code=0
"$TEST_TMPDIR/tree/$1" --uninstall "$whole" >/dev/null 2>&1 || code=$?
[ "$code" = 3 ]
DESTDIR=$TEST_TMPDIR/staged "$TEST_TMPDIR/tree/$1" --uninstall /opt/weft >/dev/null
[ -z "$(find "$TEST_TMPDIR/staged" ! -type d)" ]

# A path of which pkg-config cannot speak.
WEFT_ARCHIVE=$archive "$TEST_TMPDIR/tree/$1" "$TEST_TMPDIR/pre(fix" 2>&1 >/dev/null | grep -F 'does not escape' >/dev/null

command -v cmake >/dev/null || {
  echo 'SKIPPED: the rest needs cmake'
  exit 0
}
mkdir "$TEST_TMPDIR/by-cmake"
cat >"$TEST_TMPDIR/by-cmake/CMakeLists.txt" <<EOF
cmake_minimum_required(VERSION 3.10)
project(embed C)
set(CMAKE_C_FLAGS "${5:-}")
find_package(weft 0.1 REQUIRED)
foreach(kind weft shared)
  add_executable(with_\${kind} "$PWD/${examples[0]}")
  target_link_libraries(with_\${kind} PRIVATE weft::\${kind})
endforeach()
EOF
# It moves as a whole.
mv -- "$prefix" "$TEST_TMPDIR/moved away"
build=$TEST_TMPDIR/by-cmake/build
cmake -S "$TEST_TMPDIR/by-cmake" -B "$build" -DCMAKE_PREFIX_PATH="$TEST_TMPDIR/moved away" >/dev/null
cmake --build "$build" >/dev/null
for kind in weft shared; do
  "$build/with_$kind" | grep -xF "$done" >/dev/null
done
# Where /lib leads to /usr/lib it may be found by the link.
mkdir "$TEST_TMPDIR/merged"
ln -s "../moved away/lib" "$TEST_TMPDIR/merged/lib"
cmake -S "$TEST_TMPDIR/by-cmake" -B "$TEST_TMPDIR/by-link" -DCMAKE_PREFIX_PATH="$TEST_TMPDIR/merged" >/dev/null
sed -i 's/weft 0.1/weft 9.0/' "$TEST_TMPDIR/by-cmake/CMakeLists.txt"
! cmake -S "$TEST_TMPDIR/by-cmake" -B "$build" >/dev/null 2>&1 || exit 1

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# $1: a test in Python; $2: NAME=FILE, where it finds what it is about
set -euo pipefail
command -v python3 >/dev/null || {
  echo 'SKIPPED: needs python3'
  exit 0
}
export PYTHONDONTWRITEBYTECODE=1 "${2%%=*}=$PWD/${2#*=}"
exec python3 "$1"

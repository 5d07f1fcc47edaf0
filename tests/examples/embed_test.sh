#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The examples that check every byte must succeed, and say so. $1: the program.
set -eu
said=$("$1")
echo "$said"
[ "$said" = "done: every byte came back" ]

# SPDX-License-Identifier: Apache-2.0
"""What the tests are given: the program, and a seed, which is printed."""

import os
import sys

WEFT = os.path.abspath(os.environ.get("TESTED_PROGRAM", "weft"))
SEED = os.environ.get("WEFT_TEST_SEED", str(os.getpid()))
print("WEFT_TEST_SEED=" + SEED, file=sys.stderr)

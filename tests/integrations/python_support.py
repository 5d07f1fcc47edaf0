# SPDX-License-Identifier: Apache-2.0
"""What the tests of Python share."""

import os
import random
import unittest


def main():
    seed = int(os.environ.get("WEFT_TEST_SEED", "0"), 0) or random.randrange(1 << 48)
    print("WEFT_TEST_SEED=%#x" % seed, flush=True)
    random.seed(seed)
    unittest.main()

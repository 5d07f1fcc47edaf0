# SPDX-License-Identifier: Apache-2.0
"""A peer in Python, an example, with `weft peer source`: both speak one protocol."""

import os
import random
import re
import subprocess
import sys
import tempfile
import time
import unittest


class Joining(unittest.TestCase):
    def fetched(self, data, *arguments):
        """What the example writes, of a source with this input."""
        with tempfile.TemporaryDirectory() as folder:
            path, log_path = os.path.join(folder, "in"), os.path.join(folder, "log")
            with open(path, "wb") as file:
                file.write(data)
            with open(log_path, "wb") as log:
                source = subprocess.Popen(
                    [os.environ["TESTED_PROGRAM"], "peer", "source", "--input", path, *arguments,
                     "--listen", "127.0.0.1:0"], stdin=subprocess.DEVNULL, stderr=log)
            self.addCleanup(source.wait)
            self.addCleanup(source.kill)
            joined = subprocess.run(
                [sys.executable, os.environ["TESTED_EXAMPLE"], "127.0.0.1", self.port(log_path)],
                capture_output=True, check=False, timeout=50)
            self.assertEqual((joined.returncode, joined.stderr), (0, b""))
            return joined.stdout

    def port(self, log_path):
        """Where the source listens, within 20 s."""
        for _ in range(400):
            with open(log_path, encoding="utf-8") as log:
                found = re.search(r" listen=127\.0\.0\.1:(\d+)", log.read())
            if found:
                return found.group(1)
            time.sleep(0.05)
        self.fail("the source does not listen")

    def test_a_file(self):
        data = random.randbytes(1_000_003)
        self.assertTrue(self.fetched(data) == data)

    def test_on_demand(self):
        data = random.randbytes(500_001)
        self.assertTrue(self.fetched(data, "--rate", "8M") == data)


if __name__ == "__main__":
    SEED = int(os.environ.get("WEFT_TEST_SEED", "0"), 0) or random.randrange(1 << 48)
    print("WEFT_TEST_SEED=%#x" % SEED, flush=True)
    random.seed(SEED)
    unittest.main()

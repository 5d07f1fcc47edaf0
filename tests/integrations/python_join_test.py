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
    def source(self, data, *arguments):
        """A source with this input, and its port."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path, log_path = os.path.join(folder.name, "in"), os.path.join(folder.name, "log")
        with open(path, "wb") as file:
            file.write(data)
        with open(log_path, "wb") as log:
            source = subprocess.Popen(
                [os.environ["TESTED_PROGRAM"], "peer", "source", "--input", path, *arguments,
                 "--listen", "127.0.0.1:0"], stdin=subprocess.DEVNULL, stderr=log)
        self.addCleanup(source.wait)
        self.addCleanup(source.kill)
        return source, self.port(log_path)

    def port(self, log_path):
        """Where the source listens, within 20 s."""
        for _ in range(400):
            with open(log_path, encoding="utf-8") as log:
                found = re.search(r" listen=127\.0\.0\.1:(\d+)", log.read())
            if found:
                return found.group(1)
            time.sleep(0.05)
        self.fail("the source does not listen")

    def start(self, *arguments, stdout=subprocess.PIPE):
        """The example."""
        joined = subprocess.Popen([sys.executable, os.environ["TESTED_EXAMPLE"], *arguments], stdout=stdout,
                                  stderr=subprocess.PIPE)
        self.addCleanup(joined.__exit__, None, None, None)
        self.addCleanup(joined.kill)
        return joined

    def fetched(self, data, *arguments):
        """What the example writes, of a source with this input."""
        joined = self.start("127.0.0.1", self.source(data, *arguments)[1])
        out, said = joined.communicate(timeout=50)
        self.assertEqual((joined.returncode, said), (0, b""))
        return out

    def ends(self, joined, text, timeout=50):
        """With one line, and as a failure."""
        said = joined.communicate(timeout=timeout)[1].decode()
        self.assertRegex(said, text)
        self.assertEqual((joined.returncode, said.count("\n")), (1, 1), said)

    def test_a_file(self):
        data = random.randbytes(1_000_003)
        self.assertTrue(self.fetched(data) == data)

    def test_on_demand(self):
        data = random.randbytes(500_001)
        self.assertTrue(self.fetched(data, "--rate", "8M") == data)

    def test_what_cannot_be_written(self):
        reading, broken = os.pipe()
        os.close(reading)
        for file, text in (("/dev/full", "No space"), (broken, "Broken pipe")):
            with open(file, "wb") as stdout:
                port = self.source(random.randbytes(300_000))[1]
                self.ends(self.start("127.0.0.1", port, stdout=stdout), "^join: cannot write: .*%s" % text)

    def test_a_source_that_dies(self):
        source, port = self.source(random.randbytes(3_000_000), "--upload", "2M")
        joined = self.start("127.0.0.1", port)
        self.assertTrue(joined.stdout.read(1), "it wrote nothing")
        source.kill()
        self.ends(joined, "^join: the source is lost: SILENT$")

    def test_a_source_that_is_full(self):
        port = self.source(random.randbytes(3_000_000), "--upload", "2M", "--neighbours", "1")[1]
        three = [self.start("127.0.0.1", port) for _ in range(3)]  # it takes two, and has enough for ten seconds
        until = time.monotonic() + 30
        while all(joined.poll() is None for joined in three):
            self.assertLess(time.monotonic(), until, "nobody ended")
            time.sleep(0.01)
        self.ends(next(joined for joined in three if joined.poll() is not None), "^join: the source is lost: FULL$")


if __name__ == "__main__":
    SEED = int(os.environ.get("WEFT_TEST_SEED", "0"), 0) or random.randrange(1 << 48)
    print("WEFT_TEST_SEED=%#x" % SEED, flush=True)
    random.seed(SEED)
    unittest.main()

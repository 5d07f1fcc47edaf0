# SPDX-License-Identifier: Apache-2.0
"""Shards of `weft store` read, and shards for it written, by shards.py, which was made from docs/format.md."""

import os
import random
import shutil
import subprocess
import tempfile
import unittest

import shards
from fixture import WEFT, SEED

# Every code, with and without a closed form of its own; CRS with every w, and the shapes that cauchy_good has tables for.
CODES = [("vandermonde", 10, 4), ("vandermonde", 1, 0), ("vandermonde", 3, 5), ("cauchy", 10, 4), ("cauchy", 1, 1),
         ("reed_sol_van", 10, 4), ("reed_sol_van", 2, 6), ("reed_sol_van", 1, 3), ("reed_sol_van", 5, 1),
         ("isal_rs", 6, 3), ("par1", 5, 3), ("raid6", 9, 2), ("gcrs", 4, 3), ("perasure", 4, 3),
         ("perasure:w=5:packet=16", 4, 3), ("cauchy_good", 10, 4), ("cauchy_orig:w=4:packet=8", 5, 3),
         ("cauchy_orig:w=8:packet=3", 5, 3), ("cauchy_good:w=8:packet=2", 1, 5), ("cauchy_good:w=8:packet=1", 5, 0)]
CODES += [("cauchy_good:w=%d:packet=2" % w, k, m) for w in range(2, 9)
          for k, m in (((1 << w) - 2, 2), ((1 << w) - 3, 3), ((1 << w) // 2, (1 << w) // 4)) if k <= 40]


class Store(unittest.TestCase):
    def setUp(self):
        self.random = random.Random("%s %s" % (SEED, self.id()))
        self.work = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(shutil.rmtree, self.work)
        self.set = os.path.join(self.work, "set")

    def path(self, name):
        return os.path.join(self.work, name)

    def file(self, name, data):
        with open(self.path(name), "wb") as file:
            file.write(data)
        return self.path(name)

    def weft(self, call, *arguments, code=0):
        done = subprocess.run([WEFT, "store", call, *arguments], capture_output=True, check=False)
        self.assertEqual(done.returncode, code, (call, arguments, done.stderr.decode()))
        return done.stderr.decode()

    def encode(self, data, name, k, m, stripe, *options):
        self.weft("encode", "-k", str(k), "-m", str(m), "-c", name, "--stripe", str(stripe), "-d", self.set,
                  *options, self.file("in", data))

    def decoded(self, *options):
        self.weft("decode", self.set, "--output", self.path("out"), *options)
        with open(self.path("out"), "rb") as file:
            return file.read()

    def shard(self, number):
        return os.path.join(self.set, "shard-%03d.weft" % number)

    def spoil(self, path, at):
        with open(path, "r+b") as file:
            file.seek(at)
            byte = file.read(1)[0]
            file.seek(at)
            file.write(bytes([byte ^ self.random.randrange(1, 256)]))

    def set_header(self, shard, fields):
        with open(self.shard(shard), "r+b") as file:
            header = shards.read_header(file.read())._replace(**fields)
            file.seek(0)
            file.write(header.packed(header.file_key))

    def check_round_trip(self, name, k, m, length, stripe):
        with self.subTest(code=name, k=k, m=m, length=length):
            shutil.rmtree(self.set, ignore_errors=True)
            data = self.random.randbytes(length)
            self.encode(data, name, k, m, stripe)
            folder = shards.Folder(self.set)
            self.assertEqual(folder.wrong_parity(), [])
            for lost in self.random.sample(range(k + m), m):
                del folder.shards[lost]
            self.assertEqual(folder.data(), data)

    def test_every_code(self):
        for name, k, m in CODES:
            self.check_round_trip(name, k, m, 50000, 16384)

    def test_lengths(self):
        for name, k, m in (("cauchy", 10, 4), ("cauchy_good:w=3:packet=5", 4, 3), ("vandermonde", 1, 1)):
            for length, stripe in ((0, 4096), (1, 4096), (k, 4096), (10007, 65536), (900 * k, 1)):
                self.check_round_trip(name, k, m, length, stripe)

    def test_rot_is_found_and_made_good(self):
        data = self.random.randbytes(100000)
        self.encode(data, "cauchy", 5, 3, 10000)
        for at in (0, 3, 100, 200, 255):  # anywhere in a header: the shard is no shard
            shutil.copy(self.shard(6), self.path("whole"))
            self.spoil(self.shard(6), at)
            self.assertNotIn(6, shards.Folder(self.set).shards)
            shutil.copy(self.path("whole"), self.shard(6))
        os.remove(self.shard(1))
        for stripe in range(10):  # two more chunks of each stripe: byte, generation, nonce or tag
            for shard in self.random.sample([0, 2, 3, 4, 5, 6, 7], 2):
                self.spoil(self.shard(shard), 256 + stripe * 2032 + self.random.randrange(2032))
        self.assertEqual(shards.Folder(self.set).data(), data)
        os.truncate(self.shard(7), 256 + 4 * 2032 + 2031)
        self.assertIsNotNone(shards.Folder(self.set).chunk(3, 7) or shards.Folder(self.set).chunk(2, 7))
        self.assertIsNone(shards.Folder(self.set).chunk(4, 7))

    def test_header_out_of_range(self):
        data = self.random.randbytes(5000)
        for field in (dict(version=2), dict(header_bytes=300), dict(k=0), dict(shard=5), dict(zero=1), dict(keyed=2),
                      dict(chunk=0), dict(length=1 << 63), dict(generation=0), dict(generation=1 << 63),
                      dict(name=b"cauchy\0x".ljust(64, b"\0")), dict(zeros=b"0" * 32)):
            with self.subTest(field):
                shutil.rmtree(self.set, ignore_errors=True)
                shards.write(self.set, data, "cauchy", 3, 2, 500)
                self.set_header(1, field)
                self.assertNotIn(1, shards.Folder(self.set).shards)
                self.assertEqual((shards.Folder(self.set).data(), self.decoded()), (data, data))
                self.weft("verify", self.set, code=1)

    def test_header_that_differs(self):
        data = self.random.randbytes(5000)
        shards.write(self.set, data, "cauchy", 3, 2, 500)
        self.set_header(1, dict(length=4999))
        self.assertIn("shard-001.weft: its header is of this file, but differs from the others",
                      self.weft("verify", self.set, code=1))
        self.assertEqual((shards.Folder(self.set).data(), self.decoded()), (data, data))

    def test_later_version(self):
        shards.write(self.set, self.random.randbytes(5000), "cauchy", 3, 2, 500)
        for shard in range(5):
            self.set_header(shard, dict(version=2))
        self.assertIn("all 5 of its shards have a format version", self.weft("verify", self.set, code=3))

    def test_key(self):
        key = self.random.randbytes(100)
        data = self.random.randbytes(30000)
        self.encode(data, "cauchy", 4, 2, 8192, "--key", self.file("key", key))
        self.assertEqual(shards.Folder(self.set, key).data(), data)
        with self.assertRaises(ValueError):
            shards.Folder(self.set)
        with self.assertRaises(ValueError):  # all are forged
            shards.Folder(self.set, key + b"0")
        self.set_header(2, dict(generation=9))  # under no key that counts: forged, or it would be newer than the others
        self.assertEqual(sorted(shards.Folder(self.set, key).shards), [0, 1, 3, 4, 5])
        self.assertEqual((shards.Folder(self.set, key).data(), self.decoded("--key", self.path("key"))), (data, data))
        shutil.rmtree(self.set)
        shards.write(self.set, data, "cauchy", 4, 2, 777, key)
        self.assertEqual(self.decoded("--key", self.path("key")), data)
        self.weft("decode", self.set, "--output", self.path("out"), code=5)

    def test_update_and_stale_shard(self):
        data = bytearray(self.random.randbytes(60000))
        self.encode(data, "cauchy_good:w=4:packet=8", 4, 3, 8192)
        away = self.path("away")
        os.rename(self.shard(2), away)
        for at in (100, 30000):
            news = self.random.randbytes(9000)
            data[at:at + 9000] = news
            self.weft("update", self.set, "--offset", str(at), self.file("news", news))
        shutil.copy(away, self.shard(2))
        folder = shards.Folder(self.set)
        self.assertEqual((folder.generation, sorted(folder.shards)), (3, [0, 1, 3, 4, 5, 6]))
        self.assertEqual((folder.data(), folder.wrong_parity()), (data, []))
        self.weft("repair", self.set)
        folder = shards.Folder(self.set)
        self.assertEqual((len(folder.shards), folder.data(), folder.wrong_parity()), (7, data, []))

    def test_names(self):
        data = self.random.randbytes(5000)
        self.encode(data, "vandermonde", 3, 2, 1500)
        os.rename(self.shard(0), self.path("0"))
        os.rename(self.shard(3), self.shard(0))  # misplaced
        os.rename(self.path("0"), self.shard(3))
        os.rename(self.shard(1), self.shard(1) + ".new")
        os.remove(self.shard(2))
        os.remove(self.shard(4))
        self.assertEqual((shards.Folder(self.set).data(), self.decoded()), (data, data))
        os.remove(self.shard(3))
        with self.assertRaisesRegex(ValueError, "too few"):
            shards.Folder(self.set).data()

    def test_two_files_in_one_folder(self):
        """As many shards of each: the first name decides; one more of the other: the other."""
        first, second = self.random.randbytes(5000), self.random.randbytes(6000)
        shards.write(self.set, first, "cauchy", 3, 4, 500)
        shards.write(self.path("other"), second, "cauchy", 3, 4, 500)
        for shard in (3, 4, 5):
            shutil.copy(os.path.join(self.path("other"), "shard-%03d.weft" % shard), self.shard(shard))
        os.remove(self.shard(6))
        self.assertEqual((shards.Folder(self.set).data(), self.decoded()), (first, first))
        shutil.copy(os.path.join(self.path("other"), "shard-006.weft"), self.shard(6) + ".new")
        self.assertEqual((shards.Folder(self.set).data(), self.decoded()), (second, second))

    def test_what_is_written_here_is_read_there(self):
        for name, k, m, chunk in (("cauchy", 6, 3, 1000), ("reed_sol_van", 5, 4, 333), ("raid6", 4, 2, 64),
                                  ("cauchy_good:w=5:packet=16", 10, 3, 160), ("gcrs:w=4:packet=8", 4, 4, 64)):
            for length in (0, 1, chunk * k, chunk * k * 3 + 17):
                with self.subTest(code=name, length=length):
                    shutil.rmtree(self.set, ignore_errors=True)
                    data = self.random.randbytes(length)
                    shards.write(self.set, data, name, k, m, chunk)
                    self.weft("verify", self.set)
                    for lost in self.random.sample(range(k + m), m):
                        os.remove(self.shard(lost))
                    self.assertEqual(self.decoded(), data)
                    self.weft("repair", self.set)
                    folder = shards.Folder(self.set)
                    self.assertEqual((len(folder.shards), folder.wrong_parity()), (k + m, []))

    def test_journal_of_here_is_carried_out_there(self):
        old = self.random.randbytes(20000)
        new = old[:3000] + self.random.randbytes(9000) + old[12000:]
        shards.write(self.set, old, "cauchy", 4, 3, 500)
        os.rename(self.shard(3), self.path("away"))
        shards.write_journal(self.set, shards.Folder(self.set), new, [0, 1, 2, 4, 5, 6])
        os.rename(self.path("away"), self.shard(3))  # it took no part, so it is of the past
        folder = shards.Folder(self.set)
        self.assertEqual((folder.generation, 3 in folder.shards, folder.data()), (2, False, new))
        self.assertEqual(self.decoded(), new)
        self.weft("repair", self.set)
        self.assertFalse(os.path.exists(os.path.join(self.set, "update.journal")))
        folder = shards.Folder(self.set)
        self.assertEqual((folder.data(), folder.wrong_parity(), len(folder.shards)), (new, [], 7))

    def test_update_that_is_killed(self):
        old = self.random.randbytes(600000)
        new = self.random.randbytes(600000)
        self.encode(old, "cauchy", 4, 2, 16384)
        self.file("new", new)
        shutil.copytree(self.set, self.path("before"))
        seen = set()
        for _ in range(8):
            process = subprocess.Popen([WEFT, "store", "update", self.set, "--offset", "0", self.path("new")],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                process.wait(self.random.uniform(0, 0.1))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            journal = os.path.exists(os.path.join(self.set, "update.journal"))
            found = shards.Folder(self.set).data()
            self.assertIn(found, (old, new))
            self.assertEqual(self.decoded(), found)
            seen.add((found == new, journal))
            shutil.rmtree(self.set)
            shutil.copytree(self.path("before"), self.set)
        print("ends of killed updates (new, with a journal):", sorted(seen))


if __name__ == "__main__":
    unittest.main()

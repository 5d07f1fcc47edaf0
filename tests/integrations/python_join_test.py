# SPDX-License-Identifier: Apache-2.0
"""A peer in Python, an example, with `weft peer source`: both speak one protocol."""

import asyncio
import os
import random
import re
import subprocess
import sys
import tempfile
import time
import unittest

import weft
from python_support import main

sys.path.insert(0, os.path.dirname(os.path.abspath(os.environ["TESTED_EXAMPLE"])))
import join  # noqa: E402
import own_transport  # noqa: E402


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

    def fetched(self, data, *arguments, host="127.0.0.1"):
        """What the example writes, of a source with this input."""
        joined = self.start(host, self.source(data, *arguments)[1])
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
        self.assertTrue(self.fetched(data, host="localhost") == data)

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

    def test_arguments_and_addresses_that_are_none(self):
        for arguments in ((), ("127.0.0.1",), ("127.0.0.1", "7000", "more"), ("127.0.0.1", "http"), ("::1", "65536")):
            self.ends(self.start(*arguments), "^usage: join.py ADDRESS PORT$")
        for name in ("no such name", "a" * 70 + ".invalid"):
            self.ends(self.start(name, "7000"), "^join: %s: " % name)


class Meeting(unittest.TestCase):
    """The example's peers in one loop, and an end to it within a minute."""

    async def node(self, peer):
        await peer.loop.create_datagram_endpoint(lambda: peer, local_addr=("127.0.0.1", 0))
        peer.loss = 0
        return peer.transport.get_extra_info("sockname")

    def ends(self, *blobs, neighbours_max=4):
        """Why viewers of a source with these blobs, one after the other, end; None: they had all of it."""
        stream = random.randbytes(50_000)

        async def run(context):
            source = own_transport.Peer(context, weft.Identity.random(), 1)
            address = await self.node(source)
            source.start(weft.EngineOptions(
                stream=1, blocks=8, block_bytes=1024, window=64, congestion=True, neighbours_max=neighbours_max,
                datagram_overhead=weft.Sessions.OVERHEAD_BYTES + 28), source=True)
            viewers = []
            for blob in blobs:
                source.sessions.set_blob(blob)
                viewers.append(join.Viewer(context))
                viewers[-1].write = bytearray().__iadd__
                await self.node(viewers[-1])
                viewers[-1].connect(address)
                waiting = [asyncio.ensure_future(event.wait()) for event in (source.met, viewers[-1].done)]
                await asyncio.wait(waiting, timeout=60, return_when=asyncio.FIRST_COMPLETED)
                source.met.clear()
            if source.link:
                source.begin(stream)
            await own_transport.everyone([viewer.done for viewer in viewers])
            for peer in (source, *viewers):
                peer.close()
            return [viewer.ends for viewer in viewers]

        with weft.Context() as context:
            return asyncio.run(run(context))

    @staticmethod
    def blob(**changed):
        return join.BLOB.pack(*join.Stream(**{"role": join.SOURCE, "blocks": 8, "block_bytes": 1024, "stream": 1,
                                              **changed}))

    def test_one_more_than_there_is_room_for(self):
        self.assertEqual(self.ends(self.blob(), self.blob(), neighbours_max=1), [None, "the source is lost: FULL"])

    def test_streams_of_another_kind(self):
        for blob, text in ((self.blob(version=2), "another version.*: 2$"),
                           (self.blob(version=3) + b"more", "another version.*: 3$"),
                           (self.blob(mode=7), "of an unknown kind: 7 is not a valid Mode$"),
                           (self.blob(blocks=0), "of an unknown kind: WEFT_E_ARGUMENT"),
                           (self.blob(role=join.JOINING), "no stream at that address$"),
                           (b"", "no stream at that address$")):
            self.assertRegex(self.ends(blob)[0], text)


if __name__ == "__main__":
    main()

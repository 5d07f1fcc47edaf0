# SPDX-License-Identifier: Apache-2.0
"""`weft peer` with viewer.py and source.py, which follow docs/protocol.md, docs/session.md, docs/wire.md and
docs/peer/tracker.md."""

import os
import random
import re
import shutil
import subprocess
import tempfile
import threading
import time
import unittest

import packets
from fixture import SEED, WEFT
from source import Source
from viewer import Viewer, announce, known, listed, mapped

FETCH, ON_DEMAND, LIVE = range(3)
LOSS = 0.2
LISTENS = r" listen=127\.0\.0\.1:(\d+)"


class Peer(unittest.TestCase):
    def setUp(self):
        self.random = random.Random("%s %s" % (SEED, self.id()))
        self.work = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(shutil.rmtree, self.work)
        self.data = self.random.randbytes(300001)
        with open(os.path.join(self.work, "in"), "wb") as file:
            file.write(self.data)

    def start(self, *arguments, stdin=subprocess.DEVNULL):
        log = tempfile.NamedTemporaryFile(dir=self.work, delete=False)
        process = subprocess.Popen([WEFT, "peer", *arguments, "--listen", "127.0.0.1:0"], cwd=self.work, stdin=stdin,
                                   stderr=log)
        process.log = log.name
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.addCleanup(log.close)
        return process

    def said(self, process, pattern):
        """What the pattern's group finds in the log, within 20 s."""
        for _ in range(400):
            with open(process.log, encoding="utf-8") as file:
                text = file.read()
            found = re.search(pattern, text)
            if found:
                return found.group(1)
            time.sleep(0.05)
        self.fail("no %s in %s" % (pattern, text))

    def viewer_of(self, process):
        port = int(self.said(process, LISTENS))
        viewer = Viewer(("127.0.0.1", port), lambda: self.random.random() < LOSS)
        self.addCleanup(lambda: viewer.socket.close())
        return viewer

    def test_fetch(self):
        source = self.start("source", "--input", "in")
        viewer = self.viewer_of(source)
        self.assertEqual(viewer.run(30), self.data)
        self.assertEqual((viewer.stream.mode, viewer.stream.role), (FETCH, 2))
        self.assertEqual(viewer.stream.source.hex(), self.said(source, r" key=([0-9a-f]{64})"))
        self.assertEqual(viewer.modes, {packets.SYSTEMATIC, packets.DENSE})
        self.assertEqual(source.wait(10), 0)  # it took the word that all is here

    def test_on_demand_with_another_address_on_the_way(self):
        source = self.start("source", "--input", "in", "--rate", "2M")
        viewer = self.viewer_of(source)
        heard, moved = viewer.hear_packet, []

        def hear_packet(message):
            heard(message)
            if len(viewer.output) > 100000 and not moved:
                viewer.socket.close()
                viewer.move()
                moved.append(len(viewer.output))
        viewer.hear_packet = hear_packet
        self.assertEqual(viewer.run(30), self.data)
        self.assertEqual((viewer.stream.mode, viewer.stream.length, viewer.stream.rate), (ON_DEMAND, 300001, 2000000))
        self.assertTrue(moved)

    def test_peer_that_recodes(self):
        source = self.start("source", "--input", "in", "--rate", "1M")
        port = self.said(source, LISTENS)
        peer = self.start("join", "--source", "127.0.0.1:" + port, "--output", "out", "--startup", "0")
        self.said(peer, r"(info stream)")
        viewer = self.viewer_of(peer)
        self.assertEqual(viewer.run(30), self.data)
        self.assertEqual((viewer.stream.role, viewer.modes), (1, {packets.VECTOR}))

    def test_live_with_checksums(self):
        self.data = self.data[:4 * 64 * 1024]  # whole segments: a manifest of none tells the end
        source = self.start("source", "--input", "-", "--checksums", "on", "--lag", "10s", stdin=subprocess.PIPE)
        viewer = self.viewer_of(source)

        def feed():
            for at in range(0, len(self.data), 60000):
                time.sleep(0.3)
                source.stdin.write(self.data[at:at + 60000])
                source.stdin.flush()
            source.stdin.close()
        feeder = threading.Thread(target=feed)
        feeder.start()
        self.addCleanup(feeder.join)
        self.assertEqual(viewer.run(30), self.data)
        self.assertEqual(viewer.stream.mode, LIVE)
        self.assertGreater(viewer.checked(), 0)

    def test_tracker(self):
        tracker = self.start("tracker")
        address = "127.0.0.1", int(self.said(tracker, LISTENS))
        source = self.start("source", "--input", "in", "--rate", "2M", "--tracker", "%s:%d" % address)
        port = int(self.said(source, LISTENS))
        found = []
        for _ in range(100):
            found = found or listed(address, 10)
            if not found:
                time.sleep(0.1)
        self.assertEqual(found, [("::ffff:127.0.0.1", port)])
        # On demand it tells those who ask for the stream which node is the source, and lists that first.
        viewer = Viewer(("127.0.0.1", port))
        viewer.run(30)
        stream = viewer.stream.stream
        with known(address, 10, announce(7)), known(address, 10, announce(stream)) as message:
            self.assertEqual((message[2], message[3]), (1, 1))
            self.assertEqual(int.from_bytes(message[28:30], "big"), port)

    def test_mapped_port(self):
        """The tracker tells of the port at the router, if the router has the address that it sees."""
        tracker = self.start("tracker")
        address = "127.0.0.1", int(self.said(tracker, LISTENS))
        with known(address, 10, mapped("::ffff:127.0.0.1", 7), announce(5)):
            self.assertEqual(listed(address, 10), [("::ffff:127.0.0.1", 7)])
        with known(address, 10, mapped("::ffff:127.0.0.2", 7), announce(6)):
            [(seen, port)] = listed(address, 10)
            self.assertEqual(seen, "::ffff:127.0.0.1")
            self.assertNotEqual(port, 7)

    def check_own_source(self, mode, rate):
        """Two peers of a source that is Python: each takes from it and from the other."""
        source = Source(self.data, mode, rate, 50, 700, lambda: self.random.random() < LOSS)
        source.start()
        self.addCleanup(source.stop)
        address = "127.0.0.1:%d" % source.port
        first = self.start("join", "--source", address, "--source-key", source.identity.public.hex(), "--output", "1")
        port = self.said(first, LISTENS)
        second = self.start("join", "--source", address + ",127.0.0.1:" + port, "--output", "2", "--startup", "0")
        self.assertEqual((first.wait(30), second.wait(30)), (0, 0))
        for name in "12":
            with open(os.path.join(self.work, name), "rb") as file:
                self.assertEqual(file.read(), self.data)
        self.assertIsNone(source.error)
        for _ in range(100):
            closed = [neighbour.link.closed for neighbour in source.neighbours.values()]
            time.sleep(0 if all(closed) else 0.05)
        self.assertTrue(closed and all(closed), closed)

    def test_own_source_to_fetch(self):
        self.check_own_source(FETCH, 0)

    def test_own_source_on_demand(self):
        self.check_own_source(ON_DEMAND, 2000000)


if __name__ == "__main__":
    unittest.main()
